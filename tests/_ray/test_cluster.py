"""Blocks on a cluster: their order, what is sent, and what goes wrong."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.blocks import run_blocks, running_on, spread
from dxml._core.cluster import IN_FLIGHT, RayCluster, _sent_size, _size, ray_cluster
from dxml.exceptions import ClusterError, DataFormatError
from dxml.topk import TopK

from .nodes import Nodes

pytestmark = pytest.mark.ray

LARGE = 3_000_000  # bytes of a block, and of its result


def test_results_come_in_order_and_what_is_shared_goes_once(nodes: Nodes) -> None:
    def scaled(shared: tuple[Any, ...], block: int) -> Any:
        array, factor = shared
        return float(array.sum()) * factor + block

    array, more = np.ones(1_000_000), np.ones(1_000_000)
    with ray_cluster(nodes.address) as cluster:
        assert spread()
        for _ in range(2):
            assert list(run_blocks(scaled, (array, 2), range(9))) == [
                2e6 + block for block in range(9)
            ]
        assert array.nbytes < cluster.traffic.shared < 1.1 * array.nbytes
        assert cluster.traffic.blocks == 18
        list(run_blocks(scaled, (more, 2), range(2)))
        assert cluster.traffic.shared > 2 * array.nbytes
        kept = set(cluster._put)
        del more
        assert len(kept) == 2 and set(cluster._put) == {id(array)}
    assert not spread()


def test_one_block_alone_is_run_here(nodes: Nodes) -> None:
    here = threading.get_ident()
    with ray_cluster(nodes.address) as cluster:
        assert list(run_blocks(lambda *_: threading.get_ident(), (), [0])) == [here]
        assert cluster.traffic.blocks == 0


def test_what_is_in_flight_stays_under_the_stated_size(nodes: Nodes) -> None:
    made = 0

    def blocks() -> Any:
        nonlocal made
        for made in range(1, 41):
            yield np.full(LARGE // 8, made, dtype=np.float64)

    with ray_cluster(nodes.address) as cluster:
        most = 0.0
        for taken, result in enumerate(run_blocks(lambda _, block: block + 1, (), blocks())):
            assert result[0] == taken + 2 and made - taken <= 3
            total, free = cluster.ray.cluster_resources(), cluster.ray.available_resources()
            store = "object_store_memory"
            most = max(most, total[store] - free.get(store, total[store]))
        assert cluster.traffic.sent == pytest.approx(40 * LARGE, rel=0.01)
        assert cluster.traffic.received == pytest.approx(40 * LARGE, rel=0.01)
        assert most < IN_FLIGHT * cluster.n_cores
        assert 3 * LARGE < cluster.traffic.most_in_flight < IN_FLIGHT * cluster.n_cores


def test_an_error_of_ours_comes_back_as_it_is(nodes: Nodes) -> None:
    def refuse(shared: Any, block: int) -> int:
        if block == 3:
            raise DataFormatError("block 3 is not what it should be.")
        return block

    with ray_cluster(nodes.address), pytest.raises(DataFormatError, match="^block 3 is not what"):
        list(run_blocks(refuse, (), range(5)))


def test_a_process_that_dies_is_replaced(nodes: Nodes, tmp_path: Path) -> None:
    def die_once(shared: Any, block: int) -> int:
        import os

        mark = tmp_path / str(block)
        if block % 2 and not mark.exists():
            mark.touch()
            os._exit(1)
        return block

    with ray_cluster(nodes.address):
        assert list(run_blocks(die_once, (), range(4))) == [0, 1, 2, 3]


def test_a_block_that_always_kills_its_process_is_an_error(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(shared: Any, block: int) -> None:
        import os

        os._exit(1)

    monkeypatch.setattr("dxml._core.cluster.RETRIES", 1)
    message = "a block of work was lost 2 times on the Ray cluster"
    with ray_cluster(nodes.address), pytest.raises(ClusterError, match=message):
        list(run_blocks(die, (), range(2)))


def test_a_node_with_another_version_is_refused(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dxml._core.cluster.__version__", "99.0")
    with pytest.raises(ClusterError, match="has dxml .*, here is 99.0. Install the same version"):
        ray_cluster(nodes.address).__enter__()


def test_a_cluster_that_is_started_for_the_time() -> None:
    with ray_cluster("local") as cluster:
        addresses = [node["NodeManagerAddress"] for node in cluster.ray.nodes()]
        assert addresses == ["127.0.0.1"] and cluster.n_cores > 0
        assert list(run_blocks(lambda _, block: block, (), range(3))) == [0, 1, 2]


@pytest.mark.parametrize("address", ["nowhere", "host:", ":80", "ray"])
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ClusterError, match=f"host:port, auto or local, got '{address}'"):
        ray_cluster(address).__enter__()


def test_a_cluster_that_does_not_answer() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray cluster could be reached at '{address}'"):
            ray_cluster(address).__enter__()


def test_a_cluster_without_a_core_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an imitation of Ray whose nodes have all died after a block was given to them."""
    monkeypatch.setattr("dxml._core.cluster.PATIENCE", 20.0)
    cancelled: list[str] = []

    class Timeout(Exception):
        pass

    def get(reference: str, timeout: float) -> None:
        raise Timeout

    ray = SimpleNamespace(
        remote=lambda **_: lambda _: SimpleNamespace(remote=lambda *_: "block"),
        cluster_resources=dict,
        get=get,
        cancel=lambda reference, force: cancelled.append(reference),
        exceptions=SimpleNamespace(GetTimeoutError=Timeout),
    )
    with pytest.raises(ClusterError, match="the Ray cluster has no core left"):
        list(RayCluster(ray).run(lambda _, block: block, (), range(2)))
    assert cancelled == ["block"]


def test_sizes_are_those_of_what_is_sent() -> None:
    matrix = sp.random(300, 50, 0.2, format="csr", dtype=np.float32, random_state=0)
    ranking = TopK(np.zeros((100, 5), np.int32), np.zeros((100, 5), np.float32))
    values = {
        "matrix": matrix,
        "pair": (ranking, np.ones(1000)),
        "texts": [f"text {i}" for i in range(500)],
    }
    for value in (*values.values(), values):
        assert _size(value) == pytest.approx(_sent_size(value), rel=0.4, abs=400)


def test_blocks_inside_a_block_run_where_it_runs(nodes: Nodes) -> None:
    def inner(shared: Any, block: int) -> int:
        return sum(run_blocks(lambda _, number: number, (), range(block)))

    with ray_cluster(nodes.address) as cluster, running_on(cluster):
        assert list(run_blocks(inner, (), range(4))) == [0, 0, 1, 3]
        assert cluster.traffic.blocks == 4
