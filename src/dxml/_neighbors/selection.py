"""The largest of many products, best first, without sorting all of them.

A heap holds the largest ones so far, the least of them on top. Numbers are looked at in blocks, and
a block with none above the top of the heap is passed over.
"""

from __future__ import annotations

import numpy as np

from dxml._core.compiled import compiled

__all__ = ["select_largest"]

BLOCK = 128  # numbers that are compared with the top of the heap at once


@compiled()
def select_largest(totals, units, ids, values):  # type: ignore[no-untyped-def]
    """Write the places and values of the largest positive totals[i] · units[i], ties by place.

    Parameters
    ----------
    totals, units : float32 arrays of shape (n,)
    ids, values : int32 and float32 arrays of shape (k,)
        Written up to the number of positive products; the rest stays as it is.
    """
    n, k = totals.shape[0], ids.shape[0]
    if not k:
        return
    size = 0
    least = np.float32(0)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        if not _count_above(totals[start:stop], units[start:stop], least):
            continue
        for place in range(start, stop):
            value = totals[place] * units[place]
            if value <= least:
                continue
            if size == k:
                _sink(ids, values, k, 0, place, value)
            else:
                ids[size], values[size] = place, value
                size += 1
                if size == k:
                    _heap(ids, values, size)
            if size == k:
                least = values[0]
    if size < k:
        _heap(ids, values, size)
    for last in range(size - 1, 0, -1):
        place, value = ids[last], values[last]
        ids[last], values[last] = ids[0], values[0]
        _sink(ids, values, last, 0, place, value)


@compiled()
def _count_above(totals, units, least):  # type: ignore[no-untyped-def]
    """How many products are above `least`; a loop without branches, which is vectorised."""
    found = 0
    for i in range(totals.shape[0]):
        found += totals[i] * units[i] > least
    return found


@compiled()
def _heap(ids, values, size):  # type: ignore[no-untyped-def]
    """Put the first `size` into the order of a heap."""
    for top in range(size // 2 - 1, -1, -1):
        _sink(ids, values, size, top, ids[top], values[top])


@compiled()
def _sink(ids, values, size, top, place, value):  # type: ignore[no-untyped-def]
    """Put a place and its value where those at `top` are, or as far below as others are less."""
    while 2 * top + 1 < size:
        child = 2 * top + 1
        if child + 1 < size and _is_less(
            values[child + 1], ids[child + 1], values[child], ids[child]
        ):
            child += 1
        if not _is_less(values[child], ids[child], value, place):
            break
        ids[top], values[top] = ids[child], values[child]
        top = child
    ids[top], values[top] = place, value


@compiled()
def _is_less(value, place, other_value, other_place):  # type: ignore[no-untyped-def]
    """Of equal values, that of the later place is less."""
    return value < other_value or (value == other_value and place > other_place)
