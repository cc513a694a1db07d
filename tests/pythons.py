"""The suite and the demo with every Python that can be had, each in an environment of its own.

    make pythons                       # all that are found, of 3.11 to 3.14
    python tests/pythons.py 3.13       # one of them
    python tests/pythons.py --bare     # without the optional packages: a few tests, minutes

Interpreters are looked for in PATH and where pyenv and uv keep theirs. Environments stay in
build/pythons, so that a second run is quick. What each Python did is printed at the end; one that
fails makes the exit status 1, and one that cannot be had is named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = ("3.11", "3.12", "3.13", "3.14")
PLACES = ("~/.pyenv/versions/{0}.*/bin/python", "~/.local/share/uv/python/cpython-{0}.*/bin/python")
BARE = ["-e", ".", "pytest", "hypothesis"]  # the last two for tests/conftest.py
BARE_TESTS = ("tests/test_extras.py", "tests/test_topk.py", "tests/metrics")


def find_python(version: str) -> Path | None:
    """An interpreter of this version, such as "3.13"."""
    home = Path.home()
    candidates = [shutil.which(f"python{version}")]
    for place in PLACES:
        pattern = place.format(version).removeprefix("~/")
        candidates += [str(path) for path in sorted(home.glob(pattern), reverse=True)]
    return next((Path(each) for each in candidates if each and _is(each, version)), None)


def _is(program: str, version: str) -> bool:
    code = "import sys, venv, ssl, sqlite3; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == version


def environment(python: Path, name: str, wanted: list[str]) -> Path:
    """The interpreter of a virtual environment with these packages, made where it is not there."""
    folder = ROOT / "build" / "pythons" / name
    own, ready = folder / "bin" / "python", folder / ".ready"
    newer = max((ROOT / each).stat().st_mtime for each in ("pyproject.toml", "constraints.txt"))
    told = "\n".join(wanted)
    if not ready.exists() or ready.stat().st_mtime < newer or ready.read_text("utf-8") != told:
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pip = [own, "-m", "pip", "install", "--quiet", "-c", "constraints.txt"]
        subprocess.run([*pip, *wanted], check=True, cwd=ROOT)
        ready.write_text(told, "utf-8")
    return own


def try_python(version: str, bare: bool, workers: int) -> str:
    """What the tests said with a Python: "passed", "failed" or why they did not run."""
    python = find_python(version)
    if python is None:
        return "not found"
    name, wanted = (f"{version}-bare", BARE) if bare else (version, ["-e", ".[dev]"])
    try:
        own = environment(python, name, wanted)
    except subprocess.CalledProcessError as error:
        return f"not installed (exit status {error.returncode} of {error.cmd[2]})"
    tests = [*BARE_TESTS, "-p", "no:cacheprovider"] if bare else ["-n", str(workers)]
    commands = [[own, "-m", "pytest", "-q", *tests]]
    if not bare:
        commands.append([own, "examples/demo.py", "--generated", "2000"])
    for command in commands:
        if subprocess.run(command, cwd=ROOT, env=os.environ).returncode:
            return f"failed: {' '.join(map(str, command[1:]))}"
    return "passed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("versions", nargs="*", default=KNOWN, metavar="VERSION")
    parser.add_argument("--bare", action="store_true", help="without the optional packages")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    said = {}
    for version in asked.versions:
        start = time.monotonic()
        outcome = try_python(version, asked.bare, asked.workers)
        said[version] = f"{outcome} ({time.monotonic() - start:.0f} s)"
        print(f"Python {version}: {said[version]}", flush=True)
    print("\n".join(f"{version:>6}  {what}" for version, what in said.items()))
    sys.exit(any(what.startswith(("failed", "not installed")) for what in said.values()))


if __name__ == "__main__":
    main()
