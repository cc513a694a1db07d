"""The frequency of a label: by hand, and as points come and go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dxml.joint._ensemble import every_pair
from dxml.joint._points import Known
from dxml.joint.parts._frequency import Frequency
from dxml.joint.parts.protocol import Data, Lesson, Options, Query, Task


def said(part: Frequency, known: Known, n: int = 1) -> npt.NDArray[np.float32]:
    """The scores of every label of n points."""
    X = known.points[:n]
    near = known.search(X, 2, "cpu")
    pairs = every_pair(n, len(part.counts))
    return part.scores(Query(X, near, pairs, True, known, "cpu"))


def test_by_hand(known: Known) -> None:
    found = said(Frequency(np.array([3, 1, 0]), 3), known)
    np.testing.assert_allclose(found, np.log([4 / 4, 2 / 4, 1 / 4]), rtol=1e-6)
    assert found.dtype == np.float32


def test_it_is_that_of_the_points_to_learn_from(known: Known, options: Options) -> None:
    rows = np.arange(30) < 12
    data = Data(known.points, known.labels)
    held_out = Frequency.fit(Task(data, options, rows), {})
    counts = known.labels.toarray()[rows].sum(axis=0)
    np.testing.assert_allclose(said(held_out, known), np.log((1 + counts) / 13), rtol=1e-6)
    every = Frequency.fit(Task(data, options), {})
    assert np.array_equal(said(every, known), said(Frequency.of(known), known))
    assert not np.array_equal(said(every, known), said(held_out, known))


def test_every_point_gets_the_same(known: Known) -> None:
    part = Frequency.of(known)
    assert np.array_equal(said(part, known, 3), np.tile(said(part, known), 3))


def test_points_come_and_go(known: Known, options: Options) -> None:
    part = Frequency.of(known)
    X, Y = known.points[:5], known.labels[:5]
    after = known.add(X, Y)
    grown = part.add(Lesson(X, Y, known, after, options))
    counts = known.labels.toarray().sum(axis=0) + Y.toarray().sum(axis=0)
    np.testing.assert_allclose(said(grown, known), np.log((1 + counts) / 36), rtol=1e-6)
    kept = np.arange(35) < 30
    dropped = grown.drop(kept, after.drop(kept))
    assert np.array_equal(said(dropped, known), said(part, known))
    hidden = after.hide(np.arange(30, 35))
    assert hidden is not None
    assert np.array_equal(said(grown.hide(hidden), known), said(part, known))
    label = int(known.labels[0].indices[0])
    fewer = said(part.unlabel(0, label, known.unlabel(0, label), options), known)
    changed = np.flatnonzero(fewer != said(part, known))
    assert changed.tolist() == [label] and fewer[label] < said(part, known)[label]
