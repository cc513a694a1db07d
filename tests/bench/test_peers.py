"""The machinery of peers, with a peer that is a few lines of text and needs no network."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dxml.bench import _worker as worker
from dxml.bench import peers
from dxml.bench._results import Store
from dxml.bench._runner import run_experiment
from dxml.bench._spec import Run, find_experiment
from dxml.bench.peers import PEERS, Peer
from dxml.bench.peers import _environment as environment
from dxml.bench.peers._driver import checked
from dxml.bench.peers._environment import PeerError, make_environment

from .conftest import PLANTED, QUICK, experiment, plan

Array = npt.NDArray[Any]

POPULAR = """
import numpy as np

def prepare(X, Y, folder):
    assert X.has_sorted_indices
    assert np.allclose(X.multiply(X).sum(axis=1), 1, atol=1e-4)
    return Y

def train(Y, folder, parameters, threads, seed):
    order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")
    (folder / "model.txt").write_text("x" * parameters["size"])
    return order

def predict(order, X, k, threads):
    n = X.shape[0]
    return np.tile(order[:k], (n, 1)), np.ones((n, k))
"""
RUN = Run(PLANTED, 1, "peer:popular", (("size", 321),), 0, k=5)


@pytest.fixture
def popular(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Peer]:
    """Registers a peer that runs in this very environment."""

    def register(source: str) -> Peer:
        path = tmp_path / "adapter.py"
        path.write_text(source, "utf-8")
        peer = Peer("popular", "Most popular", (), path, {"size": 10})
        monkeypatch.setitem(peers.PEERS, "popular", peer)
        return peer

    monkeypatch.setattr(worker, "make_environment", lambda *_: Path(sys.executable))
    return register


def test_a_peer_is_a_row(
    popular: Callable[[str], Peer], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    popular(POPULAR)
    parts = [replace(part, X=part.X * 3) for part in worker.load_parts(PLANTED, 1)]
    monkeypatch.setattr(worker, "load_parts", lambda *_: parts)
    run_experiment(experiment(plan(RUN, "Most popular")), store, QUICK)
    stored = store.get(RUN)
    assert stored is not None and stored.status == "done", stored
    frequency = parts[0].Y.getnnz(axis=0)
    best = np.argsort(-frequency, kind="stable")[:5]
    assert (stored.ranking().indices == best).all()
    assert stored.record["model_bytes"] == 321
    assert stored.record["memory"]["peak"] > 10_000_000
    assert {"read", "prepare", "train", "predict"} == set(stored.record["stages"])


def test_steps_are_timed_apart_and_the_opened_model_predicts(
    popular: Callable[[str], Peer], store: Store
) -> None:
    """Training leaves nothing behind, and what was trained is of no use any more."""
    popular(
        POPULAR.replace("return Y", "return folder, Y")
        .replace("def train(Y, folder", "def train(state, folder")
        .replace('    (folder / "model.txt").write_text("x" * parameters["size"])\n', "")
        .replace("Y.sum", "state.sum")
        .replace("return order", "return order, [1]")
        + """
def parse(state, threads):
    return state[1]

def save(model, folder):
    np.save(folder / "order.npy", model[0])

def load(folder, parameters):
    return np.load(folder / "order.npy")
