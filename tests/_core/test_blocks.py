"""Blocks of work: cut without gaps, run in order, and given to a runner only where that helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.blocks import (
    cluster_cores,
    cut,
    cut_rows,
    run_blocks,
    run_each,
    run_pairs,
    running_on,
    spread,
)


class Noting:
    """A runner that says what it was given."""

    n_cores = 3

    def __init__(self) -> None:
        self.given: list[Any] = []

    def run(
        self, function: Callable[[Any, Any], Any], shared: tuple[Any, ...], blocks: Iterable[Any]
    ) -> Iterator[Any]:
        for block in blocks:
            self.given.append(block)
            yield function(shared, block)

    def run_each(self, make: Callable[[], Callable[[Any], Any]], items: Any) -> Iterator[Any]:
        self.given += items
        return map(make(), items)


def add(shared: tuple[int], block: int) -> int:
    return shared[0] + block


@pytest.mark.parametrize(("n", "given"), [(0, []), (1, []), (3, [0, 1, 2])])
def test_a_runner_gets_more_than_one_block(n: int, given: list[int]) -> None:
    runner, expected = Noting(), [10 + block for block in range(n)]
    assert list(run_blocks(add, (10,), range(n))) == expected
    with running_on(runner):
        assert spread()
        assert list(run_blocks(add, (10,), range(n))) == expected
    assert not spread() and runner.given == given


def test_there_are_cores_where_a_cluster_is_open() -> None:
    assert cluster_cores() == 0
    with running_on(Noting()):
        assert cluster_cores() == 3
    assert cluster_cores() == 0


def test_blocks_are_made_when_their_turn_comes() -> None:
    made = []

    def blocks() -> Iterator[int]:
        for block in range(5):
            made.append(block)
            yield block

    results = run_blocks(add, (0,), blocks())
    assert next(results) == 0 and made == [0]


def test_an_item_stays_with_its_result() -> None:
    """Also where a runner asks for blocks before it gives results."""

    class Ahead(Noting):
        def run(self, function: Any, shared: Any, blocks: Any) -> Iterator[Any]:
            return super().run(function, shared, list(blocks))

    items = ["4", "7", "5"]
    with running_on(Ahead()):
        found = run_pairs(add, (10,), items, int)
        assert list(found) == [("4", 14), ("7", 17), ("5", 15)]


@pytest.mark.parametrize(("n", "made", "given"), [(0, 0, 0), (1, 1, 0), (3, 1, 3)])
def test_a_function_is_made_once_for_all_items(n: int, made: int, given: int) -> None:
    runner, made_here, made_there = Noting(), [], []

    def maker(made: list[int]) -> Callable[[], Callable[[int], int]]:
        def make() -> Callable[[int], int]:
            made.append(1)
            return lambda item: item * 2

        return make

    expected = [2 * item for item in range(n)]
    assert list(run_each(maker(made_here), range(n))) == expected
    with running_on(runner):
        assert list(run_each(maker(made_there), range(n))) == expected
    assert len(made_here) == len(made_there) == made and len(runner.given) == given


@pytest.mark.parametrize("most", [1, 5, 12, 10**6])
@pytest.mark.parametrize("count", [None, 1, 3])
def test_cuts_have_no_gaps_and_keep_their_size(most: int, count: int | None) -> None:
    sizes = np.random.default_rng(0).integers(0, 9, 50)
    runs = list(cut(sizes, most, count))
    assert np.concatenate([np.arange(50)[run] for run in runs]).tolist() == list(range(50))
    for run, after in zip(runs, [*runs[1:], None], strict=True):
        n = run.stop - run.start
        assert n == 1 or (sizes[run].sum() <= most and n <= (count or 50))
        if after is not None and n != count:  # and no run could have taken one more
            assert sizes[run.start : run.stop + 1].sum() > most


def test_rows_are_cut_by_their_bytes() -> None:
    X = sp.random(40, 30, 0.3, format="csr", dtype=np.float32, random_state=0)
    blocks = list(cut_rows(X, 7))
    assert [block.shape[0] for block in blocks] == [7] * 5 + [5]
    assert (sp.vstack(blocks) != X).nnz == 0
    assert len(list(cut_rows(X, 100, more=1 << 23))) == 40  # two rows are over 16 MB
    for whole in (X, X[:0]):
        assert next(cut_rows(whole, 100)) is whole


def test_a_matrix_with_room_can_be_sent() -> None:
    import pickle

    from dxml._core.sparse import append_rows

    grown = append_rows(sp.eye(3, format="csr"), sp.eye(3, format="csr"))
    sent = pickle.loads(pickle.dumps(grown))
    assert (sent != grown).nnz == 0
    assert append_rows(sent, sp.eye(3, format="csr")).shape == (9, 3)
