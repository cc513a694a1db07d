"""Nodes that are processes of this machine, one of which may be killed while it works."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dxml._core.blocks import running_on
from dxml._core.cluster import RayCluster

STORE = 100_000_000  # bytes of a node's object store
PATIENCE = 120.0  # seconds for a block to arrive at a node


class Nodes:
    """A cluster: a head without cores, where the driver is, and nodes of one core."""

    def __enter__(self) -> Nodes:
        from ray.cluster_utils import Cluster

        head = {
            "num_cpus": 0,
            "object_store_memory": STORE,
            "include_dashboard": False,
            "_system_config": {"health_check_period_ms": 500},  # a dead node is soon missed
        }
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.add()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.shutdown()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def add(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=STORE)

    @contextmanager
    def another(self) -> Iterator[Any]:
        """Inside there is one node more."""
        node = self.add()
        try:
            yield node
        finally:
            if node in self.cluster.worker_nodes:
                self.cluster.remove_node(node)

    @contextmanager
    def killing(self, cluster: RayCluster, stage: str, folder: Path) -> Iterator[Killing]:
        """Inside, blocks run on two nodes, of which one is killed while it works at a `stage`."""
        with self.another() as node:
            killing = Killing(self, node, cluster, stage, folder)
            with running_on(killing):
                yield killing


def content(folder: Path) -> tuple[Any, bytes]:
    """Of a saved model: its config without times and the name of a file, and its arrays."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    arrays = (folder / config["arrays"].pop("file")).read_bytes()
    return _without(config, {"seconds", "sha256"}), arrays


def _without(value: Any, names: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without(own, names) for name, own in value.items() if name not in names}


class Killing:
    """A runner whose node dies in the middle of a block, once, at a stage."""

    def __init__(
        self, nodes: Nodes, doomed: Any, inner: RayCluster, stage: str, folder: Path
    ) -> None:
        self.nodes, self.doomed, self.inner, self.stage = nodes, doomed, inner, stage
        self.started = folder / "started"  # is there once the node has begun with a block
        self.finished = folder / "finished"  # a line for each block that a node has finished
        self.results = 0

    @property
    def n_cores(self) -> int:
        return self.inner.n_cores

    def run(
        self,
        function: Callable[[Any, Any], Any],
        shared: tuple[Any, ...],
        blocks: Iterable[Any],
    ) -> Iterator[Any]:
        if function.__name__ != self.stage or self.started.exists():
            yield from self.inner.run(function, shared, blocks)
            return
        slow = _stuck_on(self.doomed.node_id, function, self.started, self.finished)
        yield from self._counted(self.inner.run(slow, shared, blocks))

    def run_each(self, make: Callable[[], Callable[[Any], Any]], items: Any) -> Iterator[Any]:
        doomed, started, finished = self.doomed.node_id, self.started, self.finished

        def slow() -> Callable[[Any], Any]:
            function = make()
            run = _stuck_on(doomed, lambda _, item: function(item), started, finished)
            return lambda item: run(None, item)

        yield from self._counted(self.inner.run_each(slow, items))

    def _counted(self, results: Iterator[Any]) -> Iterator[Any]:
        """Meanwhile the node is killed, once it has begun."""
        over = threading.Event()
        killer = threading.Thread(target=self._kill, args=(over,))
        killer.start()
        try:
            for result in results:
                self.results += 1
                yield result
        finally:
            over.set()
            killer.join()

    def _kill(self, over: threading.Event) -> None:
        end = time.monotonic() + PATIENCE
        while not self.started.exists() and time.monotonic() < end and not over.is_set():
            time.sleep(0.05)
        self.nodes.cluster.remove_node(self.doomed, allow_graceful=False)

    def check(self) -> None:
        """The node was killed at a block, and every block was finished elsewhere, once."""
        assert self.started.exists()
        assert self.results > 2
        assert len(self.finished.read_text().splitlines()) == self.results


def _stuck_on(
    node: str, function: Callable[[Any, Any], Any], started: Path, finished: Path
) -> Callable[[Any, Any], Any]:
    """`function`, which on one node never ends, and on others waits for that one to begin."""

    def run(shared: Any, block: Any) -> Any:
        import ray

        if ray.get_runtime_context().get_node_id() == node:
            started.touch()
            time.sleep(10 * PATIENCE)
        end = time.monotonic() + PATIENCE
        while not started.exists() and time.monotonic() < end:
            time.sleep(0.05)
        result = function(shared, block)
        with finished.open("a") as file:
            file.write("1\n")
        return result

    return run
