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
    assert last == "2 of 4 texts; label them, then dxml learn"
    lines = run("suggest-next", pool, "--model", model, "--top", "9", "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert found[0]["id"] == "p1" and found[0]["copies"] == ["p2"]
    assert len(found) == 3 and len(found[0]["labels"]) == 2 and found[0]["words"] == 3


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
