"""Numbers of things in words."""

from __future__ import annotations

from dxml._cli._counted import counted


def test_one_is_no_plural() -> None:
    assert [counted(n, "label") for n in (0, 1, 2000)] == ["0 labels", "1 label", "2,000 labels"]
