"""`dxml serve` as a process: taught, killed, started again; and what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from dxml._cli import main
from dxml.baselines.knn import KNN
from dxml.data import make_planted
from dxml.service._server import STARTED_WITHIN, serve
from dxml.tagging._tagger import TextTagger

from .conftest import PATIENCE, make_texts, wait_until


@contextmanager
def serving(
    model: Path, *options: str, port: int | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    port = port or _free_port()
    command = [sys.executable, "-m", "dxml", "serve", "--model", str(model), "--port", str(port)]
    process = subprocess.Popen([*command, *options], env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            _wait(process, client)
            yield process, client
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], client: httpx.Client) -> None:
    def started() -> bool:
        assert process.poll() is None, "the service has stopped"
        try:
            return client.get("/health").status_code == 200
        except httpx.TransportError:
            return False

    wait_until(started)


def test_processes_have_time_to_start(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn gives up on a process that is not there after 5 s, also on a busy machine."""
    asked: dict[str, object] = {}
    monkeypatch.setattr("uvicorn.run", lambda *_, **settings: asked.update(settings))
    serve(model, workers=2, port=_free_port())
    assert asked["workers"] == 2 and asked["timeout_worker_healthcheck"] == STARTED_WITHIN >= 60
    assert asked["loop"] == "dxml.service._server:loop_of_a_worker"  # connections are shared


def first_name(client: httpx.Client, text: str) -> str:
    found = client.post("/predict", json={"text": text, "top": 1}).json()
    return str(found["results"][0]["labels"][0]["name"])


def test_a_lesson_survives_sigkill_and_sighup_swaps_the_model(model: Path) -> None:
    lesson = {"texts": ["herring soup"] * 2, "labels": [["Fish soup"]] * 2, "ids": ["a", "b"]}
    with serving(model) as (process, client):
        assert client.post("/learn", json=lesson).status_code == 200
        process.send_signal(signal.SIGKILL)
        assert process.wait(PATIENCE) == -signal.SIGKILL
    with serving(model) as (process, client):
        assert client.get("/health").json()["lessons"] == 1
        assert first_name(client, "soup of herring") == "Fish soup"
        texts, labels = make_texts(60, seed=2)
        renamed = [[f"New {name}" for name in row] for row in labels]
        TextTagger(device="cpu", candidates="nearest", width=0).fit(texts, renamed).save(model)
        assert first_name(client, "herring net") == "Fishery"
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: first_name(client, "herring net trawler") != "Fishery")
        assert first_name(client, "herring net trawler") == "New Fishery"
        assert first_name(client, "soup of herring") == "Fish soup"


def test_a_swap_drops_no_request(model: Path, trained: Path) -> None:
    """Clients ask on while the model is replaced and loaded again."""
    texts, labels = make_texts(60, seed=2)
    renamed = [[f"New {name}" for name in row] for row in labels]
    other = TextTagger(device="cpu", candidates="nearest", width=0).fit(texts, renamed)
    answers, stop = list[tuple[int, str]](), threading.Event()

    def ask(address: str) -> None:
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            while not stop.is_set():
                found = client.post("/predict", json={"text": "herring net trawler", "top": 1})
                answers.append((found.status_code, found.text))

    with serving(model) as (process, client):
        asking = [threading.Thread(target=ask, args=(str(client.base_url),)) for _ in range(3)]
        for thread in asking:
            thread.start()
        try:
            for tagger, name in 2 * [(other, "New Fishery"), (TextTagger.load(trained), "Fishery")]:
                tagger.save(model)
                process.send_signal(signal.SIGHUP)
                wait_until(lambda name=name: first_name(client, "herring net trawler") == name)
                assert client.post("/reload").status_code == 200
        finally:
            stop.set()
            for thread in asking:
                thread.join()
    assert {status for status, _ in answers} == {200}
    assert all('"Fishery"' in text or '"New Fishery"' in text for _, text in answers)
    assert any('"New Fishery"' in text for _, text in answers)


