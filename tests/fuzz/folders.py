"""Model folders, damaged at random: whatever is in one, opening it is an error that says so.

Small models of every kind are saved once. Each trial damages a copy of one, then a worker process
opens it, predicts and explains. What came of it is one of

- ``refused``: a `ModelFormatError`, the right answer;
- ``same``: the model answers what it answered before;
- ``different``: it opens and answers something else;
- ``wrong kind``: another exception than one of ours, or an answer that is not finite;
- ``signal``: the process died; ``hang``: it took longer than the limit.

Every other trial writes right checksums over the damage, so that the checks of the arrays
themselves are met; there a model may answer something else, as nobody can tell. The exit code is 1
if there was a signal, a hang or a wrong kind, or something different under a wrong checksum.

    python -m tests.fuzz.folders --trials 5000 --seed 1
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np

from dxml._core.storage import sealed
from dxml.data import Dataset, make_planted
from dxml.exceptions import DxmlError, ModelFormatError
from dxml.methods import METHODS, TAGGER, load_model, method_class, saved_method
from dxml.tagging._tagger import Columns, TextTagger

from .record import add, started
from .well_formed import WELL_FORMED, arrays_file, places

LIMIT = 60  # seconds of a core that a trial may take: odd types may have to be compiled for
PATIENCE = 10  # times as long by the clock, as others may want the cores too
BAD = ("signal", "hang", "wrong kind")
NOT_FINITE = re.compile(r"(?<![\w'\"])(nan|inf)(?![\w'\"])")
KINDS = ("refused", "same", "different", *BAD)
QUICK: dict[str, dict[str, Any]] = {
    "joint": {"width": 8, "epochs": 1},
    "dxml": {"epochs": 2, "walks_per_label": 3, "dim": 4, "hidden": 8, "n_partitions": 2},
    "sleec": {"n_learners": 2, "n_clusters": 2, "dim": 4, "max_iter": 2},
    "leml": {"max_iter": 2},
    "wsabie": {"dim": 4},
    "cs": {"decoder": "omp"},
    "fastxml": {"n_trees": 3},
    "lpsr": {"leaf_size": 10},
}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "joint-int8": ("joint", {"width": 8, "epochs": 1, "precision": "int8"}),
    "joint-float32": ("joint", {"width": 0, "precision": "float32"}),
    "joint-nearest": ("joint", {"candidates": "nearest", "width": 8, "epochs": 1}),
    "joint-trees": ("joint", {"candidates": "nearest", "n_trees": 2, "width": 0}),
    "joint-dense": ("joint", {"scaling": "columns", "width": 0}),
    "cs-correlation": ("cs", {"decoder": "correlation"}),
    "lpsr-bayes": ("lpsr", {"base": "naive_bayes", "leaf_size": 10}),
}
TEXTS = [
    f"{a} {b} in the {c}"
    for a in ("fish", "salt", "soup")
    for b in ("boils", "swims", "waits")
    for c in ("sea", "pot", "shop", "sun")
]


def planted() -> Dataset:
    return make_planted(60, 20, 6, labels_per_point=2, features_per_point=5, random_state=0)


def save_models(folder: Path, deep: bool = False) -> list[Path]:
    """A small model of every method and variant, and taggers; `deep`: also those of PyTorch."""
    data = planted()
    kinds = {name: (name, QUICK.get(name, {})) for name in METHODS} | VARIANTS
    for name, (method, settings) in kinds.items():
        method_class(method)(**settings).fit(data.X, data.Y).save(folder / name)
    labels = [text.split()[::2] for text in TEXTS]
    info = {"name": ["fish", "salt", "soup", "food"], "parents": ["food", "food", "food", ""]}
    tagger = TextTagger(min_df=1).fit(TEXTS, labels, label_info=info)
    tagger.columns = Columns(("text",), "labels")
    tagger.save(folder / "tagger")
    TextTagger(min_df=1, char_ngrams=3, precision="int8").fit(TEXTS, labels).save(folder / "grams")
    tagger.learn(["salt on ice", "soup of ice"], [["salt", "ice"], ["soup"]])
    tagger.save(folder / "taught")
    if deep:
        _save_deep(folder, labels)
    return sorted(path for path in folder.iterdir())


def _save_deep(folder: Path, labels: list[list[str]]) -> None:
    """Taggers with an encoder that was trained with the labels, and with word vectors."""
    from tests._deep.planting import write_encoder, write_static

    with tempfile.TemporaryDirectory() as own:
        (encoder := Path(own) / "encoder").mkdir()
        (static := Path(own) / "static").mkdir()
        settings: dict[str, Any] = {"min_df": 1, "width": 0, "device": "cpu"}
        read = {"encoder": str(write_encoder(encoder)), "encoder_epochs": 1, "max_tokens": 16}
        TextTagger(**settings, **read).fit(TEXTS, labels).save(folder / "encoder")
        vectors = str(write_static(static))
        TextTagger(**settings, vectors=vectors).fit(TEXTS, labels).save(folder / "vectors")


def answers(folder: Path) -> str:
    """What the model of a folder says of a few points, as one text; numbers in it are finite."""
    said = _said(folder)
    if NOT_FINITE.search(said):
        raise ArithmeticError(f"a number that is not finite: {said}")
    return said


def _said(folder: Path) -> str:
    if saved_method(folder) == TAGGER:
        tagger = TextTagger.load(folder)
        found: list[Any] = [tagger.tag(TEXTS[:5], top=3), tagger.explain(TEXTS[0], top=2)]
        found += [tagger.describe(name) for name in tagger.labels_[:3]]
        return repr((found, tagger.columns))
    model = load_model(folder)
    X = planted().X[:5]
    ranking = model.predict_topk(X, 3)
    said = (ranking.indices.tolist(), ranking.scores.tolist())
    return repr((said, model.explain(X[:1], 2) if hasattr(model, "explain") else None))


# --- damage ---------------------------------------------------------------------------------------


def _header(content: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _with_header(header: Any, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def change_bytes(folder: Path, rng: random.Random) -> None:
    """1 to 64 random bytes of the arrays' data."""
    path = arrays_file(folder)
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        content[rng.randrange(start, len(content))] = rng.choice(
            [0, 1, 127, 128, 255, rng.randrange(256)]
        )
    path.write_bytes(content)


