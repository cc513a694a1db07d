"""Where tables are printed."""

from __future__ import annotations

import sys

from rich.console import Console

__all__ = ["table_console"]


def table_console() -> Console:
    """As wide as the terminal; wide enough for any table where the output goes to a file."""
    return Console(width=None if sys.stdout.isatty() else 160)
