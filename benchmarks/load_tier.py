"""A service under load, from nothing: ``make load``, and ``make load-short`` in CI.

    python benchmarks/load_tier.py               # Eurlex-4K, or its generated twin; prints
    python benchmarks/load_tier.py --bounds      # also fails below 300/s or with a p99 over 250 ms
    python benchmarks/load_tier.py --short       # seconds, on a small planted model; no timing
    python benchmarks/load_tier.py --workers 1 2 # one after the other, with the ratio

A model is trained, `dxml serve` started on it, and answers are compared with the model's own before
and after the load. Any error, and any answer that differs, is a failure.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dxml.data import Dataset, is_present, load_dataset, make_planted, make_twin
from dxml.data._synthetic import train_test
from dxml.joint import Joint
from load import feature_points, measure

PER_SECOND, P99 = 300, 250
CHECKED = 20  # points whose answers are compared with the model's


def data_of(short: bool) -> tuple[Dataset, Dataset]:
    """What the model is trained on, and what is asked."""
    if short:
        return train_test(make_planted(600, 400, 40, random_state=0), 200)
    if is_present("eurlex-4k"):
        return load_dataset("eurlex-4k", "train"), load_dataset("eurlex-4k", "test")
    return train_test(make_twin("eurlex-4k", 19_000), 3_800)


@contextmanager
def serving(model: Path, workers: int) -> Iterator[str]:
    """The address of a service that runs meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dxml", "serve", "--model", str(model), "--port", str(port)]
    process = subprocess.Popen([*command, "--workers", str(workers)])
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 60
    try:
        while True:
            try:
                urllib.request.urlopen(f"{url}/health").close()
                break
            except urllib.error.URLError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the service did not start") from None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def differing(url: str, points: list[Any], expected: list[list[tuple[str, float]]]) -> int:
    """Points whose answer is not what the model says."""
    body = json.dumps({"features": points, "top": 5}).encode()
    head = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/predict", body, head)) as answer:
        results = json.load(answer)["results"]
    wrong = 0
    for result, wanted in zip(results, expected, strict=True):
        got = [(label["name"], label["probability"]) for label in result["labels"]]
        same = [name for name, _ in got] == [name for name, _ in wanted]
        near = all(abs(a - b) < 1e-3 for (_, a), (_, b) in zip(got, wanted, strict=False))
        wrong += not (same and near)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="a small model, a few seconds")
    parser.add_argument("--bounds", action="store_true", help="fail when too slow")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    asked = parser.parse_args()
    train, test = data_of(asked.short)
    print(f"{train.name}: {train.n_samples:,} points, {train.n_labels:,} labels", flush=True)
    model = Joint(device="cpu").fit(train.X, train.Y)
    points = feature_points(test.X[:2000])
    expected = [
        [(str(label), p) for label, p in row]
        for row in model.predict_topk(test.X[:CHECKED], 5).rows()
    ]
    seconds = asked.seconds or (3 if asked.short else 20)
    failed, rates = set(), []
    with tempfile.TemporaryDirectory() as folder:
        saved = model.save(Path(folder) / "m")
        for workers in asked.workers:
            with serving(saved, workers) as url:
                wrong = differing(url, points[:CHECKED], expected)
                found = measure(url, points, "features", 5, asked.clients, seconds)
                wrong += differing(url, points[:CHECKED], expected)
            rates.append(found.per_second)
            print(f"{asked.clients} clients, {workers} workers\n{found}")
            print(f"wrong answers      {wrong:8d}")
            print(f"against the first  {rates[-1] / rates[0]:8.2f}", flush=True)
            if found.errors or wrong:
                failed.add("there were errors or wrong answers")
            if asked.bounds and (found.per_second < PER_SECOND or found.p99 > P99):
                failed.add(f"asked for were {PER_SECOND}/s or more and a p99 of {P99} ms or less")
    if failed:
        raise SystemExit("; ".join(sorted(failed)))


if __name__ == "__main__":
    main()
