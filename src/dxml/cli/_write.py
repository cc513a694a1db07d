"""Predictions as text or arrays; a file is written beside and renamed, never half."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import scipy.sparse as sp

from dxml.base import Classifier
from dxml.exceptions import ParameterError
from dxml.topk import TopK

__all__ = ["write_predictions"]


def write_predictions(ranking: TopK, model: Classifier, format: str, output: Path | None) -> None:
    """Write a ranking as tsv, jsonl or npz to a file or to standard output."""
    if format == "npz":
        if output is None:
            raise ParameterError("--format npz needs --output FILE: arrays are no text.")
        scores = ranking.to_csr(model.n_labels_)
        _replace(output, lambda file: sp.save_npz(file, scores))
        return
    lines = (_tsv if format == "tsv" else _jsonl)(ranking, _names(model))
    if output is None:
        sys.stdout.writelines(lines)
    else:
        _replace(output, lambda file: file.writelines(line.encode() for line in lines))


def _names(model: Classifier) -> Callable[[int], int | str]:
    names = model.label_names_
    return (lambda label: label) if names is None else (lambda label: str(names[label]))


def _tsv(ranking: TopK, name: Callable[[int], int | str]) -> Iterator[str]:
    yield "point\trank\tlabel\tscore\n"
    for point, row in enumerate(ranking.rows()):
        for rank, (label, score) in enumerate(row, start=1):
            yield f"{point}\t{rank}\t{name(label)}\t{score:.6g}\n"


def _jsonl(ranking: TopK, name: Callable[[int], int | str]) -> Iterator[str]:
    for point, row in enumerate(ranking.rows()):
        labels = [{"label": name(label), "score": round(score, 6)} for label, score in row]
        yield json.dumps({"point": point, "labels": labels}, ensure_ascii=False) + "\n"


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            write(file)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
