"""Numbers of things in words."""

from __future__ import annotations

import pytest

from dxml._core.counted import counted


@pytest.mark.parametrize(
    ("n", "said"), [(0, "0 texts"), (1, "1 text"), (2, "2 texts"), (12345, "12,345 texts")]
)
def test_one_has_no_s_and_thousands_have_a_comma(n: int, said: str) -> None:
    assert counted(n, "text") == said
