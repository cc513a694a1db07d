"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from dxml.exceptions import ParameterError

__all__ = [
    "DATA",
    "MEMORY",
    "MODEL",
    "PRECISION",
    "QUIET",
    "RAY",
    "RECALL",
    "SPLIT",
    "parse_assignments",
]

DATA = typer.Argument(
    ...,
    metavar="DATA",
    help="A file, or a name of [bold]dxml data list[/bold].",
)
MODEL = typer.Option(..., "--model", "-m", metavar="DIR", help="The model's folder.")
SPLIT = typer.Option(
    None, "--split", metavar="N", min=1, help="Split of a named data set; by default 1."
)
RAY = typer.Option(
    None,
    "--ray",
    metavar="ADDRESS",
    help="Work on a Ray cluster: its host:port, auto, or local.",
)
MEMORY = typer.Option(
    None,
    "--memory",
    metavar="SIZE",
    help="What it may take, such as 2GB; more lies in files.",
)
PRECISION = typer.Option(
    None,
    "--precision",
    metavar="P",
    help="Only labels of which this share is right, such as 0.9.",
)
RECALL = typer.Option(
    None,
    "--recall",
    metavar="P",
    help="As many labels as hold this share of the true ones.",
)
QUIET = typer.Option(
    False, "--quiet", "-q", help="Print only predictions, scores, warnings, errors."
)


def parse_assignments(texts: Iterable[str]) -> dict[str, str]:
    """``["dim=50"]`` → ``{"dim": "50"}``."""
    settings = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise ParameterError(f"--set takes name=value, got {text!r}. Example: --set epochs=20")
        settings[name.strip()] = value.strip()
    return settings
