"""How many values a JSON text has, before it is parsed.

A value of three bytes, such as an empty list, becomes an object of seventy. A text is bounded by
its bytes and by its values, whatever parses it.
"""

from __future__ import annotations

import numpy as np

__all__ = ["count_values"]


def count_values(body: bytes, enough: int = 0) -> int:
    """Values in JSON text, lists and objects included; a bound where they are `enough` at most.

    Each comes after a comma or an opening bracket that is in no string, so that an empty list or
    object counts twice.

    >>> count_values(b'{"a": ["x, [y]", 1, 2]}'), count_values(b"[]"), count_values(b"7")
    (5, 2, 1)
    """
    most = 1 + sum(body.count(mark) for mark in (b",", b"[", b"{"))  # also those in strings
    if most <= enough:
        return most
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    codes = np.frombuffer(plain, dtype=np.uint8)
    outside = np.cumsum(codes == ord('"'), dtype=np.uint8) % 2 == 0
    marks = (codes == ord(",")) | (codes == ord("[")) | (codes == ord("{"))
    return 1 + int(np.count_nonzero(marks & outside))
