"""Parse lines of ids and numbers chunk by chunk, with errors that name file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dxml.data import _parse
from dxml.exceptions import DataFormatError, advise
from dxml.text._files import TextFile

_MAX_ID = 2**31 - 1  # where no header gives a limit


def read_header(file: TextFile, fields: str) -> list[int]:
    """The whole numbers of the first line, which must be one for each word of `fields`."""
    line = file.first_line()
    words = line.split()
    expected = len(fields.split())
    if len(words) != expected or not all(re.fullmatch(rb"\d{1,18}", word) for word in words):
        file.fail(
            f"expected the header '{fields}' ({expected} whole numbers), found {_show(line)}. "
            f"{advise('Choose another format= if the file', 'Name the file .svm if it')} "
            "has no such header",
            line=1,
        )
    sizes = [int(word) for word in words]
    for what, size in list(zip(fields.split(), sizes, strict=True))[1:]:
        if size > _MAX_ID:
            file.fail(
                f"the header declares {size} {what}, and there may be up to {_MAX_ID}. "
                "Correct the header, or number the ids anew",
                line=1,
            )
    return sizes


@dataclass(frozen=True)
class Layout:
    """What the lines of a file hold.

    `n_rows`, `n_features` and `n_labels` are None where no header bounds them.
    """

    with_labels: bool
    n_rows: int | None = None
    n_features: int | None = None
    n_labels: int | None = None
    feature_base: int = 0
    label_base: int = 0
    bound: str = "declared in the header"
    pair: str = "feature"  # what the left side of a pair is called in errors
    hint: str = "Use feature_base=1 if indices start at 1"


def read_rows(file: TextFile, layout: Layout) -> tuple[csr_matrix, csr_matrix]:
    """All remaining lines: the pairs as float32 CSR and the labels as bool CSR."""
    collector = _Collector()
    for chunk in file.chunks():
        _parse_chunk(file, chunk, layout, collector)
    _check_end(file, layout, collector.n_rows)
    return collector.matrices(layout.n_features, layout.n_labels)


def read_row_blocks(file: TextFile, layout: Layout) -> Iterator[tuple[csr_matrix, csr_matrix]]:
    """As `read_rows`, some lines at a time; the layout must have both widths."""
    done = 0
    for chunk in file.chunks():
        collector = _Collector(done)
        _parse_chunk(file, chunk, layout, collector)
        done = collector.n_rows
        yield collector.matrices(layout.n_features, layout.n_labels)
    _check_end(file, layout, done)


def _check_end(file: TextFile, layout: Layout, n_rows: int) -> None:
    if layout.n_rows is not None and n_rows < layout.n_rows:
        raise DataFormatError(
            f"{file.path} line {file.line + 1}: the header declares {layout.n_rows} points "
            f"but the file ends after {n_rows}. "
            "The file is cut short or its header is wrong: download it again or correct the header."
        )


class _Collector:
    """The pieces of both matrices, joined once at the end; `before` rows were read already."""

    def __init__(self, before: int = 0) -> None:
        self.before = before
        self.n_rows = before
        self.indices: list[NDArray[np.int32]] = []
        self.values: list[NDArray[np.float32]] = []
        self.pair_counts: list[NDArray[np.int64]] = []
        self.labels: list[NDArray[np.int32]] = []
        self.label_counts: list[NDArray[np.int64]] = []

    def add(
        self,
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
        pair_counts: NDArray[np.int64],
        labels: NDArray[np.int32],
        label_counts: NDArray[np.int64],
    ) -> None:
        """Copy the filled part of the buffers of one chunk."""
        self.n_rows += pair_counts.size
        self.indices.append(indices.copy())
        self.values.append(values.copy())
        self.pair_counts.append(pair_counts.copy())
        self.labels.append(labels.copy())
        self.label_counts.append(label_counts.copy())

    def matrices(
        self, n_features: int | None, n_labels: int | None
    ) -> tuple[csr_matrix, csr_matrix]:
        pair_ends = _row_ends(self.pair_counts)
        label_ends = _row_ends(self.label_counts)
        labels = _join(self.labels, np.int32)
        indices = _join(self.indices, np.int32)
        values = _join(self.values, np.float32)
        width = _width(indices) if n_features is None else n_features
        n_rows = self.n_rows - self.before
        X = csr_matrix((values, indices, pair_ends), shape=(n_rows, width))
        width = _width(labels) if n_labels is None else n_labels
        ones = np.ones(labels.size, dtype=np.bool_)
        return X, csr_matrix((ones, labels, label_ends), shape=(n_rows, width))


def _join(pieces: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    """The pieces as one array; `pieces` is emptied to free memory."""
    joined = np.concatenate([np.empty(0, dtype), *pieces])
    pieces.clear()
    return joined


def _row_ends(counts: list[NDArray[np.int64]]) -> NDArray[np.integer]:
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]))
    return ends.astype(np.int32) if ends[-1] < _MAX_ID else ends


def _width(indices: NDArray[np.int32]) -> int:
    return int(indices.max()) + 1 if indices.size else 0


def _parse_chunk(file: TextFile, chunk: bytes, layout: Layout, into: _Collector) -> None:
    text = np.frombuffer(chunk, dtype=np.uint8)
    n_lines, n_pairs, n_labels = _parse.parse_counts(text)
    indices, slow = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32)
    values, labels = np.empty(n_pairs, np.float32), np.empty(n_labels, np.int32)
    pair_counts, label_counts = np.empty(n_lines, np.int64), np.empty(n_lines, np.int64)
    report = np.zeros(_parse.REPORT_SIZE, np.int64)
    sizes = (
        n_lines if layout.n_rows is None else layout.n_rows - into.n_rows,
        _MAX_ID if layout.n_features is None else layout.n_features,
        _MAX_ID if layout.n_labels is None else layout.n_labels,
    )
    bases = (layout.feature_base, layout.label_base)
    found = (indices, values, pair_counts, labels, label_counts)
    _parse.parse_lines(text, layout.with_labels, sizes, bases, *found, slow, report)
    if report[_parse.CODE] != _parse.OK:
        _fail_at(file, chunk, layout, report)
    rows, n_pairs = slice(int(report[_parse.N_ROWS])), int(report[_parse.N_FEATURES])
    indices, values, pair_counts = indices[:n_pairs], values[:n_pairs], pair_counts[rows]
    labels, label_counts = labels[: report[_parse.N_LABELS]], label_counts[rows]
    _convert_slow(file, chunk, values, slow[: report[_parse.N_SLOW]])
    if not report[_parse.FEATURES_SORTED]:
        _sort(file, layout, pair_counts, indices, values)
    if not report[_parse.LABELS_SORTED]:
        label_counts, labels = _parse.sort_labels(label_counts, labels)
    into.add(indices, values, pair_counts, labels, label_counts)
    file.line += n_lines


def _sort(
    file: TextFile,
    layout: Layout,
    counts: NDArray[np.int64],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
) -> None:
    row, index = _parse.sort_pairs(counts, indices, values)
    if row >= 0:
        file.fail(
            f"{layout.pair} index {index + layout.feature_base} appears more than once. "
            "Keep one of them, or add their values up",
            line=file.line + row + 1,
        )


def _convert_slow(
    file: TextFile, chunk: bytes, values: NDArray[np.float32], places: NDArray[np.int32]
) -> None:
    """Fill in the few values that the kernel left to Python's exactly rounded `float`."""
    if not places.size:
        return
    tokens = [_token(chunk, int(place)) for place in places]
    with np.errstate(over="ignore", under="ignore"):
        numbers = np.array([float(token) for token in tokens]).astype(np.float32)
    for number, place, token in zip(numbers, places, tokens, strict=True):
        if np.isinf(number):
            line = file.line + chunk.count(b"\n", 0, int(place)) + 1
            file.fail(f"the value {token.decode()} is too large for a 32-bit float. Scale it", line)
    values[np.isnan(values)] = numbers


