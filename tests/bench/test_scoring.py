"""Scores worked out by hand, and a cache that notices another ranking."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.bench import _scoring as scoring
from dxml.bench._results import Store, Stored
from dxml.bench._scoring import Truth, score_all, scores_of
from dxml.bench._sources import load_parts
from dxml.bench._spec import Run
from dxml.metrics import calibration_error, evaluate, inverse_propensity
from dxml.metrics._bands import label_bands
from dxml.topk import TopK

from .conftest import PLANTED

TRUTH = Truth(
    sp.csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)),
    np.array([1.0, 2.0, 2.0, 4.0]),
    np.array([0, 1, 1, 2], dtype=np.int8),
)
RUN = Run(PLANTED, 1, "knn", (), 0)


def test_bands_hold_a_third_each() -> None:
    assert label_bands(np.array([3, 3, 3])).tolist() == [0, 1, 2]
    assert label_bands(np.array([0, 10, 1, 1])).tolist() == [2, 0, 2, 2]
    frequency = np.arange(200)
    bands = label_bands(frequency)
    shares = [frequency[bands == band].sum() / frequency.sum() for band in range(3)]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.01)
    assert frequency[bands == 0].min() > frequency[bands == 2].max()


def test_scores_by_hand(put: Callable[..., Stored]) -> None:
    stored = put(RUN, [[0, 2, 1], [3, 0, -1]])
    found = scores_of(stored, TRUTH)
    assert found["scores"]["P@1"] == 100.0
    assert found["scores"]["P@3"] == pytest.approx(50.0)  # (2/3 + 1/3) / 2
    assert found["scores"]["PSP@1"] == pytest.approx(100 * (1 + 4) / (2 + 4))
    assert "P@5" not in found["scores"]  # three places were stored
    bands = found["bands"]
    assert bands["head"] == {"labels": 1, "occurrences": 1, "found@1": 100.0, "found@3": 100.0}
    assert bands["torso"] == {"labels": 2, "occurrences": 2, "found@1": 0.0, "found@3": 50.0}
    assert bands["tail"]["found@1"] == 100.0


def test_the_cache_belongs_to_one_ranking(
    put: Callable[..., Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = put(RUN, [[0, 2, 1], [3, 0, -1]])
    first = scores_of(stored, TRUTH)
    monkeypatch.setattr(scoring, "compute", lambda *_: pytest.fail("computed again"))
    assert scores_of(stored, TRUTH) == first
    monkeypatch.undo()
    again = put(RUN, [[2, 3, 1], [3, 0, -1]])
    (again.folder / "scores.json").write_text(json.dumps(first))  # of the earlier ranking
    assert scores_of(again, TRUTH)["scores"]["P@1"] == 50.0
    monkeypatch.setattr(scoring, "VERSION", scoring.VERSION + 1)
    monkeypatch.setattr(scoring, "compute", lambda *_: {"scores": {"new": 1.0}, "bands": {}})
    assert scores_of(again, TRUTH)["scores"] == {"new": 1.0}  # no new run was needed


def test_scores_are_those_of_the_library(store: Store, put: Callable[..., Stored]) -> None:
    train, test = load_parts(PLANTED, 1)
    ranking = np.tile(np.arange(6, dtype=np.int32), (test.n_samples, 1))
    put(RUN, ranking)
    ((_, found),) = score_all(list(store))
    weights = inverse_propensity(train.Y.getnnz(axis=0), train.n_samples)
    errors = {name: found["scores"].pop(name) for name in ("ECE@1", "ECE@3", "ECE@5")}
    assert found["scores"] == evaluate(test.Y, ranking, inverse_propensity=weights)
    scored = TopK(ranking, np.ones(ranking.shape, dtype=np.float32))
    assert errors["ECE@5"] == 100 * calibration_error(test.Y, scored, 5)
