"""Find a data set by name on disk and load one part of one split; or open a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from scipy.sparse import csr_matrix, vstack

from dxml._core.files import cache_directory
from dxml.data import _formats as formats
from dxml.data._built import load_built
from dxml.data._dataset import Dataset
from dxml.data._mapped import is_mapped
from dxml.data._records import read_part
from dxml.data._registry import REGISTRY, DatasetInfo, TextRecipe, lookup
from dxml.data._splits import read_split
from dxml.exceptions import DataFormatError, DatasetNotFoundError, ParameterError, did_you_mean
from dxml.progress import SILENT, Progress
from dxml.text._files import COMPRESSIONS, STDIN
from dxml.text._tables import TextTable

__all__ = [
    "Part",
    "cache_directory",
    "is_present",
    "load_dataset",
    "load_texts",
    "open_blocks",
    "open_data",
]

Part = Literal["train", "test", "all"]


def _search_path(data_dir: str | Path | None) -> list[Path]:
    """Directories in which to look for a folder with the data set's name, in order."""
    if data_dir is not None:
        return [Path(data_dir)]
    named = os.environ.get("DXML_DATA")
    return [Path(named), cache_directory()] if named else [cache_directory()]


def find_file(folder: Path, name: str) -> Path | None:
    """`name` in `folder`, plain or compressed."""
    candidates = (folder / f"{name}{suffix}" for suffix in ("", *COMPRESSIONS))
    return next((path for path in candidates if path.is_file()), None)


def _locate(info: DatasetInfo, data_dir: str | Path | None) -> dict[str, Path]:
    """Every file of the data set, from the first directory that holds them all."""
    directories = _search_path(data_dir)
    for directory in directories:
        found = {name: find_file(directory / info.name, name) for name in info.files}
        if all(found.values()):
            return {name: path for name, path in found.items() if path is not None}
    where = " or ".join(str(directory / info.name) for directory in directories)
    advice = (
        f"`dxml data get {info.name}` would fetch it"
        if info.sources
        else "It cannot be fetched: place the files there yourself"
    )
    raise DatasetNotFoundError(
        f"data set {info.name!r} is not here: looked for {', '.join(info.files)} "
        f"(plain, {', '.join(COMPRESSIONS)}) in {where}. {advice}; "
        "or set DXML_DATA to the directory that holds it."
        + ("" if info.sources else f" {info.note}")
    )


def is_present(name: str) -> bool:
    """Whether every file of a registered data set is on this machine."""
    try:
        _locate(lookup(name), None)
    except DatasetNotFoundError:
        return False
    return True


def _check_part(part: str) -> None:
    if part not in get_args(Part):
        raise ParameterError(f"unknown part {part!r}{did_you_mean(part, get_args(Part))}")


def _check_split(info: DatasetInfo, split: int | None) -> int:
    split = 1 if split is None else split
    if not 1 <= split <= info.n_splits:
        have = (
            "one official split, so split must be 1 or left out"
            if info.n_splits == 1
            else f"splits 1..{info.n_splits}"
        )
        raise ParameterError(f"there is no split {split} of {info.name!r}: it has {have}.")
    return split


def _check_shape(dataset: Dataset, info: DatasetInfo, n_samples: int, path: Path) -> None:
    found = (dataset.n_samples, dataset.n_features, dataset.n_labels)
    expected = (n_samples, info.n_features, info.n_labels)
    if found != expected:
        raise DataFormatError(
            f"{path}: {info.name!r} should have {expected[0]} points, {expected[1]} features and "
            f"{expected[2]} labels, found {found[0]}, {found[1]} and {found[2]}. "
            "It is another version of the data: fetch it again, or open the file by its path."
        )


def load_dataset(
    name: str,
    part: Part = "train",
    split: int | None = None,
    data_dir: str | Path | None = None,
    progress: Progress = SILENT,
) -> Dataset:
    """Load a registered data set from disk.

    It is looked for in a folder called `name` under `data_dir` if that is given, else under the
    directory in ``DXML_DATA``, else under the cache directory that `dxml.data._fetch` fills.

    Parameters
    ----------
    name : str
        A key of `dxml.data.REGISTRY`, in any case of letters.
    part : {"train", "test", "all"}
        "all" gives every point: in the file's order, or train and then test.
    split : int, optional
        From 1; the first by default. Data sets with one official split have only that.
    data_dir : path, optional
        Look here and nowhere else.
    progress : Progress
        Counts the bytes read.

    Raises
    ------
    DatasetNotFoundError
        The name is unknown, or the files are nowhere to be found.
    DataFormatError
        A file is damaged or has not the registered shape.
    """
    info = lookup(name)
    _check_part(part)
    split = _check_split(info, split)
    paths = _locate(info, data_dir)
    if info.recipe is not None:
        dataset = _read_built(info, info.recipe, paths, part, progress)
    elif info.n_splits > 1:
        dataset = _read_split_data(info, paths, part, split, progress)
    else:
        dataset = _read_parts(info, paths, part, progress)
    return replace(dataset, name=info.name, propensity=info.propensity)


