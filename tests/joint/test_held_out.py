"""Which points are held out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dxml.exceptions import DataFormatError
from dxml.joint._held_out import LEAST_GROUPS, MOST_HELD, HeldOut, hold_out, hold_out_groups
from dxml.metrics import ThresholdCurve


def test_small_data_are_held_out_in_turn() -> None:
    """As many points as large data hold out at once, or all of them."""
    for n, fraction, sizes in (
        (19, 0.2, []),
        (300, 0.2, [60] * 5),
        (303, 0.2, [60] * 5),
        (4880, 0.2, [976] * 2),
        (9_999, 0.2, [1999]),
        (10_000, 0.5, [2000]),
        (50_000, 0.2, [2000]),
        (40, 0.05, [2] * 5),
    ):
        folds = [fold.held for fold in hold_out(n, fraction, 0)]
        assert [held.sum() for held in folds] == sizes
        assert all(held.shape == (n,) for held in folds)
        assert not folds or np.sum(folds, axis=0).max() == 1, "a point was held out twice"
        again = [fold.asked for fold in hold_out(n, fraction, 0)]
        assert all(np.array_equal(*pair) for pair in zip(folds, again, strict=True))
    held = hold_out(300, 0.2, 0)[0].held
    assert hold_out(300, 0.2, 1)[0].held[held].sum() < 60
    assert len(hold_out(300, 0.2, 0, most_folds=1)) == 1


@pytest.mark.parametrize(
    ("sizes", "held"),
    [
        ([10] * 30, [60] * 5),
        ([100, 100, 100], [100] * 3),
        ([250, 50], [50]),
        ([150, 150], [150] * 2),
        ([1] * 12_000, [2000]),
        ([3000] * 8, [3000] * 5),
        ([5, 14], []),
    ],
)
def test_groups_are_held_out_whole(sizes: list[int], held: list[int]) -> None:
    """In turn where they are few, and one that is most of the points never."""
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    folds = hold_out_groups(groups, 0.2, 0)
    assert [fold.held.sum() for fold in folds] == held
    assert sum(fold.asked.sum() for fold in folds) == min(MOST_HELD, sum(held))
    for fold in folds:
        assert not np.intersect1d(groups[fold.held], groups[~fold.held]).size
        assert fold.held[fold.asked].all() and fold.whole_groups
    if folds:
        assert np.sum([fold.held for fold in folds], axis=0).max() == 1, "held out twice"
        found = len({int(group) for fold in folds for group in groups[fold.held]})
        assert found >= min(LEAST_GROUPS, sum(2 * size <= len(groups) for size in sizes))
        assert len(hold_out_groups(groups, 0.2, 0, most_folds=1)) == 1
        again = hold_out_groups(groups, 0.2, 0)
        assert all(np.array_equal(a.asked, b.asked) for a, b in zip(folds, again, strict=True))


def test_what_is_not_of_one_group_must_be_enough_to_hold_out() -> None:
    with pytest.raises(DataFormatError, match=r"281 of 300 points are of one group, and 20 of oth"):
        hold_out_groups(np.repeat([0, 1], [281, 19]), 0.2, 0)
    [fold] = hold_out_groups(np.repeat([0, 1], [280, 20]), 0.2, 0)
    assert fold.held.tolist() == [False] * 280 + [True] * 20


def test_what_is_kept_is_read_again() -> None:
    curve = ThresholdCurve(4, (6, 2, 0), (3, 2, 0))
    for held in (HeldOut(7, {1: 50.0}, curve), HeldOut(7, {1: 50.0, 3: 20.5})):
        assert HeldOut.from_state(json.loads(json.dumps(held.state()))) == held
    state = HeldOut(7, {1: 50.0}, curve).state()
    for wrong in ({"given": [1]}, {"right": ["a", "b", "c"]}, {"carried": -1}):
        with pytest.raises(ValueError, match="must"):
            HeldOut.from_state(state | {"curve": state["curve"] | wrong})