def change_number(folder: Path, rng: random.Random) -> None:
    """One number of one array becomes an odd one; small arrays as likely as large ones."""
    path = arrays_file(folder)
    header, body = _header(path.read_bytes())
    kinds = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U16": "<u2"}
    name = rng.choice([name for name, entry in header.items() if entry["dtype"] in kinds])
    dtype = np.dtype(kinds[header[name]["dtype"]])
    begin, end = header[name]["data_offsets"]
    if begin == end:
        return
    numbers = np.frombuffer(body[begin:end], dtype).copy()
    if dtype.kind == "f":
        odd = [np.nan, np.inf, -np.inf, -1, 0, 1e30, -1e30, 1e-40, 3.5, 60000]
    else:
        most = np.iinfo(dtype).max
        odd = [0, 1, 2, 7, 100, most, *((-1, -2, -most - 1) if dtype.kind == "i" else ())]
    with np.errstate(all="ignore"):
        numbers[rng.randrange(len(numbers))] = np.array(rng.choice(odd)).astype(dtype)
    path.write_bytes(_with_header(header, body[:begin] + numbers.tobytes() + body[end:]))


def change_header(folder: Path, rng: random.Random) -> None:
    """An entry of the header lies: another type, shape or place, or no entry at all."""
    path = arrays_file(folder)
    header, body = _header(path.read_bytes())
    name = rng.choice(list(header))
    entry = header[name]
    begin, end = entry["data_offsets"]
    what = rng.randrange(9)
    if what == 0:
        entry["dtype"] = rng.choice(["F64", "F32", "F16", "I64", "I32", "U8", "BOOL", "BF16", 3])
    elif what == 1:
        entry["shape"] = rng.choice([[], [0], [end - begin], [2**62, 4], [-1], "ab", [1.5], None])
    elif what == 2:
        entry["data_offsets"] = rng.choice([[0, 0], [end, begin], [-8, 0], [0, 2**63], [1], "x"])
    elif what == 3:
        shift = rng.choice([-64, -8, -1, 1, 8, 64])
        entry["data_offsets"] = [begin + shift, end + shift]
    elif what == 4:
        entry["shape"] = entry["shape"][::-1]
    elif what == 5:
        del header[name]
    elif what == 6:
        header[name] = rng.choice([None, [], 7, "x", {}])
    elif what == 7:
        header = rng.choice([[], 5, None, "x", [header]])
    else:
        count = rng.choice([1, 2, 4, 8])
        if entry["shape"] and entry["shape"][0] >= count:
            entry["shape"][0] -= count
            size = (end - begin) // (entry["shape"][0] + count)
            entry["data_offsets"][1] -= count * size
    path.write_bytes(_with_header(header, body))


def swap_arrays(folder: Path, rng: random.Random) -> None:
    """Two arrays of one type change names, or one takes another's name."""
    path = arrays_file(folder)
    header, body = _header(path.read_bytes())
    first = rng.choice(list(header))
    alike = [name for name in header if header[name]["dtype"] == header[first]["dtype"]]
    second = rng.choice(alike)
    header[first], header[second] = header[second], header[first]
    if rng.random() < 0.3:
        header[rng.choice(["x", first + ".scale", second])] = header.pop(first)
    path.write_bytes(_with_header(header, body))


