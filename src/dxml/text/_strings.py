"""Strings as plain arrays, to be saved without a pickle."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["pack_strings"]


def pack_strings(
    strings: Iterable[str],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Strings as one array of UTF-8 bytes, and the position where each string ends.

    The way back is `dxml._core.arrays.Arrays.strings`.
    """
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.cumsum([len(string) for string in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends
