"""Which points are held out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dxml.joint._held_out import HeldOut, hold_out
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
        folds = hold_out(n, fraction, 0)
        assert [held.sum() for held in folds] == sizes
        assert all(held.shape == (n,) for held in folds)
        assert not folds or np.sum(folds, axis=0).max() == 1, "a point was held out twice"
        again = hold_out(n, fraction, 0)
        assert all(np.array_equal(*pair) for pair in zip(folds, again, strict=True))
    held = hold_out(300, 0.2, 0)[0]
    assert hold_out(300, 0.2, 1)[0][held].sum() < 60
    assert len(hold_out(300, 0.2, 0, most_folds=1)) == 1


def test_what_is_kept_is_read_again() -> None:
    curve = ThresholdCurve(4, (6, 2, 0), (3, 2, 0))
    for held in (HeldOut(7, {1: 50.0}, curve), HeldOut(7, {1: 50.0, 3: 20.5})):
        assert HeldOut.from_state(json.loads(json.dumps(held.state()))) == held
    state = HeldOut(7, {1: 50.0}, curve).state()
    for wrong in ({"given": [1]}, {"right": ["a", "b", "c"]}, {"carried": -1}):
        with pytest.raises(ValueError, match="must"):
            HeldOut.from_state(state | {"curve": state["curve"] | wrong})
