"""The board: every stored row, and methods and data of one's own that join it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dxml._cli import app
from dxml.bench._board import BOARD, SCRIPT, STYLE, render_board, render_page, write_board
from dxml.bench._results import Store
from dxml.bench._spec import own_experiment
from dxml.bench._summary import load_rows, load_summaries
from dxml.bench.peers import peer_of
from dxml.exceptions import DataFormatError, ParameterError

from .conftest import GUIDE, OWN
from .made_up import not_run, row

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def summary(*rows: dict[str, object]) -> dict[str, object]:
    return {"experiment": "e", "rows": list(rows), "data": {}, "machines": [], "dates": []}


def cells(page: str) -> list[list[str]]:
    return [
        re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line)
        for line in page.splitlines()
        if "<tr>" in line
    ]


def test_the_stored_board_is_what_the_results_say(tmp_path: Path) -> None:
    summaries = load_summaries(RESULTS)
    write_board(summaries, tmp_path)
    for name in (BOARD, SCRIPT, STYLE):
        stored = (ROOT / "docs" / name).read_text("utf-8")
        assert stored == (tmp_path / name).read_text("utf-8"), "run `dxml bench report`"
    measured = [each for each in load_rows(summaries, ["machines"]) if each.measured]
    assert len(cells(render_board(summaries))) == 1 + len(measured)


def test_a_row_from_before_files_were_stored_is_replaced_by_a_newer_one() -> None:
    """It lacks what a newer one has empty; of two with as many splits the newest is shown."""
    old = summary(row("bibtex", "joint", 40.0))
    new = {**summary(row("bibtex", "joint", 50.0, files={})), "dates": ["2026-11-19"]}
    assert len(cells(render_board([old, new]))) == 2
    assert "50.00" in render_board([old, new]) and "40.00" not in render_board([old, new])


def test_rows_of_a_study_name_its_parameter() -> None:
    """Also where the label has a setting in brackets, as "joint (CPU)" has."""
    few, many = (
        row(
            "bibtex",
            "joint",
            50.0,
            label="joint (CPU)",
            parameters={"device": "cpu", "n_negatives": n},
            study="n_negatives",
        )
        for n in (25, 50)
    )
    page = render_board([summary(few, many)])
    assert "joint (CPU) (n_negatives=25)<" in page and "joint (CPU) (n_negatives=50)<" in page
    named = row("bibtex", "dxml", 50.0, label="dxml (dim=25)", parameters={"dim": 25}, study="dim")
    assert "dxml (dim=25)<" in render_board([summary(named)])
    alone = row("bibtex", "dxml", 50.0, parameters={"dim": 25})
    assert "dxml (dim=25)<" in render_board([summary(alone)])


def test_rows_by_hand() -> None:
    """Best first; what was not measured is left out; checksums and machines are shown."""
    known = row("bibtex", "a<b", 40.0, rankings=["0123456789abcdef"], commits=["abc1234"])
    better = row("bibtex", "b", 50.0, devices=[])
    page = render_board([summary(known, better, not_run("bibtex", "c"))])
    heading, first, second = cells(page)
    assert len(heading) == len(first) == len(second)
    at = {name: place for place, name in enumerate(heading)}
    assert [first[at["method"]], second[at["method"]]] == ["b", "a&lt;b"]
    assert first[at["P@1"]] == "50.00" and first[at["rankings"]] == "–"
    assert second[at["rankings"]] == "0123456789abcdef" and second[at["commit"]] == "abc1234"
    assert second[at["machine"]] == "Some CPU, 2 cores, 8 GiB" and second[at["threads"]] == "2"
    assert '<td data-number="40">40.00</td>' in page


def test_a_method_and_a_data_set_of_ones_own_become_rows(folder: Path) -> None:
    asked = ["bench", "run", "--method", "frequent.py", "--method", "knn", "--data", "mine.toml"]
    done = CliRunner().invoke(app, [*asked, "--results", "out", "--name", "mine", "-q"])
    assert done.exit_code == 0, done.output
    [stored] = load_summaries(folder / "out")
    first, second = stored["rows"]
    assert (first["label"], second["label"]) == ("Most frequent", "knn")
    assert first["runs"] == second["runs"] == 1 and not first["failed"], first["failed"]
    [run, _] = own_experiment("mine", ["frequent.py", "knn"], ["mine.toml"]).runs
    result = Store(folder / "out").get(run)
    assert result is not None
    frequency = OWN.Y[:90].getnnz(axis=0)
    assert (result.ranking().indices[:, :6] == np.argsort(-frequency, kind="stable")).all()
    assert first["rankings"] == [result.ranking_hash()[:16]]
    assert {"read", "prepare", "train", "save", "load", "predict"} <= set(first["stages"])
    shares = (np.sort(frequency)[::-1] + 1) / (90 + 2)
    assert np.allclose(result.ranking().scores[0, :6], shares)
    assert result.record["model_bytes"] == 128 + 8 * 6
    assert str(folder) not in json.dumps(stored)
    page = render_board([stored])
    assert result.ranking_hash()[:16] in page and "Most frequent" in page


def test_a_second_command_adds_to_what_the_first_has_stored(folder: Path) -> None:
    """docs/guide/board.md has a command for a method and one for a data set, under one name."""
    for method in ("frequent.py", "knn", "knn"):
        asked = ["bench", "run", "--method", method, "--data", "mine.toml", "--name", "mine"]
        done = CliRunner().invoke(app, [*asked, "--results", "out", "-q"])
        assert done.exit_code == 0, done.output
    stored = json.loads((folder / "out" / "mine.json").read_text("utf-8"))
    assert sorted(row["label"] for row in stored["rows"]) == ["Most frequent", "knn"]
    assert stored["data"].keys() == {"mine"} and stored["commits"]


def test_a_file_that_is_no_summary_of_this_name_stays(folder: Path) -> None:
    asked = ["bench", "run", "--method", "knn", "--data", "mine.toml", "--name", "mine"]
    (folder / "out").mkdir()
    path = folder / "out" / "mine.json"
    for text in ('[{"n": 1}]', '{"experiment": "other", "format": 1}', "{"):
        path.write_text(text, "utf-8")
        done = CliRunner().invoke(app, [*asked, "--results", "out"])
        assert isinstance(done.exception, DataFormatError), done.output
        assert path.read_text("utf-8") == text and not (folder / "out" / "raw").exists()


def test_a_command_of_which_a_run_fails_says_so(folder: Path) -> None:
    (folder / "bad.py").write_text(
        "def prepare(X, Y, folder): raise ValueError('mine')\n"
        "def train(state, folder, parameters, threads, seed): ...\n"
        "def predict(model, X, k, threads): ...\n"
    )
    asked = ["bench", "run", "--method", "bad.py", "--method", "frequent.py", "--data", "mine.toml"]
    done = CliRunner().invoke(app, [*asked, "--results", "out", "-q"])
    assert done.exit_code == 1 and "1 failed (again: --retry-failed)" in done.output
    [stored] = load_summaries(folder / "out")
    bad, good = stored["rows"]
    assert "prepare raised ValueError: mine" in bad["failed"][0]["error"] and good["runs"] == 1


def test_mistakes_in_an_adapter_are_named(folder: Path) -> None:
    for source, said in (
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("def prepare(X, Y, folder): ...", "an adapter needs the function train"),
    ):
        path = folder / f"bad{len(said)}.py"
        path.write_text(source, "utf-8")
        with pytest.raises(ParameterError, match=said):
            peer_of(str(path))
    with pytest.raises(ParameterError, match="no such adapter file"):
        peer_of("absent.py")
    peer = peer_of("frequent.py")
    assert (peer.title, dict(peer.parameters), peer.steps) == ("Most frequent", {"smooth": 1.0}, ())
    bad = CliRunner().invoke(app, ["bench", "run", "smoke", "--method", "knn"])
    assert isinstance(bad.exception, ParameterError)
    assert "give an experiment, or --method and --data" in str(bad.exception)


def test_rows_of_two_machines_are_two() -> None:
    here = row("bibtex", "a", 40.0)
    there = row("bibtex", "a", 40.0, machines=["Other CPU, 4 cores, 8 GiB"])
    edited = row("bibtex", "a", 40.0, files={"method": "0123456789abcdef"})
    page = render_board([summary(here), summary(there), summary(edited), summary(here)])
    heading, *rows = cells(page)
    assert len(rows) == 3
    own = {each[heading.index("own files")] for each in rows}
    assert own == {"–", "method 0123456789abcdef"}


def test_all_checksums_of_a_row_are_there() -> None:
    digests = [f"{n:016x}" for n in range(10)]
    page = render_board([summary(row("bibtex", "a", 40.0, rankings=digests))])
    assert all(digest in page for digest in digests)
    assert f"<summary>{digests[0]} and 9 more</summary>" in page


def test_a_page_of_one_file(tmp_path: Path) -> None:
    """Table, script and style are in it, and it loads nothing."""
    done = CliRunner().invoke(
        app, ["bench", "board", "--results", str(RESULTS), "-o", str(tmp_path / "b.html")]
    )
    assert done.exit_code == 0 and done.output == f"wrote {tmp_path / 'b.html'}\n"
    page = (tmp_path / "b.html").read_text("utf-8")
    summaries = load_summaries(RESULTS)
    assert page == render_page(summaries) and cells(page) == cells(render_board(summaries))
    for name in (SCRIPT, STYLE):
        assert (ROOT / "src" / "dxml" / "bench" / name).read_text("utf-8") in page
    assert not re.search(r"\b(src|href)=|url\(|@import", page)


def test_a_checksum_is_what_the_command_of_the_guide_says(folder: Path) -> None:
    asked = ["bench", "run", "--method", "frequent.py", "--data", "mine.toml", "--name", "mine"]
    done = CliRunner().invoke(app, [*asked, "--results", "out", "-q"])
    assert done.exit_code == 0, done.output
    [command] = re.findall(r"^    python -c (.+) \S+ranking.npz$", GUIDE.read_text("utf-8"), re.M)
    [ranking] = (folder / "out" / "raw").glob("*/ranking.npz")
    words = [sys.executable, "-c", *shlex.split(command), str(ranking)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    [stored] = load_summaries(folder / "out")
    assert stored["rows"][0]["rankings"] == [said.strip()]


def test_the_page_needs_nothing_from_elsewhere() -> None:
    script = (ROOT / "docs" / SCRIPT).read_text("utf-8")
    assert not re.search(r"https?:|import |fetch|eval", script)
