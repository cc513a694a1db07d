"""Carrying out: resume, failures, interrupts, processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from dxml.bench import _runner as runner
from dxml.bench import _worker as worker
from dxml.bench._results import Store
from dxml.bench._runner import Event, run_experiment
from dxml.bench._spec import Run
from dxml.bench._summary import summarise
from dxml.exceptions import ParameterError

from .conftest import PLANTED, QUICK, experiment, plan

GOOD = Run(PLANTED, 1, "knn", (), 0, k=5)
SECOND = Run(PLANTED, 2, "knn", (), 0, k=5)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split 2 cannot be read."""
    real = worker.load_parts

    def load(name: str, split: int, part: worker.Any) -> worker.Any:
        if split == 2:
            raise RuntimeError("bad disk /home/somebody/data/x.txt")
        return real(name, split, part)

    monkeypatch.setattr(worker, "load_parts", load)


def test_a_run_stores_what_was_measured(store: Store) -> None:
    run_experiment(experiment(plan(GOOD)), store, QUICK)
    stored = store.get(GOOD)
    assert stored is not None and stored.status == "done"
    record = stored.record
    assert stored.ranking().indices.shape == (18, 5)
    assert {"read", "save", "predict"} <= set(record["stages"])
    assert record["seconds"]["train"] > 0 and record["seconds"]["predict"] > 0
    assert record["ms_per_point"] == pytest.approx(record["seconds"]["predict"] * 1000 / 18)
    assert record["model_bytes"] > 1000 and record["memory"]["peak"] > 10_000_000
    assert record["parameters"]["random_state"] == 0 and "power" in record["parameters"]
    assert record["chosen"]["n_neighbors_"] >= 1
    assert record["data"]["train"] == 72 and record["data"]["labels_per_point"] > 1
    assert record["machine"]["cores"] >= 1 and record["versions"]["numpy"]
    assert record["commit"] and record["date"].endswith("+00:00")


def test_stored_runs_are_skipped_and_time_left_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Event] = []
    run_experiment(experiment(plan(GOOD)), store, QUICK)
    before = (store.folder(GOOD) / "result.json").stat().st_mtime_ns
    run_experiment(experiment(plan(GOOD), plan(SECOND)), store, QUICK, report=heard.append)
    assert [(event.stored.run, event.done, event.total) for event in heard] == [(SECOND, 2, 2)]
    assert (store.folder(GOOD) / "result.json").stat().st_mtime_ns == before
    third = Run(PLANTED, 3, "knn", (), 0, k=5)
    heard.clear()
    run_experiment(
        experiment(plan(GOOD), plan(third)), store, QUICK, report=heard.append, rerun=True
    )
    assert len(heard) == 2
    assert heard[0].left == pytest.approx(heard[0].seconds) and heard[1].left == 0


@pytest.mark.usefixtures("broken")
def test_a_failure_is_stored_and_the_others_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = experiment(plan(SECOND), plan(GOOD))
    run_experiment(both, store, QUICK)
    failed, good = store.get(SECOND), store.get(GOOD)
    assert failed is not None and failed.status == "failed"
    assert failed.record["error"] == "RuntimeError: bad disk x.txt"  # nobody's folders
    assert "load" in failed.record["detail"]
    assert good is not None and good.status == "done"
    row = summarise(both, store)["rows"][0]
    assert row["runs"] == 1 and row["planned"] == 2 and row["failed"][0]["split"] == 2
    monkeypatch.undo()
    run_experiment(both, store, QUICK)
    assert store.get(SECOND).status == "failed"  # type: ignore[union-attr]
    run_experiment(both, store, QUICK, retry_failed=True)
    assert store.get(SECOND).status == "done"  # type: ignore[union-attr]