def cut_arrays(folder: Path, rng: random.Random) -> None:
    """The file ends early, is empty, or goes on; or its header's length lies."""
    path = arrays_file(folder)
    content = path.read_bytes()
    what = rng.randrange(3)
    if what == 0:
        path.write_bytes(content[: rng.randrange(len(content))])
    elif what == 1:
        path.write_bytes(content + bytes(rng.randrange(1, 100)))
    else:
        length = rng.choice([0, 1, 2**40, 2**63, 2**64 - 1, rng.randrange(len(content))])
        path.write_bytes(length.to_bytes(8, "little") + content[8:])


def change_config(folder: Path, rng: random.Random) -> None:
    """One value of config.json is another, is of another type, or is gone."""
    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8"))
    config.pop("sha256", None)
    container, key = rng.choice(list(places(config)))
    value = container[key]
    if rng.random() < 0.15:
        del container[key]
    else:
        odd = [None, True, False, 0, -1, 1, 2, 10**12, 10**40, 0.5, -1.5, 1e300, "", "x", "../x"]
        odd += [[], {}, [[]], [None], {"a": 1}]
        odd += [value + 1, value - 1, float(value)] if isinstance(value, int | float) else []
        container[key] = rng.choice(odd)
    text = json.dumps(config, indent=2, ensure_ascii=False)
    path.write_text(text.replace("Infinity", "1e999") + "\n", "utf-8")


def change_text(folder: Path, rng: random.Random) -> None:
    """Random bytes of config.json, a piece of it doubled, or much too deep a list."""
    path = folder / "config.json"
    content = bytearray(path.read_bytes())
    what = rng.randrange(4)
    if what == 0:
        for _ in range(rng.choice([1, 2, 8])):
            content[rng.randrange(len(content))] = rng.randrange(256)
    elif what == 1:
        a, b = sorted(rng.randrange(len(content)) for _ in range(2))
        content[a:b] = content[a:b] * 2
    elif what == 2:
        del content[rng.randrange(len(content)) :]
    else:
        content = bytearray(b"[" * 200_000 if rng.random() < 0.5 else b'{"format": 4, "a":' * 5_000)
    path.write_bytes(content)


def change_files(folder: Path, rng: random.Random) -> None:
    """A file is missing, is a folder, a link or a pipe, or has another name."""
    path = rng.choice([arrays_file(folder), folder / "config.json"])
    aside = path.with_name("aside")
    path.rename(aside)
    what = rng.randrange(4)
    if what == 0:
        path.mkdir()
    elif what == 1:
        path.symlink_to(aside.name if rng.random() < 0.5 else "/dev/zero")
    elif what == 2:
        os.mkfifo(path)


DAMAGE: tuple[tuple[Callable[[Path, random.Random], None], int], ...] = (
    (change_bytes, 4),
    (change_number, 6),
    (change_header, 3),
    (swap_arrays, 2),
    (cut_arrays, 1),
    (change_config, 5),
    (change_text, 1),
    (change_files, 1),
    *WELL_FORMED,
)


def _content(path: Path) -> bytes:
    if path.is_symlink() or not path.is_file():  # a pipe would never end
        raise OSError(f"{path} is no file")
    return path.read_bytes()


def seal(folder: Path) -> None:
    """Right checksums and sizes over whatever is there, where it can still be read at all."""
    path = folder / "config.json"
    try:
        config = json.loads(_content(path))
        config.pop("sha256", None)
        entry = config["arrays"]
        content = _content(folder / entry["file"])
        if "sha256" in entry:
            entry["sha256"] = hashlib.sha256(content).hexdigest()
            entry["crc32"], entry["bytes"] = zlib.crc32(content), len(content)
        path.write_bytes(sealed(config))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return


# --- workers --------------------------------------------------------------------------------------


def _serve(pipe: Connection, whose: str) -> None:
    """Open folders as they come; `whose` is the folder of the sound models."""
    expected = {path.name: answers(path) for path in sorted(Path(whose).iterdir())}
    pipe.send("ready")
    sys.setrecursionlimit(1000)
    np.seterr(all="ignore")
    while True:
        name, folder = pipe.recv()
        try:
            found = "same" if answers(Path(folder)) == expected[name] else "different"
            pipe.send((found, ""))
        except ModelFormatError as error:
            pipe.send(("refused", str(error)))
        except DxmlError as error:
            pipe.send(("refused", f"{type(error).__name__}: {error}"))
        except BaseException as error:
            pipe.send(("wrong kind", "".join(traceback.format_exception(error)[-4:])))


