"""Files of one's own: a changed one is another run, and pages show names in place of paths."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dxml._cli import app
from dxml.bench._own_files import called, checksums
from dxml.bench._spec import own_experiment
from dxml.bench._summary import load_summaries
from dxml.bench.peers import peer_of
from dxml.data import write
from dxml.exceptions import ParameterError

from .conftest import OWN


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["bench", "run", *words, "--results", "out", "--name", "mine"])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_changed_file_of_ones_own_is_run_again(folder: Path) -> None:
    """It was taken for the run that is stored, and the board kept what an older file had done."""
    asked = ("--method", "frequent.py", "--data", "mine.toml")
    first = run(*asked)
    assert "1 runs, 1 new" in first and "1 runs, 0 new" in run(*asked)
    path = folder / "out" / "mine.json"
    [before] = json.loads(path.read_text("utf-8"))["rows"]
    assert {name: len(digest) for name, digest in before["files"].items()} == {
        "method": 16,
        "data": 16,
    }
    adapter = folder / "frequent.py"
    adapter.write_text(adapter.read_text("utf-8").replace("2 * smooth", "3 * smooth"))
    assert "1 runs, 1 new" in run(*asked) and "1 runs, 0 new" in run(*asked)
    [after] = json.loads(path.read_text("utf-8"))["rows"]
    assert after["rankings"] != before["rankings"]
    assert after["files"]["method"] != before["files"]["method"]
    assert after["files"]["data"] == before["files"]["data"]
    write(OWN.take(np.arange(100, 120)), folder / "test.txt")
    assert "1 runs, 1 new" in run(*asked)


def test_a_run_that_is_done_again_says_whether_its_ranking_is_the_same(folder: Path) -> None:
    source = (folder / "frequent.py").read_text("utf-8")
    unseeded = source.replace("np.argsort(-model", "np.argsort(-(model := np.random.rand(6))")
    (folder / "random.py").write_text(unseeded.replace("Most frequent", "Unseeded"), "utf-8")
    asked = ("--method", "frequent.py", "--method", "random.py", "--data", "mine.toml")
    assert "ranking" not in run(*asked)
    said = run(*asked, "--rerun").splitlines()
    assert "frequent.py: done, the same ranking as before in" in said[-3]
    assert "random.py: done, another ranking than before in" in said[-2]


def test_pages_show_names_and_no_paths(folder: Path) -> None:
    (folder / "mine.toml").write_text(
        'name = "our texts"\ntrain = "train.txt"\ntest = "test.txt"\n', "utf-8"
    )
    run("--method", str(folder / "frequent.py"), "--data", str(folder / "mine.toml"))
    text = (folder / "out" / "mine.json").read_text("utf-8")
    text += (folder / "out" / "test-log.jsonl").read_text("utf-8")
    assert str(folder) not in text
    [stored] = load_summaries(folder / "out")
    assert stored["rows"][0]["dataset"] == "our texts"
    assert stored["rows"][0]["method"] == "frequent.py" and "our texts" in stored["data"]


def test_names_that_are_taken_are_refused(folder: Path) -> None:
    source = (folder / "frequent.py").read_text("utf-8")
    for title in ("joint", "KNN", "PECOS", "omikuji"):
        path = folder / f"a{title}.py"
        path.write_text(source.replace("Most frequent", title), "utf-8")
        with pytest.raises(ParameterError, match=f"the title '{title}' is that of a method of"):
            peer_of(str(path))
    (folder / "second.py").write_text(source, "utf-8")
    with pytest.raises(ParameterError, match=r"second\.py are both called 'Most frequent'\. Give"):
        own_experiment("mine", ["frequent.py", "second.py"], ["mine.toml"])
    (folder / "b.toml").write_text((folder / "mine.toml").read_text() + 'name = "mine"\n')
    with pytest.raises(
        ParameterError, match="b.toml are both called 'mine'. Give one another name"
    ):
        own_experiment("mine", ["knn"], ["mine.toml", "b.toml"])


def test_checksums_are_of_the_content(folder: Path) -> None:
    """Of the adapter by hand; a file that is not there has a place in that of the data."""
    digest = hashlib.sha256((folder / "frequent.py").read_bytes()).hexdigest()[:16]
    both = checksums("frequent.py", "mine.toml")
    assert both["method"] == digest and checksums("knn", "mine.toml") == {"data": both["data"]}
    assert checksums("knn", "bibtex") == {} and called("mine.toml") == "mine"
    (folder / "test.txt").unlink()
    assert checksums("knn", "mine.toml")["data"] != both["data"]
