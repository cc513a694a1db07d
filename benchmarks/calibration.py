"""How far the probabilities of Joint are off: ECE@1, ECE@5 and the reliability curve.

    DXML_DATA=folder python benchmarks/calibration.py bibtex eurlex-4k pubmed-mesh tibkat-gnd \\
        tags-train.jsonl parents-train.jsonl depends-train.jsonl
    python benchmarks/calibration_page.py    # the tables of docs/guide/probabilities.md

DATA is a registered data set or a table of JSON lines with ``text`` and ``labels``, such as
`package_texts.py` and `wordnet_texts.py` make. Only training points are used: some are learnt from,
2,000 calibrate the other methods, and up to 3,000 are ranked. Cases: points held out by
chance; whole clusters of points held out, as texts from another source would be; the same, by a
model that is told of the clusters among its own points (``groups``); whole sources held out, where
a table has a ``source`` of several texts, by a model that is not told of them (``sources``) and by
one that is (``told``), none of them larger than what is ranked; 20, 50 and 200 points to learn
from, in ten draws; one text with two labels, in a hundred: what a draw gives one of two labels more
than the other is chance.
Of data with fewer than 10,000 points there are three draws of the first five. ``--test`` ranks the
test part instead, once.

Beside Joint's own calibration stand three others of the same mixed scores: temperature scaling,
isotonic regression and Venn–Abers predictors. They see 2,000 points that the model has not seen,
which Joint does not: its own is made on points held out of its training points.

``noise`` is the ECE that probabilities without any error would have on as many points, and
``debiased`` is √(ECE² − noise²): about the ECE that many points would have. Of several draws ECE
and noise are means, of a band of label frequencies over the draws that give one of its labels
(``null``: none does); ``together`` is the ECE of the rankings of all draws as one. ``counted`` is
what could be known by counting: the ECE of saying, for each rank, the share of right labels among
as many points as were learnt from. ``by known@1`` looks at fifths of the points by how many
features they have that a learnt point has too: how far apart the first label's mean probability and
the share of right ones are there, on average. Every row is added to
benchmarks/results/calibration.jsonl as it comes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.device import resolve_device
from dxml._core.sparse import column_counts
from dxml._neighbors.kmeans import kmeans, nearest_centre
from dxml.bench._machine import circumstances
from dxml.data import load_dataset
from dxml.joint import Joint
from dxml.joint._known_features import only_known
from dxml.metrics import BINS, judged_scores, precision_at_k, score_bins
from dxml.metrics._bands import BANDS, label_bands
from dxml.text import TextFeatures
from dxml.topk import TopK
from other_calibrations import OTHERS
from stored_results import RESULTS, add_result, log_test

STORED = RESULTS / "calibration.jsonl"
LEARNT, CALIBRATED, RANKED = 8000, 2000, 3000
FEW, DRAWS = (20, 50, 200), 10
SMALL, SMALL_DRAWS = 10_000, 3
SAME, SAME_DRAWS = (20, 50, 300), 100
CELLS = 30
PARTS = 5
DEPTH = 5

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class Points(NamedTuple):
    """Features, labels and, where several points have one, the number of each point's source."""

    X: sp.csr_matrix
    Y: sp.csr_matrix
    sources: Rows | None = None

    def rows(self, chosen: Rows) -> Points:
        own = None if self.sources is None else self.sources[chosen]
        return Points(self.X[chosen], self.Y[chosen], own)


class Case(NamedTuple):
    """What is learnt from, what calibrates the other methods, and what is ranked."""

    name: str
    learnt: Points
    calibrated: Points | None
    ranked: Points
    groups: Rows | None = None


def read(name: str, part: str) -> Points:
    """A data set, or a table; of a table the words are those of all its texts."""
    if not name.endswith(".jsonl"):
        data = load_dataset(name, "test" if part == "test" else "train")
        return Points(data.X, data.Y)
    rows = [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]
    made = TextFeatures()
    if part == "test":
        own = Path(name).with_name(Path(name).name.replace("train", "test"))
        made.fit_transform([row["text"] for row in rows])
        names = _names(rows)
        rows = [json.loads(line) for line in own.read_text("utf-8").splitlines()]
        return Points(made.transform([row["text"] for row in rows]), _indicator(rows, names))
    X = made.fit_transform([row["text"] for row in rows])
    return Points(X, _indicator(rows, _names(rows)), _sources(rows))


def _sources(rows: list[dict[str, Any]]) -> Rows | None:
    """None where a table tells of none, or where each text is one of its own.

    A row that tells of none is one by itself.
    """
    own = [(not row.get("source"), row.get("source") or i) for i, row in enumerate(rows)]
    places = {each: place for place, each in enumerate(sorted(set(own)))}
    if not 1 < len(places) < len(rows):
        return None
    return np.array([places[each] for each in own], dtype=np.int64)


