"""Items, such as the names of files, for a pool of processes of a Ray cluster, by Ray Data.

Each process makes its function once and keeps it. Ray starts another process for one that died, and
gives it the items whose results were not there yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dxml._core.threads import numba_threads
from dxml.exceptions import ClusterError, DxmlError

__all__ = ["pooled"]

Item = TypeVar("Item")
Result = TypeVar("Result")
Row = dict[str, Any]


def pooled(
    make: Callable[[], Callable[[Item], Result]], items: Sequence[Item], n_cores: int
) -> Iterator[Result]:
    """The results of the items, in their order, by up to `n_cores` processes."""
    import ray
    import ray.data
    from ray import cloudpickle

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    rows = [{"item": cloudpickle.dumps(item)} for item in items]
    found = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
        _Process,
        fn_constructor_args=(make,),
        num_cpus=1,
        concurrency=(1, max(1, min(n_cores, len(rows)))),
    )
    try:
        for row in found.iter_rows():
            result = cloudpickle.loads(row["result"])
            if isinstance(result, DxmlError):
                raise result
            yield result
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"a process of the Ray cluster failed ({type(error).__name__}). Its machines must "
            "reach the model and the files by the same paths as this one."
        ) from error


class _Process:
    """In a process of the cluster: a function that is made once, and called by one thread.

    An error of ours is a result like others: Ray would take it for a process that failed.
    """

    def __init__(self, make: Callable[[], Callable[[Any], Any]]) -> None:
        self._make = make
        self._function: Callable[[Any], Any] | None = None

    def __call__(self, row: Row) -> Row:
        from ray import cloudpickle

        try:
            if self._function is None:
                self._function = self._make()
            with numba_threads(1):
                result = self._function(cloudpickle.loads(row["item"]))
        except DxmlError as error:
            result = error
        return {"result": cloudpickle.dumps(result)}
