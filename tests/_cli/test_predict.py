"""Input of any length is ranked in blocks and written as it goes, in bounded memory."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml import TextTagger
from dxml.data import _formats as formats
from dxml.data import make_planted, write
from dxml.data._formats import read_blocks as feature_blocks
from dxml.joint import Joint
from dxml.text import _files as files
from dxml.text._tables import read_blocks

from .asking import fails, run

DATA = make_planted(260, 40, 6, labels_per_point=1.5, features_per_point=8, random_state=1)
TEXTS = ["fish of the sea", "salt in a soup", "the sea", "a spoon of soup", "nets and fish"] * 4
LABELS = [["ocean"], ["food"], ["ocean"], ["food"], ["ocean"]] * 4


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of features, and a tagger."""
    folder = tmp_path_factory.mktemp("models")
    Joint(device="cpu", candidates="nearest", width=0, C=1.0).fit(DATA.X[:200], DATA.Y[:200]).save(
        folder / "features"
    )
    tagger = TextTagger(device="cpu").fit(TEXTS, LABELS)
    tagger.save(folder / "tagger")
    return folder


@pytest.mark.parametrize("name", ["t.txt", "t.svm", "t_X.txt,t_Y.txt", "npz", "t.dxml"])
def test_features_in_blocks_are_those_of_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK", 700)  # bytes: a few points
    monkeypatch.setattr(formats, "ROWS", 10)
    path = ",".join(str(tmp_path / part) for part in name.split(","))
    if name == "npz":
        Path(path).mkdir()
        sp.save_npz(tmp_path / "npz" / "X.npz", DATA.X)
        sp.save_npz(tmp_path / "npz" / "Y.npz", DATA.Y)
    else:
        write(DATA, path)
    blocks = list(feature_blocks(path, 40, 6))
    assert len(blocks) > 20
    assert (sp.vstack(blocks) != DATA.X).nnz == 0


def test_a_mapped_folder_is_ranked_like_its_text(models: Path, tmp_path: Path) -> None:
    for name in ("t.txt", "t.dxml"):
        write(DATA, tmp_path / name)
        done = run("predict", tmp_path / name, "-m", models / "features", "-o", tmp_path / "out")
        assert done.exit_code == 0, done.output
        (tmp_path / "out").rename(tmp_path / f"{name}.tsv")
    assert (tmp_path / "t.txt.tsv").read_bytes() == (tmp_path / "t.dxml.tsv").read_bytes()


def test_a_file_that_is_cut_short_or_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK", 700)
    write(DATA, tmp_path / "t.txt")
    lines = (tmp_path / "t.txt").read_text().splitlines(keepends=True)
    (tmp_path / "t.txt").write_text("".join(lines[:-1]))
    with pytest.raises(Exception, match="declares 260 points but the file ends after 259"):
        list(feature_blocks(tmp_path / "t.txt", 40, 6))
    (tmp_path / "t.txt").write_text("".join([*lines, lines[-1]]))
    with pytest.raises(Exception, match="line 262: the header declares 260 points but here is one"):
        list(feature_blocks(tmp_path / "t.txt", 40, 6))


def test_texts_in_blocks_are_those_of_the_table(tmp_path: Path) -> None:
    """Bad rows among them, one after the last full block."""
    rows = [json.dumps({"t": f"text {i}", "n": f"id {i}"}) for i in range(10)]
    rows[3], rows[9] = "{broken", json.dumps({"t": 7})
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(rows))
    tables = list(read_blocks(path, "t", "n", size=4, skip_bad_rows=True))
    assert [table.rows for table in tables] == [(0, 1, 2, 4), (5, 6, 7, 8), ()]
    assert [table.skipped for table in tables] == [1, 1, 2]
    assert [text for table in tables for text in table.texts] == [
        f"text {i}" for i in range(9) if i != 3
    ]
    assert tables[1].names == ("id 5", "id 6", "id 7", "id 8")
    for name in ("other", "id"):
        (only,) = read_blocks(path, "t", name, id_if_there=True, skip_bad_rows=True)
        assert only.ids is None and only.names == (0, 1, 2, 4, 5, 6, 7, 8)
    with pytest.raises(Exception, match="line 4: expected one JSON object"):
        list(read_blocks(path, "t", size=4))


