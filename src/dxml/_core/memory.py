"""A promise of memory: arrays that do not fit into it lie in files.

Inside `limit_memory` large arrays of numpy are counted. One that would exceed what is left gets a
temporary file without a name, which is mapped into memory: the system writes its pages to the disk
and takes them away where it needs the room. Nothing else changes, so results have the same bits.

numpy takes memory through functions that may be replaced (PyDataMem_SetHandler of its C interface,
NEP 49). An array remembers the functions that it came from, so that it can be freed at any time.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from dxml.exceptions import ParameterError

__all__ = ["Memory", "limit_memory", "open_limit", "parse_size", "promised_memory"]

LARGE = 1 << 20  # bytes from which on an array is counted, and may go to a file
RESERVE = 300_000_000  # bytes for libraries yet to be imported, compiled code and small arrays
LOOK = 16 << 20  # bytes of arrays between two looks at what everything else has
LEAST = 50_000_000  # bytes for arrays, without which nothing can be promised
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_size(text: str) -> int:
    """Bytes.

    >>> parse_size("2GB"), parse_size("1.5 G"), parse_size("300mb"), parse_size("4096")
    (2000000000, 1500000000, 300000000, 4096)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)B?\s*", text.upper())
    if found is None or not float(found[1]):
        raise ParameterError(f"memory is given as a size such as 2GB or 500MB, got {text!r}.")
    return int(float(found[1]) * _UNITS[found[2]])


