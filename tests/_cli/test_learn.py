"""``dxml learn`` beside other programs that write to the same folder."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dxml._core.locking import folder_lock
from dxml.tagging._journal import JOURNAL, Journal
from dxml.tagging._tagger import Columns, TextTagger

from .asking import fails, run

TEXTS = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]
LEARN = """
import sys
from typer.testing import CliRunner
from dxml._cli import app
folder, name = sys.argv[1:]
sys.stdin.readline()
for i in range(8):
    done = CliRunner().invoke(app, ["learn", f"{folder}/{name}{i}.jsonl", "--model", f"{folder}/m"])
    assert done.exit_code == 0, done.output
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tagger m, and tables of one text each: a0 to a7 and b0 to b7."""
    tagger = TextTagger(min_df=1).fit(TEXTS, [["ocean"], ["ocean"], ["food"], ["food"]])
    tagger.columns = Columns(("text",), "labels", "id")
    tagger.save(tmp_path / "m")
    for name in (f"{who}{i}" for who in "ab" for i in range(8)):
        row = {"text": "fish soup", "labels": [name], "id": name}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    return tmp_path


def test_two_that_teach_at_once_lose_nothing(folder: Path) -> None:
    """Before, who saved last had read the model before the other saved, and its text was gone."""
    command = [sys.executable, "-c", LEARN, str(folder)]
    programs = [subprocess.Popen([*command, who], stdin=subprocess.PIPE) for who in "ab"]
    for program in programs:
        assert program.stdin is not None
        program.stdin.close()
    assert [program.wait() for program in programs] == [0, 0]
    tagger = TextTagger.load(folder / "m")
    taught = {f"{who}{i}" for who in "ab" for i in range(8)}
    assert set(tagger.ids_) == {"0", "1", "2", "3"} | taught
    assert set(tagger.labels_) == {"ocean", "food"} | taught


def test_a_table_without_the_model_s_ids(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "one.csv").write_text("text,labels\nfish soup,brand\n")
    done = run("learn", folder / "one.csv", "--model", folder / "m")
    assert "learnt 1 text, 1 label is new: 5 texts known" in done.output
    assert TextTagger.load(folder / "m").ids_ == ("0", "1", "2", "3", "4")
    said = fails(capsys, "learn", folder / "one.csv", "--model", folder / "m", "--id", "id")
    assert "there is no column 'id'" in said, "asked for by name it must be there"


def test_ids_that_stand_twice_or_are_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model = folder / "t.csv", folder / "m"
    table.write_text("id,text,labels\nx,fish,brand\n,soup,brand\n ,net,brand\nx,sea,brand\n")
    said = fails(capsys, "learn", table, "--model", model)
    assert "t.csv line 5: the id 'x' in column 'id' stands in row 1 of the table too" in said
    done = run("learn", table, "--model", model, "--skip-bad-rows")
    assert "1 bad row skipped; " in done.output and "learnt 3 texts" in done.output
    assert TextTagger.load(model).ids_[4:] == ("x", "line 3", "line 4")


def test_lessons_that_wait_are_named(folder: Path) -> None:
    model = folder / "m"
    with closing(Journal(model / JOURNAL)) as journal:
        journal.append("learn", {"texts": ["brook"], "labels": [["river"]], "ids": ["z"]})
    notice = "1 lesson that a service was taught: not part of"
    for command in ("predict", "evaluate"):
        done = run(command, folder / "a0.jsonl", "--model", model)
        assert notice in done.output, command
    assert notice in run("explain", "fish", "--model", model).output
    columns = ("--text", "text", "--labels", "labels", "--set", "min_df=1")
    done = run("train", folder / "a0.jsonl", *columns, "--model", model)
    assert "1 lesson of an earlier model in this folder will be applied to this one" in done.output
    run("learn", "--journal", "--model", model)
    assert notice not in run("explain", "fish", "--model", model).output


def test_waiting_for_another_has_an_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("learn", folder / "a0.jsonl", "--model", folder / "m")
    hold = "import sys; from dxml._core.locking import folder_lock\n"
    hold += "with folder_lock(sys.argv[1]): print('has it', flush=True); sys.stdin.readline()"
    command = [sys.executable, "-c", hold, str(folder / "m")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline()
        said = fails(capsys, *arguments, "--timeout", 0.1)
        assert "m: another program is writing this model, and was for 0.1 s. Try again" in said
        said = fails(capsys, *arguments, "--timeout", 1.2)
        assert f"waiting for another program that writes to {folder / 'm'}" in said
        other.kill()
    assert run(*arguments).exit_code == 0
    assert "a0" in TextTagger.load(folder / "m").ids_


def test_who_has_the_lock_saves_under_it(folder: Path) -> None:
    with folder_lock(folder / "m"):
        tagger = TextTagger.load(folder / "m")
        tagger.learn(["fish"], [["ocean"]], ids=["x"]).save(folder / "m")
    assert "x" in TextTagger.load(folder / "m").ids_
