"""The compiled loops that parse lines, fed with damaged text by a compiled loop: millions a second.

Each text is a sound one with a few bytes changed, put in or taken out. It is parsed into arrays of
just the size that the loops were promised, inside longer arrays whose other places must stay as
they are. What is accepted must be within its bounds.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from dxml._core.compiled import compiled
from dxml.data import _parse
from dxml.data._parse import parse_lines

NAME = "compiled lines"
SEEDS = (
    b"0,2 0:1 3:0.5\n1 1:2.5e-3 4:-7\n 2:1e5\n",
    b"3,1,1 4:1 2:123456789012345678901 1:1e-30\n\n0\n",
    b" 0:0 1:.5 2:5. 3:+1e+5\r\n2,0\t1:1e22 \n",
)
ALPHABET = b"0123456789:,. \n\r\t+-eEx\x00\xff"
GUARD = 8  # places on both sides that must stay
ROOM = 128  # bytes of a text
FEATURES, LABELS, LINES = 5, 4, 3
KEPT = -77  # what they hold
OUT_OF_BOUNDS, WRONG = 1, 2


@compiled()
def _random(state: Any) -> int:
    """The next number of a sequence (xorshift), from 0 to 2³¹ - 1."""
    value = state[0]
    value ^= value << np.uint64(13)
    value ^= value >> np.uint64(7)
    value ^= value << np.uint64(17)
    state[0] = value
    return np.int64(value >> np.uint64(33))


@compiled()
def _damage(text: Any, seed: Any, alphabet: Any, state: Any) -> int:
    """Copy a sound text and change some bytes; its length, the last byte being a line feed."""
    length = len(seed)
    text[:length] = seed
    for _ in range(1 + _random(state) % 5):
        at, what = _random(state) % length, _random(state) % 4
        if what == 0 and length > 2:
            for place in range(at, length - 1):
                text[place] = text[place + 1]
            length -= 1
        elif what == 1 and length < len(text) - 1:
            for place in range(length, at, -1):
                text[place] = text[place - 1]
            text[at] = alphabet[_random(state) % len(alphabet)]
            length += 1
        else:
            text[at] = alphabet[_random(state) % len(alphabet)]
    text[length - 1] = 10
    return length


@compiled()
def _hammer(trials: int, seeds: Any, lengths: Any, alphabet: Any, state: Any, counts: Any) -> int:
    """(accepted, refused) into `counts`; what was wrong with the last text, or 0."""
    room, most = 2 * GUARD + ROOM, GUARD + ROOM
    text = np.empty(ROOM, np.uint8)
    indices, slow = np.full(room, KEPT, np.int32), np.full(room, KEPT, np.int32)
    labels, values = np.full(room, KEPT, np.int32), np.full(room, KEPT, np.float32)
    pairs, own = np.full(room, KEPT, np.int64), np.full(room, KEPT, np.int64)
    report = np.zeros(_parse.REPORT_SIZE, np.int64)
    sizes, bases = (LINES, FEATURES, LABELS), (0, 0)
    for _ in range(trials):
        which = _random(state) % len(seeds)
        length = _damage(text, seeds[which, : lengths[which]], alphabet, state)
        n_lines, n_pairs, n_labels = 0, 0, 0
        for at in range(length):
            n_lines += text[at] == 10
            n_pairs += text[at] == 58
            n_labels += text[at] == 44
        n_labels += n_lines
        ends = GUARD + n_lines, GUARD + n_pairs, GUARD + n_labels
        parse_lines(
            text[:length],
            True,
            sizes,
            bases,
            indices[GUARD : ends[1]],
            values[GUARD : ends[1]],
            pairs[GUARD : ends[0]],
            labels[GUARD : ends[2]],
            own[GUARD : ends[0]],
            slow[GUARD : ends[1]],
            report,
        )
        for at in range(GUARD):
            if indices[at] != KEPT or values[at] != KEPT or slow[at] != KEPT:
                return OUT_OF_BOUNDS
            if labels[at] != KEPT or pairs[at] != KEPT or own[at] != KEPT:
                return OUT_OF_BOUNDS
        for at in range(ends[0], min(ends[0] + GUARD, room)):
            if pairs[at] != KEPT or own[at] != KEPT:
                return OUT_OF_BOUNDS
        for at in range(ends[1], min(ends[1] + GUARD, room)):
            if indices[at] != KEPT or values[at] != KEPT or slow[at] != KEPT:
                return OUT_OF_BOUNDS
        for at in range(ends[2], min(ends[2] + GUARD, room)):
            if labels[at] != KEPT:
                return OUT_OF_BOUNDS
        code, found, told = report[_parse.CODE], report[_parse.N_FEATURES], report[_parse.N_LABELS]
        if found > n_pairs or told > n_labels or report[_parse.N_ROWS] > LINES:
            return WRONG
        if not 0 <= code <= _parse.TOO_MANY or report[_parse.AT] > length:
            return WRONG
        counts[0 if code == _parse.OK else 1] += 1
        if code == _parse.OK:
            nans = 0
            for at in range(GUARD, GUARD + found):
                if not 0 <= indices[at] < FEATURES or np.isinf(values[at]):
                    return WRONG
                nans += np.isnan(values[at])
            for at in range(GUARD, GUARD + told):
                if not 0 <= labels[at] < LABELS:
                    return WRONG
            if nans != report[_parse.N_SLOW]:
                return WRONG
        for place in range(GUARD, most):
            indices[place] = values[place] = slow[place] = labels[place] = KEPT
            pairs[place] = own[place] = KEPT
    return 0


def hammer(trials: int, seed: int = 1) -> tuple[int, int, int]:
    """(texts accepted, refused, what was wrong with the last one or 0)."""
    seeds = np.zeros((len(SEEDS), ROOM), np.uint8)
    for row, text in zip(seeds, SEEDS, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    lengths, alphabet = np.array([len(text) for text in SEEDS]), np.frombuffer(ALPHABET, np.uint8)
    state, counts = np.array([seed * 0x9E3779B97F4A7C15 % 2**64], np.uint64), np.zeros(2, np.int64)
    wrong = _hammer(trials, seeds, lengths, alphabet, state, counts)
    return int(counts[0]), int(counts[1]), int(wrong)


def by_loops(seconds: float) -> dict[str, Any]:
    """Damaged texts for so long: the figures."""
    hammer(1)
    start, done, accepted, crashes = time.monotonic(), 0, 0, []
    while time.monotonic() - start < seconds and not crashes:
        took, refused, wrong = hammer(1_000_000, seed=1 + done)
        done, accepted = done + took + refused, accepted + took
        if wrong:
            crashes.append(f"{NAME}: wrong {wrong} after {done} texts")
    spent = round(time.monotonic() - start, 1)
    return {"executions": done, "seconds": spent, "accepted": accepted, "crashes": crashes}
