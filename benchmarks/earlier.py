"""An earlier version of the source beside this one, for scripts that compare both in one run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A folder with the files of a git revision, which is removed at the end."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(folder), revision], check=True)
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)
