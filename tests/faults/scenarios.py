"""What is disturbed: each has a folder before, an action, and what may be there afterwards.

All functions run in processes of their own, which end with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dxml.exceptions import DxmlError

from .scenario import Scenario, command
from .taggers import LESSON, one_tagger, ranked, two_taggers
from .trainings import TRAININGS

SPEC = """
name = "faults"
description = "a run that is disturbed"
k = 3
warm_up = false
processes = false
[[runs]]
datasets = ["planted:n_samples=60,n_features=30,n_labels=5"]
methods = ["knn", "leml"]
"""


def _save(folder: Path) -> None:
    from dxml._core.versions import keeping
    from dxml.tagging._tagger import TextTagger

    tagger = TextTagger.load(folder / "other")
    with keeping(folder / "model", "saved"):
        tagger.save(folder / "model")


def _learn(folder: Path) -> None:
    table = [
        {"text": text, "labels": ["whale", "sea"], "id": f"new{at}"}
        for at, text in enumerate(LESSON)
    ]
    lines = "\n".join(json.dumps(row) for row in table)
    (folder / "lesson.jsonl").write_text(lines)
    command("learn", folder / "lesson.jsonl", "--model", folder / "model", "--quiet")


DATA = ("data.dxml", "data.txt.gz")


def _two_data_sets(folder: Path) -> None:
    from dxml.data import make_planted, write

    sizes = (30, 50, 5)
    write(make_planted(*sizes, random_state=1), folder / "new.txt")
    for name in DATA:
        write(make_planted(*sizes, random_state=0), folder / name)


def _convert(folder: Path) -> None:
    for name in DATA:
        command("data", "convert", folder / "new.txt", folder / name)


def _data(folder: Path) -> dict[str, Any]:
    from dxml.data import read

    return {name: _digest(read(folder / name)) for name in DATA}


def _digest(data: Any) -> str:
    arrays = (data.X.data, data.X.indices, data.X.indptr, data.Y.indices, data.Y.indptr)
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def _spec(folder: Path) -> None:
    (folder / "faults.toml").write_text(SPEC)


def _bench(folder: Path) -> None:
    command("bench", "run", folder / "faults.toml", "--results", folder / "results", "--quiet")


def _results(folder: Path) -> dict[str, Any]:
    from dxml.bench._results import Store

    return {each.run.method: each.ranking_hash() for each in Store(folder / "results")}


ANSWERED = "answered"  # a line for each thing that the service was asked or has answered


def _serve(folder: Path) -> None:
    """A service that starts, learns, takes a lesson back, loads its model again and stops."""
    from dxml.service.app import create_app

    with warnings.catch_warnings():  # Starlette would rather have another client than httpx
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    lines = os.open(folder / ANSWERED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def ask(name: str, method: str, path: str, body: object = None) -> Any:
        os.write(lines, f"asked {name}\n".encode())
        answer = client.request(method, path, json=body, headers=headers)
        if answer.status_code >= 300:
            raise OSError(answer.text)
        os.write(lines, f"answered {name}\n".encode())
        return answer.json()

    def learn(id: str) -> None:
        ask(id, "POST", "/learn", {"texts": [LESSON[0]], "labels": [["whale"]], "ids": [id]})

    headers = {"Authorization": "Bearer faults"}
    gone = f"gone {os.getpid()}"  # taking back a lesson about a known text would not forget it
    try:
        with TestClient(create_app(folder / "model", token="faults")) as client:
            learn("first")
            learn(gone)
            [last] = ask("list", "GET", "/lessons?limit=1")["lessons"]
            ask(f"undo {gone}", "DELETE", f"/lessons/{last['number']}")
            ask("reload", "POST", "/reload")
            learn("last")
    except DxmlError as error:  # the journal cannot be opened
        raise OSError(str(error)) from error


def _taught(folder: Path) -> dict[str, Any]:
    """What a service that starts now knows; what was answered must hold."""
    from dxml.service._engine import Engine

    engine = Engine(folder / "model")
    known = set(engine.served.tagger.ids_)  # type: ignore[attr-defined]
    engine.close()
    path = folder / ANSWERED
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        word, _, name = line.partition(" ")
        id = name.removeprefix("undo ")
        if word == "answered" and id not in ("list", "reload"):
            undone = f"undo {id}"
            assert id in known or f"asked {undone}" in lines, f"{id} was lost"
            assert id not in known or f"answered {undone}" not in lines, f"{id} came back"
    return {id: id in known for id in ("first", "last")}


SCENARIOS: dict[str, Scenario] = {
    "save": Scenario(two_taggers, _save, ranked),
    "learn": Scenario(one_tagger, _learn, ranked, settled=("ids",)),
    **TRAININGS,
    "convert": Scenario(_two_data_sets, _convert, _data),
    "bench": Scenario(_spec, _bench, _results),
    "service": Scenario(one_tagger, _serve, _taught),
}
