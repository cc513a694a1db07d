"""The folder that a training saves its model to, and what becomes of the model that is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import typer

from dxml.exceptions import ModelFormatError

__all__ = ["Target"]


@dataclass
class Target:
    """A folder, and how many earlier versions of its model are kept there.

    `replaced` is the number of the version that the model before became; None: there was none, or
    none is kept.
    """

    folder: Path
    keep: int
    replaced: int | None = field(default=None, init=False)

    def check(self) -> None:
        """Nothing but a model is written over, and a model can be written."""
        from dxml._cli._output import check_folder

        if self.folder.exists() and not (self.folder.is_dir() and self._may_overwrite()):
            raise ModelFormatError(
                f"{self.folder}: exists and holds no dxml model, so nothing is written over it. "
                "Give another folder."
            )
        check_folder(self.folder)

    @contextmanager
    def replacing(self, what: str) -> Iterator[Path]:
        """Inside, the model is saved; the one before is kept as a version, unless it is damaged."""
        from dxml._core.versions import keeping, list_versions

        if not (self.keep and self._has_model() and self._is_sound()):
            yield self.folder
            return
        with keeping(self.folder, what, self.keep):
            yield self.folder
        self.replaced = list_versions(self.folder)[-1].number

    def _has_model(self) -> bool:
        from dxml._core.storage import CONFIG

        return (self.folder / CONFIG).is_file()

    def _may_overwrite(self) -> bool:
        from dxml._core.storage import is_unfinished

        return self._has_model() or is_unfinished(self.folder)

    def _is_sound(self) -> bool:
        from dxml._core.storage import read_folder
        from dxml._core.versions import list_versions

        try:
            read_folder(self.folder)
            list_versions(self.folder)
        except (ModelFormatError, OSError) as error:
            typer.echo(f"warning: the model before is not kept as a version: {error}", err=True)
            return False
        return True