def _read_split_data(
    info: DatasetInfo, paths: dict[str, Path], part: str, split: int, progress: Progress
) -> Dataset:
    data, train, test = (paths[name] for name in info.files)
    dataset = formats.read(data, format="repository", progress=progress)
    _check_shape(dataset, info, info.n_samples, data)
    if part == "all":
        return dataset
    path, expected = (train, info.n_train) if part == "train" else (test, info.n_test)
    rows = read_split(path, split, n_samples=dataset.n_samples)
    if rows.size != expected:
        raise DataFormatError(
            f"{path}: the {part} part of {info.name!r} should have {expected} rows, "
            f"found {rows.size}. Fetch the split file again."
        )
    return dataset.take(rows)


def _read_built(
    info: DatasetInfo, recipe: TextRecipe, paths: dict[str, Path], part: str, progress: Progress
) -> Dataset:
    built = load_built(info, recipe, paths, cache_directory() / "built", progress)
    for name, n_samples in (("train", info.n_train), ("test", info.n_test)):
        _check_shape(built[name], info, n_samples, paths[info.files[0]])
    return concatenate(built["train"], built["test"]) if part == "all" else built[part]


def _read_parts(
    info: DatasetInfo, paths: dict[str, Path], part: str, progress: Progress
) -> Dataset:
    wanted = {"train": (0,), "test": (1,), "all": (0, 1)}[part]
    datasets = []
    for i in wanted:
        path = paths[info.files[i]]
        dataset = formats.read(path, format="repository", progress=progress)
        _check_shape(dataset, info, (info.n_train, info.n_test)[i], path)
        datasets.append(dataset)
    return datasets[0] if len(datasets) == 1 else concatenate(*datasets)


def load_texts(
    name: str,
    part: Part = "train",
    data_dir: str | Path | None = None,
    progress: Progress = SILENT,
) -> TextTable:
    """The raw texts of a registered data set that is made of texts.

    Row by row they are the points that `load_dataset` gives: the same labels, by their names, and
    the id of each record beside them. Parameters are those of `load_dataset`.
    """
    info = lookup(name)
    if info.recipe is None:
        texts = [known for known, other in REGISTRY.items() if other.recipe is not None]
        raise ParameterError(
            f"the data set {info.name!r} holds features, no texts. Use one of {', '.join(texts)}."
        )
    dataset = load_dataset(name, part, None, data_dir, progress)
    paths = _locate(info, data_dir)
    parts = ("train", "test") if part == "all" else (part,)
    tables = [read_part(info, info.recipe, paths, each, progress) for each in parts]
    names = dataset.label_names or ()
    rows = zip(dataset.Y.indptr, dataset.Y.indptr[1:], strict=False)
    return TextTable(
        texts=tuple(text for table in tables for text in table.texts),
        labels=tuple(
            tuple(names[column] for column in dataset.Y.indices[start:stop]) for start, stop in rows
        ),
        ids=tuple(id for table in tables for id in table.ids or ()),
    )


def concatenate(first: Dataset, second: Dataset) -> Dataset:
    """The points of `first` and then those of `second`."""
    X, Y = (vstack([a, b], format="csr") for a, b in ((first.X, second.X), (first.Y, second.Y)))
    return replace(first, X=csr_matrix(X), Y=csr_matrix(Y))


def open_data(
    data: str | Path,
    part: Part = "train",
    split: int | None = None,
    *,
    format: formats.Format | None = None,
    widths: tuple[int, int] | None = None,
    data_dir: str | Path | None = None,
    progress: Progress = SILENT,
) -> Dataset:
    """Open a file by its path, or else a registered data set by its name.

    A file is read whole: `part` is for names, and `split` on a file is refused.

    Parameters
    ----------
    data : str or Path
        A path that `dxml.data.read` takes, or a name that `load_dataset` takes.
    part, split, data_dir
        As for `load_dataset`.
    format
        As for `dxml.data.read`.
    widths : (n_features, n_labels), optional
        Of the data a model was trained on, for a file that does not say its own.
    """
    if not _looks_like_path(data):
        return load_dataset(str(data), part, split, data_dir, progress)
    if split is not None:
        raise ParameterError(
            f"{data} is a file, which has no split {split}. "
            "Leave the split out, or give the name of a registered data set."
        )
    if widths is None or (format or formats.recognise(data)) != "libsvm":
        return formats.read(data, format=format, progress=progress)
    n_features, n_labels = widths
    return formats.read(
        data, format="libsvm", n_features=n_features, n_labels=n_labels, progress=progress
    )


def open_blocks(
    data: str | Path, part: Part, split: int | None, widths: tuple[int, int]
) -> Iterator[csr_matrix]:
    """As `open_data`, the features of some points at a time; ``-`` is standard input.

    Named data sets come whole. Labels need not be there: one .npz may be all, or X.npz in a folder.
    """
    if str(data) != STDIN and not _looks_like_path(data):
        yield load_dataset(str(data), part, split).X
        return
    if split is not None:
        raise ParameterError(
            f"{data} is a file, which has no split {split}. "
            "Leave the split out, or give the name of a registered data set."
        )
    if formats.is_one_matrix(data):
        yield formats.read_features(Path(data))
        return
    yield from formats.read_blocks(data, *widths)


def _looks_like_path(data: str | Path) -> bool:
    text = str(data)
    path = Path(text)
    there = path.is_file() or is_mapped(path) or (path / "X.npz").is_file()
    return there or isinstance(data, Path) or any(c in text for c in "/\\,.")
