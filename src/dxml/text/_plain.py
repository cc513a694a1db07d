"""Files and folders of plain text: texts that are no table.

A file is one text; with `lines`, each of its lines is one. The id of a text is the path of its file
within the folder, with the number of the line where there are several.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, Progress
from dxml.text._bad_rows import Row
from dxml.text._files import STDIN, plain_suffix
from dxml.text._rows import read_text

__all__ = ["is_plain", "read_plain"]

SUFFIXES = (".txt", ".text", ".md")


def is_plain(source: object) -> bool:
    """Whether it is a folder, or the name of a file of plain text; not standard input."""
    if not isinstance(source, str | Path) or str(source) == STDIN:
        return False
    return Path(source).is_dir() or plain_suffix(source) in SUFFIXES


def read_plain(
    path: Path, *, lines: bool = False, encoding: str = "utf-8", progress: Progress = SILENT
) -> Iterator[tuple[str, Row]]:
    """The texts of a file or of a folder, each with its location for error messages."""
    if not path.is_dir():
        yield from read_text(path, path.name, lines, encoding, progress)
        return
    found = [file for file in sorted(path.rglob("*")) if plain_suffix(file) in SUFFIXES]
    files = [file for file in found if file.is_file() and not file.name.startswith(".")]
    if not files:
        raise DataFormatError(
            f"{path}: the folder holds no texts ({', '.join(SUFFIXES)}). Check the path."
        )
    with progress.stage(f"read {path.name}", len(files), "files") as stage:
        for file in files:
            name = file.relative_to(path).as_posix()
            yield from read_text(file, name, lines, encoding)
            stage.advance()
