"""Which points are held out."""

from __future__ import annotations

import numpy as np

from dxml.joint._held_out import hold_out


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
