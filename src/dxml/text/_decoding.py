"""The bytes of a file → lines of text; bytes that are no text are named."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress

from dxml.exceptions import ParameterError, advise
from dxml.text._files import TextFile

__all__ = ["check_mark", "decoder_of", "lines_of", "undecoded"]

_UNDECODED = re.compile("[\udc80-\udcff]")  # how "surrogateescape" decodes an invalid byte
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decoder_of(encoding: str) -> codecs.IncrementalDecoder:
    try:
        with suppress(UnicodeError):
            b"a".decode(encoding)  # Python has codecs that are none of text, such as base64
        return codecs.getincrementaldecoder(encoding)("surrogateescape")
    except (LookupError, ValueError):  # the second for a name with NUL
        raise ParameterError(
            f"unknown encoding {encoding!r}. Python's names are meant, such as utf-8 or cp1252."
        ) from None


def check_mark(file: TextFile, encoding: str) -> None:
    """Raise an error for a UTF-16 byte order mark where another encoding is expected."""
    two_bytes_or_more = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    if file.starts_with(_UTF16_MARKS) and not two_bytes_or_more:
        option = advise("encoding='utf-16'", "--encoding utf-16")
        file.fail(f"expected {encoding.upper()}, found the byte order mark of UTF-16. Say {option}")


def _decoded(file: TextFile, decoder: codecs.IncrementalDecoder) -> Iterator[str]:
    """The file's text, block by block."""
    try:
        for block in file.blocks():
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)
    except UnicodeError as error:  # a mark of UTF-16 that is missing is no UnicodeDecodeError
        said = f"no text ({error})"
        if isinstance(error, UnicodeDecodeError):
            said = f"not {error.encoding.upper()} ({error.reason})"
        file.fail(
            f"bytes that are {said}. "
            f"Say which encoding the file has with {advise('encoding=', '--encoding')}"
        )


def lines_of(file: TextFile, decoder: codecs.IncrementalDecoder) -> Iterator[str]:
    """Lines without line feeds; `file.line` is the number of the last one yielded."""
    pieces, length = [""], 0  # of the current line
    for text in _decoded(file, decoder):
        first, *others = text.split("\n")
        pieces.append(first)
        length = len(others[-1]) if others else length + len(first)
        file.check_length(length)
        for other in others:
            file.line += 1
            yield "".join(pieces)
            pieces = [other]
    if last := "".join(pieces):
        file.line += 1
        yield last


def undecoded(text: str, encoding: str) -> str | None:
    """An error message for text with a byte that is invalid in `encoding`, else None."""
    if text.isascii() or not (found := _UNDECODED.search(text)):
        return None
    byte = ord(found.group()) - 0xDC00
    example = advise("encoding='cp1252'", "--encoding cp1252")
    return (
        f"byte 0x{byte:02x} is not {encoding.upper()}. "
        f"Say which encoding the file has, such as {example} (Western Windows)"
    )
