"""Every reader, fed with damaged files: a file is accepted, or refused with an error of ours.

Atheris mutates sound files and keeps what reaches new lines of the readers; where it is not
installed, hypothesis edits sound files at random. A traceback, a signal, a hang or memory without
end is a crash: its input is kept under build/fuzz-readers, and the exit code is 1. Compiled
loops check their bounds here, and are fed by themselves besides (`tests.fuzz.lines`).

    python -m tests.fuzz.readers --seconds 3600 --output benchmarks/results/fuzz-readers.json
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

LIMIT = 20  # seconds of a core that one input may take
PATIENCE = 10  # times as long by the clock, as others may want the cores too
MEMORY = 8 << 30  # bytes that a process may map
LONGEST = 600  # bytes of an input
WORK = Path("build/fuzz-readers")
SOURCES = (
    *("dxml.text", "dxml.data", "dxml.tagging", "dxml.service._tokens", "dxml._core.versions"),
    *("dxml.bench._toml", "dxml.bench._own_data", "dxml.bench._spec", "dxml._deep.static_vectors"),
)
LOOPS = "dxml.data._parse"  # which numba compiles


class Hang(BaseException):
    """An input took too long."""


class Counter:
    """Counts executions, keeps one input for each kind of crash, and writes both down."""

    def __init__(self, name: str, path: Path | None = None) -> None:
        self.name, self.path = name, path
        self.executions, self.accepted, self.crashes = 0, 0, dict[str, str]()
        self._start = self._written = time.monotonic()

    def crash(self, data: bytes, error: BaseException) -> None:
        """Keep an input, unless one that failed in the same line is kept."""
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/dxml/" in frame.filename] or frames
        where = f"{Path(ours[-1].filename).name}-{ours[-1].lineno}" if ours else "nowhere"
        kind = f"{self.name.replace(' ', '-')}-{type(error).__name__}-{where}"
        if kind in self.crashes:
            return
        self.crashes[kind] = "".join(traceback.format_exception(error))
        kept = WORK / "crashes" / kind
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(data)
        print(f"{kind}: kept as {kept}\n{self.crashes[kind]}", flush=True)

    def figures(self) -> dict[str, Any]:
        """What was done so far."""
        return {
            "executions": self.executions,
            "seconds": round(time.monotonic() - self._start, 1),
            "accepted": self.accepted,
            "crashes": sorted(self.crashes),
        }

    def count(self) -> None:
        """One more; the figures are written down now and then."""
        self.executions += 1
        if self.path is None or self.executions % 64 != 1:
            return
        if self.executions == 1 or time.monotonic() - self._written > 1:
            self._written = time.monotonic()
            self.path.write_text(json.dumps(self.figures()))


def attempt(target: Any, counter: Counter, data: bytes) -> None:
    """Read one input; what is neither accepted nor refused is kept."""
    from dxml.exceptions import DxmlError

    try:
        target.run(data)
        counter.accepted += 1
    except DxmlError:
        pass
    except (Exception, Hang) as error:
        counter.crash(data, error)
    counter.count()


def by_atheris(name: str, counts: Path, seconds: float) -> None:
    """Mutate inputs and keep those that reach new lines; the process ends in here."""
    import atheris

    with atheris.instrument_imports(
        include=list(SOURCES), exclude=[LOOPS], enable_loader_override=False
    ):
        from .more_targets import TARGETS
    target = TARGETS[name]
    for data in target.inputs():  # whereupon all is imported and compiled
        attempt(target, Counter(name), data)
    counter = Counter(name, counts)
    corpus = WORK / "corpus" / name.replace(" ", "-")
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.inputs()):
        (corpus / f"seed-{number}").write_bytes(data)
    words = corpus.with_suffix(".words")
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words)
    words.write_text("".join(f'"{word}"\n' for word in escaped))
    (WORK / "crashes").mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={max(1, round(seconds))}",
        f"-timeout={PATIENCE * LIMIT}",
        f"-rss_limit_mb={MEMORY >> 21}",
        f"-max_len={max(LONGEST, 2 * max(map(len, target.inputs())))}",
        f"-dict={words}",
        f"-artifact_prefix={WORK}/crashes/{name.replace(' ', '-')}-",
        "-verbosity=0",
        "-print_final_stats=0",
        "-reload=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: attempt(target, counter, data))
    atheris.Fuzz()


def by_hypothesis(name: str, seconds: float) -> dict[str, Any]:
    """Edit sound files at random for so long; the figures."""
    from hypothesis import HealthCheck, Phase, given, settings

    from .more_targets import TARGETS
    from .near_valid import near_valid

    target = TARGETS[name]
    for data in target.inputs():  # whereupon all is imported and compiled
        attempt(target, Counter(name), data)
    counter, end = Counter(name), time.monotonic() + seconds

    def hang(*_: object) -> None:
        raise Hang(f"over {LIMIT} s")

    signal.signal(signal.SIGPROF, hang)

    @settings(
        max_examples=200,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(near_valid(target))
    def some(data: bytes) -> None:
        if time.monotonic() < end:
            signal.setitimer(signal.ITIMER_PROF, LIMIT)
            attempt(target, counter, data)
            signal.setitimer(signal.ITIMER_PROF, 0)

    while time.monotonic() < end:
        some()
    return counter.figures()


def in_child(name: str, seconds: float) -> tuple[dict[str, Any], str]:
    """Atheris in a process of its own: its figures, and what it said where it found something."""
    from .reader_targets import FOLDER, in_memory

    counts = WORK / f"{name.replace(' ', '-')}.json"
    counts.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.readers", "--target", name]
    command += ["--seconds", str(seconds), "--counts", str(counts)]
    log = WORK / f"{name.replace(' ', '-')}.log"
    with log.open("w") as output, in_memory() as folder:
        env = os.environ | {FOLDER: folder}
        done = subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, check=False, env=env
        )
    said = log.read_text("utf-8", "replace")
    if not counts.exists():
        raise RuntimeError(f"{name} did not start:\n{said[-2000:]}")
    figures = json.loads(counts.read_text("utf-8"))
    if done.returncode:
        figures["crashes"].append(f"{name}: exit {done.returncode}")
    return figures, said if figures["crashes"] else ""


def fuzz(names: list[str], engine: str, seconds: float, output: Path | None) -> int:
    """Every target in turn for a share of the time; the exit code."""
    from .lines import NAME as LINES
    from .lines import by_loops
    from .record import add, started

    WORK.mkdir(parents=True, exist_ok=True)
    run = started(None, engine=engine if names != [LINES] else LINES)
    found: dict[str, dict[str, Any]] = {
        name: {"executions": 0, "seconds": 0.0, "accepted": 0, "crashes": []} for name in names
    }
    end = time.monotonic() + seconds
    for at, name in enumerate(names):
        share = max(0.5, (end - time.monotonic()) / (len(names) - at))
        if name == LINES:
            figures, said = by_loops(share), ""
        elif engine == "atheris":
            figures, said = in_child(name, share)
        else:
            figures, said = by_hypothesis(name, share), ""
        for key, figure in figures.items():
            found[name][key] += figure
        if said:
            print(f"{name}:\n{said[-6000:]}", flush=True)
        run["targets"] = found
        run["executions"] = sum(each["executions"] for each in found.values())
        run["crashes"] = sum(len(each["crashes"]) for each in found.values())
        add(output, run)
    for name, each in found.items():
        speed = each["executions"] / max(each["seconds"], 1e-9)
        print(
            f"{name:16} {each['executions']:>12,} executions, {speed:8,.0f} a second, "
            f"{each['accepted']:,} accepted, {len(each['crashes'])} crashes"
        )
    print(f"{run['executions']:,} executions by {engine}: {run['crashes']} crashes")
    return 1 if run["crashes"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600, help="for all targets together")
    parser.add_argument("--engine", choices=("atheris", "hypothesis"))
    parser.add_argument("--only", action="append", help="a target; all without it")
    parser.add_argument("--output", type=Path, help="a JSON file that the figures are added to")
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("--counts", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.disable(logging.WARNING)  # rdflib tells of every odd URI
    os.environ["NUMBA_BOUNDSCHECK"] = "1"
    os.environ["NUMBA_CACHE_DIR"] = str(WORK / "numba")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    there = importlib.util.find_spec("atheris") is not None
    engine = given.engine or ("atheris" if there else "hypothesis")
    if given.target:
        by_atheris(given.target, given.counts, given.seconds)
    from .lines import NAME
    from .more_targets import TARGETS

    return fuzz(given.only or [*TARGETS, NAME], engine, given.seconds, given.output)


if __name__ == "__main__":
    sys.exit(main())
