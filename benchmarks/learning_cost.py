"""How long one lesson takes, by the number of texts that a tagger knows.

    python benchmarks/learning_cost.py

Texts are generated; labels are 2 for every 5 texts, and a text carries about three. Printed are the
median seconds of a lesson of one text for each size, and the exponent e of a fit seconds ~ texts^e:
0 where a lesson costs the same however much is known, 1 where it costs as much as there are texts.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median

import numpy as np

from dxml import TextTagger

SIZES = (12_500, 25_000, 50_000)
LESSONS = 20
WORDS = 60  # of a text


def make_texts(n: int, n_labels: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Each label has five words of its own; a text has ten of each of its labels, and others."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, 5001)
    common /= common.sum()
    texts, labels = [], []
    for _ in range(n):
        own = np.unique((n_labels * rng.random(3) ** 2).astype(int))
        words = [f"w{word}" for word in rng.choice(5000, size=WORDS - 10 * len(own), p=common)]
        words += [f"l{label}x{rng.integers(5)}" for label in own for _ in range(10)]
        texts.append(" ".join(words))
        labels.append([f"label {label}" for label in own])
    return texts, labels


def seconds_of_a_lesson(n: int, lessons: int, new_words: bool) -> tuple[float, float]:
    """Medians: of one lesson, and of one ranking after it."""
    n_labels = 2 * n // 5
    texts, labels = make_texts(n + lessons + 2, n_labels, seed=0)
    tagger = TextTagger(device="cpu", candidates="nearest", width=0, encoder="none", C=1.0)
    tagger.fit(texts[:n], labels[:n])
    taught, asked = [], []
    for i in range(lessons + 2):
        text = f"{texts[n + i]} new{i}" if new_words else texts[n + i]
        start = time.perf_counter()
        tagger.learn([text], [labels[n + i]])
        middle = time.perf_counter()
        tagger.tag(text)
        taught.append(middle - start)
        asked.append(time.perf_counter() - middle)
    return median(taught[2:]), median(asked[2:])  # the first two compile and build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--lessons", type=int, default=LESSONS)
    parser.add_argument("--known-words", action="store_true", help="lessons without new words")
    given = parser.parse_args()
    rows = [seconds_of_a_lesson(n, given.lessons, not given.known_words) for n in given.sizes]
    for n, (lesson, ranking) in zip(given.sizes, rows, strict=True):
        print(f"{n:>9,} texts: {lesson:.5f} s a lesson, {ranking:.5f} s a ranking after it")
    exponent = np.polyfit(np.log(given.sizes), np.log([lesson for lesson, _ in rows]), 1)[0]
    print(json.dumps({"sizes": list(given.sizes), "seconds": rows, "exponent": exponent}))


if __name__ == "__main__":
    main()