def test_blocks_are_ranked_like_the_whole(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(DATA, tmp_path / "t.txt")
    ask = ["predict", tmp_path / "t.txt", "-m", models / "features", "--top", 2, "-q"]
    whole = run(*ask).stdout
    run(*ask, "--format", "npz", "-o", tmp_path / "whole.npz")
    monkeypatch.setattr(files, "BLOCK", 700)
    assert run(*ask).stdout == whole and whole.splitlines()[-1].startswith("259\t2\t")
    run(*ask, "--format", "npz", "-o", tmp_path / "blocks.npz")
    one, other = sp.load_npz(tmp_path / "whole.npz"), sp.load_npz(tmp_path / "blocks.npz")
    assert (one != other).nnz == 0 and one.shape == (260, 6) and np.diff(one.indptr).min() == 2


def test_standard_input(models: Path, tmp_path: Path) -> None:
    write(DATA.take(np.arange(3)), tmp_path / "t.svm")
    lines = (tmp_path / "t.svm").read_text()
    ask = ["predict", "-", "-m", models / "features", "--top", 1, "-q"]
    expected = run(*ask[:1], tmp_path / "t.svm", *ask[2:]).stdout
    assert run(*ask, typed=lines).stdout == expected and expected.count("\n") == 4
    said = run("predict", "-", "-m", models / "tagger", "--text", "t", "--json", "-q",
               typed='{"t": "fish in the sea"}\n{"t": "soup"}\n').stdout  # fmt: skip
    found = [json.loads(line) for line in said.splitlines()]
    assert [row["labels"][0]["label"] for row in found] == ["ocean", "food"]
    assert [row["point"] for row in found] == [0, 1]


def test_mistakes_on_standard_input(
    models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = io.TextIOWrapper(io.BytesIO(b"0 41:1\n"))
    monkeypatch.setattr(sys, "stdin", piped)
    said = fails(capsys, "predict", "-", "-m", models / "features")
    assert "standard input line 1: feature index 41 is outside 1..40 that the model knows" in said


class Asked:
    """A process that predicts from its standard input, and how much it holds in private memory."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "dxml", "predict", "-", *map(str, arguments)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, **pipes, stderr=subprocess.PIPE)

    def private_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("RssAnon"))
        return int(line.split()[1])


def test_endless_input_is_answered_as_it_goes_and_ends_with_its_reader(models: Path) -> None:
    """A writer that never stops, and a reader that has enough after some rows."""
    asked = Asked("-m", models / "tagger", "--text", "t", "--json", "-q")
    process = asked.process
    assert process.stdin is not None and process.stdout is not None
    block = b'{"t": "fish and soup in the sea"}\n' * 2048
    stopped = threading.Event()

    def write_on() -> None:
        assert process.stdin is not None
        try:
            while True:
                process.stdin.write(block)
                process.stdin.flush()
        except OSError:
            stopped.set()

    writer = threading.Thread(target=write_on, daemon=True)
    writer.start()
    private: dict[int, int] = {}
    try:
        for row in range(10 * 2048):
            assert json.loads(process.stdout.readline())["point"] == row
            if row % 2048 == 0:
                private[row // 2048] = asked.private_kb()
        process.stdout.close()
        assert process.wait(120) == 1 and stopped.wait(60)
    finally:
        process.kill()
        process.wait()
    with contextlib.suppress(OSError):
        process.stdin.close()
    assert process.stderr is not None
    with process.stderr:
        assert b"Traceback" not in process.stderr.read()
    assert private[9] < private[3] + 20_000, private


@pytest.mark.parametrize("kind", ["jsonl", "npz"])
def test_texts_of_unknown_words_are_counted_in_every_format(
    models: Path, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "t.jsonl").write_text('{"t": "fish"}\n{"t": "xyzzy"}\n')
    ask = ["predict", tmp_path / "t.jsonl", "-m", models / "tagger", "--text", "t"]
    said = run(*ask, "--format", kind, "-o", tmp_path / "out")
    assert "no word of 1 of 2 texts is known" in said.stderr
