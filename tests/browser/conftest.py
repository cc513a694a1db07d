"""One browser for all tests, and a small tagger with planted answers, served for real."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dxml.tagging._tagger import TextTagger

from ..service.conftest import FILLING, SIGNS
from ..service.test_server import serving
from .driver import Browser, browsing, missing_programs

ODD = '<img src=x onerror="alert(1)"> & “Tide” 海'
"""A label that a page must show as it is; it goes with every text of Fishery and Music."""


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if sentence := missing_programs():
        pytest.exit(sentence, returncode=1)
    with browsing(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts with one label or two: the signs of each and some filling."""
    rng = random.Random(0)
    texts, labels = [], []
    for i in range(120):
        names = rng.sample(sorted(SIGNS), 1 + (i % 3 == 0))
        signs = [sign for name in names for sign in rng.sample(SIGNS[name], 2)]
        texts.append(" ".join(signs + rng.sample(FILLING, 5)))
        labels.append([*names, ODD] if {"Fishery", "Music"} <= set(names) else names)
    tagger = TextTagger(device="cpu", candidates="nearest", width=0)
    tagger.fit(texts, labels, ids=[f"doc/{i}" for i in range(120)])
    return tagger.save(tmp_path_factory.mktemp("trained") / "tags")


@pytest.fixture(scope="session")
def service(trained: Path) -> Iterator[httpx.Client]:
    """A service that every test leaves as it found it."""
    with serving(trained) as (_, client):
        yield client


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "tags"))


@pytest.fixture
def page(browser: Browser, service: httpx.Client) -> Iterator[Browser]:
    """The page, open; the console must stay silent, and nobody else may be asked."""
    own = open_page(browser, service)
    yield browser
    assert browser.console() == []
    assert browser.hosts() == {own}


def open_page(browser: Browser, service: httpx.Client) -> str:
    """Open the page of a service in a window as wide as a desk's; whom it may ask."""
    browser.size(1280, 900)
    browser.prefer(prefers_color_scheme="light")
    browser.console(), browser.hosts()
    browser.open(str(service.base_url))
    browser.wait_text("#summary", "labels learnt from")
    return service.base_url.netloc.decode()
