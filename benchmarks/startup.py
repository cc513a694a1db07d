"""How long commands take from start to answer, the memory, and how many requests a second a service
answers with one worker and with two: now, and in an earlier version.

    python benchmarks/startup.py                      # the demo's model, by the earlier version
    python benchmarks/startup.py --model build/tags   # a tagger that both versions can open

Both versions run the same commands in turn, each on its own copy of the same model, which the
earlier one has made: a later version opens it, the other way round it may not. The least of several
runs counts, as others on the machine only make it longer. Ratios are printed, and stored with
machine, versions and commits in benchmarks/results/startup.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from earlier import checked_out
from load import measure as measure_load
from soaked_service import free_port

ROOT = Path(__file__).parents[1]
BEFORE = "9c90d8e"
PORT = free_port()
TEXT = "liver enzymes of rats that were given ethanol"
COMMANDS = {  # what, the exit status, and the words
    "predict one text": (0, ["predict", "one.jsonl", "-m", "model", "--text", "text"]),
    "explain": (0, ["explain", TEXT, "-m", "model"]),
    "labels": (0, ["labels", "-m", "model"]),
    "methods": (0, ["methods"]),
    "error: no such model": (2, ["predict", "one.jsonl", "-m", "nowhere"]),
    "error: no such file": (2, ["predict", "nothing.jsonl", "-m", "model"]),
}
CLIENTS, ASKED = 16, 5.0  # that ask at once, for so many seconds
Seen = dict[str, float]


def environment(source: Path) -> dict[str, str]:
    """In which Python takes the package from this folder."""
    return {**os.environ, "PYTHONPATH": str(source)}


def train_demo(old: Path, folder: Path, n_generated: int | None) -> Path:
    """The model of the demo of an earlier version."""
    made = ["--folder", str(folder)] + (["--generated", str(n_generated)] if n_generated else [])
    demo = [sys.executable, "examples/demo.py", *made]
    subprocess.run(
        demo, cwd=old, env=environment(old / "src"), stdout=subprocess.DEVNULL, check=True
    )
    return folder / "model"


def prepare(folder: Path, model: Path) -> Path:
    """A folder to work in, with a copy of the model and a table of one text."""
    shutil.copytree(model, folder / "model")
    (folder / "one.jsonl").write_text(json.dumps({"text": TEXT}), "utf-8")
    return folder


def measure(command: list[str], wanted: int, source: Path, folder: Path) -> Seen:
    """Seconds by the clock and of CPU, and the largest memory in MB, of one command.

    A command that ends with another status than it should is an error: a refusal is quick.
    """
    with (folder / "said").open("w+", encoding="utf-8") as said:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "dxml", *command],
            cwd=folder,
            env=environment(source),
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != wanted:
            said.seek(0)
            words = f"dxml {' '.join(command)} of {source} ended with {process.returncode}"
            raise SystemExit(f"{words}, not {wanted}: {said.read().strip()}")
    return {"s": seconds, "cpu_s": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}


@contextmanager
def serving(source: Path, folder: Path, workers: int = 1) -> Iterator[tuple[int, float]]:
    """A service that answers: its process, and the seconds until it did."""
    start = time.perf_counter()
    words = ["serve", "-m", "model", "--port", str(PORT), "--workers", str(workers), "-q"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dxml", *words], cwd=folder, env=environment(source)
    )
    try:
        while not answers():
            if process.poll() is not None or time.perf_counter() - start > 120:
                raise SystemExit(f"the service of {source} did not start")
            time.sleep(0.02)
        yield process.pid, time.perf_counter() - start
    finally:
        process.terminate()
        process.wait()


def measure_service(source: Path, folder: Path) -> Seen:
    """Of ``dxml serve``: seconds until its first answer, and the memory after 100 of them."""
    with serving(source, folder) as (pid, seconds):
        for _ in range(99):
            answers()
        status = Path(f"/proc/{pid}/status").read_text("ascii")
        fields = dict(line.split(":", 1) for line in status.splitlines())
        ticks = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
        return {"s": seconds, "cpu_s": cpu, "mb": int(fields["VmHWM"].split()[0]) / 1024}


def measure_throughput(source: Path, folder: Path, workers: int) -> Seen:
    """Milliseconds a request, where clients ask one after the other, and p99; errors end it.

    They have asked for as long before: a busy service loads what a quiet one does without.
    """
    with serving(source, folder, workers):
        texts = [f"{TEXT} {number}" for number in range(200)]
        for _ in range(2):
            seen = measure_load(f"http://127.0.0.1:{PORT}", texts, "text", 5, CLIENTS, ASKED)
    if seen.errors:
        raise SystemExit(f"the service of {source} failed: {dict(seen.errors)}")
    return {"ms_a_request": 1000 / seen.per_second, "p99_ms": seen.p99}


def answers() -> bool:
    """Whether the service tags a text."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/predict",
        json.dumps({"text": TEXT}).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return bool(json.load(reply)["results"])
    except OSError:
        return False