def _names(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {name: i for i, name in enumerate(sorted({each for r in rows for each in r["labels"]}))}


def _indicator(rows: list[dict[str, Any]], names: dict[str, int]) -> sp.csr_matrix:
    own = [sorted({names[each] for each in row["labels"] if each in names}) for row in rows]
    ends = np.cumsum([0, *map(len, own)])
    ids = np.array([each for row in own for each in row], dtype=np.int32)
    return sp.csr_matrix((np.ones(len(ids), bool), ids, ends), (len(own), len(names)))


def cases(points: Points, seed: int, wanted: set[str]) -> Iterator[list[Case]]:
    """The draws of each case of a data set's training points."""
    n = points.X.shape[0]
    large = {"chance", "source", "groups"} & wanted
    if points.sources is not None:
        large |= {"sources", "told"} & wanted
    seeds = range(seed, seed + (SMALL_DRAWS if n < SMALL else 1))
    draws = [large_cases(points, each) for each in seeds] if large else []
    for name in sorted(large):
        yield [draw[name] for draw in draws]
    ranked, others = np.split(np.random.default_rng(seed).permutation(n), [min(RANKED, n // 4)])
    for size in FEW:
        if str(size) in wanted:
            yield [
                Case(str(size), points.rows(learnt), None, points.rows(ranked))
                for draw in range(DRAWS)
                for learnt in [
                    np.random.default_rng([seed, size, draw]).choice(others, size, False)
                ]
            ]


def large_cases(points: Points, seed: int) -> dict[str, Case]:
    """Points held out by chance, and whole clusters of them."""
    n = points.X.shape[0]
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    n_ranked = min(RANKED, n // 4)
    ranked, others = order[:n_ranked], order[n_ranked:]
    n_own = min(CALIBRATED, len(others) // 3)
    own, learnt = others[:n_own], others[n_own : n_own + LEARNT]
    chance = Case("chance", points.rows(learnt), points.rows(own), points.rows(ranked))
    cell = clusters(points.X, rng)
    far = rng.permutation(other_sources(cell, n_ranked, rng))
    near = np.setdiff1d(order, far)
    near = rng.permutation(near)
    learnt, own = near[n_own : n_own + LEARNT], near[:n_own]
    source = Case("source", points.rows(learnt), points.rows(own), points.rows(far))
    grouped = source._replace(name="groups", groups=cell[learnt])
    found = {"chance": chance, "source": source, "groups": grouped}
    if points.sources is not None:
        rank = rng.permutation(points.sources.max() + 1)[points.sources]
        by_source = order[np.argsort(rank[order], kind="stable")]
        whole = whole_sources(rank[by_source], n_ranked)
        ranked, others = by_source[whole], rng.permutation(by_source[~whole])
        own, learnt = others[:n_own], others[n_own : n_own + LEARNT]
        held = Case("sources", points.rows(learnt), points.rows(own), points.rows(ranked))
        found["sources"] = held
        found["told"] = held._replace(name="told", groups=points.sources[learnt])
    return found


def whole_sources(rank: Rows, wanted: int) -> npt.NDArray[np.bool_]:
    """Which rows, in the order of their sources, are those of the first sources, up to `wanted`.

    A source that is larger than that is none of them.
    """
    small = np.bincount(rank)[rank] <= wanted
    before = np.cumsum(small) <= wanted
    cut = np.flatnonzero(small & ~before)
    last = rank[cut[0]] if len(cut) else rank.max() + 1
    return np.asarray(small & (rank < last))


def clusters(X: sp.csr_matrix, rng: np.random.Generator) -> Rows:
    """The cluster of each point."""
    sketch = np.asarray(X @ rng.standard_normal((X.shape[1], 48)).astype(np.float32))
    sketch /= np.maximum(np.linalg.norm(sketch, axis=1, keepdims=True), 1e-9)
    cell, _ = nearest_centre(sketch, kmeans(sketch, CELLS, rng))
    return np.asarray(cell, dtype=np.int64)


def other_sources(cell: Rows, wanted: int, rng: np.random.Generator) -> Rows:
    """Points of whole clusters, about as many as are wanted."""
    chosen: list[int] = []
    for each in rng.permutation(CELLS):
        rows = np.flatnonzero(cell == each)
        if len(chosen) + len(rows) <= 1.2 * wanted:
            chosen.extend(rows.tolist())
    return np.array(sorted(chosen), dtype=np.int64)


def uncalibrated(model: Joint, X: sp.csr_matrix) -> TopK:
    """A ranking whose scores are the logistic function of the mixed ones."""
    knots = np.linspace(-30, 30, 2001, dtype=np.float32)
    shares = (1 / (1 + np.exp(-knots.astype(np.float64)))).astype(np.float32)
    kept = model.mixture_
    model.mixture_ = replace(kept, knots=knots, shares=shares, by_rank=())
    try:
        return model.predict_topk(X, min(DEPTH, model.n_labels_))
    finally:
        model.mixture_ = kept


class Judged(NamedTuple):
    """Probabilities of the first labels of each point, and which are right."""

    scores: Floats
    right: npt.NDArray[np.bool_]

    def within(self, k: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
        return self.scores[:, :k].ravel(), self.right[:, :k].ravel()

    @property
    def depths(self) -> tuple[int, int]:
        return 1, self.scores.shape[1]


def judge(truth: sp.csr_matrix, ranking: TopK) -> Judged:
    """A ranking whose rows are all full."""
    shape = ranking.scores.shape
    scores, right = judged_scores(truth, ranking, ranking.k)
    if len(scores) != ranking.scores.size:
        filled = np.zeros((2, *shape))
        filled[:, ranking.indices >= 0] = scores, right
        return Judged(filled[0], filled[1] > 0)
    return Judged(scores.reshape(shape), right.reshape(shape))


def errors(found: Judged, learnt: int | None = None) -> dict[str, Any]:
    """ECE at 1 and 5, beside its noise, the debiased one and, of few points, the counted one."""
    rng = np.random.default_rng(0)
    told: dict[str, Any] = {}
    for k in found.depths:
        scores, right = found.within(k)
        drawn = [_gap(scores, rng.random(len(scores)) < scores) for _ in range(20)]
        told[f"ECE@{k}"] = round(100 * _gap(scores, right), 2)
        told[f"noise@{k}"] = round(100 * float(np.mean(drawn)), 2)
        told[f"debiased@{k}"] = _debiased(told[f"ECE@{k}"], told[f"noise@{k}"])
        if learnt is not None:
            by_rank = found.right[:, :k].mean(axis=0)
            shares = rng.binomial(learnt, by_rank, (2000, k)) / learnt
            told[f"counted@{k}"] = round(100 * float(np.abs(shares - by_rank).mean()), 2)
    return told


def _debiased(error: float, noise: float) -> float:
    return round(float(np.sqrt(max(error**2 - noise**2, 0.0))), 2)


def judged(found: Judged, ranking: TopK, frequency: Rows, n_known: Rows) -> dict[str, Any]:
    """The errors, the curve of the first five, ECE@5 by label frequency, and by known features.

    ECE@5 of a band of which no label is given is None.
    """
    told = {**errors(found), "curve": _curve(*found.within(found.depths[1]))}
    told["by known@1"] = round(100 * by_known(*found.within(1), n_known), 2)
    bands = label_bands(frequency)[ranking.indices]
    for number, name in enumerate(BANDS):
        chosen = (bands == number) & (ranking.indices >= 0)
        gap = 100 * _gap(found.scores[chosen], found.right[chosen])
        told[f"ECE@5 {name}"] = round(gap, 2) if chosen.any() else None
    return told


def known_features(X: sp.csr_matrix, learnt: sp.csr_matrix) -> Rows:
    """How many features of each point a learnt point has too."""
    return np.diff(only_known(X, column_counts(learnt)).indptr).astype(np.int64)


def by_known(scores: Floats, right: npt.NDArray[np.bool_], n_known: Rows) -> float:
    """The mean gap over parts of the points; those with one number of features are in one part."""
    ends = np.quantile(n_known, np.arange(1, PARTS) / PARTS)
    gaps = np.bincount(np.searchsorted(ends, n_known), weights=scores - right)
    return float(np.abs(gaps).sum() / max(len(scores), 1))


def _gap(scores: Floats, right: npt.NDArray[np.bool_]) -> float:
    gaps = np.bincount(score_bins(scores), weights=scores - right, minlength=BINS)
    return float(np.abs(gaps).sum() / max(len(scores), 1))


def _curve(scores: Floats, right: npt.NDArray[np.bool_]) -> list[list[float]]:
    """Of every bin: predictions, mean probability, share of right ones."""
    bins = score_bins(scores)
    rows = []
    for each in range(BINS):
        own = bins == each
        if own.any():
            rows.append([int(own.sum()), float(scores[own].mean()), float(right[own].mean())])
    return [[n, round(p, 3), round(share, 3)] for n, p, share in rows]


class Measured(NamedTuple):
    """A row, and what it is made from."""

    row: dict[str, Any]
    found: Judged


def measure(case: Case, settings: dict[str, Any]) -> list[Measured]:
    """A row for Joint, and one for each other calibration where there are points for it."""
    model = Joint(**settings).fit(case.learnt.X, case.learnt.Y, groups=case.groups)
    truth, frequency = case.ranked.Y, model.label_frequency_
    depth = min(DEPTH, model.n_labels_)
    ranking = model.predict_topk(case.ranked.X, depth)
    about = {"case": case.name, "learnt": case.learnt.X.shape[0], "ranked": truth.shape[0]}
    n_known = known_features(case.ranked.X, case.learnt.X)
    precision = 100 * precision_at_k(truth, ranking, depth)
    about |= {f"P@{k}": round(float(precision[k - 1]), 2) for k in (1, depth)}

    def told(name: str, ranking: TopK) -> Measured:
        found = judge(truth, ranking)
        row = judged(found, ranking, frequency, n_known)
        return Measured({"calibration": name, **about, **row}, found)

    rows = [told("joint", ranking)]
    if case.calibrated is not None:
        plain, own = uncalibrated(model, case.ranked.X), uncalibrated(model, case.calibrated.X)
        scores, right = judged_scores(case.calibrated.Y, own, own.k)
        rows.append(told("none", plain))
        for name, fit in OTHERS.items():
            mapped = fit(scores, right)(plain.scores.astype(np.float64).ravel())
            rows.append(
                told(name, TopK(plain.indices, mapped.reshape(plain.scores.shape).astype("f4")))
            )
    return rows


def same_texts(n: int, seed: int) -> Points:
    """One text, so many times; half of the times it carries one label and else another."""
    X = sp.csr_matrix(np.tile(np.array([[1, 1, 0, 0]], np.float32), (n, 1)))
    which = np.random.default_rng(seed).random(n) < 0.5
    return Points(X, sp.csr_matrix(np.stack([which, ~which], axis=1)))


def pooled(draws: list[Measured]) -> dict[str, Any]:
    """Several draws as one row: means, and the ECE of all rankings as one.

    A band's mean is that of the draws in which one of its labels was given.
    """
    first = draws[0].row
    if len(draws) == 1:
        return first
    means: dict[str, Any] = {}
    for name in first:
        told = [each.row[name] for each in draws if isinstance(each.row[name], float)]
        if told:
            means[name] = round(float(np.mean(told)), 2)
    every = Judged(*(np.concatenate(each) for each in zip(*(d.found for d in draws), strict=True)))
    whole = errors(every, first["learnt"])
    more = {name: value for name, value in whole.items() if name.startswith("counted")}
    for k in every.depths:
        more[f"together@{k}"] = whole[f"ECE@{k}"]
        more[f"debiased@{k}"] = _debiased(means[f"ECE@{k}"], means[f"noise@{k}"])
    rest = {k: v for k, v in first.items() if k != "curve"}
    curve = _curve(*every.within(every.depths[1]))
    return {**rest, **means, **more, "draws": len(draws), "curve": curve}


def measured(draws: Sequence[Case]) -> list[dict[str, Any]]:
    """The row of each calibration, over all draws."""
    by_draw = [measure(case, {}) for case in draws]
    return [pooled(list(each)) for each in zip(*by_draw, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", nargs="*", metavar="DATA|TABLE.jsonl")
    parser.add_argument("--cases", default="chance,source,groups,sources,told,20,50,200,same")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="rank the test part, once")
    parser.add_argument("--results", type=Path, default=STORED)
    asked = parser.parse_args()
    where = circumstances(device=resolve_device("auto"), seed=asked.seed)
    wanted = set(asked.cases.split(","))

    def store(name: str, draws: Sequence[Case]) -> None:
        for row in measured(draws):
            shown = {k: v for k, v in row.items() if k != "curve"}
            print(name, *(f"{k} {v}" for k, v in shown.items()), flush=True)
            add_result(asked.results, {"data": name, **row, **where})

    if "same" in wanted and not asked.test:
        for n in SAME:
            seeds = range(asked.seed, asked.seed + SAME_DRAWS)
            store(
                "same texts",
                [Case("same", same_texts(n, s), None, same_texts(2000, s + 1000)) for s in seeds],
            )
    for given in asked.data:
        name, points = Path(given).stem, read(given, "train")
        if asked.test:
            store(name, [Case("test", points, None, read(given, "test"))])
            log_test(name, "joint", where, asked.results.parent)
            continue
        for draws in cases(points, asked.seed, wanted):
            store(name, draws)


if __name__ == "__main__":
    main()
