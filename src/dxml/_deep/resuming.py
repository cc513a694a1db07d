"""A run's state on disk, from which it goes on as if nothing had happened.

Two states are kept. Each is a folder that `dxml._core.storage` replaces in one step, so that a
state that is cut short by a crash is not taken for one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from dxml._core.files import remove_folder
from dxml._core.storage import read_folder, write_folder
from dxml.exceptions import ModelFormatError, ParameterError

__all__ = ["Keep", "Keeping", "clear_states", "read_state", "remove_run", "write_state"]

KEPT = 2
Arrays = dict[str, npt.NDArray[Any]]


class Keeping(Protocol):
    """What training asks of the place where its state is stored."""

    @property
    def interval(self) -> float:
        """Seconds between two states."""

    @property
    def resume(self) -> bool:
        """Whether to go on from the newest state."""

    def write(self, step: int, run: Mapping[str, Any], arrays: Arrays) -> None:
        """Store the state after a step."""

    def read(self, same: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays] | None:
        """The newest state of a run that was started with the same."""

    def clear(self) -> None:
        """Remove all states."""


@dataclass(frozen=True)
class Keep:
    """Where a run keeps its state.

    Attributes
    ----------
    folder : Path
    interval : float
        Seconds between two states.
    resume : bool
        Go on from the newest state, or begin where there is none. States of a run that is not
        resumed are removed.
    """

    folder: Path
    interval: float = 180.0
    resume: bool = False

    def write(self, step: int, run: Mapping[str, Any], arrays: Arrays) -> None:
        """As `write_state`."""
        write_state(self.folder, step, run, arrays)

    def read(self, same: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays] | None:
        """As `read_state`."""
        return read_state(self.folder, same)

    def clear(self) -> None:
        """As `clear_states`."""
        clear_states(self.folder)


def write_state(folder: Path, step: int, run: Mapping[str, Any], arrays: Arrays) -> None:
    """Store the state after a step; older ones than the last two are removed."""
    write_folder(folder / f"step-{step:09d}", {"run": dict(run)}, arrays)
    for stale in sorted(folder.glob("step-*"))[:-KEPT]:
        shutil.rmtree(stale, ignore_errors=True)


def clear_states(folder: Path) -> None:
    """Remove all states: those of an older run would be taken for newer ones."""
    for stale in folder.glob("step-*"):
        remove_folder(stale)


def remove_run(folder: Path) -> None:
    """Remove the states in a folder and in those within it, and the folders that this empties."""
    if not folder.is_dir():
        return
    for place in (*(path for path in folder.iterdir() if path.is_dir()), folder):
        clear_states(place)
        if place.exists() and not any(place.iterdir()):
            place.rmdir()


def read_state(folder: Path, same: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays] | None:
    """The newest state that is whole, None where there is none.

    Parameters
    ----------
    same : mapping
        What the run must have been started with, by name.
    """
    for path in sorted(folder.glob("step-*"), reverse=True):
        try:
            config, arrays = read_folder(path)
            run = dict(config["run"])
        except (ModelFormatError, KeyError, TypeError):
            continue
        for name, expected in same.items():
            if run.get(name) != expected:
                raise ParameterError(
                    f"{folder}: the run that is stored there was started with another {name} "
                    f"({run.get(name)}, now {expected}). Give the same again, or another folder."
                )
        return run, arrays.unchecked()
    return None
