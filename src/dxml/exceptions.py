"""Every error this package raises on purpose.

::

    DxmlError
    ├── DataFormatError      a file or array is not what it should be   (also a ValueError)
    ├── DatasetNotFoundError a data set by that name cannot be had      (also a LookupError)
    ├── ParameterError       a hyper-parameter is unknown or illegal    (also a ValueError)
    ├── NotFittedError       predict before fit (also a ValueError and an AttributeError, and
    │                        scikit-learn's where that is imported)
    ├── ModelFormatError     a model folder is missing, damaged or newer (also a ValueError)
    └── ClusterError         a Ray cluster cannot be had, or lost its machines

A message is one sentence or two: what was expected, what came, what to do. Where a remedy has
another name on the command line than in Python, the place that raises gives both: `advise`.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

__all__ = [
    "ClusterError",
    "DataFormatError",
    "DatasetNotFoundError",
    "DxmlError",
    "ModelFormatError",
    "NotFittedError",
    "ParameterError",
    "advise",
    "command_line_advice",
    "did_you_mean",
    "not_fitted",
]

_for_command_line: ContextVar[bool] = ContextVar("_for_command_line", default=False)


class DxmlError(Exception):
    """The root: catch this to catch every mistake that dxml reports."""


class DataFormatError(DxmlError, ValueError):
    """A file or an array is not what it should be."""


class DatasetNotFoundError(DxmlError, LookupError):
    """A data set by that name is neither here nor to be had."""


class ParameterError(DxmlError, ValueError):
    """A hyper-parameter is unknown or its value is not allowed."""


class NotFittedError(DxmlError, ValueError, AttributeError):
    """A prediction was asked of a model that has not been fitted."""

    def __reduce__(self) -> Any:
        return not_fitted, self.args


def not_fitted(message: str) -> NotFittedError:
    """A NotFittedError that code which catches scikit-learn's catches too.

    Such code has imported scikit-learn; elsewhere it is not imported for this.
    """
    theirs = sys.modules.get("sklearn.exceptions")
    return NotFittedError(message) if theirs is None else _both(theirs.NotFittedError)(message)


@cache
def _both(theirs: type[Exception]) -> type[NotFittedError]:
    return type(NotFittedError.__name__, (NotFittedError, theirs), {"__module__": __name__})


class ModelFormatError(DxmlError, ValueError):
    """A model folder is missing, damaged, or written by a newer version."""


class ClusterError(DxmlError):
    """A Ray cluster cannot be reached, or lost the machines that work was on."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The hint that ends an 'unknown …' message.

    >>> did_you_mean("dmi", ["dim", "epochs"])
    "; did you mean 'dim'?"
    >>> did_you_mean("zzz", ["dim", "epochs"])
    '; known: dim, epochs'
    """
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


@contextmanager
def command_line_advice() -> Iterator[None]:
    """Inside, messages name options of the command line in place of Python's parameters."""
    before = _for_command_line.set(True)
    try:
        yield
    finally:
        _for_command_line.reset(before)


def advise(python: str, command_line: str) -> str:
    """The part of a message that says what to do, in the terms that its reader can use.

    >>> advise("skip_bad_rows=True", "--skip-bad-rows")
    'skip_bad_rows=True'
    >>> with command_line_advice():
    ...     advise("skip_bad_rows=True", "--skip-bad-rows")
    '--skip-bad-rows'
    """
    return command_line if _for_command_line.get() else python
