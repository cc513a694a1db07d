"""Requests made from the service's own OpenAPI description, right and wrong ones: ``make schema``.

    python -m tests.fuzz.routes             # a tagger and a model of features, 200 a route
    python -m tests.fuzz.routes --short     # a tagger, what twenty seconds allow
    python -m tests.fuzz.routes --output benchmarks/results/schema.json

schemathesis makes them and judges the answers: no status of 500 or more, only statuses and contents
that the description names, no wrong request taken. That every request which fits the description is
taken is not asked for: the description cannot say that there are as many texts as labels. Each
service is asked once before, since the first answer may wait for loops that are compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
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

from dxml import Joint, TextTagger
from dxml.data import make_planted

from .record import add, started

TOKEN = "fuzz"
FIRST = {"tagger": {"text": "fish"}, "features": {"features": {"1": 1.0}}}


def tagger(folder: Path) -> Path:
    """A small tagger of texts."""
    rng = random.Random(0)
    labels = [rng.choice(("fish", "ocean", "soup")) for _ in range(60)]
    texts = [f"{label} {rng.choice('abcdef')}x {rng.choice('ghi')}x" for label in labels]
    fitted = TextTagger(device="cpu", candidates="nearest", width=0)
    return fitted.fit(texts, [[label] for label in labels]).save(folder / "texts")


def features(folder: Path) -> Path:
    """A small model of features."""
    data = make_planted(200, 60, 8, random_state=0)
    return Joint(device="cpu").fit(data.X, data.Y).save(folder / "features")


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """The address of a service that runs meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dxml", "serve", "--quiet", "--model", str(model)]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--log-level", "error"],
        env={**os.environ, "DXML_TOKEN": TOKEN},
    )
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
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
        if process.poll() is not None:
            raise SystemExit(f"the service has ended with {process.returncode}")
    finally:
        process.terminate()
        process.wait(60)


def ask_once(url: str, question: dict[str, object]) -> None:
    """Ask until it is answered in time."""
    head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/predict", json.dumps(question).encode(), head)
    while True:
        try:
            urllib.request.urlopen(request).close()
            return
        except urllib.error.HTTPError as error:
            if error.code != 504:
                raise


def counted(report: str) -> int:
    """How many requests schemathesis says that it made.

    >>> counted("Test cases:\\n  1,488 generated, 1488 passed")
    1488
    """
    found = re.search(r"([\d,]+) generated", report)
    return int(found[1].replace(",", "")) if found else 0


def ask(url: str, folder: Path, examples: int, seconds: int | None, seed: int) -> tuple[bool, int]:
    """Run schemathesis, which leaves files in the folder; whether all was right, and requests."""
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--no-color"]
    command += ["--max-examples", str(examples), "--seed", str(seed)]
    command += ["--exclude-checks", "positive_data_acceptance", "--continue-on-failure"]
    command += ["--generation-database", "none", "--request-timeout", "60"]
    if seconds is not None:
        command += ["--max-time", str(seconds)]
    done = subprocess.run(command, check=False, cwd=folder, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    return done.returncode == 0, counted(done.stdout)


def main() -> None:
    """Ask each model; the exit code says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="a tagger, twenty seconds")
    parser.add_argument("--examples", type=int, default=200, help="of each route")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="a JSON file that the figures are added to")
    asked = parser.parse_args()
    run = started(asked.seed, models={})
    with tempfile.TemporaryDirectory() as folder:
        for make in (tagger,) if asked.short else (tagger, features):
            with serving(make(Path(folder))) as url:
                ask_once(url, FIRST[make.__name__])
                n, seconds = (5, 20) if asked.short else (asked.examples, None)
                right, requests = ask(url, Path(folder), n, seconds, asked.seed)
                run["models"][make.__name__] = {"requests": requests, "right": right}
    add(asked.output, run)
    if failed := [name for name, found in run["models"].items() if not found["right"]]:
        raise SystemExit(f"wrong answers of: {', '.join(failed)}")


if __name__ == "__main__":
    main()
