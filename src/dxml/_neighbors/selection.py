"""The largest of many products, best first, without sorting all of them.

`select_largest`: the largest number of each block is found first, by a loop that is vectorised. At
least k numbers are as large as the k-th largest of those, so that blocks with a smaller one are
passed over. A heap holds the k largest numbers of the others so far, the least of them on top.

`select_reached` looks at some places only, for sums that are 0 nearly everywhere.
"""

from __future__ import annotations

import numpy as np

from dxml._core.compiled import compiled

__all__ = ["select_largest", "select_reached"]

BLOCK = 64  # numbers of which the largest is found at once


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
    n_blocks = (n + BLOCK - 1) // BLOCK
    tops = np.empty(n_blocks, dtype=np.float32)
    for block in range(n_blocks):
        own = slice(block * BLOCK, min((block + 1) * BLOCK, n))
        tops[block] = _largest(totals[own], units[own])
    floor = np.float32(0)  # what is less is not among the k largest
    if n_blocks > k:
        floor = np.partition(tops, n_blocks - k)[n_blocks - k]
    size = 0
    least = np.float32(0)
    for block in range(n_blocks):
        if tops[block] < floor or tops[block] <= least:
            continue
        for place in range(block * BLOCK, min((block + 1) * BLOCK, n)):
            value = totals[place] * units[place]
            if value < floor or value <= least:
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
    _sort(ids, values, size)


@compiled()
def select_reached(totals, units, places, ids, values):  # type: ignore[no-untyped-def]
    """What `select_largest` writes where all other totals are 0; totals of `places` become 0.

    Parameters
    ----------
    places : int32 array
        In any order. One that comes again is passed over.
    """
    k, size = ids.shape[0], 0
    for place in places:
        value = totals[place] * units[place]
        totals[place] = 0
        if value <= 0 or not k:
            continue
        if size < k:
            ids[size], values[size] = place, value
            size += 1
            if size == k:
                _heap(ids, values, size)
        elif _is_less(values[0], ids[0], value, place):
            _sink(ids, values, k, 0, place, value)
    if size < k:
        _heap(ids, values, size)
    _sort(ids, values, size)


@compiled()
def _sort(ids, values, size):  # type: ignore[no-untyped-def]
    """Put the first `size`, which are a heap, into falling order."""
    for last in range(size - 1, 0, -1):
        place, value = ids[last], values[last]
        ids[last], values[last] = ids[0], values[0]
        _sink(ids, values, last, 0, place, value)


@compiled()
def _largest(totals, units):  # type: ignore[no-untyped-def]
    """The largest product, or 0 where none is positive.

    Bits of positive numbers, read as whole ones, are in the order of the numbers, and those of
    negative ones are below 0. The largest whole number is found by a loop that is vectorised.
    """
    top = np.int32(0)
    for i in range(totals.shape[0]):
        top = max(top, np.float32(totals[i] * units[i]).view(np.int32))
    return np.int32(top).view(np.float32)


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
