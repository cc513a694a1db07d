"""Which command measures which stored result: the table benchmarks/measurements.toml of a checkout.

An entry has a name, ``what`` it measures, the ``pages`` that show it, the files of
benchmarks/results that it ``stores``, its ``commands``, carried out one after the other in the
checkout's folder, and about how many ``minutes`` they take. What it needs: ``data`` sets, Python
``packages``, ``programs``, ``files`` (patterns, from the checkout's folder), a ``gpu``, ``disk_gb``
and ``memory_gb``; ``get`` says in words how that is had. The entry of an experiment of the package
has its name and no commands of its own: ``dxml bench run NAME`` is the command.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from glob import glob
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dxml.bench._spec import shipped
from dxml.exceptions import ParameterError, did_you_mean

__all__ = [
    "Measurement",
    "Outcome",
    "carry_out",
    "check_own_name",
    "is_stored",
    "lacking",
    "read_measurements",
    "summed_up",
]

_END = 15  # lines of a failed command's output that are shown once more


@dataclass(frozen=True)
class Measurement:
    """An entry of the table."""

    name: str
    root: Path
    what: str
    pages: tuple[str, ...]
    stores: tuple[str, ...]
    commands: tuple[str, ...] = ()
    minutes: float = 0
    data: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    gpu: bool = False
    disk_gb: float = 0
    memory_gb: float = 0
    get: str = ""

    @property
    def needs(self) -> str:
        """In a few words."""
        said = [*self.data, *self.packages, *self.programs, *self.files]
        said += ["a GPU"] if self.gpu else []
        said += [f"{self.disk_gb:g} GB of disk"] if self.disk_gb else []
        said += [f"{self.memory_gb:g} GB of memory"] if self.memory_gb else []
        return ", ".join(said)


@dataclass(frozen=True)
class Outcome:
    """What became of an entry: ``done``, ``stored`` before, ``skipped`` or ``failed``, and why."""

    name: str
    status: str
    why: str = ""


def read_measurements(path: Path) -> dict[str, Measurement]:
    """The entries by name; none where there is no such file. Every mistake in it is named."""
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path.name}: no valid TOML: {error}") from error
    root = path.absolute().parents[1]
    return {name: _entry(name, given, root, path.name) for name, given in table.items()}


def _entry(name: str, given: Any, root: Path, file: str) -> Measurement:
    known = {field.name: field for field in fields(Measurement) if field.name not in _TOLD}
    if not isinstance(given, dict):
        raise ParameterError(f"{file}: {name} must be a table, as in [{name}]")
    for key, value in given.items():
        if key not in known:
            raise ParameterError(f"{file}: {name} has no {key!r}{did_you_mean(key, known)}")
        kind = str(known[key].type)
        if not _is_a(kind, value):
            raise ParameterError(f"{file}: {key} of {name} must be {_KINDS[kind]}, got {value!r}")
    if lacks := [key for key in ("what", "pages", "stores") if key not in given]:
        raise ParameterError(f"{file}: {name} lacks {', '.join(lacks)}")
    values: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in given.items()
    }
    return Measurement(name=name, root=root, **values)


_TOLD = ("name", "root")
_KINDS = {
    "str": "a text",
    "bool": "true or false",
    "float": "a number",
    "tuple[str, ...]": "a list of texts",
}


def _is_a(kind: str, value: Any) -> bool:
    if kind == "float":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "tuple[str, ...]":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, bool if kind == "bool" else str)


def check_own_name(name: str, table: Mapping[str, Measurement]) -> None:
    """Refuse a name for results of one's own that would replace others, or is no file's name."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ParameterError(
            f"--name must be letters, digits, '_', and, not first, '-' and '.', got {name!r}."
        )
    taken = {*table, *shipped(), *(Path(file).stem for e in table.values() for file in e.stores)}
    if name in taken:
        raise ParameterError(f"--name {name} would replace what {name} measured: say another.")


def lacking(entry: Measurement) -> str:
    """What this machine lacks of what an entry needs, and how it is had; nothing if it can run."""
    lacks = list(_lacks(entry))
    return "; ".join(lacks) + (f" ({entry.get})" if entry.get and lacks else "")


