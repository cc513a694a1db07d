"""Where output goes: mistakes are found before the work, and nothing is put over a device."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from dxml._cli._output import check_file, check_folder, replace_file
from dxml._cli._write import Row, _csv
from dxml.data import make_planted, write
from dxml.exceptions import ParameterError
from dxml.text import read_table

from .asking import fails, run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.txt and test.txt with a joint model m; a plain file."""
    folder = tmp_path_factory.mktemp("output")
    data = make_planted(160, 60, 8, random_state=3)
    write(data.take(np.arange(120)), folder / "train.txt")
    write(data.take(np.arange(120, 160)), folder / "test.txt")
    done = run("train", folder / "train.txt", "-m", folder / "m", "-q")
    assert (done.exit_code, done.output) == (0, ""), done.output
    (folder / "plain").write_text("a file")
    return folder


def test_output_is_refused_before_the_work(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test, model, plain = files / "test.txt", files / "m", files / "plain"
    predict = ["predict", test, "-m", model]
    takes_none = "takes no files (Not a directory). Make that folder, or give another."
    cases: dict[tuple[object, ...], str] = {
        (*predict, "-o", tmp_path / "no" / "p"): "takes no files (No such file or directory)",
        (*predict, "-o", plain / "p"): takes_none,
        (*predict, "-o", tmp_path): "is a folder. Give the name of a file to write.",
        (*predict, "--format", "npz"): "npz needs --output FILE",
        ("train", files / "train.txt", "-m", plain / "new"): takes_none,
        ("plot", "training", "-m", model, "-o", plain / "t.png"): takes_none,
        ("plot", "labels", "-m", model, "-o", plain / "l.png"): takes_none,
        ("plot", "frequency", test, "-m", model, "-o", plain / "f.png"): takes_none,
        ("plot", "all", test, "-m", model, "-o", plain): takes_none,
        ("data", "convert", test, plain / "test.svm"): takes_none,
        ("data", "convert", tmp_path / "missing.txt", "x.foo"): "suffix '.foo'. Names of features",
        ("bench", "run", "smoke", "--results", plain / "r"): takes_none,
        ("bench", "report", "--output", plain / "r"): takes_none,
    }
    for arguments, sentence in cases.items():
        said = fails(capsys, *arguments)
        assert sentence in said, said
        assert said.count("\n") == 1 and "done in" not in said, "the work was done first"
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_made_where_a_folder_is_asked_for(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    check_folder(Path("a"))
    check_file(Path("a.txt"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="a/b.txt: cannot be written"):
        check_file(tmp_path / "a" / "b.txt")


def test_a_pipe_is_written_through_and_stays_one(files: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = run("predict", files / "test.txt", "-m", files / "m", "--top", 1, "-q", "-o", pipe)
    assert done.exit_code == 0, done.output
    assert os.read(reader, 1 << 16).startswith(b"point\trank\tlabel\tscore\n0\t1\t")
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    replace_file(tmp_path / "link", lambda file: file.write(b"new"))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_disk_is_named(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # a link, so that no mistake can reach the device itself
    ask = ["predict", files / "test.txt", "-m", files / "m", "-q", "-o", full]
    assert fails(capsys, *ask) == f"error: {full}: No space left on device\n"
    assert full.is_symlink()


def test_what_fails_halfway_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("old")

    def half(file: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device") as stop:
        replace_file(path, half)
    assert stop.value.filename == str(path)
    assert [each.name for each in tmp_path.iterdir()] == ["p.tsv"] and path.read_text() == "old"


def test_quiet_prints_only_what_was_asked_for(files: Path, tmp_path: Path) -> None:
    model = files / "m"
    for command in ("training", "labels"):
        drawn = tmp_path / f"{command}.png"
        done = run("plot", command, "-m", model, "-o", drawn, "--quiet")
        assert (done.exit_code, done.output) == (0, "") and drawn.exists()
    done = run("evaluate", files / "test.txt", "-m", model, "--quiet")
    assert "nDCG" in done.stdout and done.stderr == ""
    numbers = run("plot", "labels", "-m", model, "--quiet", "--json").stdout
    assert len(json.loads(numbers)["labels"]) == 8


def test_labels_of_csv_are_read_back_whatever_they_hold(tmp_path: Path) -> None:
    rows = [[("Food; drink", 0.9), ("A", 0.2)], [("Sea", 0.8), ("B|C", 0.1)]]
    lines = [_csv(Row(str(i), row), "probability") for i, row in enumerate(rows)]
    path = tmp_path / "tags.csv"
    path.write_text("point,labels,probabilities\n" + "".join(lines), "utf-8")
    table = read_table(path, text="point", labels="labels")
    assert table.labels == (("Food; drink", "A"), ("Sea", "B|C"))
    assert "\r" not in path.read_bytes().decode()
