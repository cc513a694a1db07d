"""How long one lesson takes, by the number of texts that a tagger knows.

    python benchmarks/learning_cost.py
    python benchmarks/learning_cost.py --candidates all --sizes 1000 4000

Texts are generated; labels are 2 for every 5 texts, and a text carries about three. A lesson learns
a text, learns another text under an id that is known, forgets a text, or takes a label off one.
Printed are the median milliseconds of each lesson and of the first ranking after it at every size,
and how many times as long the largest size takes as the smallest: 1 where a lesson costs the same
however much is known.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from dxml import TextTagger

SIZES = (12_500, 50_000)
LESSONS = 20
FIRST = 2  # lessons that compile and build, and are not measured
WORDS = 60  # of a text

Lesson = Callable[[int], object]


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


def fitted(
    n: int, n_lessons: int, candidates: str
) -> tuple[TextTagger, list[str], list[list[str]]]:
    """A tagger of n texts, and texts and labels for lessons."""
    texts, labels = make_texts(n + 2 * n_lessons, 2 * n // 5, seed=0)
    settings = {"candidates": candidates, "width": 0, "encoder": "none", "C": 1.0}
    tagger = TextTagger(device="cpu", **settings).fit(texts[:n], labels[:n])
    return tagger, texts[n:], labels[n:]


def lessons_of(
    tagger: TextTagger, texts: list[str], labels: list[list[str]], new_words: bool
) -> dict[str, Lesson]:
    """Every kind of lesson, as a function of its number."""
    half = len(texts) // 2
    if new_words:
        texts = [f"{text} new{i}" for i, text in enumerate(texts)]

    def unlabel(i: int) -> object:
        return tagger.remove_label(str(i), tagger.labels_of(str(i))[0])

    return {
        "learn": lambda i: tagger.learn([texts[i]], [labels[i]], ids=[f"taught {i}"]),
        "learn again": lambda i: tagger.learn(
            [texts[half + i]], [labels[half + i]], ids=[f"taught {i}"]
        ),
        "forget": lambda i: tagger.forget(f"taught {i}"),
        "unlabel": unlabel,
    }


def measure(n: int, n_lessons: int, candidates: str, new_words: bool) -> dict[str, list[float]]:
    """Median milliseconds of each kind of lesson, and of one ranking after it."""
    n_lessons += FIRST
    tagger, texts, labels = fitted(n, n_lessons, candidates)
    found = {}
    for kind, lesson in lessons_of(tagger, texts, labels, new_words).items():
        taught, asked = [], []
        for i in range(n_lessons):
            start = time.perf_counter()
            lesson(i)
            middle = time.perf_counter()
            tagger.tag(texts[i])
            taught.append(1e3 * (middle - start))
            asked.append(1e3 * (time.perf_counter() - middle))
        found[kind] = [median(taught[FIRST:]), median(asked[FIRST:])]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--lessons", type=int, default=LESSONS)
    parser.add_argument("--candidates", choices=("nearest", "all"), default="nearest")
    parser.add_argument("--known-words", action="store_true", help="lessons without new words")
    given = parser.parse_args()
    rows = {
        n: measure(n, given.lessons, given.candidates, not given.known_words) for n in given.sizes
    }
    print(f"{'ms, and ms of a ranking after it':33}", *(f"{n:>9,} texts" for n in rows), "ratio")
    first, last = rows[given.sizes[0]], rows[given.sizes[-1]]
    for kind in first:
        cells = [f"{row[kind][0]:6.2f} + {row[kind][1]:5.2f}" for row in rows.values()]
        print(f"{kind:33}", *(f"{cell:>15}" for cell in cells), end=" ")
        print(f"{last[kind][0] / first[kind][0]:.2f} + {last[kind][1] / first[kind][1]:.2f}")
    print(json.dumps({"candidates": given.candidates, "milliseconds": rows}))


if __name__ == "__main__":
    main()
