"""Scores from stored rankings, cached beside them: a new measure needs no new run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml import metrics
from dxml.bench.results import Stored, write_json
from dxml.bench.sources import load_parts
from dxml.topk import TopK

__all__ = ["BANDS", "KS", "VERSION", "Truth", "label_bands", "score_all", "scores_of"]

VERSION = 2
"""Raise it when what is computed here changes: cached scores of another version are not used."""
KS = (1, 3, 5)
BANDS = ("head", "torso", "tail")


@dataclass(frozen=True)
class Truth:
    """What a ranking is held against."""

    Y: sp.csr_matrix
    inverse_propensity: npt.NDArray[np.float64]
    bands: npt.NDArray[np.int8]

    @classmethod
    def load(cls, dataset: str, split: int, part: Any) -> Truth:
        """Truth and label frequencies as the run had them."""
        train, test = load_parts(dataset, split, part)
        frequency = np.bincount(train.Y.indices, minlength=train.n_labels)
        weights = metrics.inverse_propensity(frequency, train.n_samples, *train.propensity)
        return cls(test.Y, weights, label_bands(frequency))


def label_bands(frequency: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    """0, 1 or 2 for each label: head, torso and tail hold a third of all occurrences each.

    Labels are taken from the most frequent on; one that straddles a border belongs to the band in
    which it begins. Labels without training points are tail.

    >>> label_bands(np.array([1, 6, 3, 2, 0])).tolist()
    [2, 0, 1, 2, 2]
    """
    order = np.argsort(-frequency, kind="stable")
    before = np.cumsum(frequency[order]) - frequency[order]
    bands = np.empty(len(frequency), dtype=np.int8)
    third = frequency.sum() / 3
    bands[order] = (before >= third).astype(np.int8) + (before >= 2 * third)
    bands[frequency == 0] = 2
    return bands


def _found(truth: Truth, ranking: TopK) -> dict[str, dict[str, float]]:
    """Share of each band's occurrences in the test data that stand in the first k places."""
    n_labels = truth.Y.shape[1]
    present = np.bincount(truth.Y.indices, minlength=n_labels)
    found: dict[str, dict[str, float]] = {}
    for band, name in enumerate(BANDS):
        inside = truth.bands == band
        found[name] = {"labels": int(inside.sum()), "occurrences": int(present[inside].sum())}
    for k in [k for k in KS if k <= ranking.k]:
        predicted = ranking.head(k).to_csr(n_labels)
        predicted.data = np.ones(predicted.nnz, dtype=bool)
        right = np.bincount(predicted.multiply(truth.Y).tocsr().indices, minlength=n_labels)
        for band, name in enumerate(BANDS):
            hits = right[truth.bands == band].sum()
            found[name][f"found@{k}"] = float(100 * hits / max(found[name]["occurrences"], 1))
    return found


def _are_probabilities(ranking: TopK) -> bool:
    return bool(((ranking.scores >= 0) & (ranking.scores <= 1)).all())


def compute(ranking: TopK, truth: Truth) -> dict[str, Any]:
    """Every measure of one ranking, in percent."""
    ks = [k for k in KS if k <= ranking.k]
    weights = truth.inverse_propensity
    scores = metrics.evaluate(truth.Y, ranking, ks=ks, inverse_propensity=weights)
    if _are_probabilities(ranking):
        scores |= {f"ECE@{k}": 100 * metrics.calibration_error(truth.Y, ranking, k) for k in ks}
    return {"scores": scores, "bands": _found(truth, ranking)}


def scores_of(stored: Stored, truth: Truth | None = None) -> dict[str, Any]:
    """Scores of one stored result: the cached ones where they belong to this very ranking."""
    path, ranking = stored.folder / "scores.json", stored.ranking_hash()
    if path.is_file():
        cached: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if cached.get("version") == VERSION and cached.get("ranking") == ranking:
            return cached
    run = stored.run
    truth = truth or Truth.load(run.dataset, run.split, run.part)
    fresh = {"version": VERSION, "ranking": ranking, **compute(stored.ranking(), truth)}
    write_json(path, fresh)
    return fresh


def score_all(results: list[Stored]) -> Iterator[tuple[Stored, dict[str, Any]]]:
    """Scores of many results; data is read once for all that share it, and only if needed."""
    cache: dict[tuple[str, int, str], Truth] = {}
    for stored in sorted(results, key=lambda s: (s.run.dataset, s.run.part, s.run.split)):
        key = (stored.run.dataset, stored.run.split, stored.run.part)
        path = stored.folder / "scores.json"
        known = path.is_file() and json.loads(path.read_text("utf-8")).get("version") == VERSION
        if not known and key not in cache:
            cache = {key: Truth.load(stored.run.dataset, stored.run.split, stored.run.part)}
        yield stored, scores_of(stored, cache.get(key))
