"""Is a part of Joint worth having: related labels, wide layers, their votes, other weights?

    DXML_DATA=folder python benchmarks/parts_worth.py relations --data bibtex delicious mediamill
    DXML_DATA=folder python benchmarks/parts_worth.py learners --data delicious --width 4096
    DXML_DATA=folder python benchmarks/parts_worth.py interactions --data eurlex-4k pubmed-mesh
    DXML_DATA=folder python benchmarks/parts_worth.py votes --data mediamill
    DXML_DATA=folder python benchmarks/parts_worth.py training --data mediamill

relations: of labels, in the kernel; learners: four wide layers in place of one; interactions:
weights of the parts that depend on the frequency of a label; votes: a second loss of the wide
layer, by which neighbours are to say a point's labels; training: 120 epochs of 2,048 units on dense
features and those votes, in place of 40 epochs of 4,096 units. Joint is trained on four fifths of
the training part and scored on the rest, with what is asked about and without it, on the same
splits.
Test points are not read. Printed are P@k and PSP@k for k of 1, 3 and 5, and the mean difference
with its standard error over the splits; the runs are added to benchmarks/results/parts-worth.jsonl.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from dxml import Joint
from dxml._core.device import resolve_device
from dxml._learners.kernel_choice import MOST_RELATED
from dxml.bench._machine import circumstances
from dxml.data import load_dataset
from dxml.joint._mixture import LEAST_INTERACTIONS
from dxml.joint.parts._wide import WidePart
from dxml.metrics import inverse_propensity, precision_at_k, psp_at_k
from stored_results import RESULTS, add_result

STORED = RESULTS / "parts-worth.jsonl"
STUDIES = ("relations", "learners", "interactions", "votes", "training")
LEARNERS = {"with": 4, "without": 1}
SHORTER = {"width": 4096, "epochs": 40}


@contextmanager
def switched(what: str, name: str) -> Iterator[None]:
    """Within this context `what` is on ("with") or off ("without")."""
    if what == "relations":
        most = MOST_RELATED if name == "with" else 0
        with patch("dxml._learners.kernel_choice.MOST_RELATED", most):
            yield
        return
    if what == "interactions":
        least = LEAST_INTERACTIONS if name == "with" else 1 << 40
        with patch("dxml.joint._mixture.LEAST_INTERACTIONS", least):
            yield
        return
    if what == "votes":
        kept = WidePart.variants if name == "with" else classmethod(lambda *_: ())
        with patch.object(WidePart, "variants", kept):
            yield
        return
    if what == "training":
        with ExitStack() as before:
            if name == "without":
                before.enter_context(switched("votes", name))
                before.enter_context(planned(SHORTER))
            yield
        return
    with planned({"learners": LEARNERS[name]}):
        yield


@contextmanager
def planned(changes: dict[str, int]) -> Iterator[None]:
    """Within this context the wide layer is planned with these settings in place of its own."""
    plan = WidePart.plan

    def changed(*given: Any) -> Any:
        settings = plan(*given)
        return None if settings is None else {**settings, **changes}

    with patch.object(WidePart, "plan", changed):
        yield


def precision(data: str, split: int, settings: dict[str, Any]) -> tuple[list[float], float]:
    """P@k and PSP@k in per cent on a fifth of the shuffled training part, and seconds."""
    whole = load_dataset(data, "train")
    order = np.random.default_rng(split).permutation(whole.n_samples)
    held = max(1, len(order) // 5)
    train, rest = whole.take(np.sort(order[held:])), whole.take(np.sort(order[:held]))
    begun = time.perf_counter()
    model = Joint(random_state=split, **settings).fit(train.X, train.Y)
    seconds = time.perf_counter() - begun
    ranking, counts = model.predict_topk(rest.X, 5), model.label_frequency_
    found = precision_at_k(rest.Y, ranking, 5)
    rare = psp_at_k(rest.Y, ranking, 5, inverse_propensity(counts, train.n_samples))
    scores = [100 * float(each[k]) for each in (found, rare) for k in (0, 2, 4)]
    return [round(score, 3) for score in scores], round(seconds, 1)


def main() -> None:
    """Train, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=STUDIES)
    parser.add_argument("--data", nargs="+", default=["bibtex", "delicious", "mediamill"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--width", type=int, help="of the wide layer; by default Joint's")
    parser.add_argument("--epochs", type=int, help="of the wide layer; by default Joint's")
    parser.add_argument("--output", type=Path, default=STORED)
    asked = parser.parse_args()
    settings = {"device": asked.device, "width": asked.width, "epochs": asked.epochs}
    for data in asked.data:
        runs: dict[str, list[list[float]]] = {"with": [], "without": []}
        seconds: dict[str, list[float]] = {"with": [], "without": []}
        for split in range(asked.splits):
            for name in runs:
                with switched(asked.what, name):
                    found, taken = precision(data, split, settings)
                runs[name].append(found)
                seconds[name].append(taken)
                print(f"{data}, split {split}, {name} {asked.what}: {found}, {taken} s", flush=True)
        gain = np.array(runs["with"]) - np.array(runs["without"])
        mean, error = gain.mean(0), gain.std(0, ddof=1) / len(gain) ** 0.5
        print(
            f"{data}: {asked.what} add",
            *(f"{m:+.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True)),
        )
        record = {
            **circumstances(device=resolve_device(asked.device), seed=list(range(asked.splits))),
            "what": asked.what,
            "settings": settings,
            "data": data,
            "P@1, P@3, P@5, PSP@1, PSP@3, PSP@5": runs,
            "seconds": seconds,
            "gain": [round(float(value), 3) for value in mean],
            "standard error": [round(float(value), 3) for value in error],
        }
        add_result(asked.output, record)


if __name__ == "__main__":
    main()
