"""Requests made from the service's own OpenAPI description, right and wrong ones: ``make schema``.

    python -m tests.fuzz.routes             # a tagger and a model of features, 200 a route
    python -m tests.fuzz.routes --short     # a tagger, what twenty seconds allow

schemathesis makes them and judges the answers: no status of 500 or more, only statuses and contents
that the description names, no wrong request taken. That every request which fits the description is
taken is not asked for: the description cannot say that there are as many texts as labels.
"""

from __future__ import annotations

import argparse
import os
import random
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

TOKEN = "fuzz"


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


def ask(url: str, folder: Path, examples: int, seconds: int | None, seed: int) -> int:
    """Run schemathesis, which leaves files in the folder; its exit code."""
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--no-color"]
    command += ["--max-examples", str(examples), "--seed", str(seed)]
    command += ["--exclude-checks", "positive_data_acceptance", "--continue-on-failure"]
    command += ["--generation-database", "none", "--request-timeout", "60"]
    if seconds is not None:
        command += ["--max-time", str(seconds)]
    return subprocess.run(command, check=False, cwd=folder).returncode


def main() -> None:
    """Ask each model; the exit code says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="a tagger, twenty seconds")
    parser.add_argument("--examples", type=int, default=200, help="of each route")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for make in (tagger,) if asked.short else (tagger, features):
            with serving(make(Path(folder))) as url:
                n, seconds = (5, 20) if asked.short else (asked.examples, None)
                if ask(url, Path(folder), n, seconds, asked.seed):
                    failed.append(make.__name__)
    if failed:
        raise SystemExit(f"wrong answers of: {', '.join(failed)}")


if __name__ == "__main__":
    main()
