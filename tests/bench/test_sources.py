"""The data of a run."""

from __future__ import annotations

import numpy as np

from dxml.bench._sources import load_parts, n_splits
from dxml.data import make_planted

PLANTED = "planted:n_samples=100,n_features=40,n_labels=6,n_test=30"


def test_generated_data_is_cut_by_split() -> None:
    train, test = load_parts(PLANTED, 1)
    assert (train.n_samples, test.n_samples) == (70, 30)
    again, _ = load_parts(PLANTED, 1)
    other, _ = load_parts(PLANTED, 2)
    assert (train.X != again.X).nnz == 0
    assert (train.X != other.X).nnz > 0
    whole = make_planted(100, 40, 6)
    assert train.Y.nnz + test.Y.nnz == whole.Y.nnz


def test_validation_points_come_from_the_training_part() -> None:
    train, test = load_parts(PLANTED, 1)
    kept, held = load_parts(PLANTED, 1, "validation")
    assert (kept.n_samples, held.n_samples) == (56, 14)
    rows = {tuple(row) for row in train.X.toarray().round(6).tolist()}
    assert all(tuple(row) in rows for row in held.X.toarray().round(6).tolist())
    tested = {tuple(row) for row in test.X.toarray().round(6).tolist()}
    assert not any(tuple(row) in tested for row in held.X.toarray().round(6).tolist())


def test_a_twin_has_the_shape_of_its_original() -> None:
    train, test = load_parts("twin:bibtex,n_samples=50", 1)
    assert train.n_samples + test.n_samples == 50 and test.n_samples == 10
    assert (train.n_features, train.n_labels) == (1836, 159)
    assert n_splits("twin:bibtex") == 1 and n_splits("bibtex") == 10
    assert np.diff(train.Y.indptr).mean() > 1.5


def test_a_twin_is_cut_as_its_original() -> None:
    train, test = load_parts("twin:wiki10-31k,share=0.02", 1)
    assert (train.n_samples, test.n_samples) == (283, 132)
    train, test = load_parts("twin:wiki10-31k,share=0.02,n_test=20,noise=0.9", 1)
    assert (train.n_samples, test.n_samples) == (283, 20)
    assert (train.n_features, train.n_labels) == (2039, 619)
