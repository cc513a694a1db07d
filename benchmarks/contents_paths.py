"""Which package ships a file of this path? Debian's Contents index: millions of paths, real labels.

A text is the words of a path, its labels are the packages that ship it. Test paths are those of
one directory in ten, so that no directory stands on both sides. The index comes with apt-file:

    apt-get install apt-file && apt-file update        # as root; lists go to /var/lib/apt/lists
    python benchmarks/contents_paths.py make FOLDER /var/lib/apt/lists/*Contents*
    python benchmarks/contents_paths.py measure FOLDER joint
    python benchmarks/contents_paths.py measure FOLDER knn
    python benchmarks/contents_paths.py measure FOLDER no-trees     # joint without label trees
    python benchmarks/contents_paths.py measure FOLDER omikuji      # needs: pip install omikuji

``make --paths 300000`` takes about that many of the paths, all those of some packages.
``make --validation`` leaves the test directories out, and holds out one training directory in ten.
``--test 20000``, the default, is about how many test paths there are at most. ``measure`` adds a
row to benchmarks/results/contents-paths.json: seconds by the clock and of processors, how many
processes wanted the machine (its load, before and after), the most memory that the process held
and had of its own, P@k. ``--memory 10GB`` is a promise: arrays beyond it lie in files.
All methods get the same words. The tagger's own commands work on the tables too:

    dxml train FOLDER/train.jsonl --text text --labels labels --model m
    dxml evaluate FOLDER/test.jsonl --model m
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from dxml.progress import SILENT
from own_memory import OwnMemory, own_bytes
from stored_results import log_test, read_results, write_results

STORED = "contents-paths.json"
OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
TEST_SHARE = 10  # one directory in so many is a test directory
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")


def open_list(path: Path) -> IO[str]:
    """An index, plain or compressed; lz4 is unpacked by the program of that name."""
    if path.suffix == ".lz4":
        unpacked = subprocess.run(["lz4", "-dc", str(path)], check=True, stdout=subprocess.PIPE)
        return io.StringIO(unpacked.stdout.decode("utf-8", "replace"))
    return OPEN.get(path.suffix, open)(path, "rt", encoding="utf-8", errors="replace")


def entries(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """(path, the packages that ship it) of each line: ``usr/bin/ls   utils/coreutils,admin/x``."""
    for line in lines:
        path, _, places = line.rstrip("\n").rpartition(" ")
        if path.strip() and places:
            packages = {place.rpartition("/")[2] for place in places.split(",")}
            yield path.strip(), sorted(packages)


def read_list(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The entries of a file."""
    with open_list(path) as file:
        yield from entries(file)


def words(path: str) -> str:
    """The words of a path, in small letters.

    >>> words("usr/share/doc/libFoo2-dev/READMEfirst.txt.gz")
    'usr share doc lib foo 2 dev readme first txt gz'
    """
    return " ".join(WORD.findall(path)).lower()


def turn(name: str, salt: str) -> int:
    """A number from 0 to 999,999 that a name always has."""
    return zlib.crc32(f"{salt}/{name}".encode()) % 1_000_000


def make(
    folder: Path, lists: list[Path], most_paths: int | None, most_test: int, part: str = "test"
) -> None:
    """Write the two tables, line by line; with the part "validation" nothing of the test part."""
    total = sum(1 for path in lists for _ in read_list(path))
    share = 1.0 if most_paths is None else min(1.0, most_paths / total)
    folder.mkdir(parents=True, exist_ok=True)
    counts = {"train": 0, "test": 0}
    packages: set[str] = set()
    with (folder / "train.jsonl").open("w") as train, (folder / "test.jsonl").open("w") as test:
        for one in lists:
            for path, labels in read_list(one):
                if turn(labels[0], "kept") >= share * 1_000_000:
                    continue
                directory = path.rpartition("/")[0]
                if part != "test" and turn(directory, "test") % TEST_SHARE == 0:
                    continue
                held_out = turn(directory, part) % TEST_SHARE == 0
                row = json.dumps({"text": words(path), "labels": labels}) + "\n"
                if held_out:
                    # Spread over the lists, so that those up to `most_test` are not of one letter.
                    if turn(path, "test") * total * share / TEST_SHARE <= most_test * 1_000_000:
                        test.write(row)
                        counts["test"] += 1
                else:
                    train.write(row)
                    counts["train"] += 1
                    packages.update(labels)
    (folder / "part.txt").write_text(part)
    print(f"{total:,} paths in the lists; train {counts['train']:,}, test {counts['test']:,}, "
          f"{len(packages):,} packages to learn")  # fmt: skip


