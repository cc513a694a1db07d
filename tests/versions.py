"""The quick suite with the oldest versions that pyproject.toml allows, or with the newest.

    make oldest                                     # python tests/versions.py oldest
    make newest
    python tests/versions.py oldest tests/service   # some tests
    python tests/versions.py oldest --output benchmarks/results/versions.json   # and store it

Oldest are the lower bounds of what dxml and its extras need; of what only the tests need, the
newest that goes with them. torch is always the version of constraints.txt: others are other builds
of gigabytes. Environments stay in build/oldest and build/newest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
NOT = ("failures", "errors", "skipped")
SHOWN = ("numpy", "scipy", "numba", "scikit-learn", "torch", "fastapi", "pydantic", "uvicorn")
PINNED = "torch"
LEFT_OUT = ("dev", "docs", "ray", "sentences", "vectors")  # tools, and what the quick suite lacks
OTHER_TIERS = ("codespell", "mypy", "ruff", "schemathesis")  # tools that the quick suite lacks


def name_of(requirement: str) -> str:
    """The package of a requirement, as indexes spell it."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def lower_bounds(project: dict[str, Any]) -> dict[str, str]:
    """The oldest version of each package that dxml and its extras need.

    Parameters
    ----------
    project : dict
        The table ``project`` of pyproject.toml.
    """
    extras = project["optional-dependencies"].items()
    wanted = list(project["dependencies"])
    wanted += [each for name, extra in extras if name not in LEFT_OUT for each in extra]
    bounds = {}
    for requirement in wanted:
        _, _, version = requirement.partition(">=")
        if not version:
            raise SystemExit(f"{requirement}: has no lower bound")
        bounds[name_of(requirement)] = version
    return bounds


def read_project() -> dict[str, Any]:
    """The table ``project`` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def constraints(which: str) -> list[str]:
    """The lines of the constraints of an environment."""
    tested = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = [line for line in tested if line.startswith(f"{PINNED}==")]
    if which == "newest":
        return pinned
    oldest = lower_bounds(read_project())
    oldest.pop(PINNED)
    return [*pinned, *(f"{name}=={version}" for name, version in oldest.items())]


def environment(which: str) -> Path:
    """The interpreter of a fresh environment with these versions."""
    folder = ROOT / "build" / which
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    lines = folder / "constraints.txt"
    lines.write_text("\n".join(constraints(which)) + "\n", "utf-8")
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "-c", lines]
    tools = read_project()["optional-dependencies"]["dev"]
    wanted = [each for each in tools if name_of(each) not in OTHER_TIERS]
    subprocess.run([*pip, "-e", ".", *wanted], check=True, cwd=ROOT)
    return python


def counted(report: Path) -> dict[str, int]:
    """Tests that passed, failed and were skipped, by pytest's report in XML."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    found = {name: sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", *NOT)}
    failed = found["failures"] + found["errors"]
    passed = found["tests"] - failed - found["skipped"]
    return {"passed": passed, "failed": failed, "skipped": found["skipped"]}


def circumstances(python: Path, threads: int) -> dict[str, Any]:
    """Where the figures come from, as the package of an environment tells it."""
    told = {"device": "cpu", "seed": None, "threads": threads}
    told["started"] = " ".join(["python", "tests/versions.py", *sys.argv[1:]])
    said = "from dxml.bench._machine import circumstances; import json; "
    said += f"print(json.dumps(circumstances(**{told!r})))"
    done = subprocess.run([python, "-c", said], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def store(
    output: Path, which: str, counts: dict[str, int], installed: str, about: dict[str, Any]
) -> None:
    """Add a run of the whole suite to a file of such runs."""
    kept = {line.partition("==")[0]: line.partition("==")[2] for line in installed.splitlines()}
    run = {
        **about,
        "ended": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "which": which,
        **counts,
        "versions": {name: kept[name] for name in SHOWN if name in kept},
    }
    runs = json.loads(output.read_text("utf-8")) if output.exists() else []
    output.write_text(json.dumps([*runs, run], indent=1) + "\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("which", choices=("oldest", "newest"))
    parser.add_argument("tests", nargs="*", help="all of the quick suite without them")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kept", action="store_true", help="the environment of the last run")
    parser.add_argument("--output", type=Path, help="a JSON file that the figures are added to")
    asked = parser.parse_intermixed_args()
    kept = ROOT / "build" / asked.which / "bin" / "python"
    python = kept if asked.kept else environment(asked.which)
    listing = [python, "-m", "pip", "list", "--format", "freeze"]
    installed = subprocess.run(listing, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(installed, flush=True)
    report = python.parents[1] / "report.xml"
    command = [python, "-m", "pytest", "-q", "-n", str(asked.workers), *asked.tests]
    command += ["--junitxml", str(report)]
    if asked.which == "oldest":  # old packages use what is about to go in newer ones below them
        command += ["-W", "default::DeprecationWarning", "-W", "default::FutureWarning"]
    loops = {"NUMBA_CACHE_DIR": str(python.parents[1] / "loops")}  # compiled by another numba
    ended = subprocess.run(command, cwd=ROOT, check=False, env=os.environ | loops).returncode
    if asked.output and not asked.tests and ended in (0, 1):
        about = circumstances(python, asked.workers)
        store(asked.output, asked.which, counted(report), installed, about)
    return ended


if __name__ == "__main__":
    sys.exit(main())
