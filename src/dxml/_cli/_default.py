"""A group of commands with one that need not be named."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["DefaultGroup"]

DEFAULT = "list"


class DefaultGroup(TyperGroup):
    """What is no command's name belongs to the command ``list``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command before arguments that have none."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)
