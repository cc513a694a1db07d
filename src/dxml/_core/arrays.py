"""What comes out of a model folder, doubted before anything computes with it.

`Arrays` holds the arrays of a folder by name and gives none of them away unchecked: who wants one
says what it must be (kind, shape, range, what its ids point into), and gets it or an error that
names it. Compiled code checks no bounds, so this is the only door. `whole`, `real`, `reals` and
`listed_texts` are the same for values of ``config.json``, and `reading` words what else may be
wrong.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.checked import is_marked, remember
from dxml._core.sparse import plain_csr
from dxml.exceptions import ModelFormatError

__all__ = ["HELP", "Arrays", "flag", "listed_texts", "mapping", "reading", "real", "reals", "whole"]

HELP = "Restore the folder from a copy or train again."
MOST_SCALE = 1e36  # of an int8's step: 127 of them are a float32

Named = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float32]
Size = int | None
"""A length that must be met; None: any."""


class Arrays:
    """Named arrays, each checked when it is asked for.

    Parameters
    ----------
    arrays : mapping of str to array
    where : str or Path
        The file they come from, named in errors.
    mark : Path, optional
        That of the file (`dxml._core.checked`). Where it was left before, kinds and shapes are
        compared all the same, and the numbers, which are many, are not looked at again.
    """

    def __init__(
        self,
        arrays: Mapping[str, npt.NDArray[Any]],
        where: str | Path = "the arrays",
        mark: Path | None = None,
    ) -> None:
        self._arrays = arrays
        self._where = where
        self._mark = mark
        self._checked_before = is_marked(mark)

    def accept(self) -> None:
        """Say that everything asked for was in order, once a whole model was read."""
        if not self._checked_before:
            remember(self._mark)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def __len__(self) -> int:
        return len(self._arrays)

    def floats(
        self,
        name: str,
        *shape: Size,
        least: float | None = None,
        most: float | None = None,
        never: bool = False,
    ) -> Floats:
        """float32 numbers from `least` to `most`, all finite; `never`: −∞ may be among them."""
        array = self._of(name, shape, "float32")
        self._check_numbers(name, array, least, most, never)
        return array

    def halves(self, name: str, *shape: Size) -> npt.NDArray[np.float16]:
        """float16 numbers, all finite."""
        array = self._of(name, shape, "float16")
        self._check_numbers(name, array)
        return array

    def under(self, prefix: str) -> Named:
        """All float16 arrays whose names begin so, without that beginning; of any shape."""
        names = [name for name in self._arrays if name.startswith(prefix)]
        found = {}
        for name in names:
            found[name.removeprefix(prefix)] = self.halves(name, *self._arrays[name].shape)
        return found

    def text(self, name: str) -> str:
        """A text that is stored as its UTF-8 bytes."""
        try:
            return self._of(name, (None,), "uint8").tobytes().decode()
        except UnicodeDecodeError as error:
            raise self._wrong(name, f"must hold UTF-8 ({error.reason})") from error

    def unchecked(self) -> Named:
        """Copies of all arrays, for the state of a run whose file was compared by checksum."""
        return {name: np.array(array) for name, array in self._arrays.items()}

    def numbers(self, name: str, *shape: Size, least: float | None = None) -> list[float]:
        """A few float64 numbers, all finite."""
        array = self._of(name, shape, "float64")
        self._check_numbers(name, array, least)
        return array.tolist()

    def flags(self, name: str, *shape: Size) -> npt.NDArray[np.bool_]:
        """Truth values."""
        array = self._of(name, shape, "bool")
        if array.size and not self._checked_before and int(array.view(np.uint8).max()) > 1:
            raise self._wrong(name, "must hold truth values, and holds other bytes")
        return array

    def counts(self, name: str, *shape: Size) -> npt.NDArray[Any]:
        """Whole numbers, 0 or more."""
        array = self._of(name, shape, "int64", "int32")
        self._check_range(name, array, 0, None)
        return array

    def ids(self, name: str, *shape: Size, below: int, least: int = 0) -> npt.NDArray[Any]:
        """Places in something of `below` entries; `least` is -1 where an id may mean none."""
        array = self._of(name, shape, "int32", "int64")
        self._check_range(name, array, least, below)
        return array

    def token_ids(self, name: str, *, below: int) -> npt.NDArray[Any]:
        """Ids of the tokens of texts, in two or four bytes."""
        array = self._of(name, (None,), "uint16", "int32")
        self._check_range(name, array, 0, below)
        return array

    def starts(self, name: str, rows: Size, total: int) -> npt.NDArray[Any]:
        """Where each row begins, and the last one ends: from 0 to `total`, never falling."""
        array = self._of(name, (None if rows is None else rows + 1,), "int32", "int64")
        if not len(array) or array[0] != 0 or array[-1] != total:
            raise self._wrong(name, f"must hold row boundaries from 0 to {total}")
        if not self._checked_before and (array[1:] < array[:-1]).any():
            raise self._wrong(name, "must hold row boundaries that never fall")
        return array

    def csr(
        self,
        name: str,
        rows: Size,
        columns: Size,
        *,
        truth: bool = False,
        positive: bool = False,
    ) -> sp.csr_matrix:
        """A sparse matrix as `dxml._core.storage.pack_csr` lays it out, over the very arrays.

        `truth` says whether it is one of truth values; those have no data.
        """
        packed = self.packed_csr(name, rows, columns, truth=truth)
        indices, data = packed[f"{name}.indices"], packed.get(f"{name}.data")
        if indices.dtype != np.int32:
            raise self._wrong(f"{name}.indices", f"must be of int32, is of {indices.dtype}")
        if data is None:
            data = np.ones(len(indices), dtype=bool)
        elif data.dtype != np.float32:
            raise self._wrong(f"{name}.data", f"must be of float32, is of {data.dtype}")
        elif positive and len(data) and not self._checked_before and not float(data.min()) > 0:
            raise self._wrong(f"{name}.data", "must hold numbers above 0")
        return plain_csr(data, indices, packed[f"{name}.indptr"], packed[f"{name}.shape"].tolist())

    def packed(self, name: str, *shape: Size) -> Named:
        """A dense array for `precision.unpack`: float32, float16, or int8 with a scale."""
        array = self._of(name, shape, "float32", "float16", "int8")
        if array.dtype != np.int8:
            self._check_numbers(name, array)
            return {name: array}
        scale = self.floats(f"{name}.scale", array.shape[0], least=0, most=MOST_SCALE)
        return {name: array, f"{name}.scale": scale}

    def packed_csr(self, name: str, rows: Size, columns: Size, *, truth: bool = False) -> Named:
        """A sparse matrix for `dxml._core.precision.unpack_sparse`."""
        shape = self._of(f"{name}.shape", (2,), "int64")
        indices = self._of(f"{name}.indices", (None,), "int32", "uint16")
        found = tuple(shape.tolist())
        if min(found) < 0 or not _fits(found, (rows, columns)):
            wanted = _words((rows, columns))
            raise self._wrong(f"{name}.shape", f"must be {wanted}, is {_words(found)}")
        packed = {
            f"{name}.shape": shape,
            f"{name}.indices": indices,
            f"{name}.indptr": self.starts(f"{name}.indptr", found[0], len(indices)),
        }
        self._check_range(f"{name}.indices", indices, 0, found[1])
        if truth:
            return packed
        data = self._of(f"{name}.data", (len(indices),), "float32", "float16", "int8")
        packed[f"{name}.data"] = data
        if data.dtype == np.int8:
            scale = self.floats(f"{name}.scale", found[0], least=0, most=MOST_SCALE)
            return packed | {f"{name}.scale": scale}
        self._check_numbers(f"{name}.data", data)
        return packed

    def packed_columns(self, name: str, rows: int, columns: int) -> Named:
        """A sparse matrix by columns, as `dxml.joint._stored_points` lays it out."""
        indices = self._of(f"{name}.indices", (None,), "int32", "uint16")
        self._check_range(f"{name}.indices", indices, 0, rows)
        data = self._of(f"{name}.data", (len(indices),), "float32", "float16", "int8")
        packed: Named = {
            f"{name}.indptr": self.starts(f"{name}.indptr", columns, len(indices)),
            f"{name}.indices": indices,
            f"{name}.data": data,
            f"{name}.unit": self.floats(f"{name}.unit", rows, least=0),
        }
        if data.dtype == np.int8:
            scale = self.floats(f"{name}.scale", rows, least=0, most=MOST_SCALE)
            return packed | {f"{name}.scale": scale}
        self._check_numbers(f"{name}.data", data)
        return packed

    def renamed(self, names: Mapping[str, npt.NDArray[Any]]) -> Arrays:
        """With more arrays, or others of the same names, as a newer format has them."""
        more = copy(self)
        more._arrays = {**self._arrays, **names}
        return more

    def strings(self, name: str, count: Size = None) -> list[str]:
        """Strings as `dxml.text._strings.pack_strings` lays them out, and ``_ends`` after the name.

        Some may hold half of a surrogate pair, as they were saved with.
        """
        whole = self._of(name, (None,), "uint8").tobytes()
        ends = self._of(f"{name}_ends", (count,), "int64")
        stops = ends.tolist()
        if (stops[-1] if stops else 0) != len(whole):
            raise self._wrong(f"{name}_ends", f"must end at {len(whole)}")
        if any(after < before for before, after in zip([0, *stops], stops, strict=False)):
            raise self._wrong(f"{name}_ends", "must never fall")
        try:
            return [
                whole[start:stop].decode("utf-8", "surrogatepass")
                for start, stop in zip([0, *stops], stops, strict=False)
            ]
        except UnicodeDecodeError as error:
            raise self._wrong(name, f"must hold UTF-8 ({error.reason})") from error

    def release(self) -> None:
        """Give the pages of the file back that were read so far; what is read again comes again.

        Only while nothing was written into an array: what was would be lost.
        """
        for array in self._arrays.values():
            base = array.base
            while isinstance(base, np.ndarray):
                base = base.base
            if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                base.madvise(mmap.MADV_DONTNEED)
                return  # all are of one file

    def _of(self, name: str, shape: tuple[Size, ...], *kinds: str) -> npt.NDArray[Any]:
        """The array of this name, if it is of one of these kinds and of this shape."""
        array = self._arrays.get(name)
        if array is None:
            raise ModelFormatError(f"{self._where}: damaged, the array {name!r} is missing. {HELP}")
        if array.dtype.name not in kinds:
            raise self._wrong(name, f"must be of {' or '.join(kinds)}, is of {array.dtype.name}")
        if not _fits(array.shape, shape):
            raise self._wrong(name, f"must be {_words(shape)}, is {_words(array.shape)}")
        return array

    def _check_numbers(
        self,
        name: str,
        array: npt.NDArray[Any],
        least: float | None = None,
        most: float | None = None,
        never: bool = False,
    ) -> None:
        if not array.size or self._checked_before:
            return
        if array.dtype == np.float16:  # whose comparisons are slow: these are all bits but the sign
            if int((array.view(np.uint16) & 0x7FFF).max()) >= 0x7C00:
                raise self._wrong(name, "must hold finite numbers, and holds others")
            return
        low, high = float(array.min()), float(array.max())  # NaN, if there is one
        if not (math.isfinite(high) or (never and high == -math.inf)):
            raise self._wrong(name, f"must hold finite numbers, and holds {high}")
        if not (math.isfinite(low) or never):
            raise self._wrong(name, f"must hold finite numbers, and holds {low}")
        self._check_limits(name, low, high, least, most)

    def _check_range(
        self, name: str, array: npt.NDArray[Any], least: int, below: int | None
    ) -> None:
        if array.size and not self._checked_before:
            most = None if below is None else below - 1
            self._check_limits(name, int(array.min()), int(array.max()), least, most)

    def _check_limits(
        self, name: str, low: float, high: float, least: float | None, most: float | None
    ) -> None:
        if least is not None and low < least:
            raise self._wrong(name, f"must hold numbers from {least} on, and holds {low}")
        if most is not None and high > most:
            raise self._wrong(name, f"must hold numbers up to {most}, and holds {high}")

    def _wrong(self, name: str, what: str) -> ModelFormatError:
        return ModelFormatError(f"{self._where}: damaged, the array {name!r} {what}. {HELP}")


def _fits(found: tuple[int, ...], wanted: tuple[Size, ...]) -> bool:
    return len(found) == len(wanted) and all(
        size is None or size == length for length, size in zip(found, wanted, strict=True)
    )


def _words(shape: tuple[Size, ...]) -> str:
    sizes = " × ".join("any" if size is None else str(size) for size in shape)
    return f"{sizes} long" if len(shape) == 1 else sizes or "a single number"


def whole(config: Mapping[str, Any], name: str, least: int = 0, most: int | None = None) -> int:
    """A whole number of a config, from `least` to `most`."""
    value = config[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name!r} must be a whole number, is {value!r:.40}")
    if value < least or (most is not None and value > most):
        limit = f"{least} or more" if most is None else f"{least} to {most}"
        raise ValueError(f"{name!r} must be {limit}, is {value}")
    return value


def flag(config: Mapping[str, Any], name: str) -> bool:
    """A truth value of a config."""
    value = config[name]
    if not isinstance(value, bool):
        raise ValueError(f"{name!r} must be true or false, is {value!r:.40}")
    return value


def mapping(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object of a config."""
    value = config[name]
    if not isinstance(value, dict):
        raise ValueError(f"{name!r} must be an object, is {value!r:.40}")
    return value


def real(config: Mapping[str, Any], name: str) -> float:
    """A finite number of a config."""
    value = config[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name!r} must be a number, is {value!r:.40}")
    return float(value)


def reals(values: Any, name: str) -> list[float]:
    """A list of numbers of a config, such as a history of losses."""
    numbers = isinstance(values, list) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
    if not numbers:
        raise ValueError(f"{name!r} must be a list of numbers, is {values!r:.40}")
    return [float(value) for value in values]


def listed_texts(values: Any, name: str, count: Size = None) -> list[str]:
    """A list of texts of a config."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name!r} must be a list of texts, is {values!r:.40}")
    if count is not None and len(values) != count:
        raise ValueError(f"{name!r} must have {count} entries, has {len(values)}")
    return values


@contextmanager
def reading(folder: str | Path) -> Iterator[None]:
    """Inside, whatever a damaged folder brings about becomes a `ModelFormatError` that names it."""
    try:
        yield
    except ModelFormatError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        said = error.args[0] if len(error.args) == 1 else error
        what = f"{said!r} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise ModelFormatError(
            f"{folder}: damaged, something is missing or wrong in it ({what}). {HELP}"
        ) from error
