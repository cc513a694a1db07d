"""Groups of labels judged by hand."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dxml.metrics._bands import LabelGroup, judge_groups, label_bands

TRUTH = sp.csr_matrix(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]], dtype=bool))
RANKING = np.array([[0, 2], [0, 3], [1, -1]])


def test_groups_by_hand() -> None:
    groups = judge_groups(TRUTH, RANKING, 2, np.array([0, 1, 1, 1]), 2)
    assert groups == [
        LabelGroup(1, 2, 2, (2, 2), (1, 1)),  # label 0: named for points 0 and 1, right once
        LabelGroup(3, 3, 2, (1, 3), (0, 1)),  # labels 1 to 3: point 0 has one, point 1 two
    ]
    assert [groups[0].recall(1), groups[0].precision(1)] == [50, 50]
    assert [groups[1].recall(2), groups[1].precision(2)] == [100 / 3, 100 / 3]


def test_a_group_that_nothing_is_known_of_scores_nothing() -> None:
    assert LabelGroup(2, 0, 0, (0,), (0,)).recall(1) == 0
    assert LabelGroup(2, 0, 0, (0,), (0,)).precision(1) == 0


def test_groups_add_up_to_all_labels() -> None:
    rng = np.random.default_rng(0)
    Y = sp.random(50, 30, 0.1, "csr", random_state=rng).astype(bool)
    ranking = np.argsort(rng.random((50, 30)), axis=1)[:, :4]
    bands = label_bands(np.bincount(Y.indices, minlength=30))
    parts = judge_groups(Y, ranking, 4, bands, 3)
    (whole,) = judge_groups(Y, ranking, 4, np.zeros(30, dtype=int), 1)
    assert sum(part.occurrences for part in parts) == whole.occurrences == Y.nnz
    assert sum(part.right[3] for part in parts) == whole.right[3]
    assert whole.predicted == (50, 100, 150, 200) and whole.points == (np.diff(Y.indptr) > 0).sum()
