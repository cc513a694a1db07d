"""Markdown pieces: a table, numbers, notes that say why a cell is empty, a page's made part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = [
    "MISSING",
    "Notes",
    "change",
    "number",
    "replace_between",
    "size",
    "table",
    "with_deviation",
]

MISSING = "–"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first `left` columns are words and the others numbers."""
    rules = ["---" if i < left else "---:" for i in range(len(header))]
    lines = [header, rules, *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def number(value: float | None, digits: int = 2) -> str:
    """
    >>> number(1234.5, 1), number(None)
    ('1,234.5', '–')
    """
    return MISSING if value is None else f"{value:,.{digits}f}"


def with_deviation(mean: float | None, deviation: float | None, digits: int = 2) -> str:
    """
    >>> with_deviation(56.0, 0.5), with_deviation(56.0, None)
    ('56.00 ± 0.50', '56.00')
    """
    spread = "" if deviation is None else f" ± {deviation:.{digits}f}"
    return number(mean, digits) + spread


def change(ours: float | None, theirs: float | None, digits: int = 2) -> str:
    """Ours less theirs.

    >>> change(56.0, 66.03), change(67.0, 66.0), change(None, 1.0)
    ('−10.03', '+1.00', '–')
    """
    if ours is None or theirs is None:
        return MISSING
    difference = round(ours - theirs, digits)
    return f"{'−' if difference < 0 else '+'}{abs(difference):.{digits}f}"


def size(n_bytes: float | None) -> str:
    """
    >>> size(1_500_000), size(23_000_000_000), size(900)
    ('1.5 MB', '23.0 GB', '0.9 kB')
    """
    if n_bytes is None:
        return MISSING
    unit = "GB" if n_bytes >= 1e9 else "MB" if n_bytes >= 1e6 else "kB"
    return f"{n_bytes / {'GB': 1e9, 'MB': 1e6, 'kB': 1e3}[unit]:.1f} {unit}"


class Notes:
    """Reasons under a table, each said once; a cell refers to one by its letter."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def mark(self, reason: str) -> str:
        """The content of a cell that could not be measured."""
        if reason not in self._letters:
            count = len(self._letters)
            letter = chr(ord("a") + count % 26) * (1 + count // 26)
            self._letters[reason] = letter
        return f"{MISSING} [{self._letters[reason]}]"

    def __str__(self) -> str:
        return "\n".join(f"- [{letter}] {reason}" for reason, letter in self._letters.items())


def replace_between(page: Path, marks: tuple[str, str], made: str) -> None:
    """Put what was made between the two marks of a page.

    The first must be there once, the second behind it, and no other mark between them.
    """
    begin, end = marks
    text = page.read_text("utf-8")
    before, _, rest = text.partition(begin)
    old, found, after = rest.partition(end)
    if not found or begin in rest or "<!--" in old:
        raise ValueError(f"{page} must have {begin!r} once, and next {end!r}")
    page.write_text(f"{before}{begin}{made}{end}{after}", "utf-8")
