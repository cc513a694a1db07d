"""Package lists by hand → the three tables."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "package_texts.py"

PACKAGES = """\
Package: alpha
Section: games
Depends: libc6 (>= 2.34), beta | gamma, libc6, python3:any
Description: Short words
Description-md5: aa
Tag: game::{strategy,puzzle}, role::program,
 use::playing

Package: beta
Source: alpha (1.0)
Description: Only a short one
"""

LONG = """\
Package: alpha
Description-md5: aa
Description-en: Short words
 and a longer
 .
 story
"""


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    [path] = folder.glob(f"{table}-*.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_three_tables(tmp_path: Path) -> None:
    with lzma.open(tmp_path / "Packages.xz", "wt", encoding="utf-8") as file:
        file.write(PACKAGES)
    (tmp_path / "Translation-en").write_text(LONG, encoding="utf-8")
    command = [sys.executable, str(SCRIPT), "out", "Packages.xz", "Translation-en"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 3  # beta has no labels in any
    [tags], [depends] = rows(tmp_path / "out", "tags"), rows(tmp_path / "out", "depends")
    assert tags["id"] == "alpha" and tags["text"] == "Short words and a longer  story"
    assert depends["labels"] == ["beta", "libc6", "python3"]
    assert rows(tmp_path / "out", "section")[0]["labels"] == ["games"]
    assert tags["labels"] == ["game::puzzle", "game::strategy", "role::program", "use::playing"]
