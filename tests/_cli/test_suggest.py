"""``dxml suggest-next``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dxml.tagging import Columns, TextTagger

from .asking import fails, run

TEXTS = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    texts = [*TEXTS, "roads of gravel and sand"]
    tagger = TextTagger(min_df=1).fit(texts, [["ocean"], ["ocean"], ["food"], ["food"], []])
    tagger.columns = Columns(("text",), "labels", "id")
    pool = ["a fish in the sea", "roads of gravel", "roads of gravel.", "the salt sea"]
    rows = [json.dumps({"text": text, "id": f"p{i}"}) for i, text in enumerate(pool)]
    (tmp_path / "pool.jsonl").write_text("\n".join(rows), "utf-8")
    return tagger.save(tmp_path / "m")


def test_texts_are_suggested_with_reasons(model: Path) -> None:
    pool = model.parent / "pool.jsonl"
    done = run("suggest-next", pool, "--model", model, "--top", "2")
    assert done.exit_code == 0, done.output
    first, why, *_, last = done.stdout.splitlines()
    assert first == "p1\troads of gravel" and "unsure: " in why and why.endswith("copies: p2")
    assert last == "2 of 4 texts (1 labelled already); label them, then dxml learn"
    lines = run("suggest-next", pool, "--model", model, "--top", "9", "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert found[0]["id"] == "p1" and found[0]["copies"] == ["p2"]
    assert len(found) == 2 and len(found[0]["labels"]) == 2 and found[0]["words"] == 3


def test_what_was_learnt_is_not_suggested_again(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, labelled = model.parent / "pool.jsonl", model.parent / "labelled.csv"
    labelled.write_text("id,text,labels\np1,roads of gravel,road\np3,the salt sea,ocean\n", "utf-8")
    assert run("learn", labelled, "--model", model, "-q").exit_code == 0
    done = run("suggest-next", pool, "--model", model)
    assert done.stdout == "0 of 4 texts (3 labelled already); there is nothing to label\n"
    (model.parent / "none.csv").write_text("id,text\n", "utf-8")
    said = fails(capsys, "suggest-next", model.parent / "none.csv", "--model", model)
    assert "none.csv: the table has no rows. Check the path." in said


def test_a_pool_without_ids_goes_by_its_rows(model: Path) -> None:
    pool = model.parent / "pool.csv"
    pool.write_text("text\na fish in the sea\nroads of gravel\n", "utf-8")
    assert run("suggest-next", pool, "--model", model, "--top", 1).stdout.startswith("1\troads")


def test_a_column_that_is_not_there_is_said(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = model.parent / "pool.jsonl"
    assert "there is no column 'body'" in fails(
        capsys, "suggest-next", pool, "--model", model, "--text", "body"
    )
