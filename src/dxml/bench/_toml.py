"""Settings from a TOML file: what cannot be read, or is of another kind, is said in a sentence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dxml.exceptions import ParameterError, did_you_mean

__all__ = ["check_kinds", "read_toml", "texts"]

MOST = 1 << 24  # bytes
Kinds = Mapping[str, tuple[type, ...]]
"""The types that the value of each key may have."""

_NAMES = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a file."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST + 1)
        if len(content) > MOST:
            raise ParameterError(f"{path.name}: no file of settings is longer than 16 MB.")
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"{path.name}: not UTF-8 at byte {error.start + 1}. Save the file as UTF-8."
        raise ParameterError(message) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ParameterError(f"{path.name}: no valid TOML: {error}") from error


def check_kinds(table: Any, kinds: Kinds, where: str) -> None:
    """Refuse unknown keys, and values of another kind."""
    if not isinstance(table, dict):
        raise ParameterError(f"{where} must be a table, got {table!r:.60}")
    for key, value in table.items():
        if key not in kinds:
            raise ParameterError(f"unknown key {key!r} in {where}{did_you_mean(key, set(kinds))}")
        if type(value) not in kinds[key]:
            known = " or ".join(_NAMES[kind] for kind in kinds[key])
            raise ParameterError(f"{key} in {where} must be {known}, got {value!r:.60}")


def texts(table: Mapping[str, Any], key: str, where: str) -> list[str]:
    """A list of texts; one text counts as a list of it."""
    given = table.get(key, [])
    found = [given] if isinstance(given, str) else given
    if not all(isinstance(each, str) for each in found):
        raise ParameterError(f"{key} in {where} must hold texts, got {given!r:.60}")
    return list(found)
