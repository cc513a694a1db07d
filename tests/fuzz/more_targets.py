"""Further readers that are fuzzed: settings, lessons, encoders, versions, and texts in encodings.

As in `reader_targets`, whose `TARGETS` these join; what needs an extra is made once.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from dxml._core.versions import list_versions
from dxml._label_graph.graph import read_graph
from dxml.bench._own_data import read_own_data
from dxml.bench._spec import read_experiment
from dxml.data._splits import read_split
from dxml.exceptions import ParameterError
from dxml.service._tokens import new_token, read_tokens
from dxml.tagging._journal import JOURNAL, Journal
from dxml.tagging._lessons import compensation, described, summary
from dxml.text import read_table

from .reader_targets import NUMBERS, SIGNS, TARGETS, TEXTS, Parts, Target, one

ENCODINGS = ("utf-16", "latin-1", "utf-8-sig", "shift_jis")

OWN_DATA = b"""train = "train.csv"
test = "test.csv"
text = ["title", "abstract"]
labels = "subjects"
propensity = [0.55, 1.5]
"""
EXPERIMENT = b"""name = "own"
description = "two"
seeds = [0, 1]
[[runs]]
methods = ["knn", "joint"]
datasets = ["bibtex"]
splits = [1]
k = 5
time_limit = 60
[[runs]]
methods = ["knn"]
datasets = ["bibtex"]
parameters = { n_neighbors = [1, 5] }
"""
Words = tuple[bytes, ...]

GRAPH = b"# parent, child\n0\t1\nfish\tcod\t0.5\n"
TOML_WORDS: Words = (
    b"=",
    b"[[runs]]",
    b"[",
    b"]",
    b"{",
    b"}",
    b"1979-05-27",
    b"nan",
    b'"',
    b"0x1",
    b"\xff",
)


def table_in(encoding: str) -> Callable[[Path], object]:
    """Reads a table in an encoding, and texts."""

    def read(path: Path) -> object:
        skip = path.stat().st_size % 2 == 0
        return read_table(path, labels="labels", encoding=encoding, skip_bad_rows=skip)

    return read


def graph(path: Path) -> object:
    """With ids alone, or with names."""
    names = ["fish", "cod", "3", "é"] if path.stat().st_size % 2 else None
    return read_graph(path, 4, names)


def split(path: Path) -> object:
    """The second column."""
    return read_split(path, 2, 5)


def lessons(folder: Path) -> object:
    """All that a person is shown of a journal, and what taking each lesson back would do."""
    for beside in ("-wal", "-shm", "-journal"):
        (folder / f"{JOURNAL}{beside}").unlink(missing_ok=True)
    journal = Journal(folder / JOURNAL)
    try:
        entries = journal.lessons()
        journal.newest(None, 10), journal.count(), journal.size(), journal.share("desk")
        for entry in entries:
            summary(entry), described(entry, True)
            with suppress(ParameterError):  # what cannot be taken back
                compensation(entries, entry.number)
        return journal.has_lessons_after(0), journal.compact()
    finally:
        journal.close()


def lessons_seeds() -> list[Parts]:
    """A journal with one lesson of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / JOURNAL)
        learn = {"texts": ["a", "b"], "labels": [["x"], []], "ids": ["1", "2"]}
        journal.append("learn", {**learn, "replaced": [False, True]})
        journal.append("unlabel", {"id": "1", "label": "x"})
        journal.append("relabel", {"how": "merge", "labels": ["x", "y"], "into": "z"})
        journal.append("forget", {"id": "1"})
        journal.append("reload", {"by": "somebody"})
        journal._connection.execute("PRAGMA journal_mode=DELETE")
        journal.close()
        return [{JOURNAL: (Path(folder) / JOURNAL).read_bytes()}]


def tokens_seeds() -> list[Parts]:
    """A file with two tokens."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens.json"
        new_token(path, "teach", "desk"), new_token(path, "read", "all")
        return [{"content": path.read_bytes()}]


def versions(folder: Path) -> object:
    """The record of an earlier model, in a folder of its own."""
    root = folder.with_name("versioned")
    version = root / "versions" / "0001"
    version.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        (version / path.name).write_bytes(path.read_bytes())
    return list_versions(root)


def versions_seeds() -> list[Parts]:
    """As `dxml._core.versions` writes it."""
    record = {"time": 1.5, "note": "learn", "arrays": {"a": "arrays-0123456789ab.safetensors"}}
    return [{"version.json": json.dumps(record).encode()}]


def static(folder: Path) -> object:
    """Word vectors, and what they make of a text."""
    from dxml._deep.static_vectors import find_static

    found = find_static(str(folder), 16)
    return None if found is None else found.rows(["the heart of a ship", "é"], "cpu")


@cache
def _written(kind: str) -> Parts:
    from tests._deep import planting

    with tempfile.TemporaryDirectory() as folder:
        getattr(planting, f"write_{kind}")(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def static_seeds() -> list[Parts]:
    """As model2vec writes them."""
    return [_written("static")]


def encoder(folder: Path) -> object:
    """A text encoder as transformers writes it."""
    from dxml._deep.checkpoints import find_weights, open_pretrained

    found = find_weights(str(folder))
    assert found is not None
    return open_pretrained(found, 16).reader.read(["the heart of a ship"])


def encoder_seeds() -> list[Parts]:
    """A tiny one."""
    return [_written("encoder")]


def table_of(encoding: str) -> bytes:
    """A table of texts whose labels need more than ASCII."""
    return 'id,text,labels\n1,"h\u00f4tel, fish",food;sea\n2,salt,food\n'.encode(
        encoding, "replace"
    )


def _target(
    file: str, read: Callable[[Path], object], seeds: Callable[[], list[Parts]], words: Words
) -> Target:
    """One whose parts are the files of a folder."""
    return Target(file, read, seeds, None, words=words)


TARGETS.update(
    {
        "own data": Target("own.toml", read_own_data, one(OWN_DATA), words=TOML_WORDS),
        "experiment": Target("own.toml", read_experiment, one(EXPERIMENT), words=TOML_WORDS),
        "tokens": Target("tokens.json", read_tokens, tokens_seeds, words=TEXTS),
        "label graph": Target("graph.tsv", graph, one(GRAPH), words=NUMBERS),
        "split": Target("split.txt", split, one(b"1 2\n3 4\n"), words=NUMBERS),
        "lessons": _target("journal", lessons, lessons_seeds, TEXTS),
        "version": _target("version", versions, versions_seeds, TEXTS),
        "word vectors": _target("vectors", static, static_seeds, TEXTS),
        "encoder": _target("encoder", encoder, encoder_seeds, TEXTS),
        **{
            f"in {name}": Target("t.csv", table_in(name), one(table_of(name)), words=SIGNS)
            for name in ENCODINGS
        },
    }
)
