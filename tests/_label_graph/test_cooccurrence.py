"""Counts of contexts against naive loops."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._label_graph.cooccurrence import WalkIndex, count_row, index_walks

from .naive import N_LABELS, WINDOW, naive_counts


def context_counts(index: WalkIndex, centres, column_of, n_columns: int) -> np.ndarray:
    counts = np.zeros((len(centres), n_columns), np.int64)
    for centre, row in zip(centres, counts, strict=True):
        count_row(*index.arrays, centre, column_of, row)
    return counts


@pytest.mark.parametrize("window", [1, 3, 10])
def test_context_counts_against_naive_loops(walks, window):
    index = index_walks(walks, N_LABELS, window)
    everything = np.arange(N_LABELS, dtype=np.int32)
    expected = naive_counts(walks, N_LABELS, window)
    np.testing.assert_array_equal(context_counts(index, everything, everything, N_LABELS), expected)
    np.testing.assert_array_equal(index.context_totals(), expected.sum(1))
    np.testing.assert_array_equal(index.counts, np.bincount(walks.ravel(), minlength=N_LABELS))


def test_context_counts_of_some_rows_and_columns(walks):
    index = index_walks(walks, N_LABELS, WINDOW)
    column_of = np.full(N_LABELS, -1, np.int32)
    column_of[[5, 2]] = [0, 1]
    expected = naive_counts(walks, N_LABELS, WINDOW)[[7, 1]][:, [5, 2]]
    np.testing.assert_array_equal(context_counts(index, np.array([7, 1]), column_of, 2), expected)
