"""Texts with labels → tables of JSON lines, a training and a test part each."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

__all__ = ["TextTables"]


class TextTables:
    """Tables to be written; a fifth of what texts come from, by a digest, is for the test parts."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = defaultdict(list)

    def add(self, table: str, id: str, text: str, labels: Iterable[str], source: str) -> None:
        """A text, unless it has no labels; texts of one source go to the same part."""
        row = {"id": id, "text": text, "labels": sorted(labels), "source": source}
        digest = int(hashlib.md5(source.encode(), usedforsecurity=False).hexdigest(), 16)
        if row["labels"]:
            part = "test" if digest % 5 == 0 else "train"
            self._lines[f"{table}-{part}"].append(json.dumps(row))

    def write(self, folder: Path) -> None:
        """One file a table and part, and a line about each."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in sorted(self._lines.items()):
            path = folder / f"{name}.jsonl"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            print(f"{path}: {len(lines):,} texts")