def _token(chunk: bytes, at: int, stop: bytes = rb" \t\r\n") -> bytes:
    match = re.compile(rb"[^" + stop + rb"]*").match(chunk, at)
    return match.group() if match else b""


def _show(token: bytes) -> str:
    """The token for a message: shortened, with its first invalid byte named."""
    strange = re.search(rb"[^\t\r\x20-\x7e]", token)
    shown = ascii(token[:40].decode("latin-1")) + ("…" if len(token) > 40 else "")
    if strange is None:
        return shown
    return f"{shown}, which holds byte 0x{strange.group()[0]:02x} and so is not text of this format"


def _fail_at(file: TextFile, chunk: bytes, layout: Layout, report: NDArray[np.int64]) -> NoReturn:
    """Raise the error that the kernel reported."""
    code, at = int(report[_parse.CODE]), int(report[_parse.AT])
    line = file.line + int(report[_parse.LINE]) + 1
    token = _token(chunk, at)
    label = _token(chunk, at, rb", \t\r\n")
    number = token.partition(b":")
    if code == _parse.TOO_MANY:
        what = (
            f"the header declares {layout.n_rows} points but here is one more. "
            "Correct the header, or take the line away"
        )
    elif code == _parse.BAD_LABEL:
        what = (
            f"expected labels such as '3,17', found {_show(label or token)}. "
            "Start the line with a space if the point has no labels"
        )
    elif code == _parse.LABEL_RANGE:
        hint = "Use label_base=1 if labels start at 1"
        bounds = _bounds(layout.label_base, layout.n_labels, layout.bound)
        what = f"label index {label.decode()} is outside {bounds}. {hint}"
    elif code == _parse.FEATURE_RANGE:
        bounds = _bounds(layout.feature_base, layout.n_features, layout.bound)
        what = f"{layout.pair} index {number[0].decode()} is outside {bounds}. {layout.hint}"
    elif code == _parse.BAD_VALUE and _is_not_finite(number[2]):
        what = (
            f"the value of {layout.pair} {number[0].decode()} is {number[2].decode()}, "
            "expected a finite number. Replace it or leave the pair out"
        )
    else:
        other = advise("choose another format=", "name the file after its format")
        what = (
            f"expected a pair '{layout.pair}:value' such as '12:0.5', found {_show(token)}. "
            f"Correct the line, or {other}"
        )
    file.fail(what, line)


def _bounds(base: int, size: int | None, bound: str) -> str:
    if size is None:
        return f"{base}..{_MAX_ID - 1 + base}"
    if size == 0:
        return f"the empty range {bound}"
    return f"{base}..{size - 1 + base} {bound}"


def _is_not_finite(token: bytes) -> bool:
    return token.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity")
