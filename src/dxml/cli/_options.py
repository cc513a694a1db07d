"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from dxml.exceptions import ParameterError

__all__ = ["DATA", "MODEL", "QUIET", "SPLIT", "parse_assignments"]

DATA = typer.Argument(
    ...,
    metavar="DATA",
    help="A file, or the name of a data set ([bold]dxml data list[/bold] shows them).",
)
MODEL = typer.Option(..., "--model", "-m", metavar="DIR", help="The model's folder.")
SPLIT = typer.Option(
    None, "--split", min=1, help="Which split of a named data set; 1 where there are several."
)
QUIET = typer.Option(False, "--quiet", "-q", help="No progress, only results and errors.")


def parse_assignments(texts: Iterable[str]) -> dict[str, str]:
    """``["dim=50"]`` → ``{"dim": "50"}``."""
    settings = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ParameterError(f"--set takes name=value, got {text!r}. Example: --set epochs=20")
        settings[name.strip()] = value.strip()
    return settings