"""
    )
    run_experiment(experiment(plan(RUN)), store, QUICK)
    stored = store.get(RUN)
    assert stored is not None and stored.status == "done", stored
    steps = ["read", "prepare", "parse", "train", "save", "load", "predict"]
    assert sorted(stored.record["stages"]) == sorted(steps)
    assert set(stored.record["seconds"]) == {"train", "predict"}
    assert stored.record["model_bytes"] > 6 * 8


def test_presets_of_peers_are_settings_that_they_have() -> None:
    for name in ("peers", "peers-choice"):
        found = find_experiment(name)
        methods = {run.method for run in found.runs}
        assert {f"peer:{peer}" for peer in PEERS} <= methods
    runs = {plan.label: dict(plan.run.parameters) for plan in find_experiment("peers").planned}
    bonsai = {"cluster_k": 100, "cluster_balanced": False, "max_depth": 3}
    assert runs["omikuji (Bonsai)"] == bonsai and runs["omikuji (Parabel)"] == {}
    assert all(run.part == "validation" for run in find_experiment("peers-choice").runs)


def test_a_peer_that_crashes_is_a_row_that_says_so(
    popular: Callable[[str], Peer], store: Store
) -> None:
    popular(POPULAR.replace("return order", "raise ValueError('no labels')"))
    run_experiment(experiment(plan(RUN)), store, QUICK)
    stored = store.get(RUN)
    assert stored is not None and stored.status == "failed"
    assert "the run of popular ended with code 1" in stored.record["error"]
    assert stored.record["error"].endswith("code 1: train raised ValueError: no labels")
    assert "Traceback" in stored.record["detail"]
    popular(POPULAR.replace("return order", "import os; os.kill(os.getpid(), 11)"))
    run_experiment(experiment(plan(RUN)), store, QUICK, retry_failed=True)
    assert "ended with signal 11" in store.get(RUN).record["error"]  # type: ignore[union-attr]


IDS, SCORES = np.tile(np.arange(5), (14, 1)), np.ones((14, 5))


def with_value(array: Array, at: tuple[int, int], value: float) -> Array:
    changed = array.copy()
    changed[at] = value
    return changed


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "two arrays of shape (14, 5), padded with -1; got NoneType."),
        (IDS, "got ndarray."),
        ((IDS, SCORES, 3), "got tuple of 3."),
        ((IDS[1:], SCORES[1:]), "got shapes (13, 5) and (13, 5)."),
        ((IDS[:, :3], SCORES[:, :3]), "got shapes (14, 3) and (14, 3)."),
        ((SCORES, IDS), "ids must be whole numbers, got float64. Return ids, then scores."),
        ((IDS, SCORES.astype(str)), "scores must be real numbers, got <U"),
        ((IDS, SCORES * 1j), "scores must be real numbers, got complex128."),
        ((IDS + 990, SCORES), "0 to 5, or -1 where a row has no more; got 990 in row 0."),
        ((IDS - 2, SCORES), "got -2 in row 0."),
        ((IDS * 0, SCORES), "names each label once; got ids 0, 0, 0, 0, 0 in row 0. Pad with -1"),
        ((with_value(IDS, (3, 1), -1), SCORES), "of a row; got 0, -1, 2, 3, 4 as ids in row 3."),
        ((IDS, with_value(SCORES, (2, 1), np.nan)), "finite, got 1, nan, 1, 1, 1 in row 2."),
        ((IDS, with_value(SCORES, (1, 4), 9)), "got 1, 1, 1, 1, 9 in row 1. Sort by falling score"),
    ],
)
def test_what_is_no_ranking_is_refused(found: object, said: str) -> None:
    """It was stored as done, and stopped the scoring of every method beside it."""
    with pytest.raises(ValueError, match=re.escape(said)):
        checked(found, (14, 5), 6)


def test_ids_are_shown_whole() -> None:
    with pytest.raises(ValueError, match="got ids 123456, 123456 in row 0"):
        checked((np.full((1, 2), 123456), np.ones((1, 2))), (1, 2), 200_000)


def test_a_ranking_is_stored_as_it_comes_but_for_what_stands_beside_padding() -> None:
    ids, scores = checked(
        (with_value(IDS, (0, 4), -1), with_value(SCORES, (0, 4), np.nan)), (14, 5), 6
    )
    assert ids[0].tolist() == [0, 1, 2, 3, -1] and scores[0].tolist() == [1, 1, 1, 1, 0]
    assert (ids[1:] == IDS[1:]).all() and (ids.dtype, scores.dtype) == (np.int32, np.float32)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("raise ValueError('one\\ntwo')", "predict raised ValueError: one two"),
        ("import sys; sys.exit(0)", "predict raised SystemExit: 0"),
        ("import os; os._exit(0)", "the run of popular ended before it had ranked anything"),
        ("return order", "two arrays of shape (18, 5), padded with -1; got ndarray."),
    ],
)
def test_a_run_that_ends_early_says_where(
    popular: Callable[[str], Peer], store: Store, end: str, said: str
) -> None:
    popular(POPULAR.partition("    n = X")[0] + f"    {end}\n")
    run_experiment(experiment(plan(RUN)), store, QUICK)
    stored = store.get(RUN)
    assert stored is not None and stored.status == "failed"
    assert said in stored.record["error"]


def test_an_environment_is_made_once_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def call(command: list[str], what: str, env: object = None) -> None:
        calls.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir()

    monkeypatch.setattr(environment, "_call", call)
    peer = PEERS["pecos"]
    python = make_environment(peer, tmp_path)
    assert [command[-1] for command in calls[1:]] == ["torch==2.13.0", "libpecos==1.2.8"]
    assert all(command[0] == str(python) for command in calls[1:])
    assert make_environment(peer, tmp_path) == python and len(calls) == 3
    other = make_environment(replace(peer, steps=(("libpecos==1.2.7",),)), tmp_path)
    assert other != python and len(calls) == 5


def test_an_interrupted_installation_starts_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(command: list[str], what: str, env: object = None) -> None:
        if "venv" in command:
            Path(command[-1]).mkdir()
        else:
            raise PeerError("no network")

    monkeypatch.setattr(environment, "_call", call)
    for _ in range(2):
        with pytest.raises(PeerError, match="no network"):
            make_environment(PEERS["omikuji"], tmp_path)


@pytest.mark.slow
def test_a_real_environment_and_a_package_that_is_not_there(tmp_path: Path) -> None:
    missing = Peer("lost", "Lost", ((str(tmp_path / "nowhere"),),), tmp_path / "a.py")
    with pytest.raises(PeerError, match="installing .*nowhere ended with code 1"):
        make_environment(missing, tmp_path / "envs")
    assert (make_environment(replace(missing, steps=()), tmp_path / "envs")).is_file()


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_every_peer_has_an_adapter_and_pinned_versions(peer: Peer) -> None:
    source = peer.adapter.read_text("utf-8")
    compile(source, str(peer.adapter), "exec")
    assert all(f"def {name}(" in source for name in ("prepare", "train", "predict"))
    assert "dxml" not in source
    words = [word for step in peer.steps for word in step]
    assert words and all("==" in word for word in words)
    if peer.name in ("pecos", "libmultilabel"):
        assert peer.steps[0] == ("torch==2.13.0",)
