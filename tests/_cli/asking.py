"""How the tests of the commands ask them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from dxml._cli import app, main


def run(*arguments: object, typed: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=typed)


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What `main` says of a mistake; it must exit with 2."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dxml", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
    assert stop.value.code == 2
    return capsys.readouterr().err
