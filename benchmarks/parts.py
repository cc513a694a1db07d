"""Speed and memory of the parts, each as a ratio to its bound: 1.0 or more is met.

    make bench-parts                                  # on generated twins of the data sets
    DXML_DATA=folder make bench-parts                 # on the real ones, where the folder has them

Everything is measured in this one run; on a busy machine compare ratios, not seconds.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

import label_vectors
from dxml._core.device import resolve_device
from dxml.base import Classifier
from dxml.bench._machine import circumstances, peak_bytes
from dxml.data import Dataset, is_present, load_dataset, make_twin, read, write
from dxml.joint import Joint
from dxml.paper._dxml import DXML
from stored_results import write_results

ROWS: list[tuple[str, str, str, float]] = []


def report(what: str, measured: str, bound: str, ratio: float) -> None:
    ROWS.append((what, measured, bound, ratio))
    print(f"{what:52} {measured:>16}   bound {bound:>12}   ratio {ratio:5.2f}", flush=True)


def dataset(name: str, part: str) -> Dataset:
    """The real data set where it is here, else its generated twin."""
    if is_present(name):
        return load_dataset(name, part)  # type: ignore[arg-type]
    return make_twin(name, random_state=0 if part == "train" else 1)


def fastest(action: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def reading(train: Dataset, folder: Path) -> None:
    path = folder / "train.txt"
    write(train, path)
    megabytes = path.stat().st_size / 1e6
    warm = folder / "warm.txt"
    write(train.take(range(50)), warm)
    read(warm)
    rate = megabytes / fastest(lambda: read(path), 5)
    report(f"reading {megabytes:.0f} MB of text", f"{rate:.0f} MB/s", "60 MB/s", rate / 60)
    command = [sys.executable, __file__, "--peak", str(warm), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown = float(done.stdout)
    report("  peak memory over the CSR's bytes", f"{grown:.2f} times", "3 times", 3 / grown)


def peak(warm: str, path: str) -> None:
    """In a process of its own: growth of the peak resident memory over the CSR's size."""
    read(warm)
    before = peak_bytes()
    data = read(path)
    grown = peak_bytes() - before
    arrays = [a for m in (data.X, data.Y) for a in (m.data, m.indices, m.indptr)]
    print(grown / sum(array.nbytes for array in arrays))


def predicting(model: Classifier, train: Dataset, test: Dataset, most: tuple[float, float]) -> None:
    """Milliseconds a point, in batches and one by one, beside the most they may take."""
    model.fit(train.X, train.Y)
    rows, name = test.X[:3809], model.method
    model.predict_topk(rows[:10], 5)
    batch = 1000 * fastest(lambda: model.predict_topk(rows, 5), 3) / rows.shape[0]
    bound = f"{most[0]:g} ms"
    report(f"{name}: predicting in batches", f"{batch:.3f} ms/point", bound, most[0] / batch)
    single = []
    for i in range(200):
        row = rows[i]
        start = time.perf_counter()
        model.predict_topk(row, 5)
        single.append(1000 * (time.perf_counter() - start))
    median = statistics.median(single)
    bound = f"{most[1]:g} ms"
    report(f"{name}: predicting one point, median", f"{median:.3f} ms", bound, most[1] / median)


def training_on_a_gpu(train: Dataset) -> None:
    if not torch.cuda.is_available():
        print("training on a GPU: no GPU here, not measured")
        return
    model = DXML(device="cuda", epochs=60, n_partitions=1, n_neighbors=10)
    model.fit(train.X[:2000], train.Y[:2000])
    seconds = fastest(lambda: model.fit(train.X, train.Y), 1)
    device = torch.cuda.get_device_name()
    report(f"fit, 60 epochs, {train.name}, {device}", f"{seconds:.1f} s", "10 s", 10 / seconds)


def store(data: str) -> None:
    """Keep what was measured, for docs/results.md."""
    record = {
        **circumstances(device=resolve_device("auto"), seed=0),
        "data": data,
        "rows": ROWS,
    }
    write_results("parts.json", record)


def main() -> None:
    if find_spec("gensim") is None:
        sys.exit("label vectors are compared with gensim's. Install it: pip install 'gensim>=4.3'")
    train, test = dataset("eurlex-4k", "train"), dataset("eurlex-4k", "test")
    kind = "real" if is_present("eurlex-4k") else "a generated twin of"
    print(f"{kind} eurlex-4k; {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        reading(train, Path(folder))
    quick = DXML(epochs=2, n_partitions=1, n_neighbors=10, walks_per_label=5, device="cpu")
    predicting(quick, train, test, most=(1, 3))
    predicting(Joint(device="cpu"), train, test, most=(1, 1))
    training_on_a_gpu(dataset("mediamill", "train"))
    label_vectors.compare(train, test, report)
    store(f"{kind} Eurlex-4K")
    missed = [what for what, _, _, ratio in ROWS if ratio < 1]
    print("all bounds met" if not missed else f"not met: {'; '.join(missed)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        peak(*sys.argv[2:])
    else:
        main()
