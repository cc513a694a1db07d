"""No network at run time unless asked for: what a user does every day opens no connection."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path

def forbid(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        raise RuntimeError(f"{event} {arguments[:2]}")
    if event == "socket.connect" and not isinstance(arguments[1], str | bytes):
        raise RuntimeError(f"{event} {arguments[1]}")

sys.addaudithook(forbid)
folder, encoder = map(Path, sys.argv[1:3])

def dxml(*words):
    from dxml._cli import app
    app([str(word) for word in words], standalone_mode=False)

"""

EVERYDAY = """
table, model = folder / "texts.jsonl", folder / "m"
columns = ("--text", "text", "--labels", "tags", "--set", "width=0", "--quiet")
quick = ("--encoder", encoder, "--set", "encoder_epochs=1", "--device", "cpu")
dxml("train", table, *columns, "--model", model)
dxml("train", table, *columns, *quick, "--model", folder / "deep")
dxml("predict", table, "--model", folder / "deep")
dxml("predict", table, "--model", model)
dxml("evaluate", table, "--model", model)
dxml("explain", "a storm of old notes", "--model", model)
dxml("learn", table, "--model", model, "--quiet")
dxml("labels", "list", "--model", model)
dxml("model", "check", model)
dxml("methods")
"""

SERVED = """
from warnings import catch_warnings, simplefilter
with catch_warnings():
    simplefilter("ignore")
    from fastapi.testclient import TestClient
from dxml.service.app import create_app
dxml("train", folder / "texts.jsonl", "--text", "text", "--labels", "tags", "--quiet", "--set",
     "width=0", "--model", folder / "m")
with TestClient(create_app(folder / "m", token="t")) as client:
    headers = {"Authorization": "Bearer t"}
    lesson = {"texts": ["a storm of old notes"], "labels": [["storm"]]}
    answers = [
        *map(client.get, ("/", "/docs", "/openapi.json", "/health", "/labels", "/metrics")),
        client.post("/predict", json={"text": "a storm of old notes"}),
        client.post("/learn", json=lesson, headers=headers),
    ]
    wrong = [answer.text for answer in answers if answer.status_code != 200]
    assert not wrong, wrong
"""


def run(body: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own: what listens to events cannot be taken away."""
    command = [sys.executable, "-c", PROGRAM + body, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = ("heart", "ship", "storm", "bone")
    rows = [
        {"text": f"the {word} of old notes {i}", "tags": [word]}
        for i in range(10)
        for word in words
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "texts.jsonl").write_text(lines)
    return tmp_path


@pytest.mark.parametrize("body", [EVERYDAY, SERVED], ids=["commands", "service"])
def test_nothing_is_asked_of_the_network(body: str, folder: Path, encoder_folder: Path) -> None:
    done = run(body, folder, encoder_folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "asking",
    [
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')",
        "import socket; socket.create_connection(('localhost', 9))",
        "import httpx; httpx.get('http://127.0.0.1:9')",
    ],
)
def test_asking_would_be_seen(asking: str, folder: Path) -> None:
    done = run(asking, folder, folder)
    assert done.returncode == 1 and "RuntimeError: socket." in done.stderr, done.stderr
