"""The journal of a folder that cannot be written to: such a model is asked, not taught.

SQLite writes beside a journal even to read it, so a copy in the temporary directory is opened.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from dxml.tagging._journal import Journal

__all__ = ["CopiedJournal", "open_journal"]


class CopiedJournal(Journal):
    """A copy of a journal with all that was committed to it; removed when it is closed."""

    def __init__(self, path: Path) -> None:
        self._copied = tempfile.TemporaryDirectory(prefix="dxml-journal-")
        copy = Path(self._copied.name) / path.name
        for suffix in ("", "-wal"):  # the second has what is not in the first yet
            if (given := path.with_name(path.name + suffix)).exists():
                shutil.copyfile(given, copy.with_name(path.name + suffix))
        super().__init__(copy)

    def close(self) -> None:
        """Close and remove the copy."""
        super().close()
        self._copied.cleanup()


def open_journal(path: str | Path) -> Journal:
    """The journal at a path, or a copy of it where its folder cannot be written to."""
    path = Path(path)
    return Journal(path) if os.access(path.parent, os.W_OK) else CopiedJournal(path)
