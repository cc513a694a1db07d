"""The vote of the nearest points: by hand, and as held-out points choose it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._neighbors.cosine import cosine_weights
from dxml.joint._ensemble import every_pair
from dxml.joint._points import FeatureSpace, Known, Near, tie_order_of
from dxml.joint.parts._vote import Vote
from dxml.joint.parts.protocol import Data, Options, Query, Task, Trial


def known_points(Y: Any) -> Known:
    labels = sp.csr_matrix(np.asarray(Y, dtype=bool))
    X = sp.csr_matrix(np.eye(labels.shape[0], 5, dtype=np.float32))
    return Known(X, labels, tie_order_of(labels), FeatureSpace(X, np.ones(5, bool)))


def test_the_vote_alone_ranks_by_its_power() -> None:
    known = known_points([[1, 0], [0, 1], [0, 1]])
    near = Near(np.array([[0, 1, 2]], np.int32), np.float32([[0.9, 0.6, 0.6]]))
    query = Query(known.points[:1], near, every_pair(1, 2), True, known, "cpu")
    for power, best in ((1.0, 1), (2.0, 0)):  # 0.9 : 1.2, and 0.81 : 0.72
        said = Vote(3, power).scores(query)
        assert np.argmax(said) == best
        weights = cosine_weights(*near, power)[0]
        assert said == pytest.approx([weights[0], weights[1:].sum()])
        assert said.sum() == pytest.approx(1)
    assert Vote(1, 1.0).scores(query).tolist() == [1, 0], "only the nearest votes"


def test_weights_of_voters_by_hand() -> None:
    near = Near(np.array([[0, 1, -1]], np.int32), np.float32([[0.8, 0.4, 0]]))
    np.testing.assert_allclose(Vote(3, 2.0).weights(near), [[0.8, 0.2, 0]], atol=1e-6)


def test_voters_are_chosen_on_held_out_points(options: Options) -> None:
    """The first ten neighbours know the answer, the others all say label 0."""
    Y = np.zeros((200, 3), dtype=bool)
    Y[np.arange(200), np.where(np.arange(200) < 20, 1 + np.arange(200) % 2, 0)] = True
    known = known_points(Y)
    ids = np.stack([[*range(i, 20, 2), *range(20, 110)] for i in (0, 1)]).astype(np.int32)
    cosines = np.full(ids.shape, 0.5, np.float32)
    truth = sp.csr_matrix(np.array([[0, 1, 0], [0, 0, 1]], dtype=bool))
    task = Task(Data(known.points, known.labels), options)
    held = Trial(task, known.points[:2], truth, known, Near(ids, cosines))
    chosen, [part] = Vote.choose([held], {})
    assert chosen["n_neighbors"] == 10 and part == Vote(**chosen)
    far = cosines.copy()
    far[:, 10:] = 0.45
    # Two against eight: (0.5 / 0.45)ᵖ > 4 from p = 13.2 on.
    second = replace(held, near=Near(ids[:, 8:], far[:, 8:]))
    assert Vote.choose([second], {})[0] == {"n_neighbors": 10, "power": 16.0}
    # A fold that does not mind leaves the choice to the other, and is given it.
    alike = Near(ids[:, :92] % 20 // 2 * 2, far[:, :92])
    same = sp.csr_matrix(np.array([[0, 1, 0], [0, 1, 0]], dtype=bool))
    easy = replace(held, Y=same, near=alike)
    chosen, parts = Vote.choose([easy, second], {})
    assert chosen == {"n_neighbors": 10, "power": 16.0}
    assert list(parts) == [Vote(10, 16.0)] * 2


def test_with_fewer_neighbours_all_of_them_may_vote(options: Options) -> None:
    known = known_points(np.eye(6, 3))
    task = Task(Data(known.points, known.labels), options)
    near = Near(np.array([[0, 1, 2]], np.int32), np.float32([[0.9, 0.5, 0.5]]))
    trial = Trial(task, known.points[:1], known.labels[:1], known, near)
    assert Vote.choose([trial], {})[0]["n_neighbors"] == 3
