"""Results of long steps of a training, stored as each is done: a run that broke off takes them up.

A step is a function of its inputs alone. What it gives is stored under a checksum of those, so that
a result is taken for no other data and no other settings.

- `remembered` has the result of a step as a whole.
- `Pieces` has the results of a row of pieces of work, such as the trees of a forest.
- `Newest` has the state of an iteration, the newest one in place of the one before.

Work of less than `LEAST` seconds is done again, and so is work that its storing would lengthen by
more than a fiftieth.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.sparse import plain_csr
from dxml._core.storage import read_folder, write_folder
from dxml.exceptions import ModelFormatError

__all__ = [
    "Newest",
    "Pieces",
    "checksum",
    "has_stages",
    "open_stages",
    "remembered",
    "remove_stages",
    "unpacked_csr",
]

LEAST = 5.0  # seconds of work that are worth storing
CHEAP = 0.1  # seconds that storing them may take; what takes longer is worth more work only
SPEED = 500e6  # bytes stored in a second
FOLDER = "stages"
Named = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class _Stages:
    """Where results are stored."""

    folder: Path


_open: ContextVar[_Stages | None] = ContextVar("stages", default=None)


@contextmanager
def open_stages(folder: Path | None, resume: bool = False) -> Iterator[None]:
    """Inside, results of long steps are stored in a folder; None: nowhere.

    Parameters
    ----------
    resume : bool
        Take up what is stored there; else it is removed.
    """
    if folder is None:
        yield
        return
    if not resume:
        remove_stages(folder)
    before = _open.set(_Stages(folder / FOLDER))
    try:
        yield
    finally:
        _open.reset(before)


def has_stages(folder: Path) -> bool:
    """Whether a result is stored in a folder."""
    return any((folder / FOLDER).glob("*"))


def remove_stages(folder: Path) -> None:
    """Remove all results of a folder, and the folder where that empties it."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def checksum(inputs: Mapping[str, Any]) -> str:
    """One text for large inputs that several steps share; empty where nothing is stored.

    It is computed once, and stands for them among the inputs of each step.
    """
    return "" if _open.get() is None else _checksum(inputs)


def remembered(
    name: str,
    inputs: Mapping[str, Any],
    compute: Callable[[], Named],
    rng: np.random.Generator | None = None,
) -> Named:
    """The arrays that `compute` gives, stored or computed.

    Parameters
    ----------
    name : str
        Of the step, which may be done several times.
    inputs : mapping
        All that the result depends on: numbers, texts, arrays, sparse matrices, None.
    rng : numpy Generator, optional
        What `compute` draws from. It is among the inputs, and where a stored result is taken it
        goes on as if that had been computed.
    """
    path = _place(name, inputs, rng)
    if path is None:
        return compute()
    if (found := _read(path)) is not None:
        return _drawn(found, rng)
    start = time.monotonic()
    made = _with_state(compute(), rng)
    if _is_worth(time.monotonic() - start, _size(made)):
        _write(path, name, made)
    return made


def unpacked_csr(name: str, arrays: Named) -> sp.csr_matrix:
    """The inverse of `pack_csr` for what a step gave, whose arrays are used as they are."""
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    return plain_csr(data, indices, indptr, tuple(arrays[f"{name}.shape"].tolist()))


class Pieces:
    """Results of pieces of work that are done one after another, stored several at a time.

    A run that broke off takes those up that were stored, in their order, and does the others.
    Leaving the context without an error stores what is left.

    Parameters
    ----------
    name, inputs, rng : as of `remembered`
        All that the pieces depend on, beside their number in the row.

    Examples
    --------
    >>> with Pieces("squares", {"power": 2}) as pieces:
    ...     [int(pieces.next(lambda: {"n": np.array([n**2])})["n"][0]) for n in range(4)]
    [0, 1, 4, 9]
    """

    def __init__(
        self, name: str, inputs: Mapping[str, Any], rng: np.random.Generator | None = None
    ) -> None:
        self._name, self._rng = name, rng
        self._folder = _place(name, inputs, rng)
        self._stored: deque[Named] = deque()  # read, and not taken yet
        self._made: list[Named] = []  # and not stored yet
        self._count = 0  # pieces that were read or stored
        self._all_read = self._folder is None
        self._since, self._spent = time.monotonic(), 0.0

    def take(self) -> Named | None:
        """The next piece, if it is stored; None from the first one on that is not."""
        if not self._stored and not self._all_read:
            self._read_run()
        return _drawn(self._stored.popleft(), self._rng) if self._stored else None

    def add(self, piece: Named) -> None:
        """The next piece, computed after `take` has given none."""
        if self._folder is not None:
            self._made.append(_with_state(piece, self._rng))
            self._store()

    def next(self, compute: Callable[[], Named]) -> Named:
        """The next piece, stored or computed."""
        if (found := self.take()) is None:
            found = compute()
            self.add(found)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._spent = 0.0  # this is the last time
            self._store()

    def _run(self) -> Path:
        """Where pieces are that begin with the next one."""
        assert self._folder is not None
        return self._folder / f"{self._count:09d}"

    def _read_run(self) -> None:
        found = _read(self._run())
        self._all_read = found is None
        runs: dict[int, dict[str, npt.NDArray[Any]]] = {}
        for key, array in (found or {}).items():
            number, _, name = key.partition(".")
            runs.setdefault(int(number), {})[name] = array
        self._stored.extend(runs[number] for number in sorted(runs))
        self._count += len(runs)
        self._since = time.monotonic()

    def _store(self) -> None:
        """Store what was made since, if that is worth it."""
        size = sum(map(_size, self._made))
        if not self._made or not _is_worth(time.monotonic() - self._since, size, self._spent):
            return
        named = {f"{n}.{key}": a for n, piece in enumerate(self._made) for key, a in piece.items()}
        self._spent = _write(self._run(), self._name, named)
        self._count += len(self._made)
        self._made = []
        self._since = time.monotonic()


