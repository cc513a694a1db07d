"""How long commands take from start to answer, the memory, and how fast a service answers with one
worker and with two: now, and in an earlier version.

    python benchmarks/startup.py                      # the demo's model, by the earlier version
    python benchmarks/startup.py --model build/tags   # a tagger that both versions can open
    python benchmarks/startup.py --only serve         # only services under load; nothing is stored

Both versions run the same commands in turn, each on its own copy of the same model, which the
earlier one has made: a later version opens it, the other way round it may not. The least of several
runs counts, as others on the machine only make it longer. Ratios are printed, and stored with
machine, versions and commits in benchmarks/results/startup.json.

Services are asked over 16 connections that are opened together: one text a request, or 100. Beside
the milliseconds a request stand the milliseconds of CPU that all workers took for it, the share of
them that the busiest worker took, and what the client took (light_client.py): where the client's
CPU is small beside the workers', it does not keep them from being faster.
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
from light_client import ask
from load import make_requests
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
CLIENTS, ASKED = 16, 5.0  # connections that ask at once, for so many seconds
SIZES = (1, 100)  # texts of a request
LOAD = {
    f"serve, {workers} worker{'s' * (workers > 1)}, {size} text{'s' * (size > 1)}": (workers, size)
    for size in SIZES
    for workers in (1, 2)
}
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
    """A folder to work in, with a copy of the model, a table of one text, and titles to ask for.

    Titles are the first lines of the table of new texts beside the model, as the demo writes it.
    """
    shutil.copytree(model, folder / "model")
    titles = [f"{TEXT} {number}" for number in range(200)]
    if (beside := model.parent / "new.jsonl").exists():
        rows = [json.loads(line) for line in beside.read_text("utf-8").splitlines()]
        titles = [title for row in rows if (title := row["text"].partition("\n")[0])]
    (folder / "titles.txt").write_text("\n".join(titles), "utf-8")
    table = "".join(json.dumps({"text": title}) + "\n" for title in titles[:200])
    (folder / "titles.jsonl").write_text(table, "utf-8")
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
        return {"s": seconds, "cpu_s": cpu_of(pid), "mb": int(fields["VmHWM"].split()[0]) / 1024}


def measure_throughput(source: Path, folder: Path, workers: int, size: int) -> Seen:
    """Milliseconds a request, where connections ask one after the other; errors end it.

    They have asked for as long before: a busy service loads what a quiet one does without.
    """
    requests = make_requests(points_of(folder, size), "text", f"127.0.0.1:{PORT}", 5)
    with serving(source, folder, workers) as (pid, _):
        wait_for(pid, workers)
        ask(PORT, requests, CLIENTS, ASKED)
        before = cpu_of_workers(pid)
        seen = ask(PORT, requests, CLIENTS, ASKED)
        after = cpu_of_workers(pid)
    if seen.errors or set(before) != set(after):
        raise SystemExit(f"the service of {source} failed: {dict(seen.errors)}")
    used = [after[each] - before[each] for each in after]
    return {
        "ms_a_request": 1000 * seen.seconds / seen.requests,
        "p50_ms": seen.p50,
        "p99_ms": seen.p99,
        "cpu_ms": 1000 * sum(used) / seen.requests,
        "busiest": max(used) / sum(used),
        "client_cpu_ms": 1000 * seen.client_s / seen.requests,
    }


def points_of(folder: Path, size: int) -> list[Any]:
    """What 200 requests hold: titles of the table beside the model, which come again and again."""
    titles = (folder / "titles.txt").read_text("utf-8").splitlines()
    if size == 1:
        return titles[:200]
    return [
        [titles[(size * i + j) % len(titles)] for j in range(size)] for i in range(200 // size * 10)
    ]


def cpu_of_workers(pid: int) -> dict[int, float]:
    """CPU seconds so far of each process that answers: the children, or the one that has none."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return {each: cpu_of(each) for each in [int(child) for child in children] or [pid]}


def cpu_of(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(pid: int, workers: int) -> None:
    """Until no worker is starting any more: until they are there and have done nothing for long."""
    quiet = 0
    while quiet < 10:
        before = cpu_of_workers(pid)
        time.sleep(0.2)
        after = cpu_of_workers(pid)
        busy = sum(after.values()) - sum(before.values())
        quiet = quiet + 1 if len(after) >= workers and busy < 0.03 else 0


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
    """The smallest of each number; of how uneven the workers were, the largest."""
    worst = {"busiest"}
    return {
        name: round((max if name in worst else min)(run[name] for run in runs), 3)
        for name in runs[0]
    }


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
    """Services of one worker and of two, by all versions.

    Each version has compiled its loops before: in a service that takes longer than it is asked for.
    """
    for source, folder in versions.values():
        measure(["predict", "titles.jsonl", "-m", "model", "--text", "text"], 0, source, folder)
    return {
        what: in_turn(
            lambda source, folder, how=how: measure_throughput(source, folder, *how),  # type: ignore[misc]
            versions,
            n_runs,
        )
        for what, how in LOAD.items()
    }


def with_ratios(found: dict[str, dict[str, Seen]]) -> dict[str, Any]:
    """Each command with what it takes now as a share of what it took before."""
    ratios = {
        what: {name: round(both["now"][name] / old, 3) for name, old in both["before"].items()}
        for what, both in found.items()
    }
    return {what: both | {"ratio": ratios[what]} for what, both in found.items()}


UNITS = {"s": "seconds", "cpu_s": "CPU seconds", "mb": "MB"}
LOAD_UNITS = {
    "ms_a_request": "ms a request",
    "p50_ms": "p50 in ms",
    "p99_ms": "p99 in ms",
    "cpu_ms": "CPU ms of workers",
    "busiest": "share of the busiest",
    "client_cpu_ms": "CPU ms of client",
}


def show(commands: dict[str, Any], units: dict[str, str]) -> None:
    print(f"{'':28}" + "".join(f"{unit:>22}" for unit in units.values()))
    for what, both in commands.items():
        cells = [
            f"{both['before'][name]:9.4g} → {both['now'][name]:6.4g} ×{both['ratio'][name]:.2f}"
            for name in units
        ]
        print(f"{what:28}{''.join(cells)}")


def where() -> dict[str, Any]:
    """What it was measured with.

    Only asked when all is measured: of a process Linux counts what its parent held, and this
    imports torch.
    """
    from dxml.bench._machine import circumstances

    return circumstances(device="cpu", seed=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--model", type=Path, help="a tagger's folder; else the demo's is made")
    parser.add_argument("--generated", type=int, help="the demo's of N generated articles")
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=["serve"], help="services under load; prints, no file")
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
        commands = {} if given.only else with_ratios(compare(versions, given.runs))
        throughput = with_ratios(compare_throughput(versions, min(given.runs, 3)))
    show(throughput, LOAD_UNITS)
    if given.only:
        return
    show(commands, UNITS)
    stored = {
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
    from stored_results import write_results

    write_results(given.output, stored)


if __name__ == "__main__":
    main()