def _core_seconds(process: int | None) -> float:
    """Seconds that a process has had a core for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that opens folders, and a new one where it died."""

    def __init__(self, sound: Path) -> None:
        self._sound = sound
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, str(self._sound)), daemon=True)
        self._process.start()
        theirs.close()
        if self._pipe.recv() != "ready":
            raise RuntimeError("a worker did not start")

    def open(self, name: str, folder: Path) -> tuple[str, str]:
        """What came of it, and the last of what was said."""
        self._pipe.send((name, str(folder)))
        try:
            if self._answers():
                found: tuple[str, str] = self._pipe.recv()
                return found
            kind, said = "hang", f"over {LIMIT} s"
        except (EOFError, ConnectionResetError):
            self._process.join()
            number = -(self._process.exitcode or 0)
            kind, said = "signal", signal.Signals(number).name if number > 0 else f"exit {-number}"
        self._process.kill()
        self._process.join()
        self._start()
        return kind, said

    def _answers(self) -> bool:
        """Whether it answers in time."""
        start = _core_seconds(self._process.pid)
        for _ in range(PATIENCE * LIMIT):
            if self._pipe.poll(1):
                return True
            if _core_seconds(self._process.pid) - start > LIMIT:
                break
        return False

    def close(self) -> None:
        self._process.kill()
        self._process.join()


@dataclass(frozen=True)
class Trial:
    """A number from which all of its chances follow."""

    seed: int
    number: int
    models: list[Path]

    def run(self, worker: Worker, folder: Path) -> tuple[str, bool, str, str]:
        """(how it was damaged, was it sealed again, what came of it, what was said)."""
        rng = random.Random(f"{self.seed} {self.number}")
        model, is_sealed = rng.choice(self.models), rng.random() < 0.5
        shutil.copytree(model, folder)
        ways = [way for way, _ in DAMAGE]
        way = rng.choices(ways, [weight for _, weight in DAMAGE])[0]
        way(folder, rng)
        if is_sealed:
            seal(folder)
        found, said = worker.open(model.name, folder)
        shutil.rmtree(folder)
        return f"{model.name}: {way.__name__}", is_sealed, found, said


def fuzz(
    trials: int,
    seconds: float,
    seed: int,
    n_workers: int,
    folder: Path,
    output: Path | None = None,
    deep: bool = False,
) -> int:
    """Run trials until there were enough of them, or the time is up; the exit code.

    What was found is added to the file `output`, now and then and at the end.
    """
    (folder / "sound").mkdir()
    models = save_models(folder / "sound", deep)
    free: Queue[Worker] = Queue()
    workers = [Worker(folder / "sound") for _ in range(n_workers)]
    for worker in workers:
        free.put(worker)
    counts: Counter[tuple[bool, str]] = Counter()
    begin = time.monotonic()
    end = begin + seconds
    run = started(seed)
    run["models"] = len(models)

    def store() -> None:
        run["seconds"], run["trials"] = round(time.monotonic() - begin), counts.total()
        for is_sealed, name in ((False, "checksums as they were"), (True, "written again")):
            run[name] = {kind: counts[is_sealed, kind] for kind in KINDS}
        add(output, run)

    def one(number: int) -> bool:
        if time.monotonic() > end:
            return True
        worker = free.get()
        try:
            how, is_sealed, found, said = Trial(seed, number, models).run(
                worker, folder / f"trial-{number}"
            )
        finally:
            free.put(worker)
        counts[is_sealed, found] += 1
        if counts.total() % 500 == 0:
            store()
        good = found not in BAD and (is_sealed or found != "different")
        if not good:
            print(f"trial {number}: {how}{', sealed' * is_sealed}: {found}\n{said}", flush=True)
        return good

    with ThreadPoolExecutor(n_workers) as pool:
        all_good = all(list(pool.map(one, range(trials))))
    for worker in workers:
        worker.close()
    store()
    for is_sealed in (False, True):
        said = ", ".join(f"{counts[is_sealed, kind]:,} {kind}" for kind in KINDS)
        print(f"checksums {'written again' if is_sealed else 'as they were'}: {said}")
    print(f"{counts.total():,} trials on {len(models)} models: {'good' if all_good else 'BAD'}")
    return 0 if all_good else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=3600, help="stop earlier, after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--deep", action="store_true", help="also models with an encoder, vectors")
    parser.add_argument("--output", type=Path, help="a JSON file that the figures are added to")
    given = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # for the workers
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")
    with tempfile.TemporaryDirectory() as folder:
        return fuzz(
            given.trials,
            given.seconds,
            given.seed,
            given.workers,
            Path(folder),
            given.output,
            given.deep,
        )


if __name__ == "__main__":
    sys.exit(main())
