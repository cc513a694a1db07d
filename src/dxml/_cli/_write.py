"""Predictions as text or arrays."""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml._cli._output import check_file, replace_file
from dxml.exceptions import ParameterError
from dxml.text import TextTable
from dxml.topk import TopK

__all__ = ["Row", "check_output", "write_predictions", "write_rows"]

Row = tuple[int | str, Sequence[tuple[int | str, float]]]


def check_output(format: str, output: Path | None) -> None:
    """Refuse, before the work is done, what could not be written after it."""
    if output is not None:
        check_file(output)
    elif format == "npz":
        raise ParameterError("--format npz needs --output FILE: arrays are no text.")


def write_predictions(
    ranking: TopK,
    n_labels: int,
    names: Sequence[Any] | None,
    format: str,
    output: Path | None,
    *,
    table: TextTable | None = None,
    score: str = "score",
    nothing_known: Container[int] = (),
) -> None:
    """Write a ranking as tsv, jsonl or npz to a file or to standard output.

    Parameters
    ----------
    names : sequence, optional
        Of the labels; their numbers are written by default.
    table : TextTable, optional
        The table of the points, which has their names; by default points are counted from 0.
    score : str
        What the score of a label is called.
    nothing_known : container of int
        The points, counted from 0, of which nothing is known; jsonl says so.
    """
    if format == "npz" and output is not None:
        scores = ranking.to_csr(n_labels)
        if table is not None and table.rows is not None:
            scores = _with_empty_rows(scores, table.rows, len(table) + table.skipped)
        replace_file(output, lambda file: sp.save_npz(file, scores))
        return
    points = range(len(ranking)) if table is None else table.names
    write_rows(_rows(ranking, names, points), format, output, score, nothing_known)


def _with_empty_rows(scores: sp.csr_matrix, rows: Sequence[int], n_rows: int) -> sp.csr_matrix:
    """The rows of a matrix at these places among `n_rows`, the others empty."""
    ends = np.zeros(n_rows + 1, dtype=scores.indptr.dtype)
    ends[np.asarray(rows) + 1] = np.diff(scores.indptr)
    places = (scores.data, scores.indices, np.cumsum(ends, dtype=ends.dtype))
    return sp.csr_matrix(places, shape=(n_rows, scores.shape[1]))


def write_rows(
    rows: Iterable[Row],
    format: str,
    output: Path | None,
    score: str,
    nothing_known: Container[int] = (),
) -> None:
    """Write (point, its labels with their scores) rows as tsv or jsonl."""
    lines = _tsv(rows, score) if format == "tsv" else _jsonl(rows, score, nothing_known)
    if output is None:
        sys.stdout.writelines(lines)
    else:
        replace_file(output, lambda file: file.writelines(line.encode() for line in lines))


def _rows(ranking: TopK, names: Sequence[Any] | None, points: Sequence[int | str]) -> Iterator[Row]:
    for point, row in zip(points, ranking.rows(), strict=True):
        labels = row if names is None else [(str(names[label]), score) for label, score in row]
        yield point, labels


def _tsv(rows: Iterable[Row], score: str) -> Iterator[str]:
    yield f"point\trank\tlabel\t{score}\n"
    for point, row in rows:
        for rank, (label, value) in enumerate(row, start=1):
            yield f"{_cell(point)}\t{rank}\t{_cell(label)}\t{value:.6g}\n"


def _cell(value: int | str) -> str:
    """Without the tabs and line ends that would break a line of tsv."""
    return " ".join(value.split()) if isinstance(value, str) else str(value)


def _jsonl(rows: Iterable[Row], score: str, nothing_known: Container[int]) -> Iterator[str]:
    for place, (point, row) in enumerate(rows):
        labels = [{"label": label, score: round(value, 6)} for label, value in row]
        line: dict[str, Any] = {"point": point, "labels": labels}
        if place in nothing_known:
            line["nothing_known"] = True
        yield json.dumps(line, ensure_ascii=False) + "\n"
