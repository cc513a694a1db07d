"""What DATA names for ``dxml predict``: no text, or the files of a pattern."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from dxml._cli._output import check_folder
from dxml._cli._rankers import Job, Tally, open_ranker
from dxml._core.blocks import run_each
from dxml.exceptions import DataFormatError, ParameterError
from dxml.progress import SILENT

if TYPE_CHECKING:
    from dxml.progress import Stage

__all__ = ["files_of", "outputs_of", "refuse_text", "write_files"]

SHOWN = 40  # characters of a text


class Pair(NamedTuple):
    """A file, and the one that is written for it."""

    data: Path
    output: Path


def files_of(data: str) -> list[Path] | None:
    """The files of a pattern, in the order of their names; None where it is no pattern."""
    if not has_magic(data) or Path(data).exists():
        return None
    found = [Path(name) for name in sorted(glob(data, recursive=True)) if Path(name).is_file()]
    if not found:
        raise DataFormatError(f"{data}: no file has such a name. Check the pattern.")
    return found


def refuse_text(data: str, model: Path) -> None:
    """Words where the name of a file is expected: say how a text is tagged."""
    words = any(map(str.isspace, data)) or data.isalnum()
    if words and not (os.path.exists(data) or glob(data)):
        text = data if len(data) <= SHOWN else f"{data[:SHOWN]}…"
        raise DataFormatError(
            f"{text}: there is no such file. A text itself is tagged by standard input: "
            f'echo "{text}" | dxml predict - --model {model}'
        )


def outputs_of(files: Sequence[Path], folder: Path | None, format: str) -> list[Path]:
    """The file that is written for each, in a folder that is made."""
    if folder is None:
        raise ParameterError(
            "DATA is a pattern of several files: give the folder for what is predicted of each "
            "with --output FOLDER."
        )
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder}: is a file. Give a folder, as DATA is a pattern.")
    outputs = [folder / f"{path.name}.{format}" for path in files]
    counts = Counter(outputs)
    if twice := [path.name for path, count in counts.items() if count > 1]:
        raise ParameterError(
            f"several files would be written as {twice[0]}. Give the files of one folder at a time."
        )
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return outputs


def write_files(job: Job, files: Sequence[Path], outputs: Sequence[Path], stage: Stage) -> Tally:
    """Rank every file, here or on a cluster; the counts of all."""
    job = replace(job, model=job.model.absolute())
    pairs = [
        Pair(data.absolute(), output.absolute())
        for data, output in zip(files, outputs, strict=True)
    ]
    points = unknown = 0
    for tally, said in run_each(partial(_writer, job), pairs):
        points, unknown = points + tally.points, unknown + tally.unknown
        typer.echo(said, err=True, nl=False)
        stage.advance()
    return Tally(points, unknown)


def _writer(job: Job) -> Callable[[Pair], tuple[Tally, str]]:
    """Opens the model, and returns a function that ranks a file and says what was to be said."""
    ranker = open_ranker(job)

    def write(pair: Pair) -> tuple[Tally, str]:
        said = io.StringIO()
        with redirect_stderr(said), SILENT.stage("predict") as stage:
            tally = ranker.write(str(pair.data), pair.output, stage)
        return tally, said.getvalue()

    return write
