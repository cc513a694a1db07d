"""The best threshold, and labels above one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.metrics import best_threshold, label_scores, threshold_curve
from dxml.topk import TopK


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_has_a_higher_f1(seed: int) -> None:
    """Tried one by one, with scores that tie and rows that end early."""
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix(rng.random((30, 8)) < 0.3)
    indices = np.argsort(rng.random((30, 8)), axis=1)[:, :5].astype(np.int32)
    scores = np.sort(rng.integers(0, 9, (30, 5)) / 8, axis=1)[:, ::-1].astype(np.float32)
    indices[:3, 3:] = -1
    ranking = TopK(indices, np.where(indices < 0, 0, scores).astype(np.float32))
    tried = {}
    for threshold in np.unique(ranking.scores):
        given = [(i, j) for i in range(30) for j, s in ranking.row(i) if s >= threshold]
        right = sum(bool(Y[pair]) for pair in given)
        tried[float(threshold)] = (
            right / len(given),
            right / Y.nnz,
            2 * right / (len(given) + Y.nnz),
        )
    best = best_threshold(Y, ranking)
    assert best.f1 == pytest.approx(max(f1 for _, _, f1 in tried.values()))
    assert best[1:] == pytest.approx(tried[best.threshold])
    curve = threshold_curve(Y, ranking)
    for step in range(101):
        given = [
            (i, j) for i in range(30) for j, s in ranking.row(i) if s >= np.float32(step / 100)
        ]
        assert curve.given[step] == len(given)
        assert curve.right[step] == sum(bool(Y[pair]) for pair in given)
    assert curve.carried == Y.nnz and curve.best().f1 <= best.f1 + 1e-12
    counts = label_scores(Y, ranking, best.threshold)
    assert counts.carried.tolist() == Y.toarray().sum(axis=0).tolist()
    assert counts.right.sum() / counts.given.sum() == pytest.approx(best.precision)


def test_nothing_to_choose_from() -> None:
    empty = TopK(np.full((2, 1), -1, np.int32), np.zeros((2, 1), np.float32))
    nothing = sp.csr_matrix((2, 3), dtype=bool)
    assert best_threshold(nothing, empty).f1 == 0
    curve = threshold_curve(nothing, empty)
    assert set(curve.given + curve.right) == {0} and curve.best() == (0, 0, 0, 0)