class Stages:
    """Processors' seconds of each long step, told on standard error as it ends."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Any]:
        start, clock = time.process_time(), time.perf_counter()
        with SILENT.stage(name, total, unit) as stage:
            yield stage
        self.spent[name] = round(time.process_time() - start, 1)
        took = f"{self.spent[name]:,.1f} s of processors, {time.perf_counter() - clock:,.1f} s"
        print(f"{name}: {took}, {own_bytes(os.getpid()) / 1e9:.2f} GB", file=sys.stderr, flush=True)


def measure(folder: Path, method: str, memory: str | None) -> dict[str, Any]:
    """Train, rank the test paths, score; one process measures one method."""
    from dxml._core.memory import open_limit
    from dxml.bench._machine import circumstances, peak_bytes

    row: dict[str, Any] = {
        "method": method,
        "part": (folder / "part.txt").read_text(),
        "memory": memory,
    }
    load = [os.getloadavg()[0]]
    with OwnMemory(os.getpid()) as own, open_limit(memory):
        row |= scored(folder, method)
    return row | {
        "peak_gb": round(peak_bytes() / 1e9, 2),
        "own_gb": round(own.peak / 1e9, 2),
        "load": [round(each, 1) for each in (*load, os.getloadavg()[0])],
        **circumstances(device="cpu", seed=0),
    }


def scored(folder: Path, method: str) -> dict[str, Any]:
    """Sizes, seconds by the clock and of processors, and P@k."""
    from dxml.metrics import evaluate
    from dxml.text import TextFeatures, read_table

    watch, stages = Watch(), Stages()
    with stages.stage("reading"):
        train = read_table(folder / "train.jsonl", "text", "labels")
        test = read_table(folder / "test.jsonl", "text", "labels")
    assert train.labels is not None and test.labels is not None
    names = sorted(set().union(*train.labels))
    column = {name: place for place, name in enumerate(names)}
    watch.lap("reading")
    with stages.stage("features"):
        features = TextFeatures()
        X, Y = features.fit_transform(train.texts), carried(train.labels, column)
        tests, truth = features.transform(test.texts), carried(test.labels, column)
    del train, test, features  # strings take more than the matrices
    watch.lap("features")
    ranking = RANKERS[method](X, Y, tests, watch, stages)
    watch.lap("predict")
    scores = evaluate(truth, ranking)
    return {
        "train": X.shape[0],
        "test": tests.shape[0],
        "test_of_unknown_packages": int((truth.getnnz(axis=1) == 0).sum()),
        "features": X.shape[1],
        "packages": len(names),
        "seconds": watch.seconds,
        "cpu_seconds": watch.cpu_seconds,
        "stages_cpu_seconds": stages.spent,
        "scores": {f"P@{k}": round(scores[f"P@{k}"], 2) for k in (1, 3, 5)},
    }


class Watch:
    """Seconds by the clock and of processors, from lap to lap."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu_seconds: dict[str, float] = {}
        self.skip()

    def skip(self) -> None:
        """Count from now on."""
        self._since = time.perf_counter(), time.process_time()

    def lap(self, name: str) -> None:
        """What went since the last one was for this."""
        clock, cpu = self._since
        self.skip()
        self.seconds[name] = round(self._since[0] - clock, 1)
        self.cpu_seconds[name] = round(self._since[1] - cpu, 1)


def carried(labels: Iterable[Iterable[str]], column: dict[str, int]) -> Any:
    """Names as a 0/1 matrix; packages that training never saw are left out."""
    import numpy as np

    from dxml._core.sparse import indicator

    rows = [[column[name] for name in row if name in column] for row in labels]
    flat = np.array([place for row in rows for place in row], dtype=np.int32)
    return indicator(flat, [len(row) for row in rows], len(column))


def rank_with(method: str, **given: Any) -> Any:
    def rank(X: Any, Y: Any, tests: Any, watch: Watch, stages: Stages) -> Any:
        from dxml.methods import method_class

        cls = method_class(method)
        settings = {"device": "cpu"} if "device" in cls().get_params() else {}
        model = cls(**settings, **given).fit(X, Y, progress=stages)
        watch.lap("train")
        return model.predict_topk(tests, 5)

    return rank


def rank_with_omikuji(X: Any, Y: Any, tests: Any, watch: Watch, stages: Stages) -> Any:
    import numpy as np
    import omikuji

    from dxml._core.threads import n_threads
    from dxml.data import Dataset, write
    from dxml.topk import TopK

    n = tests.shape[0]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        write(Dataset(X, Y), file)
        del X, Y
        watch.skip()
        chosen = omikuji.Model.default_hyper_param()
        model = omikuji.Model.train_on_data(str(file), chosen, n_threads=n_threads())
        watch.lap("train")
    ids, scores = np.full((n, 5), -1, np.int32), np.zeros((n, 5), np.float32)
    for i in range(n):
        row = slice(tests.indptr[i], tests.indptr[i + 1])
        pairs = list(zip(tests.indices[row].tolist(), tests.data[row].tolist(), strict=True))
        for place, (label, score) in enumerate(model.predict(pairs, top_k=5)[:5]):
            ids[i, place], scores[i, place] = label, score
    return TopK(ids, scores)


RANKERS = {
    "joint": rank_with("joint"),
    "no-trees": rank_with("joint", n_trees=0),
    "knn": rank_with("knn"),
    "omikuji": rank_with_omikuji,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("make")
    made.add_argument("folder", type=Path)
    made.add_argument("lists", type=Path, nargs="+")
    made.add_argument("--paths", type=int)
    made.add_argument("--test", type=int, default=20_000)
    made.add_argument("--validation", action="store_true")
    measured = commands.add_parser("measure")
    measured.add_argument("folder", type=Path)
    measured.add_argument("method", choices=sorted(RANKERS))
    measured.add_argument("--memory", help="what the process may have, such as 10GB")
    given = parser.parse_args()
    if given.command == "make":
        part = "validation" if given.validation else "test"
        make(given.folder, given.lists, given.paths, given.test, part)
        return
    row = measure(given.folder, given.method, given.memory)
    rows = (read_results(STORED) or {"runs": []})["runs"]
    key = ("method", "part", "train")
    rows = [old for old in rows if [old.get(name) for name in key] != [row[name] for name in key]]
    write_results(STORED, {"runs": [*rows, row]})
    if row["part"] == "test":
        log_test("contents", given.method, row)
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
