"""Output files: checked before the work is done, replaced in one step after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from dxml._core.files import replacing
from dxml.exceptions import ParameterError

__all__ = ["check_file", "check_folder", "replace_file"]


def check_file(path: Path) -> None:
    """Refuse a file that could not be written; its folder must be there."""
    if path.is_dir():
        raise ParameterError(f"{path}: is a folder. Give the name of a file to write.")
    if not _written_through(path):
        _check_takes_files(path.parent, path)


def check_folder(path: Path) -> None:
    """Refuse a folder that files could not be written into; where it is missing, it is made."""
    nearest = path
    while not nearest.exists():
        nearest = nearest.parent
    _check_takes_files(nearest, path)


def _check_takes_files(folder: Path, wanted: Path) -> None:
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ParameterError(
            f"{wanted}: cannot be written, as {folder} takes no files ({error.strerror}). "
            "Make that folder, or give another."
        ) from error


def _written_through(path: Path) -> bool:
    """Whether it is a device, a pipe or a link, such as /dev/stdout: nothing to put a file over."""
    return path.exists() and (path.is_symlink() or not path.is_file())


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a temporary file and rename it, so that the file is complete at any moment."""
    through = _written_through(path)
    try:
        with nullcontext(path) if through else replacing(path) as beside, beside.open("wb") as file:
            write(file)
    except OSError as error:
        error.filename = str(path)  # the error of a full disk has no file name
        raise
