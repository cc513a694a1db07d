"""Text files, plain or compressed, read in blocks, with errors that name file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, Progress, Stage

__all__ = [
    "COMPRESSIONS",
    "STDIN",
    "TextFile",
    "check_archive",
    "check_expansion",
    "check_file",
    "open_text",
    "plain_suffix",
]

STDIN = "-"
"""The path that means standard input."""

BLOCK = 1 << 20  # bytes read at a time; a longer line is read whole
COMPRESSIONS = (".gz", ".bz2", ".xz")
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}
LONGEST_LINE = 1 << 30  # bytes
LONGEST_HEADER = 1 << 20  # bytes of a first line that holds a few numbers
EXPANDED = 1 << 30  # bytes that an archive may always become
EXPANSION = 200  # times its size that an archive may become beyond that; text becomes some 10 times
_DAMAGE = (EOFError, MemoryError, OSError, zlib.error, lzma.LZMAError)
"""MemoryError: a few bytes of an xz archive may ask for gigabytes to unpack it with."""


def plain_suffix(path: str | Path) -> str:
    """The suffix that tells the format: ``.txt`` of ``train.txt.xz``, and of ``TRAIN.TXT``."""
    name = Path(str(path).lower())
    return Path(name.stem).suffix if name.suffix in COMPRESSIONS else name.suffix


def check_archive(path: Path) -> None:
    """Refuse a zip archive that would expand without end; what is no archive is not looked at."""
    try:
        with zipfile.ZipFile(path) as archive:
            expanded = sum(entry.file_size for entry in archive.infolist())
    except Exception:  # who reads it says what is wrong with it
        return
    check_expansion(path, expanded)


def check_expansion(path: Path, expanded: int, what: str = "the archive") -> None:
    """Refuse a file that becomes too many bytes for its own."""
    if expanded > max(EXPANDED, EXPANSION * path.stat().st_size):
        raise DataFormatError(f"{path}: {_too_large(expanded, what)}.")


def _too_large(expanded: int, what: str = "the archive") -> str:
    return (
        f"{what} expands to over {expanded >> 20:,} MB, more than {EXPANSION} times its size. "
        "Unpack it yourself if it is meant to"
    )


def _why(error: BaseException) -> str:
    return "it asks for more memory than there is" if isinstance(error, MemoryError) else str(error)


def _decompressor(raw: IO[bytes], suffix: str) -> IO[bytes] | gzip.GzipFile:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if suffix == ".bz2":
        return bz2.BZ2File(raw)
    if suffix == ".xz":
        return lzma.LZMAFile(raw)
    return raw


def check_file(path: Path) -> None:
    """Raise an error unless the path is a file that is not empty."""
    if not path.exists():
        raise DataFormatError(f"{path}: there is no such file. Check the path.")
    if not path.is_file():
        raise DataFormatError(f"{path}: expected a file, found a folder. Name a file in it.")
    if path.stat().st_size == 0:
        raise DataFormatError(
            f"{path}: the file is empty (0 bytes). Download or write it again, and check the path."
        )


class _Piped:
    """A stream that may never end: what is there is read, without waiting for more."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._read = stream, 0

    def read(self, size: int) -> bytes:
        block: bytes = self._stream.read1(size)
        self._read += len(block)
        return block

    def tell(self) -> int:
        return self._read


class TextFile:
    """A text file, plain or compressed, read in blocks; `line` counts the lines yielded."""

    def __init__(self, path: Path, raw: IO[bytes], stage: Stage) -> None:
        self.path = path
        self.line = 0
        self._raw = raw
        self._stage = stage
        self._suffix = path.suffix.lower()
        self._stream = _decompressor(raw, self._suffix)
        self._told = 0
        self._expanded = 0
        self._tail = b""
        self._check_magic()

    def _check_magic(self) -> None:
        self._tail = self._read(BLOCK)
        if not self._tail and self._suffix in COMPRESSIONS:
            self.fail("the archive holds an empty file. Download or write it again")
        if not self._tail and not self.path.suffix:
            raise DataFormatError(f"{self.path} is empty. Send a text, or give a file.")
        for magic, kind in MAGIC.items():
            if self._tail.startswith(magic):
                self.fail(
                    f"expected text, found a {kind} archive. "
                    f"Name compressed files {', '.join(COMPRESSIONS)}, or unpack it first",
                    line=1,
                )
        self._tail = self._tail.removeprefix(b"\xef\xbb\xbf")

    def starts_with(self, marks: tuple[bytes, ...]) -> bool:
        """Whether the file begins with one of these; call it before reading."""
        return self._tail.startswith(marks)

    def first_characters(self) -> bytes:
        """The first two that are no spaces, as far as they were read; call it before reading."""
        return b"".join(self._tail.lstrip()[:1000].split())[:2]

    def fail(self, what: str, line: int | None = None) -> NoReturn:
        """Raise an error with the message ``{file} line {line}: {what}.``"""
        where = f"{self.path} line {self.line + 1 if line is None else line}"
        raise DataFormatError(f"{where}: {what}.")

    def _read(self, size: int) -> bytes:
        try:
            block = self._stream.read(size)
        except _DAMAGE as error:
            self.fail(
                f"the {self._suffix.lstrip('.')} archive is truncated or damaged ({_why(error)}). "
                "Download it again"
            )
        self._stage.advance(self._raw.tell() - self._told)
        self._told = self._raw.tell()
        self._expanded += len(block)
        if self._expanded > max(EXPANDED, EXPANSION * self._told):
            self.fail(_too_large(self._expanded))
        return block

    def check_length(self, so_far: int) -> None:
        """Refuse a line that is longer than any sound one; call it while it is read."""
        if so_far > LONGEST_LINE:
            self.fail(f"the line is longer than {LONGEST_LINE >> 20:,} MB. Break it up")

    def first_line(self) -> bytes:
        """The first line, without its end."""
        while b"\n" not in self._tail and (block := self._read(BLOCK)):
            self._tail += block
            if len(self._tail) > LONGEST_HEADER and b"\n" not in self._tail:
                self.fail(
                    f"the first line is longer than {LONGEST_HEADER >> 20} MB. "
                    "Choose the format that the file has",
                    line=1,
                )
        head, _, self._tail = self._tail.partition(b"\n")
        self.line = 1
        return head

    def blocks(self) -> Iterator[bytes]:
        """The rest of the file, block by block."""
        block = self._tail
        while block:
            yield block
            block = self._read(BLOCK)

    def chunks(self) -> Iterator[bytes]:
        """Blocks of whole lines; the last line gets a line feed where the file has none."""
        size = BLOCK
        while block := self._read(size):
            end = block.rfind(b"\n") + 1
            if end == 0:
                self._tail += block
                self.check_length(len(self._tail))
                size *= 2
                continue
            yield self._tail + block[:end]
            self._tail = block[end:]
            size = BLOCK
        if self._tail:
            yield self._tail if self._tail.endswith(b"\n") else self._tail + b"\n"


@contextmanager
def open_text(path: Path, progress: Progress = SILENT) -> Iterator[TextFile]:
    """Open `path` for reading in chunks; `progress` counts the bytes read from disk."""
    if str(path) == STDIN:
        with progress.stage("read standard input", None, "bytes") as stage:
            yield TextFile(Path("standard input"), cast(IO[bytes], _Piped(sys.stdin.buffer)), stage)
        return
    check_file(path)
    size = os.path.getsize(path)
    with open(path, "rb") as raw, progress.stage(f"read {path.name}", size, "bytes") as stage:
        yield TextFile(path, raw, stage)
