"""Predictions as text or arrays, written as they come."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from dxml._cli._output import check_file, replace_file
from dxml.exceptions import ParameterError
from dxml.topk import TopK

__all__ = ["Row", "check_output", "named_rows", "write_rows", "write_scores"]

_PLURALS = {"score": "scores", "probability": "probabilities"}


class Row(NamedTuple):
    """A point's name, its labels with their scores, and whether nothing is known of it."""

    point: int | str
    labels: Sequence[tuple[int | str, float]]
    nothing_known: bool = False


def check_output(format: str, output: Path | None) -> None:
    """Refuse, before the work is done, what could not be written after it."""
    if output is not None:
        check_file(output)
    elif format == "npz":
        raise ParameterError("--format npz needs --output FILE: arrays are no text.")


def named_rows(
    ranking: TopK, names: Sequence[Any] | None, points: Sequence[int | str]
) -> Iterator[Row]:
    """The rows of a ranking, by the labels' names, or by their numbers where they have none."""
    for point, row in zip(points, ranking.rows(), strict=True):
        labels = row if names is None else [(str(names[label]), score) for label, score in row]
        yield Row(point, labels)


def write_rows(
    blocks: Iterable[Iterable[Row]], format: str, output: Path | None, score: str = "score"
) -> None:
    """Write rows as tsv, csv or jsonl, block after block, to a file or to standard output.

    Parameters
    ----------
    score : str
        What the score of a label is called.
    """
    pieces = _pieces(blocks, format, score)
    if output is not None:
        replace_file(output, lambda file: file.writelines(piece.encode() for piece in pieces))
        return
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()


def write_scores(
    blocks: Iterable[tuple[sp.csr_matrix, Sequence[int], int]], n_labels: int, output: Path
) -> None:
    """Write scores as one npz.

    Parameters
    ----------
    blocks : iterable of (scores, the numbers of their rows, the number of rows up to there)
        Rows that were left out are empty.
    """
    pieces = [sp.csr_matrix((0, n_labels), dtype=np.float32)]
    numbers: list[int] = []
    n_rows = 0
    for scores, rows, n_rows in blocks:  # noqa: B007
        pieces.append(scores)
        numbers.extend(rows)
    whole = sp.csr_matrix(sp.vstack(pieces, format="csr"))
    ends = np.zeros(n_rows + 1, dtype=whole.indptr.dtype)
    ends[np.asarray(numbers, dtype=np.int64) + 1] = np.diff(whole.indptr)
    arrays = (whole.data, whole.indices, np.cumsum(ends, dtype=ends.dtype))
    matrix = sp.csr_matrix(arrays, shape=(n_rows, n_labels))
    replace_file(output, lambda file: sp.save_npz(file, matrix))


def _pieces(blocks: Iterable[Iterable[Row]], format: str, score: str) -> Iterator[str]:
    """The text of each block, the first with the names of the columns: an error has none."""
    heads = {"tsv": f"point\trank\tlabel\t{score}\n", "csv": f"point,labels,{_PLURALS[score]}\r\n"}
    line = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl}[format]
    head = heads.get(format, "")
    for rows in blocks:
        yield head + "".join(line(row, score) for row in rows)
        head = ""
    yield head


def _tsv(row: Row, score: str) -> str:
    return "".join(
        f"{_cell(row.point)}\t{rank}\t{_cell(label)}\t{value:.6g}\n"
        for rank, (label, value) in enumerate(row.labels, start=1)
    )


def _csv(row: Row, score: str) -> str:
    """One line: labels in one cell and scores in the next, by ";", or as a list where one has that.

    Tables of labels are read so: dxml takes both in one column.
    """
    names, scores = [str(label) for label, _ in row.labels], [value for _, value in row.labels]
    if any(";" in name for name in names):
        cells = json.dumps(names, ensure_ascii=False), json.dumps([round(s, 6) for s in scores])
    else:
        cells = ";".join(names), ";".join(f"{value:.6g}" for value in scores)
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow((row.point, *cells))
    return line.getvalue()


def _cell(value: int | str) -> str:
    """Without the tabs and line ends that would break a line of tsv."""
    return " ".join(value.split()) if isinstance(value, str) else str(value)


def _jsonl(row: Row, score: str) -> str:
    labels = [{"label": label, score: round(value, 6)} for label, value in row.labels]
    line: dict[str, Any] = {"point": row.point, "labels": labels}
    if row.nothing_known:
        line["nothing_known"] = True
    return json.dumps(line, ensure_ascii=False) + "\n"
