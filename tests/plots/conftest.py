"""Drawing without a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dxml.plots._style import pyplot


@pytest.fixture(name="plt")
def _plt() -> Iterator[Any]:
    with pyplot() as plt:
        yield plt
        plt.close("all")
