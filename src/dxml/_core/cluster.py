"""Blocks of work on a Ray cluster.

What all blocks share is put into Ray's object store once, and the processes of a machine read it
there without a copy. Of blocks and results at most `IN_FLIGHT` bytes a core exist at a time. Blocks
of a machine that died are run again by Ray, from the same arguments.
"""

from __future__ import annotations

import os
import socket
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, is_dataclass
from pickle import PickleBuffer
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from dxml import __version__
from dxml._core.blocks import BLOCK_BYTES, running_on
from dxml._core.cluster_pool import pooled
from dxml._core.threads import numba_threads
from dxml.exceptions import ClusterError, DxmlError

__all__ = ["IN_FLIGHT", "RayCluster", "Traffic", "open_cluster", "ray_cluster"]

AHEAD = 2  # blocks a core that were given to the cluster and whose results were not yet taken
IN_FLIGHT = AHEAD * 2 * BLOCK_BYTES
"""Bytes of blocks and results a core that exist at a time, at most."""
RETRIES = 5  # times that a block is run again after its process or machine died
ANSWER = 10.0  # seconds in which a cluster must answer
NUMBER = 8  # bytes of a number
LOOK = 5.0  # seconds without a result, after which we look whether there is a core
PATIENCE = 60.0  # seconds without a core in the cluster, after which we give up

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass
class Traffic:
    """Bytes that went to the cluster and came back.

    Attributes
    ----------
    shared : int
        Put into the object store once, for all blocks; each machine fetches them from there.
    sent, received : int
        Blocks and their results.
    blocks : int
        How many there were.
    largest : int
        The largest result.
    most_in_flight : int
        Bytes of blocks and results that existed at a time, at most: a result that was not yet taken
        is counted like the largest so far.
    """

    shared: int = 0
    sent: int = 0
    received: int = 0
    blocks: int = 0
    largest: int = 0
    most_in_flight: int = 0


@dataclass(eq=False)
class RayCluster:
    """Runs blocks on the Ray cluster that this process is connected to."""

    ray: Any
    traffic: Traffic = field(default_factory=Traffic)
    _put: dict[int, Any] = field(default_factory=dict, repr=False)  # by the object's id

    def __post_init__(self) -> None:
        self._task = self.ray.remote(num_cpus=1, max_retries=RETRIES)(_run_block)

    @property
    def n_cores(self) -> int:
        """Cores of all machines of the cluster."""
        return int(self.ray.cluster_resources().get("CPU", 0))

    def run(
        self,
        function: Callable[[Any, Any], Result],
        shared: tuple[Any, ...],
        blocks: Iterable[Any],
    ) -> Iterator[Result]:
        """As `dxml._core.blocks.run_blocks`."""
        references = [self._shared(each) for each in shared]
        ahead, traffic = max(1, AHEAD * self.n_cores), self.traffic
        waiting: deque[tuple[Any, int]] = deque()
        try:
            for block in blocks:
                size = _size(block)
                traffic.blocks, traffic.sent = traffic.blocks + 1, traffic.sent + size
                waiting.append((self._task.remote(function, references, block), size))
                if len(waiting) == ahead:
                    yield self._taken(waiting)
            while waiting:
                yield self._taken(waiting)
        finally:  # of what nobody takes any more
            for reference, _ in waiting:
                self.ray.cancel(reference, force=True)

    def run_each(
        self, make: Callable[[], Callable[[Item], Result]], items: Sequence[Item]
    ) -> Iterator[Result]:
        """As `dxml._core.blocks.run_each`."""
        return pooled(make, items, self.n_cores)

    def _taken(self, waiting: deque[tuple[Any, int]]) -> Any:
        """The result of the first block that waits."""
        reference, _ = waiting[0]
        result = self._result(reference)
        traffic, size = self.traffic, _size(result)
        traffic.received += size
        traffic.largest = max(traffic.largest, size)
        exist = sum(sent for _, sent in waiting) + len(waiting) * traffic.largest
        traffic.most_in_flight = max(traffic.most_in_flight, exist)
        waiting.popleft()
        return result

    def _result(self, reference: Any) -> Any:
        errors, lonely = self.ray.exceptions, 0.0
        while True:
            try:
                return self.ray.get(reference, timeout=LOOK)
            except errors.GetTimeoutError:
                lonely = 0.0 if self.n_cores else lonely + LOOK
                if lonely > PATIENCE:
                    raise ClusterError(
                        "the Ray cluster has no core left. Start its nodes again."
                    ) from None
            except errors.RayTaskError as error:
                if isinstance(error.cause, DxmlError):
                    raise error.cause from None
                raise
            except errors.RayError as error:
                raise ClusterError(
                    f"a block of work was lost {RETRIES + 1} times on the Ray cluster "
                    f"({type(error).__name__}). Its machines may be short of memory."
                ) from error

    def _shared(self, each: Any) -> Any:
        """Where an object lies in the store; it stays there as long as it lives here."""
        key = id(each)
        if key not in self._put:
            reference = self.ray.put(each)
            self.traffic.shared += _size(each)
            try:
                weakref.finalize(each, self._put.pop, key, None).atexit = False
            except TypeError:  # numbers, tuples and the like
                return reference
            self._put[key] = reference
        return self._put[key]


