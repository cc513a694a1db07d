"""Lines of WordNet's format by hand → the two tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "wordnet_texts.py"

NOUNS = """\
  1 This is a licence
00000001 03 n 01 entity 0 001 ~ 00000002 n 0000 | that which is
00000002 03 n 02 animal 0 living_thing 1 002 @ 00000001 n 0000 ~ 00000003 n 0000 | it moves
00000003 03 n 01 fish 0 003 @ 00000002 n 0000 + 00000009 v 0101 @i 00000004 n 0000 | it | swims
00000004 03 n 01 food 0 001 @ 00000001 n 0000 | it is eaten
"""


def test_two_tables(tmp_path: Path) -> None:
    (tmp_path / "data.noun").write_text(NOUNS, encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "out", "data.noun"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    tables: dict[str, dict[str, object]] = {}
    for path in (tmp_path / "out").iterdir():
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        tables.setdefault(path.name.split("-")[0], {}).update({row["id"]: row for row in rows})
    text = {"text": "fish: it | swims", "id": "n00000003", "source": "n00000003"}
    two = ["n00000002", "n00000004"]
    assert tables["parents"]["n00000003"] == {**text, "labels": two}
    assert tables["above"]["n00000003"] == {**text, "labels": ["n00000001", *two]}
    below = {"text": "animal living thing: it moves", "labels": ["n00000001"]}
    for table in tables.values():
        assert table["n00000002"] == {**below, "id": "n00000002", "source": "n00000002"}
    assert "n00000001" not in tables["parents"]