def test_what_was_asked_before_the_end_is_answered(model: Path) -> None:
    """The service is told to stop when it has a request's head, and waits for the rest."""
    body = b'{"text": "herring net trawler", "top": 1}'
    head = (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    with serving(model) as (process, client):
        place = ("127.0.0.1", client.base_url.port)
        with socket.create_connection(place, timeout=PATIENCE) as begun:
            begun.sendall(head)
            assert begun.recv(1000).startswith(b"HTTP/1.1 100 ")
            process.terminate()
            wait_until(lambda: not _answers(place))
            begun.sendall(body)
            answer = b"".join(iter(lambda: begun.recv(1000), b""))
    assert answer.startswith(b"HTTP/1.1 200 ") and b'"Fishery"' in answer
    assert process.returncode in (0, -signal.SIGTERM)


def _answers(place: tuple[str, int | None]) -> bool:
    try:
        socket.create_connection(place, timeout=PATIENCE).close()
    except ConnectionError:
        return False
    return True


@pytest.mark.slow
def test_workers_share_lessons_and_counts(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed and replaced; its counts stay, and the end leaves no file."""
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    lesson = {"texts": ["herring soup"] * 2, "labels": [["Fish soup"]] * 2, "ids": ["a", "b"]}
    with serving(model, "--workers", "2") as (process, client):
        assert client.post("/learn", json=lesson).status_code == 200
        asked = 0
        for _ in range(2):
            for _ in range(10):
                with httpx.Client(
                    base_url=client.base_url, timeout=PATIENCE
                ) as other:  # any worker
                    assert first_name(other, "soup of herring") == "Fish soup"
                asked += 1
            assert counted(client, "POST", "/predict") == asked
            assert counted(client, "POST", "/learn") == 1
            workers = children(process.pid)
            assert len(workers) == 2
            os.kill(workers[0], signal.SIGKILL)
            wait_until(
                lambda gone=workers[0]: gone not in (now := children(process.pid)) and len(now) == 2
            )
        [folder] = temporary.iterdir()
        assert {file.suffix for file in folder.iterdir()} == {".lock", ".db"}
        workers = children(process.pid)
        process.kill()
        wait_until(lambda: not any(map(is_running, workers)))  # or nobody could use the port again
    assert list(temporary.iterdir()) == [folder]
    with serving(model, "--workers", "2"):  # removes what was left over
        assert not folder.exists()
    assert list(temporary.iterdir()) == []


ORPHAN = """
import multiprocessing, os, time
from dxml.service._server import end_with_parent

def work():
    end_with_parent()
    print(os.getpid(), flush=True)
    time.sleep(600)

multiprocessing.get_context("fork").Process(target=work).start()
time.sleep(600)
"""


def test_a_worker_does_not_outlive_its_service() -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert is_running(worker)
    parent.kill()
    parent.wait(PATIENCE)
    parent.stdout.close()
    wait_until(lambda: not is_running(worker))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"  # ended, though nobody has asked how


def counted(client: httpx.Client, method: str, path: str) -> float:
    """Requests that were answered with 200, by all workers."""
    series = f'dxml_requests_total{{method="{method}",path="{path}",status="200"}} '
    with httpx.Client(base_url=client.base_url, timeout=PATIENCE) as other:
        return float(other.get("/metrics").text.partition(series)[2].partition("\n")[0])


def children(pid: int) -> list[int]:
    """Workers of a server: the processes that it has spawned, but for the resource tracker."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    commands = {int(each): Path(f"/proc/{each}/cmdline").read_text() for each in found}
    return [each for each, command in commands.items() if "spawn_main" in command]


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dxml", "serve", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_an_open_address_needs_a_token(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    for host in ("0.0.0.0", "example.org", "::"):
        said = fails(capsys, "--model", model, "--host", host)
        assert said.startswith(f"error: others can reach {host}, and could teach the model. Give")
    said = fails(capsys, "--model", model, "--token", " ")
    assert said == "error: a token must have visible ASCII characters.\n"


def test_what_cannot_be_served(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "no model here" in fails(capsys, "--model", tmp_path / "none")
    assert "no model here" in fails(capsys, "--model", tmp_path / "none", "--workers", 2)
    assert not (tmp_path / "none").exists()
    data = make_planted(50, 30, 4, random_state=0)
    KNN().fit(data.X, data.Y).save(tmp_path / "knn")
    assert "Served are taggers of texts and models of method 'joint'." in fails(
        capsys, "--model", tmp_path / "knn"
    )


def test_a_missing_extra_is_named(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "uvicorn", None)
        said = fails(capsys, "--model", model)
    assert "serving needs the package uvicorn, which is missing." in said
    assert "Install what serving needs with: pip install 'dxml[serve]'." in said


def test_a_port_that_is_taken_is_said_in_a_sentence(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        monkeypatch.setattr(sys, "argv", ["dxml", "serve", "--model", str(model), "--port", port])
        with pytest.raises(SystemExit) as stop:
            main()
    said = capsys.readouterr()
    assert stop.value.code == 2 and not said.out  # nothing was announced
    assert f"error: cannot listen at 127.0.0.1, port {port} (Address already in use)." in said.err