_held: dict[Any, Any] = {}  # in a process of the cluster: what the blocks of now share


def _run_block(function: Callable[[Any, Any], Result], references: list[Any], block: Any) -> Result:
    """In a process of the cluster: one block, by one thread."""
    import ray

    for reference in set(_held) - set(references):
        del _held[reference]
    missing = [reference for reference in references if reference not in _held]
    _held.update(zip(missing, ray.get(missing), strict=True))
    with numba_threads(1):
        return function(tuple(_held[reference] for reference in references), block)


def _size(value: Any) -> int:
    """Bytes that an object takes when it is sent, about; counted without making a copy."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, str | bytes):
        return len(value)
    if sp.issparse(value):
        return _size((value.data, value.indices, value.indptr))
    if isinstance(value, dict):
        return sum(_size(key) + _size(own) for key, own in value.items())
    if isinstance(value, tuple | list):
        texts = set(map(type, value)) == {str}
        return sum(map(len if texts else _size, value))
    if value is None or isinstance(value, int | float | np.generic):
        return NUMBER
    if is_dataclass(value) and not isinstance(value, type):
        return _size(list(vars(value).values()))
    return _sent_size(value)


def _sent_size(value: Any) -> int:
    from ray import cloudpickle

    buffers: list[PickleBuffer] = []
    rest = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)


def open_cluster(address: str | None) -> AbstractContextManager[object]:
    """`ray_cluster`, or nothing where there is no address."""
    return nullcontext() if address is None else ray_cluster(address)


@contextmanager
def ray_cluster(address: str) -> Iterator[RayCluster]:
    """Inside, blocks of work run on a Ray cluster.

    Parameters
    ----------
    address : str
        ``host:port`` of the cluster's head, ``auto`` for the one that runs on this machine, or
        ``local``: one is started here for the time, with as many processes as there are cores.
    """
    ray = _imported(address)
    _check_address(address)
    settings = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        settings |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address=address, **settings)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _not_reached(address, error) from error
    try:
        cluster = RayCluster(ray)
        _check_nodes(cluster)
        with running_on(cluster):
            yield cluster
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Whether anything answers there; Ray itself would try for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ClusterError(f"a Ray cluster is named by host:port, auto or local, got {address!r}.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()
    except OSError as error:
        raise _not_reached(address, error) from error


def _not_reached(address: str, error: Exception) -> ClusterError:
    return ClusterError(
        f"no Ray cluster could be reached at {address!r} ({_first_line(error)}). Start one with "
        "`ray start --head`, or say 'local'."
    )


def _imported(address: str) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":  # despite its name: whether a cluster goes beyond this machine
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError:
        raise ClusterError("Ray is not installed. Install it: pip install 'dxml[ray]'.") from None
    return ray


def _check_nodes(cluster: RayCluster) -> None:
    """Every machine must have this version of dxml."""
    ray = cluster.ray
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    if not nodes:
        raise ClusterError("the Ray cluster has no core. Start a node: ray start --address=….")
    ask = ray.remote(num_cpus=0, max_retries=0)(_version)
    asked = [
        ask.options(scheduling_strategy=strategy(node["NodeID"], soft=False)).remote()
        for node in nodes
    ]
    for node, reference in zip(nodes, asked, strict=True):
        try:
            found = ray.get(reference)
        except ray.exceptions.RayError as error:
            found = f"none ({_first_line(getattr(error, 'cause', error))})"
        if found != __version__:
            raise ClusterError(
                f"node {node['NodeManagerAddress']} of the Ray cluster has dxml {found}, here is "
                f"{__version__}. Install the same version on every node."
            )


def _version() -> str:
    import dxml

    return dxml.__version__


def _first_line(error: Any) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