class Newest:
    """The newest state of an iteration, stored every so often in place of the one before.

    Parameters
    ----------
    name, inputs, rng : as of `remembered`

    Attributes
    ----------
    found : dict of str to array, or None
        The state in which a run that broke off goes on. `rng` then is what it was at that state.
    """

    def __init__(
        self, name: str, inputs: Mapping[str, Any], rng: np.random.Generator | None = None
    ) -> None:
        self._name, self._rng = name, rng
        self._path = _place(name, inputs, rng)
        found = None if self._path is None else _read(self._path)
        self.found = None if found is None else _drawn(found, rng)
        self._since, self._spent = time.monotonic(), 0.0

    def keep(self, state: Named) -> None:
        """This is the state now; it is stored if enough was done since the last time."""
        if self._path is None:
            return
        state = _with_state(state, self._rng)
        if _is_worth(time.monotonic() - self._since, _size(state), self._spent):
            self._spent = _write(self._path, self._name, state)
            self._since = time.monotonic()


def _is_worth(seconds: float, size: int, spent: float = 0.0) -> bool:
    """Whether work of some seconds is stored, in `size` bytes; `spent`: what the last time took."""
    return seconds >= LEAST * max(1.0, size / SPEED / CHEAP, spent / CHEAP)


def _size(arrays: Named) -> int:
    return sum(array.nbytes for array in arrays.values())


def _place(
    name: str, inputs: Mapping[str, Any], rng: np.random.Generator | None = None
) -> Path | None:
    """Where a step's result is, or belongs; None where nothing is stored."""
    if (stages := _open.get()) is None:
        return None
    state = {} if rng is None else {"rng": rng.bit_generator.state}
    return stages.folder / f"{name}-{_checksum({**inputs, **state})}"


RNG = "generator"  # the name of a generator's state beside a result


def _with_state(arrays: Named, rng: np.random.Generator | None) -> Named:
    if rng is None:
        return arrays
    text = json.dumps(rng.bit_generator.state).encode()
    return {**arrays, RNG: np.frombuffer(text, np.uint8)}


def _drawn(arrays: Named, rng: np.random.Generator | None) -> Named:
    """Stored arrays, after the generator was set to what it was with them."""
    if rng is not None:
        rng.bit_generator.state = json.loads(arrays[RNG].tobytes())
    return arrays


def _write(path: Path, name: str, arrays: Named) -> float:
    """Store arrays, each in the order that it has in memory; the seconds that it took."""
    start = time.monotonic()
    columns = [key for key, array in arrays.items() if _by_columns(array)]
    turned = {key: array.T if _by_columns(array) else array for key, array in arrays.items()}
    write_folder(path, {"stage": name, "columns": columns}, turned)
    return time.monotonic() - start


def _by_columns(array: npt.NDArray[Any]) -> bool:
    """Whether an array lies in memory column by column; products of such have other last bits."""
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


def _read(path: Path) -> Named | None:
    """What is stored, in memory; None where there is nothing, or nothing whole."""
    try:
        config, arrays = read_folder(path)
    except ModelFormatError:
        return None
    columns = config.get("columns", [])
    found = arrays.unchecked().items()
    return {name: array.T if name in columns else array for name, array in found}


def _checksum(inputs: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, value in inputs.items():
        digest.update(f"{name}:".encode())
        _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, sp.csr_matrix):
        digest.update(f"rows {value.shape}".encode())
        for array in (value.indptr, value.indices, value.data):
            _add(digest, array)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    else:
        digest.update(f"{type(value).__name__} {value!r};".encode())
