"""``dxml methods``."""

from __future__ import annotations

import typer

__all__ = ["methods"]


def methods(
    name: str | None = typer.Argument(None, metavar="METHOD", help="Only this method."),
) -> None:
    """The methods, and their parameters with defaults and meaning."""
    from rich.table import Table

    from dxml._cli._console import table_console
    from dxml._core.params import parameters_of
    from dxml.methods import METHODS, method_class

    console = table_console()
    for method in [name] if name else METHODS:
        cls = method_class(method)
        console.print(f"[bold]{method}[/bold]: {cls.summary}", highlight=False)
        table = Table("parameter", "default", "allowed", "meaning")
        for parameter in parameters_of(cls).values():
            default = str(parameter.default)
            table.add_row(parameter.name, default, parameter.allowed, parameter.help)
        console.print(table, highlight=False)
