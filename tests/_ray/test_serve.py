"""The service on Ray Serve: the same answers, and lessons that are kept once, whatever dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from dxml import TextTagger
from dxml._core.cluster import RayCluster
from dxml.exceptions import ClusterError
from dxml.service._replicas import serve_replicas
from dxml.service.app import create_app
from dxml.tagging._journal import JOURNAL, Journal

from .nodes import PATIENCE, Nodes

with warnings.catch_warnings():  # Starlette would rather have another client than httpx
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]
TEXTS = ["fish of the sea", "salt in a soup", "the sea", "a spoon of soup", "nets and fish"] * 4
LABELS = [["ocean"], ["food"], ["ocean"], ["food"], ["ocean"]] * 4


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return TextTagger(device="cpu", min_df=1).fit(TEXTS, LABELS).save(tmp_path / "m")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def asked(client: httpx.Client, path: str, body: Any) -> Any:
    """The answer; it is asked for again where the replica that was asked has died."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            answer = client.post(path, json=body)
            if answer.status_code < 500:
                assert answer.status_code == 200, answer.text
                return answer.json()
            said = answer.text
        except httpx.TransportError as error:
            said = str(error)
        assert time.monotonic() < end, said
        time.sleep(0.2)


def lesson(number: int) -> Any:
    text = {"texts": [f"whale number{number} of the sea"], "ids": [f"whale-{number}"]}
    return text | {"labels": [["whales", f"whale{number % 3}"]]}


QUESTION = {"text": ["fish soup", "whale number1", "salt"], "top": 5}


def test_the_same_answers_and_lessons_when_a_node_dies_at_work(
    nodes: Nodes, cluster: RayCluster, model: Path
) -> None:
    app = create_app(model, journal=model / "other.sqlite")
    with TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 50_000)) as here:
        before = here.post("/predict", json=QUESTION).json()
        for number in range(30):
            assert here.post("/learn", json=lesson(number)).status_code == 200
        after = here.post("/predict", json=QUESTION).json()
        labels = here.get("/labels?limit=50").json()
    port = free_port()
    where: dict[str, Any] = {"host": "127.0.0.1", "port": port, "replicas": 2}
    with (
        nodes.another() as doomed,
        serve_replicas(model, **where),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client,
    ):
        for _ in range(8):  # both replicas
            assert asked(client, "/predict", QUESTION) == before
        for number in range(30):
            if number == 10:
                nodes.cluster.remove_node(doomed, allow_graceful=False)
            asked(client, "/learn", lesson(number))
            asked(client, "/predict", QUESTION)
        assert asked(client, "/predict", QUESTION) == after
        assert client.get("/labels?limit=50").json() == labels
        with pytest.raises(ClusterError, match="Ray Serve runs on this cluster already"):
            serve_replicas(model, **where).__enter__()
    journal = Journal(model / JOURNAL)
    taught = Counter(id for entry in journal.after(0) for id in entry.content["ids"])
    journal.close()
    assert set(taught) == {f"whale-{number}" for number in range(30)}


def test_the_command(model: Path, nodes: Nodes) -> None:
    port = free_port()
    command = [sys.executable, "-m", "dxml", "serve", "--model", str(model), "--port", str(port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command += ["--ray", nodes.address]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"serving {model} at http://127.0.0.1:{port}")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            found = asked(client, "/predict", {"text": "fish", "top": 1})
            assert found["results"][0]["labels"][0]["name"] == "ocean"
            asked(client, "/learn", lesson(0))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
    journal = Journal(model / JOURNAL)
    assert [entry.content["ids"] for entry in journal.after(0)] == [["whale-0"]]
    journal.close()
