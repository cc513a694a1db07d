"""How long commands take from start to answer, and the memory: now, and in an earlier version.

    python benchmarks/startup.py --model build/tags

Both versions run the same commands on the same model in turn; the least of several runs counts, as
others on the machine only make it longer. Ratios are printed, and stored with the times in
benchmarks/results/startup.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from earlier import checked_out
from soaked_service import free_port

ROOT = Path(__file__).parents[1]
BEFORE = "9c90d8e"
PORT = free_port()
TEXT = "liver enzymes of rats that were given ethanol"
COMMANDS = {
    "predict one text": ["predict", "one.jsonl", "-m", "{model}", "--text", "text"],
    "explain": ["explain", TEXT, "-m", "{model}"],
    "labels": ["labels", "-m", "{model}"],
    "methods": ["methods"],
    "error: no such model": ["predict", "one.jsonl", "-m", "nowhere"],
    "error: no such file": ["predict", "nothing.jsonl", "-m", "{model}"],
}
Seen = dict[str, float]


def measure(command: list[str], source: Path, folder: Path) -> Seen:
    """Seconds by the clock and of CPU, and the largest memory in MB, of one command."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "dxml", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    return {"s": seconds, "cpu_s": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}


def measure_service(model: Path, source: Path, folder: Path) -> Seen:
    """Of ``dxml serve``: seconds until its first answer, and the memory after 100 of them."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "dxml", "serve", "-m", str(model), "--port", str(PORT), "-q"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    try:
        while not answers():
            if process.poll() is not None or time.perf_counter() - start > 120:
                raise SystemExit("the service did not start")
            time.sleep(0.02)
        seconds = time.perf_counter() - start
        for _ in range(99):
            answers()
        status = Path(f"/proc/{process.pid}/status").read_text("ascii")
        fields = dict(line.split(":", 1) for line in status.splitlines())
        ticks = Path(f"/proc/{process.pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
        return {"s": seconds, "cpu_s": cpu, "mb": int(fields["VmHWM"].split()[0]) / 1024}
    finally:
        process.terminate()
        process.wait()


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


def compare(model: Path, old: Path, n_runs: int) -> dict[str, Any]:
    """Every command by both versions."""
    sources = {"before": old / "src", "now": ROOT / "src"}
    found: dict[str, Any] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "one.jsonl").write_text(json.dumps({"text": TEXT}), "utf-8")
        for what, command in COMMANDS.items():
            filled = [part.format(model=model) for part in command]
            runs: dict[str, list[Seen]] = {which: [] for which in sources}
            for turn in range(n_runs + 1):
                for which, source in sources.items():
                    seen = measure(filled, source, folder)
                    if turn:  # the first run compiles and fills the caches
                        runs[which].append(seen)
            found[what] = {which: least(each) for which, each in runs.items()}
        found["serve"] = {
            which: least([measure_service(model, source, folder) for _ in range(n_runs)])
            for which, source in sources.items()
        }
    return found


def show(found: dict[str, Any]) -> None:
    print(f"{'':24}{'seconds':>22}{'CPU seconds':>22}{'MB':>22}")
    for what, both in found.items():
        cells = []
        for name in ("s", "cpu_s", "mb"):
            before, now = both["before"][name], both["now"][name]
            cells.append(f"{before:9.4g} → {now:6.4g} ×{now / before:.2f}")
        print(f"{what:24}{''.join(cells)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--model", type=Path, required=True, help="a tagger's folder")
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks/results/startup.json")
    given = parser.parse_args()
    with checked_out(given.before) as old:
        found = compare(given.model.resolve(), old, given.runs)
    show(found)
    stored = {
        "before": given.before,
        "runs": given.runs,
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "commands": found,
    }
    given.output.write_text(json.dumps(stored, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
