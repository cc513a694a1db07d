"""Predictions as text or arrays; a file is written beside and renamed, never half."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import scipy.sparse as sp

from dxml.exceptions import ParameterError
from dxml.topk import TopK

__all__ = ["Row", "write_predictions", "write_rows"]

Row = tuple[int | str, Sequence[tuple[int | str, float]]]


def write_predictions(
    ranking: TopK,
    n_labels: int,
    names: Sequence[Any] | None,
    format: str,
    output: Path | None,
    *,
    ids: Sequence[str] | None = None,
    score: str = "score",
) -> None:
    """Write a ranking as tsv, jsonl or npz to a file or to standard output.

    Parameters
    ----------
    names : sequence, optional
        Of the labels; their numbers are written by default.
    ids : sequence of str, optional
        Of the points, likewise.
    score : str
        What the score of a label is called.
    """
    if format == "npz":
        if output is None:
            raise ParameterError("--format npz needs --output FILE: arrays are no text.")
        scores = ranking.to_csr(n_labels)
        _replace(output, lambda file: sp.save_npz(file, scores))
        return
    write_rows(_rows(ranking, names, ids), format, output, score)


def write_rows(rows: Iterable[Row], format: str, output: Path | None, score: str) -> None:
    """Write (point, its labels with their scores) rows as tsv or jsonl."""
    lines = (_tsv if format == "tsv" else _jsonl)(rows, score)
    if output is None:
        sys.stdout.writelines(lines)
    else:
        _replace(output, lambda file: file.writelines(line.encode() for line in lines))


def _rows(ranking: TopK, names: Sequence[Any] | None, ids: Sequence[str] | None) -> Iterator[Row]:
    for point, row in enumerate(ranking.rows()):
        labels = row if names is None else [(str(names[label]), score) for label, score in row]
        yield point if ids is None else ids[point], labels


def _tsv(rows: Iterable[Row], score: str) -> Iterator[str]:
    yield f"point\trank\tlabel\t{score}\n"
    for point, row in rows:
        for rank, (label, value) in enumerate(row, start=1):
            yield f"{_cell(point)}\t{rank}\t{_cell(label)}\t{value:.6g}\n"


def _cell(value: int | str) -> str:
    """Without the tabs and line ends that would break a line of tsv."""
    return " ".join(value.split()) if isinstance(value, str) else str(value)


def _jsonl(rows: Iterable[Row], score: str) -> Iterator[str]:
    for point, row in rows:
        labels = [{"label": label, score: round(value, 6)} for label, value in row]
        yield json.dumps({"point": point, "labels": labels}, ensure_ascii=False) + "\n"


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            write(file)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
