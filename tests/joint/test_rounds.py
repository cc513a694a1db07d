"""Weights that settle from round to round, and weights that swing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dxml.joint._rounds import weigh_in_rounds

FIRST, SECOND = np.arange(60) < 30, np.arange(60) >= 30


def top(mixed: Any, size: int) -> Any:
    return np.argsort(-mixed, kind="stable")[:size]


def rounds(weigh: Any) -> Any:
    right = np.arange(60) % 2 == 0
    return weigh_in_rounds(weigh, top, FIRST.astype(np.float32), right, np.ones(60, bool))


def test_labels_of_all_rounds_are_weighed_where_weights_swing() -> None:
    """Each half is pushed down where it alone was seen; only both together tell the truth."""

    def weigh(shown: Any) -> Any:
        if FIRST[shown].any() and SECOND[shown].any():
            return "both", np.arange(60, dtype=np.float32)
        other = SECOND if FIRST[shown].any() else FIRST
        return "one", other.astype(np.float32)

    found = rounds(weigh)
    assert found.mixture == "both" and not found.settled
    assert FIRST[found.weighed].any() and SECOND[found.weighed].any()


@pytest.mark.parametrize(("kept", "settled"), [(9, True), (8, False)])
def test_settled_is_where_most_labels_were_weighed_before(kept: int, settled: bool) -> None:
    """Every round replaces one label of ten near the top, or two."""

    def weigh(shown: Any) -> Any:
        scores = np.zeros(60, dtype=np.float32)
        scores[shown[:kept]] = 2
        scores[np.setdiff1d(np.arange(60), shown)[: 10 - kept]] = 1
        return "any", scores

    assert rounds(weigh).settled == settled
