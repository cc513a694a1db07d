"""A tiny tagger and a tiny joint model, trained once."""

from __future__ import annotations

import gc
import random
import shutil
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from dxml.data import make_planted
from dxml.joint import Joint
from dxml.service._limits import App, Message, Receive, Send
from dxml.service.app import create_app
from dxml.tagging._tagger import TextTagger

with warnings.catch_warnings():  # Starlette would rather have another client than httpx
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

SIGNS = {
    "Fishery": ["herring", "net", "trawler"],
    "Kitchen": ["soup", "salt", "spoon"],
    "Roads": ["asphalt", "bridge", "gravel"],
    "Music": ["violin", "orchestra", "opera"],
}
FILLING = "the of and in on with a to house day year large small old new far".split()


def make_texts(n: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Each text has two signs of its label, and filling."""
    rng = random.Random(seed)
    names = [rng.choice(sorted(SIGNS)) for _ in range(n)]
    texts = [" ".join(rng.sample(SIGNS[name], 2) + rng.sample(FILLING, 5)) for name in names]
    return texts, [[name] for name in names]


PATIENCE = 300.0
"""Seconds that a test waits for another thread or process; a busy machine takes fewer."""


def wait_until(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@contextmanager
def at_a_port(app: App) -> Iterator[str]:
    """Inside, a service answers at this address of the machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="session", autouse=True)
def uncollected() -> Iterator[None]:
    """A service that starts in this process leaves the garbage of all the tests before it."""
    quick = SimpleNamespace(collect=lambda: 0, freeze=gc.freeze, unfreeze=gc.unfreeze)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dxml.service._runtime.gc", quick)
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts, labels = make_texts(80)
    tagger = TextTagger(device="cpu", candidates="nearest", width=0)
    tagger.fit(texts, labels, ids=[f"doc/{i}" for i in range(80)])
    return tagger.save(tmp_path_factory.mktemp("trained") / "tags")


@pytest.fixture(scope="session")
def trained_joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = make_planted(200, 60, 8, labels_per_point=1, features_per_point=8, random_state=0)
    return Joint(device="cpu").fit(data.X, data.Y).save(tmp_path_factory.mktemp("joint") / "m")


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may teach."""
    return Path(shutil.copytree(trained, tmp_path / "tags"))


class From:
    """Where requests come from; the client for tests says "testclient" itself."""

    def __init__(self, app: App, peer: str) -> None:
        self.app = app
        self.peer = peer

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        await self.app({**scope, "client": (self.peer, 50_000)}, receive, send)


def client_of(
    model: Path, host: str = "127.0.0.1", peer: str = "127.0.0.1", **settings: Any
) -> TestClient:
    app = create_app(model, **settings)
    app.add_middleware(From, peer=peer)
    return TestClient(app, base_url=f"http://{host}")


@pytest.fixture
def client(model: Path) -> Iterator[TestClient]:
    with client_of(model) as client:
        yield client


def names_of(client: TestClient, text: str, top: int = 1) -> list[str]:
    answer = client.post("/predict", json={"text": text, "top": top})
    assert answer.status_code == 200, answer.text
    return [label["name"] for label in answer.json()["results"][0]["labels"]]