def test_a_process_of_its_own(store: Store) -> None:
    bad_device = plan(Run(PLANTED, 1, "dxml", (("device", "cuda"), ("label_graph", "none.tsv")), 0))
    heard: list[Event] = []
    run_experiment(
        experiment(plan(GOOD), bad_device, processes=True), store, jobs=2, report=heard.append
    )
    assert len(heard) == 2
    good, bad = store.get(GOOD), store.get(bad_device.run)
    assert good is not None and good.status == "done"
    assert good.record["settings"]["threads"] == max(1, runner.machine.cores() // 2)
    assert bad is not None and bad.status == "failed"


def test_a_process_that_dies_is_a_stored_failure(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import os, sys; print('last words', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
    )
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-c", code))
    run_experiment(experiment(plan(GOOD), processes=True), store, QUICK)
    stored = store.get(GOOD)
    assert stored is not None and stored.record["error"] == "the process was ended by signal 9"
    assert stored.record["detail"] == "last words"
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-c", "raise SystemExit(3)"))
    run_experiment(experiment(plan(GOOD), processes=True), store, QUICK, retry_failed=True)
    assert store.get(GOOD).record["error"] == "the process ended with code 3"  # type: ignore[union-attr]


ENDLESS = """
import os, sys, time
from dxml.bench import _worker
_worker.carry_out = lambda *_: (print(os.getpid(), flush=True), time.sleep(600))
sys.argv = ["worker", "results"]
_worker.main()
"""


def test_a_worker_ends_with_the_program_that_started_it() -> None:
    """The input, which the runner keeps open, ends when the runner is killed."""
    worker = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert worker.stdin is not None and worker.stdout is not None
    with worker.stdout:
        job = {"run": GOOD.as_dict(), "settings": asdict(QUICK)}
        worker.stdin.write(json.dumps(job) + "\n")
        worker.stdin.flush()
        assert int(worker.stdout.readline()) == worker.pid
        assert worker.poll() is None
        worker.stdin.close()
        assert worker.wait(60) == -signal.SIGKILL


def test_a_run_over_its_limit_is_a_stored_failure(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-c", "import time; time.sleep(60)"))
    limited = runner.replace(plan(GOOD), time_limit=0.3)
    run_experiment(experiment(limited, processes=True), store, QUICK)
    stored = store.get(GOOD)
    assert stored is not None and stored.record["error"] == "took longer than the limit of 0.3 s"


@pytest.mark.parametrize(("own", "given", "shown"), [(None, 0.3, 0.3), (0.3, 60, 0.3)])
def test_the_shorter_limit_counts(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    own: float | None,
    given: float,
    shown: float,
) -> None:
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-c", "import time; time.sleep(60)"))
    limited = runner.replace(plan(GOOD), time_limit=own)
    run_experiment(experiment(limited, processes=True), store, QUICK, limit=given)
    stored = store.get(GOOD)
    assert stored is not None
    assert stored.record["error"] == f"took longer than the limit of {shown} s"


def test_an_interrupt_stops_the_processes_and_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys, time; open(sys.argv[1] + '/began', 'w').close(); time.sleep(60)"
    monkeypatch.setattr(runner, "WORKER", (sys.executable, "-c", code))
    store.partial(GOOD).mkdir(parents=True)
    started = []
    real = runner.subprocess.Popen

    def popen(*args: worker.Any, **kwargs: worker.Any) -> worker.Any:
        started.append(real(*args, **kwargs))
        return started[-1]

    def interrupt(_: float) -> None:
        if (store.root / "began").exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(runner.subprocess, "Popen", popen)
    monkeypatch.setattr(runner.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(plan(GOOD), processes=True), store, QUICK)
    assert started[0].returncode is not None
    assert store.get(GOOD) is None and not store.partial(GOOD).exists()


def test_a_default_that_changed_is_run_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one = experiment(plan(GOOD))
    run_experiment(one, store, QUICK)
    assert runner.to_do(one, store, retry_failed=False, rerun=False) == []
    monkeypatch.setattr("dxml.bench._results.Stored.stale", True)
    assert runner.to_do(one, store, retry_failed=False, rerun=False) == [GOOD]
    assert summarise(one, store)["rows"][0]["runs"] == 0


def test_only_the_runs_that_are_named_are_done(store: Store) -> None:
    other = Run(PLANTED, 1, "leml", (("max_iter", 1),), 0, k=5)
    three = experiment(plan(GOOD), plan(SECOND), plan(other))
    assert runner.to_do(three, store, only=["split 1"]) == [GOOD, other]
    assert runner.to_do(three, store, only=["split 1", "knn"]) == [GOOD]
    assert runner.to_do(three, store, only=["max_iter=1"]) == [other]
    named = experiment(plan(GOOD), replace(plan(other), label="LEML (quick)"))
    assert runner.to_do(named, store, only=["LEML (quick)"]) == [other]
    run_experiment(three, store, QUICK, only=["knn", "split 2"])
    assert store.get(SECOND) is not None and store.get(GOOD) is None
    with pytest.raises(ParameterError, match=r"no run of e has 'knn' and 'x' in its name, such as"):
        runner.to_do(three, store, only=["knn", "x"])


def test_a_model_on_a_gpu_is_also_timed_on_a_cpu(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = (("epochs", 1), ("walks_per_label", 1), ("dim", 4))
    run = Run(PLANTED, 1, "dxml", small, 0, k=5)
    run_experiment(experiment(plan(run)), store, QUICK)
    stored = store.get(run)
    assert stored is not None and "predict_cpu" not in stored.record["seconds"]
    assert stored.record["stages"]["load"] > 0  # it predicted with a model that was opened again
    monkeypatch.setattr(worker, "resolve_device", lambda device: "cuda")
    run_experiment(experiment(plan(run)), store, QUICK, rerun=True)
    stored = store.get(run)
    assert stored is not None and stored.record["seconds"]["predict_cpu"] > 0
