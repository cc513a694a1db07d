"""Files that are never there by halves, and where those go that may be made again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["cache_directory", "replace_text", "replacing"]


def cache_directory() -> Path:
    """``DXML_CACHE``, else ``dxml`` in the user's cache directory."""
    if chosen := os.environ.get("DXML_CACHE"):
        return Path(chosen)
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "dxml"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes `path`'s place when the block ends well.

    Its folder is made where it is missing. Two writers at once do not meet: each has a name of its
    own, and the last one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    os.close(handle)
    beside = Path(name)
    try:
        beside.chmod(0o666 & ~_umask())
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Write a text file in one step; half a character becomes a question mark."""
    with replacing(path) as beside:
        beside.write_text(text, "utf-8", "replace")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
