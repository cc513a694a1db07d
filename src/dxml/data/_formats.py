"""Read and write data sets; the format is given, or recognised from the path.

=============  ==========================================  ==================================
format         path                                        ids, width
=============  ==========================================  ==================================
``repository`` ``train.txt``: header ``N D L``, then a     from 0; the header's
               line a point, ``l1,l2 f:v f:v``
``pair``       ``X_Xf.txt,Y.txt``: headers ``N D`` and     from 0; the headers'
               ``N L``, lines ``f:v f:v`` and ``l:1 l:1``
``libsvm``     ``train.svm``, ``train.libsvm``: no         features from 1 and labels from 0;
               header, a line a point, ``l1,l2 f:v f:v``   largest id seen, unless given
``npz``        ``X.npz,Y.npz``, or a folder that holds     as `scipy.sparse.save_npz` writes
               ``X.npz`` and ``Y.npz``                     them; never a pickle
``mapped``     ``train.dxml``: a folder of plain arrays    from 0; memory-mapped, so that it
               (`dxml.data._mapped`)                       may be larger than memory
=============  ==========================================  ==================================

Text may be compressed: add ``.gz``, ``.bz2`` or ``.xz`` to the name. A point without labels starts
with a space, one without features ends after its labels; an empty line is a point with neither.
Labels that repeat in a line count once; a feature that repeats is an error; zeros are not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse import csr_matrix, load_npz

from dxml._core.sparse import canonical
from dxml.data._dataset import Dataset
from dxml.data._mapped import is_mapped, read_mapped, write_mapped
from dxml.data._text import Layout, read_header, read_row_blocks, read_rows
from dxml.data._write import write_npz, write_pair, write_single
from dxml.exceptions import DataFormatError, ParameterError, advise, did_you_mean
from dxml.progress import SILENT, Progress
from dxml.text._files import STDIN, check_archive, open_text, plain_suffix

__all__ = ["Format", "convert", "read", "read_blocks", "read_pair", "recognise", "write"]

Format = Literal["repository", "pair", "libsvm", "npz", "mapped"]
_SUFFIXES: dict[str, Format] = {".txt": "repository", ".svm": "libsvm", ".libsvm": "libsvm"}
TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".tab", ".parquet", ".pq", ".xlsx", ".xlsm")
"""Suffixes of what `dxml.text` reads."""
ROWS = 4096  # of a block of arrays
LIBSVM_BASES = (1, 0)  # of features, of labels: as the LIBSVM site's multi-label data sets have it


def recognise(path: str | Path) -> Format:
    """The format that `path` looks like: by suffix, by a comma between two names, or a folder.

    >>> recognise("train.txt.gz"), recognise("X_Xf.txt,Y.txt"), recognise("X.npz,Y.npz")
    ('repository', 'pair', 'npz')
    """
    text = str(path)
    if is_mapped(text):
        return "mapped"
    if Path(text).is_dir():
        return "npz"
    if "," in text and not Path(text).exists():
        return "npz" if text.endswith(".npz") else "pair"
    suffix = plain_suffix(text)
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix == ".npz":
        raise DataFormatError(
            f"{text}: one .npz holds one matrix, expected two. "
            "Give both as X.npz,Y.npz, or the folder that holds X.npz and Y.npz."
        )
    if suffix in TABLES:
        raise DataFormatError(
            f"{text}: the format cannot be told from the suffix {suffix!r}. A table of texts is "
            "for a tagger: dxml train with --text and --labels, or dxml.TextTagger."
        )
    remedy = advise(
        f"Say format=, one of {', '.join(get_args(Format))}.",
        "Names of features end in .txt, .svm or .libsvm, or are two: X.npz,Y.npz.",
    )
    raise DataFormatError(f"{text}: the format cannot be told from the suffix {suffix!r}. {remedy}")


def _chosen(path: str | Path, format: str | None) -> str:
    if format is None:
        return recognise(path)
    known = get_args(Format)
    if format not in known:
        raise ParameterError(f"unknown format {format!r}{did_you_mean(format, known)}")
    return format


def _two_paths(path: str | Path, format: str) -> tuple[Path, Path]:
    parts = str(path).split(",")
    if len(parts) == 2 and all(parts):
        return Path(parts[0]), Path(parts[1])
    if format == "npz" and len(parts) == 1 and Path(path).suffix != ".npz":
        return Path(path) / "X.npz", Path(path) / "Y.npz"
    folder = ", or the folder that holds them" if format == "npz" else ""
    raise DataFormatError(
        f"{path}: expected two file names with a comma between them{folder}, "
        f"for format={format!r}. Give the features' file first."
    )


def read(
    path: str | Path,
    *,
    format: Format | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    feature_base: int | None = None,
    label_base: int | None = None,
    name: str | None = None,
    progress: Progress = SILENT,
) -> Dataset:
    """Read a data set; see the module's table for the formats and their paths.

    Parameters
    ----------
    path : str or Path
        A file, two files with a comma between them, or a folder (npz).
    format : {"repository", "pair", "libsvm", "npz", "mapped"}, optional
        Needed only where the path does not show the format.
    n_features, n_labels : int, optional
        Width of X and Y; for libsvm only, which has no header. Give them when reading a test file,
        whose largest ids may be smaller than the training file's.
    feature_base, label_base : {0, 1}, optional
        The smallest id in the text. Never guessed: 0 by default, but 1 for libsvm features.
    name : str, optional
        Name of the data set; the file's by default.
    progress : Progress
        Counts the bytes read.

    Raises
    ------
    DataFormatError
        The message has the file, the line, what was expected, what was found and what to do.
    """
    chosen = _chosen(path, format)
    if chosen != "libsvm" and (n_features is not None or n_labels is not None):
        raise ParameterError(
            f"n_features and n_labels are for libsvm; a file of format {chosen!r} has its own."
        )
    defaults = LIBSVM_BASES if chosen == "libsvm" else (0, 0)
    bases = (
        _checked_base("feature_base", feature_base, defaults[0]),
        _checked_base("label_base", label_base, defaults[1]),
    )
    if chosen == "mapped":
        return read_mapped(path, name)
    if chosen == "npz":
        X, Y = _read_npz(*_two_paths(path, chosen))
    elif chosen == "pair":
        X, Y = _read_pair(*_two_paths(path, chosen), bases, progress)
    elif chosen == "libsvm":
        X, Y = _read_libsvm(Path(path), n_features, n_labels, bases, progress)
    else:
        X, Y = _read_repository(Path(path), bases, progress)
    return Dataset(X, Y, name=_plain_name(path) if name is None else name)


def read_blocks(path: str | Path, n_features: int, n_labels: int) -> Iterator[csr_matrix]:
    """The features of a file of any length, some points at a time, in float32 with int32 ids.

    Parameters
    ----------
    path : str or Path
        As for `read`, or ``-``: standard input, in libsvm's format. An npz is read whole first.
    n_features, n_labels : int
        Of the data a model was trained on.
    """
    chosen = "libsvm" if str(path) == STDIN else recognise(path)
    if chosen in ("npz", "mapped"):
        X = read(path).X
        yield from (X[start : start + ROWS] for start in range(0, X.shape[0], ROWS))
        return
    source = _two_paths(path, chosen)[0] if chosen == "pair" else Path(path)
    with open_text(source) as file:
        if chosen == "libsvm":
            bound = "that the model knows"
            hint = f"Features are taken to start at {LIBSVM_BASES[0]}"
            layout = Layout(True, None, n_features, n_labels, *LIBSVM_BASES, bound, hint=hint)
        elif chosen == "pair":
            n_rows, n_columns = read_header(file, "points features")
            layout = Layout(False, n_rows, n_columns, 0)
        else:
            n_rows, n_columns, n_label_columns = read_header(file, "points features labels")
            layout = Layout(True, n_rows, n_columns, n_label_columns)
        for X, _ in read_row_blocks(file, layout):
            yield canonical(X)


def convert(source: str | Path, target: str | Path, progress: Progress = SILENT) -> int:
    """Read a data set in one format and write it in another; its number of points.

    From text to a mapped folder, only a piece of it is in memory at a time.
    """
    chosen = recognise(source)
    if recognise(target) != "mapped" or chosen in ("npz", "mapped"):
        dataset = read(source, progress=progress)
        write(dataset, target)
        return dataset.n_samples
    return write_mapped(target, _both_blocks(source, chosen, progress))[0]


def _both_blocks(
    path: str | Path, chosen: str, progress: Progress
) -> Iterator[tuple[csr_matrix | None, csr_matrix | None]]:
    """Features and labels of a file of text, some points at a time; those of a pair in turn."""
    if chosen == "pair":
        x_path, y_path = _two_paths(path, chosen)
        with open_text(x_path, progress) as file:
            n_rows, width = read_header(file, "points features")
            for X, _ in read_row_blocks(file, Layout(False, n_rows, width, 0)):
                yield X, None
        with open_text(y_path, progress) as file:
            n_label_rows, width = read_header(file, "points labels")
            _check_same_rows(x_path, n_rows, y_path, n_label_rows)
            layout = Layout(False, n_label_rows, width, 0, pair="label")
            for Y, _ in read_row_blocks(file, layout):
                yield None, Y
        return
    with open_text(Path(path), progress) as file:
        if chosen == "libsvm":
            layout = Layout(True, None, None, None, *LIBSVM_BASES)
        else:
            n_rows, width, n_labels = read_header(file, "points features labels")
            layout = Layout(True, n_rows, width, n_labels)
        yield from read_row_blocks(file, layout)


def _checked_base(what: str, base: int | None, default: int) -> int:
    if base not in (None, 0, 1):
        raise ParameterError(f"{what} must be 0 or 1, got {base!r}.")
    return default if base is None else base


def _plain_name(path: str | Path) -> str:
    return Path(str(path).split(",")[0]).name.split(".")[0]


def _read_repository(
    path: Path, bases: tuple[int, int], progress: Progress
) -> tuple[csr_matrix, csr_matrix]:
    with open_text(path, progress) as file:
        n_rows, n_features, n_labels = read_header(file, "points features labels")
        return read_rows(file, Layout(True, n_rows, n_features, n_labels, *bases))


def _read_libsvm(
    path: Path,
    n_features: int | None,
    n_labels: int | None,
    bases: tuple[int, int],
    progress: Progress,
) -> tuple[csr_matrix, csr_matrix]:
    for what, size in (("n_features", n_features), ("n_labels", n_labels)):
        if size is not None and not 0 <= size < 2**31:
            raise ParameterError(f"{what} must be 0 to {2**31 - 1}, got {size}.")
    bound = "given as n_features and n_labels"
    hint = f"Features are taken to start at {bases[0]}: set feature_base if not"
    with open_text(path, progress) as file:
        return read_rows(file, Layout(True, None, n_features, n_labels, *bases, bound, hint=hint))


def read_pair(
    x_path: str | Path,
    y_path: str | Path,
    *,
    name: str | None = None,
    progress: Progress = SILENT,
) -> Dataset:
    """Read the repository's newer two-file format.

    Parameters
    ----------
    x_path, y_path : str or Path
        Features, headed ``N D`` with lines ``f:v f:v``, and labels, headed ``N L`` with lines
        ``l:1 l:1``; ids from 0. A label whose value is 0 is not carried.
    """
    X, Y = _read_pair(Path(x_path), Path(y_path), (0, 0), progress)
    return Dataset(X, Y, name=_plain_name(x_path) if name is None else name)


def _read_pair(
    x_path: Path, y_path: Path, bases: tuple[int, int], progress: Progress
) -> tuple[csr_matrix, csr_matrix]:
    with open_text(x_path, progress) as file:
        n_rows, n_features = read_header(file, "points features")
        X, _ = read_rows(file, Layout(False, n_rows, n_features, 0, bases[0]))
    with open_text(y_path, progress) as file:
        n_label_rows, n_labels = read_header(file, "points labels")
        _check_same_rows(x_path, n_rows, y_path, n_label_rows)
        hint = "Use label_base=1 if labels start at 1"
        layout = Layout(False, n_label_rows, n_labels, 0, bases[1], pair="label", hint=hint)
        Y, _ = read_rows(file, layout)
    return X, Y


def _check_same_rows(x_path: Path, n_x: int, y_path: Path, n_y: int) -> None:
    if n_x != n_y:
        raise DataFormatError(
            f"{x_path} has {n_x} points but {y_path} has {n_y}. "
            "Give the features and the labels of the same points."
        )


def _read_npz(x_path: Path, y_path: Path) -> tuple[csr_matrix, csr_matrix]:
    X, Y = _load_matrix(x_path), _load_matrix(y_path)
    _check_same_rows(x_path, X.shape[0], y_path, Y.shape[0])
    return _checked_features(x_path, X), _as_truth(y_path, Y)


def _checked_features(path: Path, X: csr_matrix) -> csr_matrix:
    bad = np.flatnonzero(~np.isfinite(X.data))
    if bad.size:
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        raise DataFormatError(
            f"{path} row {row}: the value of feature {X.indices[bad[0]]} is {X.data[bad[0]]}, "
            "expected a finite number. Replace it or leave it out."
        )
    return _as_float32(path, X)


def is_one_matrix(path: str | Path) -> bool:
    """Whether it is one .npz, and so one matrix, or a folder with features but no labels."""
    text = str(path)
    folder = Path(text).is_dir() and not is_mapped(text)
    alone = folder and not (Path(text) / "Y.npz").exists()
    return alone or ("," not in text and Path(text).suffix == ".npz")


def read_features(path: Path) -> csr_matrix:
    """Points without labels: an .npz, or a folder that holds X.npz."""
    file = path / "X.npz" if path.is_dir() else path
    return _checked_features(file, _load_matrix(file))


def _as_float32(path: Path, X: csr_matrix) -> csr_matrix:
    with np.errstate(over="ignore"):
        narrow = X.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(narrow.data))
    if bad.size:
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        raise DataFormatError(
            f"{path} row {row}: the value {X.data[bad[0]]:g} of feature {X.indices[bad[0]]} is too "
            "large for a 32-bit float. Scale it."
        )
    return narrow


def _as_truth(path: Path, Y: csr_matrix) -> csr_matrix:
    bad = np.flatnonzero((Y.data != 0) & (Y.data != 1))
    if bad.size:
        row = int(np.searchsorted(Y.indptr, bad[0], side="right")) - 1
        raise DataFormatError(
            f"{path} row {row}: the value of label {Y.indices[bad[0]]} is {Y.data[bad[0]]:g}, "
            "expected 0 or 1. Binarise graded relevance first, e.g. Y > 0."
        )
    return Y.astype(np.bool_)


def _load_matrix(path: Path) -> csr_matrix:
    if not path.is_file():
        raise DataFormatError(f"{path}: there is no such file. Check the path.")
    check_archive(path)
    try:
        with open(path, "rb") as file:
            loaded: Any = load_npz(file)
        if loaded.ndim != 2 or loaded.dtype.kind not in "biuf":
            raise ValueError(f"it holds {loaded!r}")
        if hasattr(loaded, "check_format"):  # before it is converted, which checks no bounds
            loaded.check_format(full_check=True)
        matrix: csr_matrix = csr_matrix(loaded)
        matrix.check_format(full_check=True)
    except Exception as error:  # numpy and scipy have many, down to those of Python's tokenizer
        raise DataFormatError(
            f"{path}: expected a sparse matrix of numbers as scipy.sparse.save_npz writes it, "
            f"found something else or a damaged file ({error}). Write or download it again."
        ) from error
    return matrix


def write(
    dataset: Dataset,
    path: str | Path,
    *,
    format: Format | None = None,
    feature_base: int | None = None,
    label_base: int | None = None,
) -> None:
    """Write `dataset` so that `read` gives the same float32 values back, bit for bit.

    Files are written under temporary names and then renamed, so no half-written file is ever seen.
    Missing folders are made. A path without a suffix is a folder, for npz. Parameters are those of
    `read`; bases are for libsvm only.
    """
    chosen = _chosen(path, format) if format or Path(_folder_like(path)).suffix else "npz"
    if chosen != "libsvm" and (feature_base is not None or label_base is not None):
        raise ParameterError(f"ids in format {chosen!r} start at 0; bases are for libsvm.")
    if chosen == "mapped":
        write_mapped(path, [(dataset.X, dataset.Y)])
    elif chosen == "npz":
        write_npz(dataset, *_two_paths(path, chosen))
    elif chosen == "pair":
        write_pair(dataset, *_two_paths(path, chosen))
    elif chosen == "libsvm":
        bases = (
            _checked_base("feature_base", feature_base, LIBSVM_BASES[0]),
            _checked_base("label_base", label_base, LIBSVM_BASES[1]),
        )
        write_single(dataset, Path(path), header=False, bases=bases)
    else:
        write_single(dataset, Path(path), header=True, bases=(0, 0))


def _folder_like(path: str | Path) -> str:
    return str(path).split(",")[0]
