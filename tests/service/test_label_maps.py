"""The map of a tagger whose groups of labels are planted; the process that makes it.

There is one such process at most, and none without the service.
"""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml.label_map import make_label_map
from dxml.service import _label_maps as label_maps
from dxml.service._engine import Engine
from dxml.service._errors import ServiceError
from dxml.service._label_maps import LabelMaps, map_content
from dxml.tagging._tagger import TextTagger

from .conftest import PATIENCE, TestClient, client_of, wait_until

GROUPS = [["Fish", "Sea", "Boat", "Harbour", "Net"], ["Soup", "Salt", "Pan", "Oven", "Menu"]]
ODD = '<b>"Tide" & </script> 海 \u202e'


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger whose texts have three labels of one group; one odd name goes with "Fish"."""
    rng = random.Random(0)
    chosen = [rng.sample(rng.choice(GROUPS), 3) for _ in range(90)]
    texts = [" ".join(name.lower() for name in names) for names in chosen]
    labels = [[*names, ODD] if "Fish" in names else names for names in chosen]
    tagger = TextTagger(device="cpu", candidates="nearest", width=0).fit(texts, labels)
    return tagger.save(tmp_path_factory.mktemp("grouped") / "tags")


@pytest.fixture(scope="module")
def group_client(grouped: Path) -> Iterator[TestClient]:
    with client_of(grouped) as client:
        yield client


def ask_for_map(client: TestClient, **headers: str) -> Any:
    def made() -> bool:
        nonlocal answer
        answer = client.get("/map", headers=headers)
        if answer.status_code != 202:
            return True
        assert answer.headers["retry-after"] == "1"
        assert answer.json() == {"message": "the map is being made; ask again in a second."}
        return False

    answer: Any = None
    wait_until(made)
    return answer


def test_the_map_of_planted_groups(group_client: TestClient, grouped: Path) -> None:
    content = ask_for_map(group_client).json()
    names = content["names"]
    assert content["total"] == len(names) == 11
    assert content["points"] == sorted(content["points"], reverse=True)
    known = group_client.get("/labels").json()["labels"]
    assert dict(zip(names, content["points"], strict=True)) == {
        label["name"]: label["points"] for label in known
    }
    group = {name: i for i, row in enumerate(GROUPS) for name in row} | {ODD: 0}
    for name, related in zip(names, content["related"], strict=True):
        assert related and {group[names[i]] for i in related} == {group[name]}
    fish, odd = names.index("Fish"), names.index(ODD)
    assert content["related"][fish][0] == odd and content["related"][odd][0] == fish
    n = content["points"][fish]
    assert content["strength"][fish][0] == pytest.approx(n / (n + 2), abs=1e-3)
    places = np.array([content["x"], content["y"]]).T
    assert abs(places).max() <= 10_000
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    same = np.array([[group[a] == group[b] for b in names] for a in names])
    assert apart[same].mean() < 0.6 * apart[~same].mean()
    tagger = TextTagger.load(grouped)  # the same by another route
    order = [tagger.labels_.index(name) for name in names]
    expected = map_content(make_label_map(tagger.model.train_labels_[:, order]), names, 11)
    assert content == expected


def test_the_map_is_sent_once(group_client: TestClient) -> None:
    tag = ask_for_map(group_client).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = group_client.get("/map", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert group_client.get("/map", headers={"If-None-Match": '"other"'}).status_code == 200


def test_predictions_are_answered_while_the_map_is_made(client: TestClient) -> None:
    assert client.get("/map").status_code == 202
    assert client.post("/predict", json={"text": "herring"}).status_code == 200
    assert client.get("/map").status_code == 202


def finished(maps: LabelMaps) -> dict[str, Any]:
    wait_until(lambda: maps.current() is not None)
    made = maps.current()
    assert made is not None
    return dict(json.loads(made.content))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: starting another takes seconds."""
    monkeypatch.setattr(LabelMaps, "_run", lambda self, Y: make_label_map(Y))


@pytest.mark.usefixtures("at_once")
def test_only_the_most_frequent_labels_are_shown(grouped: Path, tmp_path: Path) -> None:
    engine = Engine(grouped, tmp_path / "journal.sqlite")
    content = finished(LabelMaps(engine, shown=4))
    assert content["total"] == 11
    known = engine.labels("")
    assert content["points"] == [n for _, n in known[:4]]
    assert all(0 <= i < 4 for row in content["related"] for i in row)
    engine.close()


@pytest.mark.usefixtures("at_once")
def test_a_model_loaded_again_gets_another_map(model: Path) -> None:
    engine = Engine(model)
    maps = LabelMaps(engine)
    before = finished(maps)
    engine.learn(["herring soup"], [["Fish soup"]])
    assert finished(maps) == before
    engine.reload()
    assert set(finished(maps)["names"]) - set(before["names"]) == {"Fish soup"}
    engine.forget(next(id for id in engine.served.tagger.ids_ if id.startswith("taught")))  # type: ignore[attr-defined]
    engine.reload()
    assert "Fish soup" not in finished(maps)["names"]  # a label without texts
    engine.close()


def test_a_map_that_fails_is_an_error(
    model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dxml.service._label_maps.sys.executable", "/bin/false")
    engine = Engine(model)
    maps = LabelMaps(engine)
    with pytest.raises(ServiceError, match="the map could not be made"):
        finished(maps)
    [record] = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert "ended with status 1" in str(record.exc_info)
    engine.close()


class Endless(subprocess.Popen[bytes]):
    """A process that makes no map and does not end by itself."""

    all: list[Endless]

    def __init__(self, command: list[str], **settings: Any) -> None:
        super().__init__([sys.executable, "-c", "import time; time.sleep(600)"], **settings)
        self.all.append(self)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Endless]]:
    monkeypatch.setattr(Endless, "all", [], raising=False)
    monkeypatch.setattr(label_maps.subprocess, "Popen", Endless)
    yield Endless.all
    for process in Endless.all:
        process.kill()
        process.wait()


def test_a_reload_ends_the_process_of_the_last_model(model: Path, started: list[Endless]) -> None:
    engine = Engine(model)
    maps = LabelMaps(engine)
    for n in (1, 2, 3):
        assert maps.current() is None
        wait_until(lambda n=n: len(started) >= n)
        assert [process.poll() is None for process in started] == [False] * (n - 1) + [True]
        engine.reload()
    maps.close()
    assert all(process.poll() is not None for process in started)
    assert maps.current() is None and len(started) == 3
    engine.close()


def test_the_process_ends_with_the_service(tmp_path: Path) -> None:
    """Killed at once, the service closes its end of the pipe and nothing more."""
    alone = "from dxml.service._label_maps import _end_with_the_service as end; end()"
    process = subprocess.Popen([sys.executable, "-c", alone], stdin=subprocess.PIPE)
    assert process.stdin is not None and process.poll() is None
    process.stdin.close()
    assert process.wait(PATIENCE) == 1
