"""How many texts must be labelled for the same accuracy, chosen by `dxml suggest-next` or not.

    DXML_DATA=folder python benchmarks/suggest_next.py

From PubMed-MeSH 6,000 training texts are a pool and 1,500 test texts the judge. A tagger begins
with 300 texts at random; in each round it chooses more, learns their true labels by a fit from the
start, and is scored. For each of its scores the number of texts that a random choice needs is read
off the line through the random choice's own scores. Other guides stand beside: doubt alone, length
alone. Each seed draws another pool. All numbers go to benchmarks/results/suggest-next.json.
"""

from __future__ import annotations

import argparse
import os
from statistics import fmean
from typing import Any

import numpy as np

from dxml._neighbors.cosine import unit_rows
from dxml.bench._machine import circumstances
from dxml.data import load_texts
from dxml.tagging import TextTagger
from dxml.tagging._suggesting import Measures, choose_apart, labels_that_count
from stored_results import log_test, write_results

STORED = "suggest-next.json"
SIZES = (300, 600, 1000, 1500, 2000)
RANDOM_SIZES = (300, 600, 1000, 1500, 2000, 2600, 3300, 4000)
POOL, TEST = 6000, 1500
GUIDES = ("random", "suggest-next", "unsure", "long")


def choose(guide: str, tagger: TextTagger, texts: list[str], n: int, rng: Any) -> list[int]:
    """Places of the texts to label."""
    if guide == "random":
        return [int(place) for place in rng.permutation(len(texts))[:n]]
    rows = unit_rows(tagger.features.transform(texts))
    measures = Measures.of(rows, tagger.rank(texts, 5), labels_that_count(tagger))
    worth = {
        "suggest-next": measures.worth(),
        "unsure": measures.unsure / measures.unsure.std(),
        "long": np.log1p(measures.n_words) / np.log1p(measures.n_words).std(),
    }
    return choose_apart(rows, worth[guide], n)


def score(tagger: TextTagger, texts: list[str], labels: list[set[str]]) -> dict[str, float]:
    """P@1 and P@5, in per cent."""
    names = tagger.labels_
    ranking = tagger.rank(texts, 5)
    pairs = zip(ranking.indices, labels, strict=True)
    hits = np.array([[names[label] in own for label in row] for row, own in pairs])
    return {"P@1": 100 * float(hits[:, 0].mean()), "P@5": 100 * float(hits.mean())}


def curve(guide: str, seed: int, pool: Any, test: Any) -> list[dict[str, float]]:
    """The scores of one guide, round by round."""
    rng = np.random.default_rng(seed)
    texts, labels = pool
    known = [int(place) for place in rng.permutation(len(texts))[: SIZES[0]]]
    found, tagger = [], None
    for size in RANDOM_SIZES if guide == "random" else SIZES:
        if tagger is not None:
            left = sorted(set(range(len(texts))) - set(known))
            some = [texts[place] for place in left]
            known += [left[i] for i in choose(guide, tagger, some, size - len(known), rng)]
        tagger = TextTagger(device="cpu", candidates="nearest", width=0, n_trees=0, C=1.0)
        tagger.fit([texts[i] for i in known], [labels[i] for i in known])
        found.append({"texts": size, **score(tagger, *test)})
        print(guide, seed, found[-1], flush=True)
    return found


def needed(random: list[dict[str, float]], value: float, metric: str) -> float | None:
    """Texts that a random choice needs for a score; None where it never has it."""
    values = np.maximum.accumulate([row[metric] for row in random])
    if value > values[-1]:
        return None
    return float(np.interp(value, values, [row["texts"] for row in random]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    train, judge = load_texts("pubmed-mesh", "train"), load_texts("pubmed-mesh", "test")
    runs: dict[str, list[Any]] = {guide: [] for guide in GUIDES}
    for seed in range(asked.seeds):
        rng = np.random.default_rng(100 + seed)
        rows = rng.permutation(len(train))[:POOL]
        pool = [train.texts[i] for i in rows], [list((train.labels or ())[i]) for i in rows]
        rows = rng.permutation(len(judge))[:TEST]
        test = [judge.texts[i] for i in rows], [set((judge.labels or ())[i]) for i in rows]
        for guide in GUIDES:
            runs[guide].append(curve(guide, seed, pool, test))
    ratios: dict[str, Any] = {}
    for guide in GUIDES[1:]:
        for metric in ("P@1", "P@5"):
            for place, size in enumerate(SIZES[1:], start=1):
                pairs = zip(runs["random"], runs[guide], strict=True)
                each = [needed(random, own[place][metric], metric) for random, own in pairs]
                good = [size / n for n in each if n is not None]
                share = round(fmean(good), 3) if len(good) == len(each) else None
                ratios.setdefault(guide, {}).setdefault(metric, {})[size] = share
                print(f"{guide:>14} {metric} {size:5} texts: {share} of those of a random choice")
    machine = circumstances(device="cpu", seed=list(range(asked.seeds)))
    machine |= {"cores": os.cpu_count(), "load": os.getloadavg()}
    found = {**machine, "pool": POOL, "test": TEST, "ratios": ratios, "runs": runs}
    write_results(STORED, found)
    log_test("pubmed-mesh", "tagger", found)


if __name__ == "__main__":
    main()
