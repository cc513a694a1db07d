"""What something that writes must be like to be disturbed, and what a command must say then."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dxml._core.storage import CONFIG, read_config
from dxml.tagging._journal import JOURNAL

LEFT = re.compile(r".*\.partial|\.tmp.{6}|.*-journal")


@dataclass(frozen=True)
class Scenario:
    """Something that writes.

    Parameters
    ----------
    begin : callable
        Makes the state before, in an empty folder.
    act : callable
        What is disturbed.
    state : callable
        What a user finds there, by name, each to be compared; it raises where one is not whole.
    settled : tuple of str, optional
        Names of what is the same when it is done twice as when it is done once; all, without it.
    """

    begin: Callable[[Path], None]
    act: Callable[[Path], None]
    state: Callable[[Path], dict[str, Any]]
    settled: tuple[str, ...] | None = None


def left_over(folder: Path) -> list[str]:
    """What nobody needs: half-written files, arrays of no model, one version twice."""
    found = [str(path.relative_to(folder)) for path in folder.rglob("*") if LEFT.match(path.name)]
    for config in folder.glob(f"*/{CONFIG}"):
        known = {CONFIG, "README.md", ".lock", "versions", JOURNAL}
        known.add(read_config(config.parent)["arrays"]["file"])
        names = {path.name for path in config.parent.iterdir()}
        found += [f"{config.parent.name}/{name}" for name in names - known]
        versions = sorted(config.parent.glob(f"versions/*/{CONFIG}"))
        contents = [config.read_bytes(), *(version.read_bytes() for version in versions)]
        if len(set(contents)) < len(contents):
            found.append(f"{config.parent.name}/versions: one twice")
    return sorted(set(found))


def command(*words: object) -> None:
    """A command as typed, in this process; one that fails is an OSError, if it says so well."""
    from dxml._cli import main

    said, typed = io.StringIO(), ["dxml", *map(str, words)]
    try:
        with patch.object(sys, "argv", typed), contextlib.redirect_stderr(said):
            main()
    except SystemExit as stop:
        if stop.code:
            raise OSError(sentence(stop.code, said.getvalue())) from stop
    except OSError as error:
        raise RuntimeError("a traceback") from error


def sentence(code: object, said: str) -> str:
    """What a command that failed said: one sentence with a path, last, and exit code 2."""
    lines = said.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if code != 2 or not errors or errors != lines[-1:] or "Traceback" in said:
        raise RuntimeError(f"exit code {code}, and not one sentence but:\n{said}")
    if os.sep not in errors[0]:
        raise RuntimeError(f"it is not said where: {said}")
    return errors[0]
