"""Texts of a registered data set → sparse matrices, built once and kept in the cache directory.

A built data set is a folder as `dxml._core.storage` writes it, named after a digest of the files it
was built from and of the recipe. A damaged or missing folder is built again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from dxml._core.arrays import Arrays
from dxml._core.sparse import indicator
from dxml._core.storage import pack_csr, read_folder, write_folder
from dxml.data._dataset import Dataset
from dxml.data._records import read_names, read_part
from dxml.data._registry import DatasetInfo, TextRecipe
from dxml.exceptions import ModelFormatError
from dxml.progress import SILENT, Progress
from dxml.text._strings import pack_strings

__all__ = ["load_built"]

VERSION = 2
"""Increased by one when the same texts give other matrices than before."""


def load_built(
    info: DatasetInfo,
    recipe: TextRecipe,
    paths: Mapping[str, Path],
    cache: Path,
    progress: Progress = SILENT,
) -> dict[str, Dataset]:
    """The parts "train" and "test", from the folder `cache` or built and put there."""
    folder = cache / f"{info.name}-{_digest(info, recipe, paths)}"
    try:
        return _unpack(read_folder(folder)[1])
    except (ModelFormatError, OSError):
        arrays = _build(info, recipe, paths, progress)
    with suppress(OSError):  # works without a cache too, but slower
        write_folder(folder, {"data_set": info.name}, arrays)
    return _unpack(Arrays(arrays))


def _digest(info: DatasetInfo, recipe: TextRecipe, paths: Mapping[str, Path]) -> str:
    digest = hashlib.sha256(repr((VERSION, recipe, info.files)).encode())
    for name in info.files:
        with open(paths[name], "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _build(
    info: DatasetInfo, recipe: TextRecipe, paths: Mapping[str, Path], progress: Progress
) -> dict[str, npt.NDArray[Any]]:
    from dxml.text._features import TextFeatures  # scikit-learn, which takes a second to import

    train = read_part(info, recipe, paths, "train", progress)
    test = read_part(info, recipe, paths, "test", progress)
    labels = sorted(set().union(*(train.labels or ())))
    features = TextFeatures(min_df=recipe.min_df)
    matrices = {
        "train.X": features.fit_transform(train.texts, progress=progress),
        "test.X": features.transform(test.texts, progress=progress),
        "train.Y": _label_matrix(train.labels or (), labels),
        "test.Y": _label_matrix(test.labels or (), labels),
    }
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, matrix in matrices.items():
        arrays |= pack_csr(name, matrix)
    names = {"features": features.feature_names, "labels": read_names(info, recipe, paths, labels)}
    for name, strings in names.items():
        arrays[name], arrays[f"{name}_ends"] = pack_strings(strings)
    return arrays


def _label_matrix(rows: Sequence[Sequence[str]], labels: Sequence[str]) -> csr_matrix:
    """A bool matrix of the known labels."""
    columns = {label: column for column, label in enumerate(labels)}
    known = [[columns[label] for label in row if label in columns] for row in rows]
    indices = np.array([column for row in known for column in row], dtype=np.int32)
    return indicator(indices, [len(row) for row in known], len(labels))


def _unpack(arrays: Arrays) -> dict[str, Dataset]:
    names = {name: tuple(arrays.strings(name)) for name in ("features", "labels")}
    sizes = {name: len(strings) for name, strings in names.items()}
    return {
        part: Dataset(
            arrays.csr(f"{part}.X", None, sizes["features"]),
            arrays.csr(f"{part}.Y", None, sizes["labels"], truth=True),
            label_names=names["labels"],
            feature_names=names["features"],
        )
        for part in ("train", "test")
    }
