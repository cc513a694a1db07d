"""The frequency of a label: by hand, and as points come and go."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dxml.joint._ensemble import every_pair
from dxml.joint._points import Known
from dxml.joint.parts._frequency import Frequency, log_frequency
from dxml.joint.parts.protocol import Data, Lesson, Options, Query, Task


def test_by_hand() -> None:
    labels = sp.csr_matrix(np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0]], dtype=bool))
    found = log_frequency(labels)
    np.testing.assert_allclose(found, np.log([4 / 4, 2 / 4, 1 / 4]), rtol=1e-6)
    assert found.dtype == np.float32


def test_it_is_that_of_the_points_to_learn_from(known: Known, options: Options) -> None:
    rows = np.arange(30) < 12
    data = Data(known.points, known.labels)
    held_out = Frequency.fit(Task(data, options, rows), {})
    assert np.array_equal(held_out.by_label, log_frequency(known.labels[rows]))
    every = Frequency.fit(Task(data, options), {})
    assert np.array_equal(every.by_label, log_frequency(known.labels))
    assert not np.array_equal(every.by_label, held_out.by_label)


def test_every_point_gets_the_same(known: Known) -> None:
    part = Frequency(log_frequency(known.labels))
    X = known.points[:3]
    near = known.search(X, 2, "cpu")
    query = Query(X, near, every_pair(3, 8), True, known, "cpu")
    assert np.array_equal(part.scores(query), np.tile(part.by_label, 3))


def test_points_come_and_go(known: Known, options: Options) -> None:
    part = Frequency(log_frequency(known.labels))
    X, Y = known.points[:5], known.labels[:5]
    after = known.add(X, Y)
    grown = part.add(Lesson(X, Y, known, after, options))
    counts = known.labels.toarray().sum(axis=0) + Y.toarray().sum(axis=0)
    np.testing.assert_allclose(grown.by_label, np.log((1 + counts) / 36), rtol=1e-6)
    kept = np.arange(35) < 30
    dropped = grown.drop(kept, after.drop(kept))
    assert np.array_equal(dropped.by_label, part.by_label)
    label = int(known.labels[0].indices[0])
    fewer = part.unlabel(0, label, known.unlabel(0, label), options)
    changed = np.flatnonzero(fewer.by_label != part.by_label)
    assert changed.tolist() == [label] and fewer.by_label[label] < part.by_label[label]
