"""The known points: neighbours and shortlists by hand, and what changes when points come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.blocks import running_on
from dxml._neighbors import cosine
from dxml._neighbors.cosine import Neighbours
from dxml.joint import _points as module
from dxml.joint._points import EmbeddedSpace, FeatureSpace, Known, Near, Space
from dxml.topk import tie_order


def embed(X: sp.csr_matrix, device: str) -> torch.Tensor:
    """Unit rows of the first ten features and a constant."""
    dense = torch.from_numpy(np.hstack([X[:, :10].toarray(), np.full((X.shape[0], 1), 0.1)]))
    return torch.nn.functional.normalize(dense.float()).to(device)


@pytest.fixture(params=["features", "embedded"])
def either(request: pytest.FixtureRequest, known: Known) -> Known:
    """The known points in a space of each kind, some of whose features are searched."""
    space: Space = FeatureSpace(known.points, np.arange(40) % 3 > 0)
    if request.param == "embedded":
        space = EmbeddedSpace(known.points, embed)
    return replace(known, space=space)


def test_each_point_is_taken_off_its_own_list() -> None:
    ids = np.array([[0, 2, 1], [2, 1, 0], [0, 1, 3], [-1, -1, -1]], np.int32)
    cosines = np.float32([[1, 0.5, 0.2], [1, 0.9, 0.1], [0.9, 0.8, 0.7], [0, 0, 0]])
    found, near = Near(ids, cosines).without(np.arange(4))
    assert found.tolist() == [[2, 1], [2, 0], [0, 1], [-1, -1]]
    assert near.tolist() == np.float32([[0.5, 0.2], [1, 0.1], [0.9, 0.8], [0, 0]]).tolist()


def test_the_nearest_of_some_queries() -> None:
    near = Near(np.array([[0, 2, 1], [2, 1, 0]], np.int32), np.float32([[3, 2, 1], [6, 5, 4]]))
    assert near.first(2).ids.tolist() == [[0, 2], [2, 1]]
    assert near.first(2).cosines.tolist() == [[3, 2], [6, 5]]
    assert near.first(9).ids.tolist() == near.ids.tolist()
    last = near.rows(np.array([False, True]))
    assert (last.ids.tolist(), last.cosines.tolist()) == ([[2, 1, 0]], [[6, 5, 4]])


def test_shortlists_by_hand() -> None:
    Y = sp.csr_matrix(np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]], dtype=bool))
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    place = tie_order(np.array([1, 3, 2, 0]))
    known = Known(X, Y, place, FeatureSpace(X, np.ones(3, bool)))
    ids = np.array([[0, 1, 2], [1, -1, -1], [-1, -1, -1]], np.int32)
    # Squares of the cosines: label 0 gets 0.64, label 1 gets 0.25 + 0.25, label 2 gets 0.25
    near = Near(ids, np.float32([[0.8, 0.5, 0.5], [0.3, 0, 0], [0, 0, 0]]))
    found = known.shortlist(near, 2)
    assert found.shape == (3, 4)
    assert [row.tolist() for row in np.split(found.indices, found.indptr[1:-1])] == [
        [0, 1],
        [1, 2],
        [1, 2],  # nobody near: the most frequent
    ]
    assert known.shortlist(near, 1)[0].indices.tolist() == [0]
    assert known.shortlist(near, 99)[0].indices.tolist() == [0, 1, 2]
    assert known.shortlist(near, 99)[2].indices.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("block", "most"), [(8, 8), (12, 18), (64, 30)])
def test_shortlists_of_all_points_hold_few_neighbours_at_a_time(
    either: Known, monkeypatch: pytest.MonkeyPatch, block: int, most: int
) -> None:
    """They are those of one search of all 30 points, made of searches of some."""
    found = either.search(either.points, 6, "cpu").without(np.arange(30))
    expected, searched = either.shortlist(found, 4), []
    search = Known.search

    def counted(self: Known, X: sp.csr_matrix, n_neighbors: int, device: str) -> Near:
        searched.append(X.shape[0])
        return search(self, X, n_neighbors, device)

    monkeypatch.setattr(module, "OWN_BLOCK", block)
    monkeypatch.setattr(Known, "search", counted)
    made = either.own_shortlists(5, 4, "cpu")
    assert (sum(searched), max(searched)) == (30, most)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))


class Cores:
    """A cluster of some cores that runs blocks here; its results cannot be written to."""

    def __init__(self, n_cores: int) -> None:
        self.n_cores, self.sizes = n_cores, list[int]()

    def run(self, function: Any, shared: Any, blocks: Any) -> Any:
        for block in blocks:
            self.sizes.append(block.shape[0])
            with running_on(None):
                found = function(shared, block)
            for array in found:
                array.flags.writeable = False
            yield found

    def run_each(self, make: Any, items: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("n_cores", "device", "most", "blocks"),
    [
        (0, "cpu", 8, []),
        (1, "cpu", 8, [2] * 15),  # two blocks of two points are fewer than are held without it
        (3, "cpu", 12, [2] * 15),  # searched as 12 and 18
        (40, "cpu", 30, [2] * 15),
        (40, "cuda", 8, [2] * 15),  # a search on a GPU gives the cluster nothing
    ],
)
def test_a_cluster_searches_two_blocks_a_core_at_a_time(
    known: Known, monkeypatch: pytest.MonkeyPatch, n_cores: int, device: str, most: int, blocks: Any
) -> None:
    """The shortlists have the same bits."""
    expected, asked, voted = known.own_shortlists(5, 4, "cpu"), [], []
    search, shortlist = Known.search, Known.shortlist

    def searching(self: Known, X: sp.csr_matrix, n_neighbors: int, device: str) -> Near:
        asked.append(X.shape[0])
        return search(self, X, n_neighbors, device)

    def voting(self: Known, near: Near, size: int) -> sp.csr_matrix:
        voted.append(len(near.ids))
        return shortlist(self, near, size)

    monkeypatch.setattr(module, "OWN_BLOCK", 8)
    for each in (module, cosine):
        monkeypatch.setattr(each, "MOST_SEARCHED", 2)
    monkeypatch.setattr(Known, "search", searching)
    monkeypatch.setattr(Known, "shortlist", voting)
    cluster = Cores(n_cores)
    with running_on(cluster if n_cores else None):
        found = known.own_shortlists(5, 4, device)
    assert asked[0] == most and sum(asked) == 30
    assert cluster.sizes == blocks and sum(voted) == 30 and max(voted) <= 12
    for name in ("indptr", "indices", "data"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_core_of_a_large_cluster_has_two_blocks() -> None:
    assert module.searched_at_a_time(0) == module.searched_at_a_time(8) == module.OWN_BLOCK
    assert module.searched_at_a_time(128) == 2 * 128 * cosine.MOST_SEARCHED == 1_048_576


def test_rows_are_searched_by_the_chosen_features(known: Known) -> None:
    searched = np.arange(40) % 2 > 0
    known = replace(known, space=FeatureSpace(known.points, searched))
    dense = known.points.toarray() * searched
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-9)
    cosines = dense[:6] @ dense.T
    ids, found = known.search(known.points[:6], 99, "cpu")
    assert ids.shape == (6, 30)
    np.testing.assert_allclose(found, -np.sort(-cosines, axis=1), atol=1e-6)
    for i in range(6):
        near = ids[i][ids[i] >= 0]
        assert len(near) == (cosines[i] > 0).sum()
        np.testing.assert_allclose(cosines[i, near], found[i, : len(near)], atol=1e-6)


def test_rows_are_searched_in_a_space(known: Known) -> None:
    space = EmbeddedSpace(known.points, embed)
    places = embed(known.points, "cpu").numpy()
    ids, cosines = space.search(known.points[:9], 4, "cpu")
    expected = -np.sort(-(places[:9] @ places.T), axis=1)[:, :4]
    np.testing.assert_allclose(cosines, expected, atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(places[:9] @ places.T, ids, 1), cosines, 1e-5)
    assert ids.dtype == np.int32 and cosines.dtype == np.float32


def test_labels_that_points_carry(known: Known) -> None:
    assert known.carried.tolist() == known.labels.toarray().any(axis=0).tolist()
    assert known.carried[1] and not known.carried[2]
    assert (known.n_points, known.n_labels) == (30, 8)


@pytest.mark.parametrize("asked_before", [False, True])
def test_points_come_and_go(either: Known, asked_before: bool) -> None:
    """As if they had been there from the beginning, or never; the old ones stay as they were."""
    first, last = np.arange(30) < 20, np.arange(30) >= 20
    if asked_before:
        either.search(either.points[:2], 3, "cpu")
    old = either.drop(first)
    near, every = old.search(either.points, 20, "cpu"), either.search(either.points, 30, "cpu")
    for i in range(30):
        kept = (every.ids[i] >= 0) & (every.ids[i] < 20)
        np.testing.assert_allclose(near.cosines[i, : kept.sum()], every.cosines[i, kept], atol=1e-6)
        assert near.ids[i].max() < 20
    assert (old.points != either.points[first]).nnz == 0 and old.n_points == 20
    wider = sp.hstack([either.labels[last], np.ones((10, 1), bool)], format="csr")
    grown = old.add(either.points[last], wider)
    assert (grown.points != either.points).nnz == 0
    assert (grown.labels[:, :8] != either.labels).nnz == 0
    assert grown.labels[:, 8].toarray().ravel().tolist() == last.tolist()
    counts = np.asarray(grown.labels.sum(axis=0)).ravel()
    assert grown.tie_order.tolist() == tie_order(counts).tolist()
    ours, theirs = (each.search(either.points, 30, "cpu") for each in (grown, either))
    np.testing.assert_allclose(ours.cosines, theirs.cosines, atol=1e-6)
    assert (old.n_points, old.n_labels, either.n_points) == (20, 8, 30)


def hidden(known: Known, *rows: int) -> Known:
    found = known.hide(np.array(rows))
    assert found is not None
    return found


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_hidden_point_is_as_good_as_dropped(known: Known, asked_before: bool) -> None:
    """The same bits, but for the numbers of the rows; then more points come and the holes go."""
    kept = ~np.isin(np.arange(30), [0, 4, 29])
    if asked_before:
        known.search(known.points[:2], 3, "cpu")
    dropped, holes = known.drop(kept), hidden(hidden(known, 4), 0, 29)
    assert holes.held is known.held and holes.labels is known.labels, "nothing is copied"
    more = known.points[[4, 7]], known.labels[[4, 8]]
    for fewer, left in ((dropped, holes), (dropped.add(*more), holes.add(*more))):
        assert (left.n_points, left.n_rows) == (fewer.n_points, fewer.n_points + 3)
        assert left.counts.tolist() == fewer.counts.tolist()
        assert left.tie_order.tolist() == fewer.tie_order.tolist()
        ours, theirs = (each.search(known.points, 40, "cpu") for each in (left, fewer))
        found = theirs.ids >= 0
        assert np.array_equal(ours.cosines, theirs.cosines) and np.array_equal(ours.ids >= 0, found)
        assert left.holes.number_of(ours.ids[found]).tolist() == theirs.ids[found].tolist()
        whole = left.without_holes
        assert (whole.points != fewer.points).nnz == 0 and whole.n_rows == fewer.n_rows
        assert (whole.labels != fewer.labels).nnz == 0 and not len(whole.holes)
    assert known.n_points == 30 and (known.search(known.points, 30, "cpu").ids == 4).any()


def test_dense_and_embedded_points_are_not_hidden(known: Known) -> None:
    dense = sp.csr_matrix(1 + np.random.default_rng(0).random((9, 4), dtype=np.float32))
    for space in (FeatureSpace(dense, np.ones(4, bool)), EmbeddedSpace(known.points, embed)):
        space.search(space.points[:1], 1, "cpu")
        assert space.hide(np.array([1])) is None


def test_dense_points_that_were_never_searched_are_hidden() -> None:
    """They are searched as sparse ones then."""
    dense = sp.csr_matrix(1 + np.random.default_rng(0).random((9, 4), dtype=np.float32))
    space = FeatureSpace(dense, np.ones(4, bool)).hide(np.array([1]))
    assert space is not None
    assert sorted(space.search(dense[:1], 9, "cpu").ids[0].tolist()) == [-1, 0, *range(2, 9)]


def test_a_label_is_taken_off(known: Known) -> None:
    row = 4
    label = int(known.labels[row].indices[-1])
    found = known.unlabel(row, label)
    expected = known.labels.toarray()
    assert expected[row, label]
    expected[row, label] = False
    assert np.array_equal(found.labels.toarray(), expected)
    assert found.tie_order.tolist() == tie_order(expected.sum(axis=0)).tolist()
    assert known.labels[row, label], "the old points stay as they were"
    assert found.space is known.space


def rare_rows(n: int, seed: int, columns: int = 60) -> sp.csr_matrix:
    rows = sp.random(n, columns, 0.1, format="csr", dtype=np.float32, random_state=seed)
    rows.sort_indices()
    return rows


def test_points_added_one_by_one_are_found_like_those_of_one_index() -> None:
    searched = np.arange(60) % 5 > 0
    points, queries = rare_rows(80, 0), rare_rows(20, 1)
    space = FeatureSpace(points, searched)
    spaces = [space]
    for seed in range(60):
        space.search(queries, 10, "cpu")  # the index is there when a point comes
        more = rare_rows(1 + seed % 2, 100 + seed)
        points = sp.csr_matrix(sp.vstack([points, more]))
        space = space.add(more, points)
        spaces.append(space)
    assert 1 < len(space._runs) <= 6
    for each in spaces[::7]:
        whole = FeatureSpace(each.points, searched).search(queries, 10, "cpu")
        found = each.search(queries, 10, "cpu")
        assert np.array_equal(found.ids, whole.ids)
        assert np.array_equal(found.cosines, whole.cosines)


def test_few_points_are_indexed_for_a_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    """A work count: of 2,000 points and 100 lessons, each is indexed a few times."""
    indexed: list[int] = []

    class Counting(Neighbours):
        def __init__(self, points: sp.csr_matrix) -> None:
            indexed.append(points.shape[0])
            super().__init__(points)

    monkeypatch.setattr(module, "Neighbours", Counting)
    points, query = rare_rows(2000, 0), rare_rows(1, 1)
    known = Known(
        points,
        sp.csr_matrix((2000, 3), dtype=bool),
        tie_order(np.zeros(3)),
        FeatureSpace(points, np.ones(60, bool)),
    )
    known.search(query, 5, "cpu")
    assert indexed == [2000]
    for seed in range(100):
        known = known.add(rare_rows(1, seed), sp.csr_matrix([[True, False, seed % 2 > 0]]))
        known.search(query, 5, "cpu")
    assert sum(indexed) - 2000 < 100 * 20
    assert known.counts.tolist() == [100, 0, 50] and known.tie_order.tolist() == [0, 2, 1]
    indexed.clear()
    for row in range(0, 1000, 10):
        known = hidden(known, row)
        known.search(query, 5, "cpu")
    assert not indexed and known.n_points == 2000, "no point is indexed because others go"


def test_a_wider_space_keeps_its_index() -> None:
    points, queries = rare_rows(80, 0), rare_rows(20, 1)
    space = FeatureSpace(points, np.ones(60, bool))
    before = space.search(queries, 10, "cpu")
    wider = space.widen(63)
    assert wider._runs[0].index is not None and space.points.shape == (80, 60)
    found = wider.search(rare_rows(20, 1), 10, "cpu")
    assert np.array_equal(found.ids, before.ids)
    new = sp.csr_matrix((np.float32([1]), ([0], [62])), shape=(1, 63))
    space = wider.add(new, sp.csr_matrix(sp.vstack([wider.points, new])))
    assert space.search(new, 2, "cpu").ids.tolist() == [[80, -1]]