def least(runs: list[Seen]) -> Seen:
    """The smallest of each number."""
    return {name: round(min(run[name] for run in runs), 3) for name in runs[0]}


def in_turn(
    look: Callable[[Path, Path], Seen], versions: dict[str, tuple[Path, Path]], n_runs: int
) -> dict[str, Seen]:
    """The least of several runs of each version, one after the other.

    The first run compiles and fills the caches; it does not count.
    """
    runs: dict[str, list[Seen]] = {which: [] for which in versions}
    for turn in range(n_runs + 1):
        for which, (source, folder) in versions.items():
            seen = look(source, folder)
            if turn:
                runs[which].append(seen)
    return {which: least(each) for which, each in runs.items()}


def compare(versions: dict[str, tuple[Path, Path]], n_runs: int) -> dict[str, dict[str, Seen]]:
    """Every command by all versions, each with its source and its folder."""
    found = {}
    for what, (wanted, command) in COMMANDS.items():
        found[what] = in_turn(
            lambda source, folder, command=command, wanted=wanted: measure(  # type: ignore[misc]
                command, wanted, source, folder
            ),
            versions,
            n_runs,
        )
        print(".", end="", flush=True)
    found["serve"] = in_turn(measure_service, versions, n_runs)
    print()
    return found


def compare_throughput(versions: dict[str, tuple[Path, Path]], n_runs: int) -> dict[str, Any]:
    """Services of one worker and of two, by all versions."""
    return {
        f"serve, {count} worker{'s' * (count > 1)}": in_turn(
            lambda source, folder, count=count: measure_throughput(source, folder, count),  # type: ignore[misc]
            versions,
            n_runs,
        )
        for count in (1, 2)
    }


def with_ratios(found: dict[str, dict[str, Seen]]) -> dict[str, Any]:
    """Each command with what it takes now as a share of what it took before."""
    ratios = {
        what: {name: round(both["now"][name] / old, 3) for name, old in both["before"].items()}
        for what, both in found.items()
    }
    return {what: both | {"ratio": ratios[what]} for what, both in found.items()}


UNITS = {"s": "seconds", "cpu_s": "CPU seconds", "mb": "MB"}
LOAD_UNITS = {"ms_a_request": "ms a request", "p99_ms": "p99 in ms"}


def show(commands: dict[str, Any], units: dict[str, str]) -> None:
    print(f"{'':24}" + "".join(f"{unit:>22}" for unit in units.values()))
    for what, both in commands.items():
        cells = [
            f"{both['before'][name]:9.4g} → {both['now'][name]:6.4g} ×{both['ratio'][name]:.2f}"
            for name in units
        ]
        print(f"{what:24}{''.join(cells)}")


def where() -> dict[str, Any]:
    """What it was measured with.

    Only asked when all is measured: of a process Linux counts what its parent held, and this
    imports torch.
    """
    from dxml.bench._machine import commit, describe_machine, describe_versions, machine_name

    return {
        "commit": commit(),
        "machine": machine_name(describe_machine()),
        "versions": describe_versions(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--model", type=Path, help="a tagger's folder; else the demo's is made")
    parser.add_argument("--generated", type=int, help="the demo's of N generated articles")
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/startup.json")
    given = parser.parse_args()
    began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with checked_out(given.before) as old, TemporaryDirectory() as name:
        work = Path(name)
        made = given.model or train_demo(old, work / "demo", given.generated)
        sources = {"before": old / "src", "now": ROOT / "src"}
        versions = {
            which: (source, prepare(work / which, made)) for which, source in sources.items()
        }
        model_mb = sum(file.stat().st_size for file in made.iterdir()) / 1e6
        load = [round(load, 2) for load in os.getloadavg()]
        commands = with_ratios(compare(versions, given.runs))
        throughput = with_ratios(compare_throughput(versions, min(given.runs, 3)))
    show(commands, UNITS)
    show(throughput, LOAD_UNITS)
    stored = {
        "command": " ".join(["python", *sys.argv]),
        **where(),
        "began": began,
        "before": given.before,
        "runs": given.runs,
        "load": load,
        "model": str(given.model or "that of the demo, trained by the version before"),
        "model_mb": round(model_mb, 1),
        "commands": commands,
        "throughput": throughput,
    }
    given.output.write_text(json.dumps(stored, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
