"""The help pages on a narrow terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from dxml._cli import app


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


GOES_ON = "│" + 12 * " "  # a second line of what is said of an option
PAGES = list(commands(get_command(app)))


def help_page(path: tuple[str, ...], columns: int) -> list[str]:
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": str(columns)})
    assert done.exit_code == 0, done.output
    return [line.rstrip() for line in done.stdout.splitlines()]


@pytest.mark.parametrize("path", PAGES, ids=" ".join)
def test_a_page_reads_well_on_80_columns(path: tuple[str, ...]) -> None:
    narrow, wide = help_page(path, 80), help_page(path, 100)
    assert max(map(len, narrow)) <= 80
    assert "…" not in "\n".join(narrow)
    prose, wide_prose = (
        [line for line in page if not line.startswith(tuple("│╭╰"))] for page in (narrow, wide)
    )
    assert prose == wide_prose, "a line of the text is wrapped"
    for before, line in pairwise(narrow):
        assert not (before.startswith(GOES_ON) and line.startswith(GOES_ON)), "three lines: " + line


def test_quiet_means_the_same_everywhere() -> None:
    said = set()
    for path in PAGES:
        page = " ".join(re.sub("[│╭╰─╮╯]", " ", "\n".join(help_page(path, 200))).split())
        said.update(re.findall(r"--quiet.*?errors\.", page))
    plain = {line.replace(" <bool>", "") for line in said}  # which older versions of typer lack
    assert plain == {"--quiet -q Print only predictions, scores, warnings, errors."}
