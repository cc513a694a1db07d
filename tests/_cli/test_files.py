"""A pattern of files: each is ranked as it is alone, and written into a file of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dxml import TextTagger
from dxml._cli._files import files_of
from dxml.data import make_planted, write
from dxml.joint import Joint
from dxml.tagging import Columns

from .asking import fails, run

TEXTS = ["fish of the sea", "salt in a soup", "the sea", "a spoon of soup"] * 3
LABELS = [["ocean"], ["food"], ["ocean"], ["food"]] * 3


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tagger = TextTagger(device="cpu", min_df=1)
    tagger.columns = Columns(("text",), None)
    return tagger.fit(TEXTS, LABELS).save(tmp_path_factory.mktemp("tagger") / "m")


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Three tables; the second has a bad row, the third a text of which nothing is known."""
    for name, texts in {"a": TEXTS[:3], "b": TEXTS[3:5], "c": ["zzz", "soup"]}.items():
        rows = [json.dumps({"text": text}) for text in texts]
        if name == "b":
            rows.append("{broken")
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    return tmp_path


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "npz"])
def test_each_file_is_what_it_is_alone(format: str, tagger: Path, tables: Path) -> None:
    how = ["-m", tagger, "--format", format, "--skip-bad-rows"]
    done = run("predict", f"{tables}/*.jsonl", "-o", tables / "out" / "deep", *how)
    assert done.exit_code == 0, done.output
    assert "1 bad row skipped" in done.stderr
    assert "no word of 1 of 7 texts is known" in done.stderr
    written = sorted((tables / "out" / "deep").iterdir())
    assert [path.name for path in written] == [f"{name}.jsonl.{format}" for name in "abc"]
    for name, path in zip("abc", written, strict=True):
        alone = tables / f"alone.{format}"
        run("predict", tables / f"{name}.jsonl", "-o", alone, *how, "-q")
        if format == "npz":  # an archive, which has times
            assert path.stat().st_size == alone.stat().st_size
        else:
            assert path.read_bytes() == alone.read_bytes()


def test_files_of_features(tmp_path: Path) -> None:
    data = make_planted(60, 40, 6, random_state=1)
    model = Joint(device="cpu").fit(data.X, data.Y).save(tmp_path / "m")
    for name, rows in {"a": slice(0, 20), "b": slice(20, 50)}.items():
        write(type(data)(data.X[rows], data.Y[rows]), tmp_path / f"{name}.svm")
    done = run("predict", f"{tmp_path}/?.svm", "-m", model, "-o", tmp_path / "out", "--top", 2)
    assert done.exit_code == 0, done.output
    lines = {path.name: len(path.read_text().splitlines()) for path in (tmp_path / "out").iterdir()}
    assert lines == {"a.svm.tsv": 41, "b.svm.tsv": 61}


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").touch()
    assert files_of(f"{tmp_path}/a[1].txt") is None
    assert files_of("eurlex-4k") is None
    assert files_of(f"{tmp_path}/a*") == [tmp_path / "a[1].txt"]


def test_what_cannot_be_is_said_before(
    tagger: Path, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = f"{tables}/*.jsonl"
    assert "no file has such a name" in fails(capsys, "predict", f"{tables}/*.csv", "-m", tagger)
    assert "give the folder for what" in fails(capsys, "predict", pattern, "-m", tagger)
    where = tables / "a.jsonl"
    assert "is a file. Give a folder" in fails(
        capsys, "predict", pattern, "-m", tagger, "-o", where
    )
    (tables / "sub").mkdir()
    (tables / "sub" / "a.jsonl").write_text("{}")
    said = fails(capsys, "predict", f"{tables}/**/*.jsonl", "-m", tagger, "-o", tables / "out")
    assert "several files would be written as a.jsonl.tsv" in said
    assert not (tables / "out").exists()
