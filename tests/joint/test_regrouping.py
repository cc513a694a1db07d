"""Labels that are merged or deleted, whatever parts a model has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.data import Dataset
from dxml.exceptions import DataFormatError
from dxml.joint import Joint
from dxml.methods import load_model
from dxml.metrics import precision_at_k

PLANS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "kernel, linear": {"C": 1.0},
    "linear": {"candidates": "nearest", "width": 0},
    "linear, trees": {"candidates": "nearest", "width": 0, "n_trees": 2},
    "wide": {"candidates": "all", "width": 64, "epochs": 8},
    "all, int8": {"candidates": "nearest", "width": 64, "epochs": 8, "precision": "int8"},
}
SPLIT, TWIN = 3, 12  # a third of the points of label 3 carry label 12 instead


def split(Y: sp.csr_matrix) -> sp.csr_matrix:
    """With label 3 taken apart."""
    dense = np.pad(Y.toarray(), ((0, 0), (0, 1)))
    moved = np.flatnonzero(dense[:, SPLIT])[::3]
    dense[moved, TWIN], dense[moved, SPLIT] = True, False
    both = np.flatnonzero(dense[:, TWIN])[0]
    dense[both, SPLIT] = True  # one point carries both
    return sp.csr_matrix(dense)


@pytest.fixture(scope="module", params=sorted(PLANS))
def fitted(request: pytest.FixtureRequest, planted: Dataset) -> Joint:
    model = Joint(device="cpu", **PLANS[request.param])
    return model.fit(planted.X[:400], split(planted.Y[:400]))


@pytest.fixture
def model(fitted: Joint, tmp_path: Path) -> Joint:
    opened = load_model(fitted.save(tmp_path / "m"))
    assert isinstance(opened, Joint)
    return opened


def test_a_label_that_was_taken_apart_is_put_together(model: Joint, planted: Dataset) -> None:
    X, Y = planted.X[400:], planted.Y[400:]
    own = np.asarray(Y[:, [SPLIT]].todense()).ravel() & (np.diff(Y.indptr) == 1)
    whole = Joint(**model.get_params()).fit(planted.X[:400], planted.Y[:400])
    before = model.predict_topk(X, 1)
    model.merge_labels([SPLIT, TWIN])
    assert (model.n_labels_, model.n_samples_) == (12, 400)
    assert (model.train_labels_ != planted.Y[:400]).nnz == 0
    assert model.label_frequency_.tolist() == whole.label_frequency_.tolist()
    ours, theirs = (each.predict_topk(X, 1) for each in (model, whole))
    assert (ours.indices[own, 0] == SPLIT).mean() >= (theirs.indices[own, 0] == SPLIT).mean() - 0.05
    assert precision_at_k(Y, ours, 1)[0] > precision_at_k(Y, theirs, 1)[0] - 0.04
    others = before.indices[:, 0] != TWIN
    assert (ours.indices[others, 0] == before.indices[others, 0]).mean() > 0.95


def test_a_deleted_label_is_gone_and_the_others_stay(model: Joint, planted: Dataset) -> None:
    X = planted.X[400:]
    before = model.predict_topk(X, 2).indices
    model.delete_labels([SPLIT])
    after = model.predict_topk(X, 1).indices[:, 0]
    first = np.where(before[:, 0] == SPLIT, before[:, 1], before[:, 0])
    assert (after == np.where(first > SPLIT, first - 1, first)).mean() > 0.98
    assert model.n_labels_ == 12 and model.label_frequency_.min() > 0
    with pytest.raises(DataFormatError, match="cannot lose all of its labels"):
        model.delete_labels(range(12))
    with pytest.raises(DataFormatError, match="give labels of 0 to 11, got 12"):
        model.merge_labels([1, 12])


def test_a_regrouped_model_is_saved_and_taught(
    model: Joint, planted: Dataset, tmp_path: Path
) -> None:
    model.partial_fit(planted.X[400:410], [[13]] * 10)
    model.merge_labels([0, 13]).delete_labels([5])
    again = load_model(model.save(tmp_path / "again"))
    ours, theirs = (each.predict_topk(planted.X[410:], 5) for each in (model, again))
    assert (ours.indices == theirs.indices).mean() > 0.99
    assert ours.scores == pytest.approx(theirs.scores, abs=1e-3)
    model.partial_fit(planted.X[410:412], [[12]] * 2)
    model.catch_up()
    assert model.n_labels_ == 13
