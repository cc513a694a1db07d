"""What a number was measured with: machine, versions, commit, memory."""

from __future__ import annotations

import os
import platform
import re
import resource
import shlex
import subprocess
import sys
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import dxml

__all__ = [
    "circumstances",
    "command",
    "commit",
    "cores",
    "describe_machine",
    "describe_versions",
    "machine_name",
    "peak_bytes",
    "plain",
]

_PROGRAMS = (":(top)*.py", ":(top)*.toml", ":(top)constraints.txt")
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "torch")


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_model() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text("utf-8"))
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _gpu_name() -> str | None:
    """Of the GPU that torch would use."""
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def describe_machine() -> dict[str, Any]:
    """CPU, cores, memory and GPU."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "memory_gib": round(memory / 2**30),
        "gpu": _gpu_name(),
    }


def machine_name(machine: dict[str, Any] | str) -> str:
    """One line for a page; a line is itself.

    >>> machine_name({"cpu": "Some CPU", "cores": 2, "memory_gib": 8, "gpu": None})
    'Some CPU, 2 cores, 8 GiB'
    """
    if isinstance(machine, str):
        return machine
    name = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB"
    return f"{name}, {machine['gpu']}" if machine.get("gpu") else name


def describe_versions() -> dict[str, str]:
    """Python, dxml and the packages that do the computing."""
    versions = {"python": platform.python_version(), "dxml": dxml.__version__}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "absent"
    return versions


def commit() -> str:
    """The commit of the source, with ``+`` where programs or settings of the checkout have changed.

    Pages and stored results may change: measuring writes them. Where a copy of the source has no
    git, the variable DXML_COMMIT says which it is; else it is the version.
    """
    if told := os.environ.get("DXML_COMMIT"):
        return told
    source = Path(dxml.__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(source), *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        if not git("ls-files", "__init__.py"):
            return dxml.__version__
        changed = git("status", "--porcelain", "--untracked-files=no", ".", *_PROGRAMS)
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return dxml.__version__


def plain(text: str) -> str:
    """Paths shortened to their last part: a stored text says nothing about somebody's folders.

    >>> plain("no file /home/somebody/data/x.txt here")
    'no file x.txt here'
    """
    return re.sub(r"(?<![\w:/])(?:/[\w.+@~-]+)+/([\w.+@~-]+)", r"\1", text)


def command() -> str:
    """How this process was started: a script by its path as given, a module by its name."""
    module = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = None if module is None else module.name.removesuffix(".__main__")
    program = [sys.argv[0]] if name is None else ["-m", name]
    return plain(shlex.join(["python", *program, *sys.argv[1:]]))


def circumstances(
    *, device: str, seed: object, threads: int | None = None, started: str | None = None
) -> dict[str, Any]:
    """What a stored result says of where it comes from.

    Parameters
    ----------
    device : what computed: ``cpu`` or ``cuda``
    seed : of what is random, or a list of seeds; None where nothing is
    threads : of the measured work; by default those that compiled code may use here
    started : the command; by default that of this process
    """
    from dxml._core.threads import n_threads

    return {
        "command": command() if started is None else started,
        "commit": commit(),
        "date": date.today().isoformat(),
        "machine": machine_name(describe_machine()),
        "threads": n_threads() if threads is None else threads,
        "device": device,
        "seed": seed,
        "versions": describe_versions(),
    }


def peak_bytes() -> int:
    """Most memory this process has held at once.

    Linux counts what the parent held before ``exec`` into getrusage's ru_maxrss; VmHWM is our own.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("utf-8"))
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