def _lacks(entry: Measurement) -> Iterator[str]:
    from dxml._core.device import resolve_device
    from dxml.data import is_present

    if entry.gpu and resolve_device("auto") != "cuda":
        yield "no GPU"
    if absent := [name for name in entry.data if not is_present(name)]:
        yield f"no data {', '.join(absent)} (dxml data get)"
    if absent := [name for name in entry.packages if not _is_installed(name)]:
        yield f"no package {', '.join(absent)}"
    if absent := [name for name in entry.programs if shutil.which(name) is None]:
        yield f"no program {', '.join(absent)}"
    if absent := [name for name in entry.files if not glob(name, root_dir=entry.root)]:
        yield f"no file {', '.join(absent)}"
    if shutil.disk_usage(entry.root).free < entry.disk_gb * 1e9:
        yield f"less than {entry.disk_gb:g} GB of disk are free"
    if os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") < entry.memory_gb * 1e9:
        yield f"less than {entry.memory_gb:g} GB of memory"


def _is_installed(package: str) -> bool:
    """By the name of its module, or by that by which it is installed."""
    if find_spec(package) is not None:
        return True
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def carry_out(
    entry: Measurement,
    *,
    say: Callable[[str], None],
    limit: float | None = None,
    again: bool = False,
) -> Outcome:
    """Run the commands of an entry in turn.

    A command that is stored already, with the commit of the source as it is, is left out but for
    `again`. Nothing of what a failed entry has left is run.
    """
    from dxml.bench._machine import commit

    if why := lacking(entry):
        return Outcome(entry.name, "skipped", why)
    at = commit()
    left = [one for one in entry.commands if again or not is_stored(entry, one, at)]
    for one in left:
        say(f"{entry.name}: {one}")
        code, end = _run(one, entry.root, say, limit)
        if code:
            how = f"took longer than {limit:g} s" if code == _TOO_LONG else f"ended with {code}"
            return Outcome(entry.name, "failed", "\n".join([f"{one}: {how}", *end]))
    return Outcome(entry.name, "done" if left else "stored", "" if left else f"commit {at}")


def is_stored(entry: Measurement, command: str, at: str) -> bool:
    """Whether a record of the entry's files is of that command and commit."""
    if at.endswith("+"):
        return False
    return any(
        (record.get("command"), record.get("commit")) == (command, at)
        for name in entry.stores
        for record in _records(entry.root / "benchmarks" / "results" / name)
    )


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """All objects in a file of JSON, or of lines of it."""
    if path.suffix not in (".json", ".jsonl") or not path.is_file():
        return
    text = path.read_text("utf-8")
    waiting = [json.loads(x) for x in (text.splitlines() if path.suffix == ".jsonl" else [text])]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


_TOO_LONG = -1000


def _run(
    command: str, root: Path, say: Callable[[str], None], limit: float | None
) -> tuple[int, list[str]]:
    """The exit code of a command and the end of what it said, which is passed on as it comes."""
    words, settings = _words(command, root)
    end: deque[str] = deque(maxlen=_END)
    late = threading.Event()
    with subprocess.Popen(
        words,
        cwd=root,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:

        def stop() -> None:
            late.set()
            os.killpg(process.pid, signal.SIGKILL)

        clock = threading.Timer(limit or threading.TIMEOUT_MAX, stop)
        clock.daemon = True
        clock.start()
        try:
            for line in process.stdout or ():
                end.append(line.rstrip())
                say(end[-1])
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            clock.cancel()
    return (_TOO_LONG if late.is_set() else code), list(end)


def _words(command: str, root: Path) -> tuple[list[str], dict[str, str]]:
    """What to start, and variables that are set before it, as a shell reads them.

    ``python`` and ``dxml`` are those that run here; patterns of files are filled in.
    """
    words, settings = shlex.split(command), {}
    while words and "=" in words[0].partition("/")[0]:
        name, _, settings[name] = words.pop(0).partition("=")
    start = {"python": [sys.executable], "dxml": [sys.executable, "-m", "dxml"]}
    first = start.get(words[0], words[:1]) if words else []
    rest = [
        one
        for word in words[1:]
        for one in (sorted(glob(word, root_dir=root)) if "*" in word else [word])
    ]
    return [*first, *rest], settings


def summed_up(outcomes: Iterable[Outcome]) -> str:
    """A line for each, those that failed last, with the end of what they said."""
    order = ("done", "stored", "skipped", "failed")
    lines = []
    for outcome in sorted(outcomes, key=lambda one: order.index(one.status)):
        first, *more = outcome.why.splitlines() or [""]
        lines.append(f"{outcome.status:8} {outcome.name}{': ' if first else ''}{first}")
        lines += [f"         {line}" for line in more]
    return "\n".join(lines)
