"""Training an encoder on a Ray cluster: Ray Train's workers take each step together.

One worker a GPU, or where the cluster has none, one a machine. The state of the run is stored by
an actor on the machine of the command, so that no folder need be shared. When a worker dies, Ray
Train starts the group again, with fewer workers where there is no other place, and the group goes
on from the newest state.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from dxml._deep.resuming import Arrays, Keep
from dxml._deep.together import Together
from dxml._deep.training import Work, train
from dxml.exceptions import ClusterError, DxmlError
from dxml.progress import Progress

__all__ = ["trained_on_cluster"]

RETRIES = 5  # times that the group of workers is started again
TOLD = 1.0  # seconds between two reports


@contextmanager
def trained_on_cluster(
    work: Work, keep: Keep | None, progress: Progress, note: str = ""
) -> Iterator[Keep]:
    """Inside, there is a state of the run with all steps done, to go on from.

    Parameters
    ----------
    keep : Keep or None
        As in `fit_deep`; without one the state is in a temporary folder.
    """
    with TemporaryDirectory(prefix="dxml-ray-train-") as folder:
        keep = keep or Keep(Path(folder) / "states")
        _train(work, keep, Path(folder), progress, note)
        yield replace(keep, resume=True)


def _train(work: Work, keep: Keep, folder: Path, progress: Progress, note: str) -> None:
    import ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    logging.getLogger("ray.train").setLevel(logging.ERROR)
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    here = strategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)(
        _Keeper
    ).remote(keep)
    if not keep.resume:
        ray.get(keeper.clear.remote())
    workers = _workers(ray)
    trainer = TorchTrainer(
        _in_a_worker,
        train_loop_config={"work": ray.put(work), "keeper": keeper, "interval": keep.interval},
        scaling_config=ScalingConfig(
            num_workers=(1, workers.count),
            use_gpu=workers.gpu,
            resources_per_worker=workers.resources,
        ),
        run_config=RunConfig(
            storage_path=str(folder), failure_config=FailureConfig(max_failures=RETRIES)
        ),
    )
    n_texts = work.settings.epochs_for(len(work.tokens)) * len(work.tokens)
    with progress.stage(f"text encoder{note}", n_texts, "texts") as stage, _telling(keeper, stage):
        try:
            trainer.fit()
        except Exception as error:
            failed = ray.get(keeper.failed.remote())
            if failed is not None:
                raise failed from None
            raise ClusterError(
                "the text encoder could not be trained on the Ray cluster "
                f"({type(error).__name__}). Its machines may be short of memory."
            ) from error


@dataclass(frozen=True)
class _Workers:
    """How many there may be, and what each gets."""

    count: int
    gpu: bool
    resources: dict[str, float]


def _workers(ray: Any) -> _Workers:
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(machine.get("GPU", 0) for machine in machines))
    cores = [int(machine["CPU"]) for machine in machines if machine.get("CPU", 0) >= 1]
    if gpus:
        return _Workers(gpus, True, {"CPU": 1, "GPU": 1})
    if not cores:
        raise ClusterError("the Ray cluster has no core. Start a node: ray start --address=….")
    return _Workers(len(cores), False, {"CPU": min(cores)})


class _Keeper:
    """An actor on the machine of the command: the run's states, and how far it is."""

    def __init__(self, keep: Keep) -> None:
        self._keep, self._done, self._said = keep, 0.0, ""
        self._failed: DxmlError | None = None

    def clear(self) -> None:
        self._keep.clear()

    def write(self, step: int, run: Mapping[str, Any], arrays: Arrays) -> None:
        self._keep.write(step, run, arrays)

    def read(self, same: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays] | None:
        return self._keep.read(same)

    def tell(self, done: float, said: str) -> None:
        self._done, self._said = done, said

    def told(self) -> tuple[float, str]:
        return self._done, self._said

    def fail(self, error: DxmlError) -> None:
        self._failed = error

    def failed(self) -> DxmlError | None:
        return self._failed


@contextmanager
def _telling(keeper: Any, stage: Any) -> Iterator[None]:
    """Meanwhile, what the keeper is told is shown here."""
    import ray

    over, shown = threading.Event(), 0.0

    def show() -> None:
        nonlocal shown
        done, said = ray.get(keeper.told.remote())
        if said:
            stage.note(said)
        if done > shown:
            stage.advance(done - shown)
            shown = done

    def follow() -> None:
        while not over.wait(TOLD):
            show()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
        show()
    finally:
        over.set()
        thread.join()


def _in_a_worker(config: dict[str, Any]) -> None:
    """The steps of one worker; the group's processes are connected by Ray Train."""
    import ray
    import ray.train
    from ray.train.torch import get_device

    place, keeper = ray.train.get_context(), config["keeper"]
    together = Together(place.get_world_rank(), place.get_world_size())
    device = get_device()
    cores = int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1))
    torch.set_num_threads(max(1, cores))
    said = _Said(keeper if together.rank == 0 else None)
    try:
        train(
            ray.get(config["work"]),
            device,
            _Kept(keeper, config["interval"]),
            said,
            together=together,
        )
    except DxmlError as error:
        ray.get(keeper.fail.remote(error))
        raise


@dataclass(frozen=True)
class _Kept:
    """The states that the keeper has, as a worker asks for them."""

    keeper: Any
    interval: float
    resume: bool = True

    def write(self, step: int, run: Mapping[str, Any], arrays: Arrays) -> None:
        import ray

        ray.get(self.keeper.write.remote(step, dict(run), arrays))

    def read(self, same: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays] | None:
        import ray

        found: tuple[dict[str, Any], Arrays] | None = ray.get(self.keeper.read.remote(dict(same)))
        return found

    def clear(self) -> None:
        """Not by a worker: its group may have been started again."""


class _Said:
    """Progress that the first worker tells the keeper, now and then."""

    def __init__(self, keeper: Any) -> None:
        self._keeper, self._done, self._last, self._note = keeper, 0.0, 0.0, ""

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "") -> Iterator[_Said]:
        yield self
        self._tell()

    def advance(self, amount: float = 1) -> None:
        self._done += amount
        if time.monotonic() - self._last > TOLD:
            self._tell()

    def note(self, text: str) -> None:
        self._note = text

    def _tell(self) -> None:
        self._last = time.monotonic()
        if self._keeper is not None:
            self._keeper.tell.remote(self._done, self._note)
