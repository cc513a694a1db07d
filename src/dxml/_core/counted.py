"""Numbers of things in words."""

from __future__ import annotations

__all__ = ["counted"]


def counted(n: int, what: str) -> str:
    """How many there are.

    >>> counted(1, "label"), counted(2000, "label")
    ('1 label', '2,000 labels')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
