"""Byte-level kernels that turn lines of text into CSR pieces; compiled once and cached.

Every kernel takes `text`, a uint8 array that ends in a line feed, so that no loop needs a bounds
check. A kernel never raises: it returns an error code and a position, and `dxml.data._text` raises.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dxml._core.compiled import compiled

OK, BAD_LABEL, LABEL_RANGE, BAD_PAIR, FEATURE_RANGE, BAD_VALUE, TOO_MANY = range(7)

# The entries of the int64 array `report` of `parse_lines`.
CODE, LINE, AT, N_ROWS, N_FEATURES, N_LABELS, N_SLOW, FEATURES_SORTED, LABELS_SORTED = range(9)
REPORT_SIZE = 9

_NO_NUMBER = -1  # no digits where a number should be
_BAD_ID = 1 << 40  # a negative id, or one beyond any range
_MAX_DIGITS = 18  # what an int64 mantissa holds
_MAX_EXACT = 1 << 53  # integers up to here are exact in float64
_MAX_POWER = 22  # powers of ten up to here are exact in float64
_POWERS = 10.0 ** np.arange(_MAX_POWER + 1)

_TAB, _LF, _CR, _SPACE, _PLUS, _COMMA, _MINUS, _DOT, _ZERO, _NINE, _COLON, _E, _SMALL_E = (
    b"\t\n\r +,-.09:Ee"
)


@compiled()
def _is_gap(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB or byte == _CR


@compiled()
def _skip_gap(text: NDArray[np.uint8], at: int) -> int:
    while _is_gap(text[at]):
        at += 1
    return at


@compiled()
def _integer(text: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The id at `at` and the position after it; `_NO_NUMBER` or `_BAD_ID` for a bad one."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    start = at
    value = 0
    while _ZERO <= text[at] <= _NINE:
        value = min(value * 10 + (text[at] - _ZERO), _BAD_ID)
        at += 1
    if at == start:
        return _NO_NUMBER, at
    return (_BAD_ID if negative else value), at


@compiled()
def _exponent(text: NDArray[np.uint8], at: int) -> tuple[bool, int, int]:
    """(is it well formed, its value, the position after it) of ``e-05``; `at` is on the e."""
    at += 1
    negative = text[at] == _MINUS
    value, end = _integer(text, at + 1 if negative else at)
    if value == _NO_NUMBER or (negative and not _ZERO <= text[at + 1] <= _NINE):
        return False, 0, end
    return True, (-value if negative else value), end


@compiled()
def _decimal(text: NDArray[np.uint8], at: int) -> tuple[bool, float, int]:
    """(is it well formed, its value, the position after it).

    The value is NaN where float64 arithmetic would not give the nearest number (more than 53 bits
    of digits, or a power of ten beyond 22): the caller converts those few with `float`.
    """
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    mantissa, digits, seen, power, exact, fraction = 0, 0, 0, 0, True, False
    while _ZERO <= text[at] <= _NINE or (text[at] == _DOT and not fraction):
        if text[at] == _DOT:
            fraction = True
        else:
            seen += 1
            if digits < _MAX_DIGITS:
                mantissa = mantissa * 10 + (text[at] - _ZERO)
                digits += mantissa > 0
                power -= fraction
            else:
                exact = False
        at += 1
    well_formed = seen > 0
    if well_formed and (text[at] == _E or text[at] == _SMALL_E):
        well_formed, exponent, at = _exponent(text, at)
        power += exponent
    well_formed = well_formed and (_is_gap(text[at]) or text[at] == _LF)
    if mantissa == 0:
        return well_formed, 0.0, at
    if not exact or mantissa > _MAX_EXACT or abs(power) > _MAX_POWER:
        return well_formed, np.nan, at
    value = mantissa / _POWERS[-power] if power < 0 else mantissa * _POWERS[power]
    return well_formed, (-value if negative else value), at


@compiled()
def _read_labels(
    text: NDArray[np.uint8], at: int, base: int, n_labels: int, out: NDArray[np.int32], n: int
) -> tuple[int, int, int, bool]:
    """Labels ``l1,l2`` from `at` on: (code, position, labels so far, are they sorted).

    If the first token has a colon it is a feature, and the point has no labels.
    """
    first, ordered = n, True
    while True:
        value, end = _integer(text, at)
        if n == first and value != _NO_NUMBER and text[end] == _COLON:
            return OK, at, n, ordered
        if value == _NO_NUMBER or not (
            text[end] == _COMMA or text[end] == _LF or _is_gap(text[end])
        ):
            return BAD_LABEL, at, n, ordered
        value -= base
        if value < 0 or value >= n_labels:
            return LABEL_RANGE, at, n, ordered
        ordered = ordered and (n == first or out[n - 1] < value)
        out[n] = value
        n += 1
        if text[end] != _COMMA:
            return OK, end, n, ordered
        at = end + 1


@compiled()
def _read_pairs(
    text: NDArray[np.uint8],
    at: int,
    base: int,
    n_features: int,
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    n: int,
    slow: NDArray[np.int32],
    n_slow: int,
) -> tuple[int, int, int, int, bool]:
    """Pairs ``f:v f:v`` to the line end: (code, position, pairs, slow pairs, are they sorted).

    Zeros are dropped. A value that needs `float` is left NaN and its position is put into `slow`.
    """
    last, ordered = -1, True
    at = _skip_gap(text, at)
    while text[at] != _LF:
        value, end = _integer(text, at)
        if value == _NO_NUMBER or text[end] != _COLON:
            return BAD_PAIR, at, n, n_slow, ordered
        value -= base
        if value < 0 or value >= n_features:
            return FEATURE_RANGE, at, n, n_slow, ordered
        well_formed, number, after = _decimal(text, end + 1)
        if not well_formed:
            return BAD_VALUE, at, n, n_slow, ordered
        if number != 0.0:
            ordered = ordered and last < value
            last = value
            indices[n] = value
            values[n] = number
            if np.isnan(number):
                slow[n_slow] = end + 1
                n_slow += 1
            n += 1
        at = _skip_gap(text, after)
    return OK, at, n, n_slow, ordered


@compiled()
def parse_lines(
    text: NDArray[np.uint8],
    with_labels: bool,
    sizes: tuple[int, int, int],
    bases: tuple[int, int],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    pair_counts: NDArray[np.int64],
    labels: NDArray[np.int32],
    label_counts: NDArray[np.int64],
    slow: NDArray[np.int32],
    report: NDArray[np.int64],
) -> None:
    """Parse whole lines into `indices`, `values` (pairs) and `labels`, with counts a line.

    `sizes` is (lines still allowed, n_features, n_labels), `bases` is (of features, of labels).
    Lines beyond those allowed must be blank and are skipped.
    """
    at, row, line, n, n_labels, n_slow, code = 0, 0, 0, 0, 0, 0, OK
    report[FEATURES_SORTED] = report[LABELS_SORTED] = 1
    while at < text.size:
        pairs_before, labels_before, rising = n, n_labels, True
        if row >= sizes[0]:
            at = _skip_gap(text, at)
            if text[at] != _LF:
                code = TOO_MANY
                break
        elif with_labels and text[at] != _LF and not _is_gap(text[at]):
            code, at, n_labels, rising = _read_labels(
                text, at, bases[1], sizes[2], labels, n_labels
            )
            if code != OK:
                break
            report[LABELS_SORTED] &= rising
        code, at, n, n_slow, rising = _read_pairs(
            text, at, bases[0], sizes[1], indices, values, n, slow, n_slow
        )
        if code != OK:
            break
        report[FEATURES_SORTED] &= rising
        if row < sizes[0]:
            pair_counts[row] = n - pairs_before
            label_counts[row] = n_labels - labels_before
            row += 1
        line += 1
        at += 1
    report[CODE], report[LINE], report[AT] = code, line, at
    report[N_ROWS], report[N_FEATURES], report[N_LABELS], report[N_SLOW] = row, n, n_labels, n_slow


def sort_pairs(
    counts: NDArray[np.int64], indices: NDArray[np.int32], values: NDArray[np.float32]
) -> tuple[int, int]:
    """Sort every row by index, in place; (row, index) of the first repeated one, or (-1, -1)."""
    rows = np.repeat(np.arange(counts.size), counts)
    order = np.lexsort((indices, rows))
    indices[:], values[:] = indices[order], values[order]
    twice = np.flatnonzero((indices[1:] == indices[:-1]) & (rows[1:] == rows[:-1]))
    return (int(rows[twice[0]]), int(indices[twice[0]])) if twice.size else (-1, -1)


def sort_labels(
    counts: NDArray[np.int64], labels: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Every row's labels, sorted and each only once: (counts, labels)."""
    rows = np.repeat(np.arange(counts.size), counts)
    labels = labels[np.lexsort((labels, rows))]
    first = np.ones(labels.size, np.bool_)
    first[1:] = (labels[1:] != labels[:-1]) | (rows[1:] != rows[:-1])
    return np.bincount(rows[first], minlength=counts.size), labels[first]


def parse_counts(text: NDArray[Any]) -> tuple[int, int, int]:
    """Upper bounds of (lines, pairs, labels) in `text`, to size the kernel's output."""
    n_lines = int(np.count_nonzero(text == _LF))
    n_pairs = int(np.count_nonzero(text == _COLON))
    return n_lines, n_pairs, int(np.count_nonzero(text == _COMMA)) + n_lines