@dataclass(eq=False)
class Memory:
    """What arrays may take, and what they take.

    Attributes
    ----------
    most : int
        Bytes that large arrays may have in memory together.
    folder : Path
        Where the files of the others are.
    held, in_files : int
        Bytes of large arrays in memory and in files now.
    most_in_files : int
        The largest that `in_files` was.
    promised : int
        Bytes of the whole process.
    unforeseen : int
        Bytes that all else has or soon will, beyond what was set aside for it: arrays that compiled
        code made are not counted as they are taken.
    refused : str
        The last file that could not be made, and why.
    """

    most: int
    folder: Path
    held: int = 0
    in_files: int = 0
    most_in_files: int = 0
    promised: int = 0
    unforeseen: int = 0
    refused: str = ""
    _since: int = 0
    _sizes: dict[int, tuple[int, bool]] = field(default_factory=dict, repr=False)

    def take(self, size: int, zero: bool) -> int:
        """The address of new memory; 0 where there is none."""
        if size < LARGE:
            return int((_libc.calloc(1, size) if zero else _libc.malloc(size)) or 0)
        self._look(size)
        in_file = self.held + size > self.most - self.unforeseen
        place = self._in_file(size) if in_file else _mapped(size, -1)
        if not place:
            return 0
        self._sizes[place] = size, in_file
        if in_file:
            self.in_files += size
            self.most_in_files = max(self.most_in_files, self.in_files)
        else:
            self.held += size
        return place

    def _look(self, size: int) -> None:
        """See from time to time what the process has beside counted arrays."""
        self._since += size
        if self._since >= LOOK:
            self._since = 0
            spare = self.promised - self.most - (_used() - self.held)
            self.unforeseen = max(0, RESERVE // 3 - spare)

    def _in_file(self, size: int) -> int:
        """A file that has no name and goes with its last use."""
        opened = os.open(self.folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(opened, 0, size)  # a full disk is told now, not by a crash later
            return _mapped(size, opened)
        except OSError as error:
            self.refused = f"{size / 1e6:,.0f} MB in {self.folder}: {error.strerror}"
            return 0
        finally:
            os.close(opened)

    def give_back(self, place: int) -> None:
        """What `take` gave."""
        if place not in self._sizes:
            _libc.free(place)
            return
        size, in_file = self._sizes.pop(place)
        if in_file:
            self.in_files -= size
        else:
            self.held -= size
        _libc.munmap(place, size)

    def reserve(self, size: int, what: str) -> None:
        """Set memory aside for what is not an array of numpy; refuse where that is too much."""
        if size > self.most - LEAST:
            more = self.promised + size + LEAST - self.most
            raise ParameterError(
                f"{self.promised / 1e6:,.0f} MB of memory are too few for {what}, which takes "
                f"{size / 1e6:,.0f} MB that cannot lie in files. Give {more / 1e6:,.0f} MB or more."
            )
        self.most -= size

    def size_of(self, place: int) -> int:
        """At least as many bytes as were asked for."""
        known = self._sizes.get(place)
        return int(_libc.malloc_usable_size(place)) if known is None else known[0]


_memory: ContextVar[Memory | None] = ContextVar("_memory", default=None)


def promised_memory() -> Memory | None:
    """The limit that holds here, if there is one."""
    return _memory.get()


def open_limit(size: str | None) -> AbstractContextManager[object]:
    """`limit_memory`, or nothing where there is no size."""
    return nullcontext() if size is None else limit_memory(size)


@contextmanager
def limit_memory(size: str | int, folder: str | Path | None = None) -> Iterator[Memory]:
    """Inside, this process keeps to so much memory; arrays beyond it lie in files.

    Parameters
    ----------
    size : str or int
        Such as "2GB": all that the process has in memory of its own. What is read from mapped
        files is the system's cache and does not count.
    folder : str or Path, optional
        On a disk with room for the arrays; by default that of temporary files (TMPDIR).
    """
    promised = parse_size(size) if isinstance(size, str) else size
    place = Path(tempfile.gettempdir() if folder is None else folder)
    if _in_memory(place):
        raise ParameterError(
            f"{place} lies in memory itself (tmpfs), and is no place for what memory does not "
            "hold. Set TMPDIR to a folder on a disk."
        )
    used = _used()
    if promised < used + RESERVE + LEAST:
        raise ParameterError(
            f"{promised / 1e6:,.0f} MB of memory are too few: Python and its libraries have "
            f"{used / 1e6:,.0f} MB already. Give {(used + RESERVE + LEAST) / 1e6:,.0f} MB or more."
        )
    memory = Memory(promised - used - RESERVE, place, promised=promised)
    before, mark = _set_handler(_handler_of(memory)), _memory.set(memory)
    try:
        yield memory
    except MemoryError as error:
        if not memory.refused:
            raise
        raise ParameterError(
            f"an array that memory does not hold could not be put into a file ({memory.refused}). "
            "Make room there, or set TMPDIR to a folder on a larger disk."
        ) from error
    finally:
        _memory.reset(mark)
        _set_handler(before)


def _used() -> int:
    """Bytes of memory that this process has of its own."""
    status = Path("/proc/self/status").read_text("utf-8")
    found = re.search(r"^RssAnon:\s+([0-9]+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _in_memory(folder: Path) -> bool:
    """Whether the folder is on a file system that has no disk."""
    kinds, place = {}, folder.resolve()
    for line in Path("/proc/mounts").read_text("utf-8").splitlines():
        _, where, kind, *_ = line.split()
        kinds[where.replace("\\040", " ")] = kind
    nearest = next((path for path in (place, *place.parents) if str(path) in kinds), None)
    return kinds.get(str(nearest)) in ("tmpfs", "ramfs")


# What follows is numpy's C interface.

_Malloc = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
_Calloc = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_Realloc = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_SET_HANDLER = 304  # number of the function in numpy's table
_CAPSULE = b"mem_handler"
_FAILED = ctypes.c_void_p(-1).value


class _Handler(ctypes.Structure):
    """PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", _Malloc),
        ("calloc", _Calloc),
        ("realloc", _Realloc),
        ("free", _Free),
    )


def _c_library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    for name, result, arguments in (
        ("malloc", pointer, [size]),
        ("calloc", pointer, [size, size]),
        ("free", None, [pointer]),
        ("malloc_usable_size", size, [pointer]),
        ("munmap", ctypes.c_int, [pointer, size]),
        ("mmap", pointer, [pointer, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_libc = _c_library()


def _mapped(size: int, file: int) -> int:
    """Memory of the system's, or that of a file; 0 where there is none."""
    both = mmap.PROT_READ | mmap.PROT_WRITE
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS if file < 0 else mmap.MAP_SHARED
    place = _libc.mmap(None, size, both, kind, file, 0)
    return 0 if place == _FAILED else int(place)


_kept: list[Any] = []  # handlers: arrays that come from one may outlive everything else


def _handler_of(memory: Memory) -> Any:
    """A capsule with the functions of a limit, as numpy wants it."""

    def never_raising(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(_: Any, *arguments: int) -> Any:
            try:
                return function(*arguments)
            except Exception:  # numpy says MemoryError where it gets nothing
                return 0

        return call

    def resize(place: int, size: int) -> int:
        if not place:
            return memory.take(size, False)
        new = memory.take(size, False)
        if new:
            ctypes.memmove(new, place, min(size, memory.size_of(place)))
            memory.give_back(place)
        return new

    handler = _Handler(
        b"dxml",
        1,
        None,
        _Malloc(never_raising(lambda size: memory.take(size, False))),
        _Calloc(never_raising(lambda count, size: memory.take(count * size, True))),
        _Realloc(never_raising(resize)),
        _Free(never_raising(lambda place, _: memory.give_back(place))),
    )
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    _kept.append(handler)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))  # also when this module is gone
    return make(ctypes.addressof(handler), _CAPSULE, None)


def _set_handler(capsule: Any) -> Any:
    """Have numpy take memory by other functions; those that it had."""
    try:
        core = import_module("numpy._core._multiarray_umath")
    except ModuleNotFoundError:  # before numpy 2
        core = import_module("numpy.core._multiarray_umath")
    found = ctypes.pythonapi.PyCapsule_GetPointer
    found.restype, found.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(found(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
    return kind(table[_SET_HANDLER])(capsule)
