"""How far the probabilities of Joint are off: ECE@1, ECE@5 and the reliability curve.

    DXML_DATA=folder python benchmarks/calibration.py bibtex eurlex-4k pubmed-mesh tibkat-gnd \\
        tags-train.jsonl parents-train.jsonl depends-train.jsonl
    python benchmarks/calibration.py --page    # docs/guide/probabilities.md's table

DATA is a registered data set or a table of JSON lines with ``text`` and ``labels``, such as
`package_texts.py` and `wordnet_texts.py` make. Only training points are used: some are learnt from,
2,000 calibrate the other methods, and up to 3,000 are ranked. Cases: points held out by
chance; whole clusters of points held out, as texts from another source would be; 20, 50 and 200
points to learn from, in ten draws. ``--test`` ranks the test part instead.

Beside Joint's own calibration stand three others of the same mixed scores: temperature scaling,
isotonic regression and Venn–Abers predictors. They see 2,000 points that the model has not seen,
which Joint does not: its own is made on points held out of its training points.

``noise`` is the ECE that probabilities without any error would have on as many points. Every row is
added to benchmarks/results/calibration.jsonl as it comes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.threads import n_threads
from dxml._neighbors.kmeans import kmeans, nearest_centre
from dxml.bench._machine import commit, describe_machine, describe_versions
from dxml.bench._worker import plain
from dxml.data import load_dataset
from dxml.joint import Joint
from dxml.metrics import BINS, calibration_error, judged_scores, precision_at_k, score_bins
from dxml.metrics._bands import BANDS, label_bands
from dxml.text import TextFeatures
from dxml.topk import TopK

RESULTS = Path(__file__).parent / "results" / "calibration.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "guide" / "probabilities.md"
BEGIN, END = (
    "<!-- calibration: made by benchmarks/calibration.py -->",
    "<!-- end of calibration -->",
)
TITLES = {
    "same texts": "one text, two labels",
    "bibtex": "Bibtex",
    "eurlex-4k": "Eurlex-4K",
    "pubmed-mesh": "PubMed-MeSH",
    "tibkat-gnd": "TIBKAT-GND",
    "tags-train": "packages, tags",
    "section-train": "packages, sections",
    "depends-train": "packages, dependencies",
    "parents-train": "WordNet, parents",
}
HELD = {"chance": "by chance", "source": "whole clusters", "same": "the same text"}
LEARNT, CALIBRATED, RANKED = 8000, 2000, 3000
FEW, DRAWS = (20, 50, 200), 10
CELLS = 30
DEPTH = 5

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class Points(NamedTuple):
    """Features and labels."""

    X: sp.csr_matrix
    Y: sp.csr_matrix

    def rows(self, chosen: Rows) -> Points:
        return Points(self.X[chosen], self.Y[chosen])


class Case(NamedTuple):
    """What is learnt from, what calibrates the other methods, and what is ranked."""

    name: str
    learnt: Points
    calibrated: Points | None
    ranked: Points


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
    return Points(X, _indicator(rows, _names(rows)))


def _names(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {name: i for i, name in enumerate(sorted({each for r in rows for each in r["labels"]}))}


def _indicator(rows: list[dict[str, Any]], names: dict[str, int]) -> sp.csr_matrix:
    own = [sorted({names[each] for each in row["labels"] if each in names}) for row in rows]
    ends = np.cumsum([0, *map(len, own)])
    ids = np.array([each for row in own for each in row], dtype=np.int32)
    return sp.csr_matrix((np.ones(len(ids), bool), ids, ends), (len(own), len(names)))


def cases(points: Points, seed: int) -> Iterator[Case]:
    """The cases of a data set's training points."""
    n = points.X.shape[0]
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    n_ranked = min(RANKED, n // 4)
    ranked, others = order[:n_ranked], order[n_ranked:]
    n_own = min(CALIBRATED, len(others) // 3)
    own, learnt = others[:n_own], others[n_own : n_own + LEARNT]
    yield Case("chance", points.rows(learnt), points.rows(own), points.rows(ranked))
    far = rng.permutation(other_sources(points.X, n_ranked, rng))
    near = np.setdiff1d(order, far)
    near = rng.permutation(near)
    learnt, own = near[n_own : n_own + LEARNT], near[:n_own]
    yield Case("source", points.rows(learnt), points.rows(own), points.rows(far))
    for size in FEW:
        for draw in range(DRAWS):
            learnt = np.random.default_rng([seed, size, draw]).choice(others, size, replace=False)
            yield Case(str(size), points.rows(learnt), None, points.rows(ranked[:1000]))


def other_sources(X: sp.csr_matrix, wanted: int, rng: np.random.Generator) -> Rows:
    """Points of whole clusters, about as many as are wanted."""
    sketch = np.asarray(X @ rng.standard_normal((X.shape[1], 48)).astype(np.float32))
    sketch /= np.maximum(np.linalg.norm(sketch, axis=1, keepdims=True), 1e-9)
    cell, _ = nearest_centre(sketch, kmeans(sketch, CELLS, rng))
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


def logits(p: Floats) -> Floats:
    p = np.clip(p.astype(np.float64), 1e-12, 1 - 1e-12)
    return np.log(p / (1 - p))


def temperature(p: Floats, right: npt.NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """Guo et al., 2017: the logits divided by the number of the highest likelihood."""
    from scipy.optimize import minimize_scalar

    z = logits(p)

    def loss(log_t: float) -> float:
        scaled = z / np.exp(log_t)
        return float(np.mean(np.logaddexp(0, scaled) - right * scaled))

    t = float(np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x))
    return lambda q: 1 / (1 + np.exp(-logits(q) / t))


def isotonic(p: Floats, right: npt.NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """Zadrozny and Elkan, 2002."""
    from sklearn.isotonic import IsotonicRegression

    line = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(logits(p), right)
    return lambda q: line.predict(logits(q))


def venn_abers(p: Floats, right: npt.NDArray[np.bool_]) -> Callable[[Floats], Floats]:
    """Vovk and Petej, 2014: isotonic regression with the point itself, once wrong and once right.

    Both are found at a hundred scores, between which the others are interpolated.
    """
    from sklearn.isotonic import IsotonicRegression

    z = logits(p)
    grid = np.unique(np.quantile(z, np.linspace(0, 1, 100)))

    def beside(each: float, label: bool) -> float:
        line = IsotonicRegression().fit(np.append(z, each), np.append(right, label))
        return float(line.predict([each])[0])

    pairs = [(beside(each, False), beside(each, True)) for each in grid]
    found = [high / (1 - low + high) for low, high in pairs]
    return lambda q: np.interp(logits(q), grid, found)


OTHERS = {"temperature": temperature, "isotonic": isotonic, "Venn–Abers": venn_abers}


def judged(truth: sp.csr_matrix, ranking: TopK, frequency: Rows) -> dict[str, Any]:
    """ECE at 1 and 5, its noise, the curve of the first five, and ECE@5 by label frequency."""
    rng = np.random.default_rng(0)
    told: dict[str, Any] = {}
    for k in (1, min(DEPTH, ranking.k)):
        told[f"ECE@{k}"] = round(100 * calibration_error(truth, ranking, k), 2)
        scores, right = judged_scores(truth, ranking, k)
        drawn = [_gap(scores, rng.random(len(scores)) < scores) for _ in range(20)]
        told[f"noise@{k}"] = round(100 * float(np.mean(drawn)), 2)
    told["curve"] = _curve(scores, right)
    bands = label_bands(frequency)
    own = bands[ranking.indices[ranking.indices >= 0]]
    for number, name in enumerate(BANDS):
        chosen = own == number
        told[f"ECE@5 {name}"] = round(100 * _gap(scores[chosen], right[chosen]), 2)
    return told


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


def measure(case: Case, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for Joint, and one for each other calibration where there are points for it."""
    model = Joint(**settings).fit(case.learnt.X, case.learnt.Y)
    truth, frequency = case.ranked.Y, model.label_frequency_
    ranking = model.predict_topk(case.ranked.X, min(DEPTH, model.n_labels_))
    about = {"case": case.name, "learnt": case.learnt.X.shape[0], "ranked": truth.shape[0]}
    about["P@1"] = round(100 * float(precision_at_k(truth, ranking, 1)[0]), 2)
    rows = [{"calibration": "joint", **about, **judged(truth, ranking, frequency)}]
    if case.calibrated is not None:
        plain, own = uncalibrated(model, case.ranked.X), uncalibrated(model, case.calibrated.X)
        scores, right = judged_scores(case.calibrated.Y, own, own.k)
        rows.append({"calibration": "none", **about, **judged(truth, plain, frequency)})
        for name, fit in OTHERS.items():
            mapped = fit(scores, right)(plain.scores.astype(np.float64).ravel())
            found = TopK(plain.indices, mapped.reshape(plain.scores.shape).astype(np.float32))
            rows.append({"calibration": name, **about, **judged(truth, found, frequency)})
    return rows


def same_texts(n: int, seed: int) -> Points:
    """One text, so many times; half of the times it carries one label and else another."""
    X = sp.csr_matrix(np.tile(np.array([[1, 1, 0, 0]], np.float32), (n, 1)))
    which = np.random.default_rng(seed).random(n) < 0.5
    return Points(X, sp.csr_matrix(np.stack([which, ~which], axis=1)))


def pooled(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Several draws as one row: means."""
    first = rows[0]
    means = {
        name: round(float(np.mean([row[name] for row in rows])), 2)
        for name, value in first.items()
        if isinstance(value, float)
    }
    return {**{k: v for k, v in first.items() if k != "curve"}, **means, "draws": len(rows)}


def table(rows: list[dict[str, Any]]) -> str:
    """The newest row of each case: ECE@1 / ECE@5 of every calibration, and of no error at all."""
    newest: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for row in rows:
        key = (row["data"], row["case"], row["learnt"])
        newest.setdefault(key, {})[row["calibration"]] = row
    names = ["joint", "temperature", "isotonic", "Venn–Abers"]
    lines = [
        "| data | held out | learnt from | P@1 | Joint | "
        + " | ".join(names[1:])
        + " | no error |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (data, case, learnt), found in sorted(newest.items(), key=_order):
        own = found["joint"]
        cells = [_pair(found.get(name), "ECE") for name in names] + [_pair(own, "noise")]
        held = HELD.get(case, "by chance")
        start = f"| {TITLES.get(data, data)} | {held} | {learnt:,} | {own['P@1']:.1f} | "
        lines.append(start + " | ".join(cells) + " |")
    return "\n".join(lines)


def _order(item: tuple[tuple[str, str, int], Any]) -> tuple[int, str, int]:
    (data, case, learnt), _ = item
    return -learnt if data != "same texts" else 0, TITLES.get(data, data), len(case)


def _pair(row: dict[str, Any] | None, measure: str) -> str:
    if row is None:
        return "–"
    deep = max(int(name.partition("@")[2]) for name in row if re.fullmatch(r"ECE@\d+", name))
    return f"{row[f'{measure}@1']:.1f} / {row[f'{measure}@{deep}']:.1f}"


def with_table(page: str, results: Path) -> str:
    """A page with the table of what is stored."""
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", nargs="*", metavar="DATA|TABLE.jsonl")
    parser.add_argument("--cases", default="chance,source,20,50,200,same")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="rank the test part, once")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    asked = parser.parse_args()
    if asked.page:
        PAGE.write_text(with_table(PAGE.read_text("utf-8"), asked.results), "utf-8")
        return
    where = {
        "command": plain(" ".join(["python", *sys.argv])),
        "machine": describe_machine(),
        "threads": n_threads(),
        "commit": commit(),
        "versions": describe_versions(),
    }
    wanted = asked.cases.split(",")

    def store(name: str, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            shown = {k: v for k, v in row.items() if k != "curve"}
            print(name, *(f"{k} {v}" for k, v in shown.items()), flush=True)
            with asked.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"data": name, **row, **where}, ensure_ascii=False) + "\n")

    if "same" in wanted and not asked.test:
        for n in (20, 50, 300):
            case = Case("same", same_texts(n, asked.seed), None, same_texts(2000, asked.seed + 1))
            store("same texts", measure(case, {}))
    for given in asked.data:
        name = Path(given).stem
        points = read(given, "train")
        if asked.test:
            store(name, measure(Case("test", points, None, read(given, "test")), {}))
            continue
        drawn: dict[str, list[dict[str, Any]]] = {}
        for case in cases(points, asked.seed):
            if case.name in wanted:
                rows = measure(case, {})
                if case.calibrated is None:
                    drawn.setdefault(case.name, []).extend(rows)
                else:
                    store(name, rows)
        for rows in drawn.values():
            store(name, [pooled(rows)])


if __name__ == "__main__":
    main()
