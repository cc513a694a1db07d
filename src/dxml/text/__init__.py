"""Text: tables of texts and labels in any usual form, and their tf-idf features."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dxml.text._checking import TableCheck, check_table
    from dxml.text._features import TextFeatures
    from dxml.text._tables import TableFormat, TextTable, read_table

__all__ = [
    "TableCheck",
    "TableFormat",
    "TextFeatures",
    "TextTable",
    "check_table",
    "read_table",
]

_HOMES = {
    "TableCheck": "dxml.text._checking",
    "TableFormat": "dxml.text._tables",
    "TextFeatures": "dxml.text._features",
    "TextTable": "dxml.text._tables",
    "check_table": "dxml.text._checking",
    "read_table": "dxml.text._tables",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: scikit-learn takes its time."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dxml.text' has no attribute {name!r}")
