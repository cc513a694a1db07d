"""What is disturbed: each has a folder before, an action, and what may be there afterwards.

All functions run in processes of their own, which end with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dxml._core.storage import CONFIG, read_config
from dxml.exceptions import DxmlError
from dxml.tagging._journal import JOURNAL

TEXTS = [
    f"{a} {b} in the {c}"
    for a in ("fish", "salt", "soup")
    for b in ("boils", "swims", "waits")
    for c in ("sea", "pot", "shop", "sun")
]
LESSON = ["a whale sings in the sea", "a whale waits"]
LEFT = re.compile(r".*\.partial|\.tmp.{6}|.*-journal")
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


@dataclass(frozen=True)
class Scenario:
    """Something that writes.

    Parameters
    ----------
    begin : callable
        Makes the state before, in an empty folder.
    act : callable
        What is disturbed.
    state : callable
        What a user finds there, by name, each to be compared; it raises where one is not whole.
    settled : tuple of str, optional
        Names of what is the same when it is done twice as when it is done once; all, without it.
    """

    begin: Callable[[Path], None]
    act: Callable[[Path], None]
    state: Callable[[Path], dict[str, Any]]
    settled: tuple[str, ...] | None = None


def left_over(folder: Path) -> list[str]:
    """Files that nobody needs: half-written ones, and arrays of no model."""
    found = [str(path.relative_to(folder)) for path in folder.rglob("*") if LEFT.match(path.name)]
    for config in folder.glob(f"*/{CONFIG}"):
        known = {CONFIG, "README.md", ".lock", "versions", JOURNAL}
        known.add(read_config(config.parent)["arrays"]["file"])
        names = {path.name for path in config.parent.iterdir()}
        found += [f"{config.parent.name}/{name}" for name in names - known]
    return sorted(set(found))


def _labels(number: int) -> list[list[str]]:
    words = [text.split() for text in TEXTS]
    return [[word[0], word[-1]] if number else [word[-1]] for word in words]


def _tagger(number: int) -> Any:
    from dxml.tagging._tagger import Columns, TextTagger

    ids = [f"t{at}" for at in range(len(TEXTS))]
    tagger = TextTagger(min_df=1, width=0).fit(TEXTS, _labels(number), ids=ids)
    tagger.columns = Columns(("text",), "labels", "id")
    return tagger


def _ranked(folder: Path) -> dict[str, Any]:
    """What a tagger answers, in full; nothing where there is no model."""
    from dxml.tagging._tagger import TextTagger

    if not (folder / "model" / CONFIG).exists():
        return {}
    tagger = TextTagger.load(folder / "model")
    found = repr(tagger.tag([*TEXTS[::7], LESSON[0]], top=4))
    return {"model": [sorted(tagger.ids_), found], "ids": sorted(tagger.ids_)}


def _one_tagger(folder: Path) -> None:
    _tagger(0).save(folder / "model")


def _two_taggers(folder: Path) -> None:
    _one_tagger(folder)
    _tagger(1).save(folder / "other")


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
    _command("learn", folder / "lesson.jsonl", "--model", folder / "model", "--quiet")


def _command(*words: object) -> None:
    """A command as typed, in this process."""
    from dxml._cli import main

    sys.argv = ["dxml", *map(str, words)]
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise OSError(f"exit code {stop.code}") from stop


def _table(folder: Path) -> None:
    rows = zip(TEXTS, _labels(1), strict=True)
    lines = (json.dumps({"text": text, "labels": labels}) for text, labels in rows)
    (folder / "texts.jsonl").write_text("\n".join(lines))


def _train(folder: Path) -> None:
    _command(
        *("train", folder / "texts.jsonl", "--text", "text", "--labels", "labels"),
        *("--model", folder / "model", "--quiet"),
    )


DATA = ("data.dxml", "data.txt.gz")


def _two_data_sets(folder: Path) -> None:
    from dxml.data import make_planted, write

    sizes = (30, 50, 5)
    write(make_planted(*sizes, random_state=1), folder / "new.txt")
    for name in DATA:
        write(make_planted(*sizes, random_state=0), folder / name)


def _convert(folder: Path) -> None:
    for name in DATA:
        _command("data", "convert", folder / "new.txt", folder / name)


def _data(folder: Path) -> dict[str, Any]:
    from dxml.data import read

    return {name: _digest(read(folder / name)) for name in DATA}


def _digest(data: Any) -> str:
    arrays = (data.X.data, data.X.indices, data.X.indptr, data.Y.indices, data.Y.indptr)
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def _spec(folder: Path) -> None:
    (folder / "faults.toml").write_text(SPEC)


def _bench(folder: Path) -> None:
    _command("bench", "run", folder / "faults.toml", "--results", folder / "results", "--quiet")


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
    "save": Scenario(_two_taggers, _save, _ranked),
    "learn": Scenario(_one_tagger, _learn, _ranked, settled=("ids",)),
    "train": Scenario(_table, _train, _ranked),
    "convert": Scenario(_two_data_sets, _convert, _data),
    "bench": Scenario(_spec, _bench, _results),
    "service": Scenario(_one_tagger, _serve, _taught),
}
