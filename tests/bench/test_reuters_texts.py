"""Messages by hand → the two tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reuters_texts.py"


def message(number: int, date: str, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "date": date, "title": f"T{number}", "body": "b", **more}


MESSAGES = [
    message(1, " 1-MAR-1987 10:00:00.00", topics=["wheat", "corn"], places=["usa"]),
    message(2, "1-MAR-1987 11:00:00.00", topics=["gold"]),
    message(3, "2-MAR-1987 10:00:00.00", places=["uk"], body=None),
]


def test_two_tables_and_days_that_stay_together(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "000.json").write_text(json.dumps(MESSAGES), encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "out", "in"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    parts = {
        path.stem: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in (tmp_path / "out").iterdir()
    }
    [topics] = [rows for name, rows in parts.items() if name.startswith("topics")]
    assert topics == [
        {"id": "1", "text": "T1 b", "labels": ["corn", "wheat"], "source": "1-MAR-1987"},
        {"id": "2", "text": "T2 b", "labels": ["gold"], "source": "1-MAR-1987"},
    ]
    places = [row for name, rows in parts.items() if name.startswith("places") for row in rows]
    assert sorted(row["id"] for row in places) == ["1", "3"]
    assert {row["id"]: row["text"] for row in places}["3"] == "T3"
