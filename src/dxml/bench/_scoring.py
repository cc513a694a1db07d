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
from dxml.bench._results import Stored, write_json
from dxml.bench._sources import load_parts
from dxml.metrics._bands import BANDS, judge_groups, label_bands
from dxml.topk import TopK

__all__ = ["KS", "VERSION", "Truth", "score_all", "scores_of"]

VERSION = 3
"""Raise it when what is computed here changes: cached scores of another version are not used."""
KS = (1, 3, 5)


@dataclass(frozen=True)
class Truth:
    """The true labels of the test points, and label frequencies."""

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


def _found(truth: Truth, ranking: TopK, ks: list[int]) -> dict[str, dict[str, float]]:
    """Share of each band's occurrences in the test data that stand in the first k places."""
    groups = judge_groups(truth.Y, ranking, max(ks), truth.bands, len(BANDS))
    return {
        name: {"labels": group.labels, "occurrences": group.occurrences}
        | {f"found@{k}": group.recall(k) for k in ks}
        for name, group in zip(BANDS, groups, strict=True)
    }


def compute(ranking: TopK, truth: Truth) -> dict[str, Any]:
    """Every measure of one ranking, in percent."""
    ks = [k for k in KS if k <= ranking.k]
    weights = truth.inverse_propensity
    scores = metrics.evaluate(truth.Y, ranking, ks=ks, inverse_propensity=weights)
    if metrics.are_probabilities(ranking):
        scores |= {f"ECE@{k}": 100 * metrics.calibration_error(truth.Y, ranking, k) for k in ks}
    return {"scores": scores, "bands": _found(truth, ranking, ks)}


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
