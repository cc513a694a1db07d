"""How good a ranking is: the measures of the extreme classification repository, and macro ones.

Every measure takes the truth `Y`, a ranking and `k`, and returns an array of length k with its
values at 1, 2, …, k as fractions; only `evaluate` returns percent, as the field's tables do.

Measures take rankings, not score matrices, because ties must be broken by the ranking method.
A missing prediction (-1) counts as wrong, and a test point without labels stays in every average
with the value 0. Where a whole measure would be 0/0 (no point has a label) it is 0.

The definitions are those of the Extreme Classification Repository (Bhatia et al., 2016) with the
propensities of Jain, Prabhu and Varma, "Extreme Multi-label Loss Functions for Recommendation,
Tagging, Ranking & Other Missing Label Applications", KDD 2016.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dxml.exceptions import DataFormatError
from dxml.metrics._judging import (
    Judged,
    Labels,
    Ranking,
    check_depth,
    check_truth,
    judge,
    row_of_each_entry,
)
from dxml.topk import TopK

__all__ = [
    "BINS",
    "are_probabilities",
    "calibration_error",
    "coverage_at_k",
    "evaluate",
    "inverse_propensity",
    "judged_scores",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "mean_precision",
    "ndcg_at_k",
    "precision_at_k",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "score_bins",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

BINS = 15
"""Number of bins of the calibration error."""
ROUNDING = 1e-5
"""What a probability may have over 1: ten neighbours' tenths add up to a little more."""


# ---------------------------------------------------------------- probabilities


def calibration_error(Y: Labels, ranking: TopK, k: int, bins: int = BINS) -> float:
    """Expected calibration error of the scores in the first k places, as a fraction.

    Predictions are put into `bins` bins of equal width by their score. The error is the mean over
    all predictions of |mean score of the bin − share of correct labels in the bin|.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix([[1, 0], [0, 1]], dtype=bool)
    >>> ranking = TopK(np.array([[0], [0]]), np.array([[0.5], [0.5]]))
    >>> calibration_error(Y, ranking, k=1)
    0.0
    """
    scores, right = judged_scores(Y, ranking, k)
    gaps = np.bincount(score_bins(scores, bins), weights=scores - right, minlength=bins)
    return float(np.abs(gaps).sum() / max(len(scores), 1))


def judged_scores(Y: Labels, ranking: TopK, k: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The score of every prediction in the first k positions, and whether it is correct."""
    judged = judge(Y, ranking, k)
    named = judged.labels >= 0
    return ranking.scores[:, :k][named].astype(np.float64), judged.hits[named]


def score_bins(scores: FloatArray, bins: int = BINS) -> IntArray:
    """The bin of each score, of `bins` bins of equal width between 0 and 1."""
    return np.minimum((scores * bins).astype(np.int64), bins - 1)


def are_probabilities(ranking: TopK) -> bool:
    """Whether all scores lie between 0 and 1, but for what sums of 32 bits are rounded by."""
    return bool(((ranking.scores >= 0) & (ranking.scores <= 1 + ROUNDING)).all())


# ---------------------------------------------------------------- per test point


def precision_at_k(Y: Labels, ranking: Ranking, k: int) -> FloatArray:
    """Share of correct labels among the first k: hits / k, averaged over points.

    Parameters
    ----------
    Y : sparse matrix of shape (n_samples, n_labels)
        The truth; a nonzero marks a label.
    ranking : TopK, or int array of shape (n_samples, width)
        Label ids, best first, padded with -1; `width` is k or more.
    k : int
        The depth of the ranking to evaluate.

    Returns
    -------
    float64 array of shape (k,)
        P@1, …, P@k.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix([[1, 0, 1], [0, 1, 0]], dtype=bool)
    >>> precision_at_k(Y, np.array([[0, 1], [1, -1]]), k=2)
    array([1. , 0.5])
    """
    judged = judge(Y, ranking, k)
    hits = judged.hits.sum(axis=0).cumsum()
    return _ratio(hits, len(judged.hits) * np.arange(1, len(hits) + 1))


def recall_at_k(Y: Labels, ranking: Ranking, k: int) -> FloatArray:
    """Share of a point's labels that are among the first k, averaged over points.

    Parameters and return value are those of `precision_at_k`.
    """
    judged = judge(Y, ranking, k)
    hits = judged.hits.cumsum(axis=1)
    return _mean(_ratio(hits, judged.n_true[:, None]))


def mean_precision(Y: Labels, ranking: TopK) -> float:
    """The mean of P@1, P@3 and P@5, of as many of them as the ranking is deep.

    The one number by which settings are chosen on held-out points.
    """
    return float(precision_at_k(Y, ranking, min(ranking.k, 5))[::2].mean())


def ndcg_at_k(Y: Labels, ranking: Ranking, k: int) -> FloatArray:
    """Normalised discounted cumulative gain, averaged over points.

    Parameters and return value are those of `precision_at_k`.

    Notes
    -----
    DCG@k = Σ_{i ≤ k} hit_i / log2(i + 1), divided for each point by the largest
    possible value: Σ_{i ≤ min(k, labels of the point)} 1 / log2(i + 1).
    """
    judged = judge(Y, ranking, k)
    dcg = (judged.hits * _discounts(k)).cumsum(axis=1)
    return _mean(dcg / _ideal_dcg(judged.n_true, k))


# ---------------------------------------------------------------- propensity scored


def inverse_propensity(
    label_frequency: ArrayLike, n_train: int, a: float = 0.55, b: float = 1.5
) -> FloatArray:
    """The weight of a hit of each label: 1 / p_l of Jain et al. (2016).

    Parameters
    ----------
    label_frequency : int array of shape (n_labels,)
        Number of *training* points with each label, ``Y_train.getnnz(axis=0)``.
    n_train : int
        Number of training points, 3 or more.
    a, b : float
        0.5, 0.4 for WikiLSHTC-325K and Wikipedia-500K; 0.6, 2.6 for Amazon-670K and Amazon-3M;
        0.55, 1.5 for every other data set.

    Returns
    -------
    float64 array of shape (n_labels,)
        1 / p_l = 1 + (ln N - 1) (b + 1)^a (N_l + b)^-a, all above 1.

    Examples
    --------
    >>> inverse_propensity([0, 10, 1000], n_train=1000).round(3)
    array([8.824, 3.552, 1.219])
    """
    frequency = _check_frequency(label_frequency, n_train)
    if not (a >= 0 and b > 0):
        raise DataFormatError(
            f"a must be 0 or more and b above 0; got a={a}, b={b}. "
            "Use the defaults unless the data set has its own."
        )
    c = (np.log(n_train) - 1) * (b + 1) ** a
    weights: FloatArray = 1 + c * (frequency + b) ** -a
    return weights


def psp_at_k(
    Y: Labels, ranking: Ranking, k: int, inverse_propensity: NDArray[np.floating[Any]]
) -> FloatArray:
    """Propensity scored precision, divided by the best attainable.

    Parameters
    ----------
    Y, ranking, k
        As for `precision_at_k`.
    inverse_propensity : float array of shape (n_labels,)
        1 / p_l of each label, 1 or more, from the training labels: see `inverse_propensity`.

    Returns
    -------
    float64 array of shape (k,)
        PSP@1, …, PSP@k.

    Notes
    -----
    The gain (1/k) Σ hit_l / p_l and the best gain a ranking of k labels can have are each
    averaged over all points, *then* divided: a ratio of means, as in every published table
    (the repository's page prints the gain alone).
    """
    judged = judge(Y, ranking, k)
    weights = _check_inverse_propensity(inverse_propensity, judged.n_labels)
    gain = judged.hit_weights(weights).sum(axis=0).cumsum()
    best = _best_weights(judged, weights).sum(axis=0).cumsum()
    return _ratio(gain, best)


def psndcg_at_k(
    Y: Labels, ranking: Ranking, k: int, inverse_propensity: NDArray[np.floating[Any]]
) -> FloatArray:
    """Propensity scored nDCG, divided by the best attainable.

    Parameters and return value are those of `psp_at_k`.

    Notes
    -----
    A point's PSDCG@k = Σ_{i ≤ k} hit_i / (p_i log2(i + 1)) is divided by the point's ideal plain
    DCG (see `ndcg_at_k`); so is its best PSDCG@k. Both are averaged over points, then divided.
    """
    judged = judge(Y, ranking, k)
    weights = _check_inverse_propensity(inverse_propensity, judged.n_labels)
    ideal = _ideal_dcg(judged.n_true, k)
    gain = (judged.hit_weights(weights) * _discounts(k)).cumsum(axis=1) / ideal
    best = (_best_weights(judged, weights) * _discounts(k)).cumsum(axis=1) / ideal
    return _ratio(gain.sum(axis=0), best.sum(axis=0))


# ---------------------------------------------------------------- per label


def macro_precision_at_k(Y: Labels, ranking: Ranking, k: int) -> FloatArray:
    """Precision of each label, averaged over *all* labels, frequent and rare alike.

    Parameters and return value are those of `precision_at_k`.

    Notes
    -----
    With the first k places taken as the predicted set, label l has TP_l right and PP_l
    predictions; the measure is (1/L) Σ_l TP_l / PP_l over the L columns of Y. A label never
    predicted counts 0 (Schultheis et al., "Generalized test utilities for long-tail performance
    in extreme multi-label classification", NeurIPS 2023).

    napkinXC has the same sum but divides by the largest label id it met plus one, which is L
    as soon as the last label occurs in the truth or the predictions.
    """
    judged = judge(Y, ranking, k)
    return np.array([_ratio(tp, predicted).mean() for tp, predicted in judged.label_counts()])


def macro_recall_at_k(Y: Labels, ranking: Ranking, k: int) -> FloatArray:
    """Recall of each label, averaged over *all* labels, frequent and rare alike.

    Parameters and return value are those of `precision_at_k`; the conventions those of
    `macro_precision_at_k`: (1/L) Σ_l TP_l / (points with l), 0 for a label that no point has.
    So the best attainable is the share of labels that occur in Y, which may be below 1.
    """
    judged = judge(Y, ranking, k)
    actual = judged.label_frequency
    return np.array([_ratio(tp, actual).mean() for tp, _ in judged.label_counts()])


def macro_f1_at_k(Y: Labels, ranking: Ranking, k: int) -> FloatArray:
    """F1 of each label, averaged over *all* labels, frequent and rare alike.

    Parameters and return value are those of `precision_at_k`; the conventions those of
    `macro_precision_at_k`: (1/L) Σ_l 2 TP_l / (PP_l + points with l), a mean of F1 values and
    not the F1 of the two macro means. A label neither predicted nor present counts 0.
    """
    judged = judge(Y, ranking, k)
    actual = judged.label_frequency
    return np.array(
        [_ratio(2 * tp, predicted + actual).mean() for tp, predicted in judged.label_counts()]
    )


def coverage_at_k(Y: Labels, ranking: Ranking, k: int) -> FloatArray:
    """Share of the labels present in Y that are predicted right for at least one point.

    Parameters and return value are those of `precision_at_k`.
    """
    judged = judge(Y, ranking, k)
    covered = np.array([np.count_nonzero(tp) for tp, _ in judged.label_counts()])
    return _ratio(covered, np.count_nonzero(judged.label_frequency))


# ---------------------------------------------------------------- all at once


def evaluate(
    Y: Labels,
    ranking: Ranking,
    *,
    ks: Iterable[int] = (1, 3, 5),
    inverse_propensity: NDArray[np.floating[Any]] | None = None,
) -> dict[str, float]:
    """Every measure at every k, in percent (0 to 100).

    Parameters
    ----------
    Y, ranking
        As for `precision_at_k`; the ranking is at least ``max(ks)`` wide.
    ks : iterable of int
        The depths to report.
    inverse_propensity : float array of shape (n_labels,), optional
        See `psp_at_k`; without it PSP and PSnDCG are left out.

    Returns
    -------
    dict of str to float
        Keys "P@1", "P@3", …, and so on for nDCG, PSP, PSnDCG, R, macroP, macroR, macroF1 and
        coverage.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix([[1, 0, 1], [0, 1, 0]], dtype=bool)
    >>> scores = evaluate(Y, np.array([[0, 1], [1, -1]]), ks=[1, 2])
    >>> scores["P@1"], scores["P@2"], scores["R@2"]
    (100.0, 50.0, 75.0)
    """
    places = _check_ks(ks)
    given = check_truth(Y), ranking, max(places)
    values = {"P": precision_at_k(*given), "nDCG": ndcg_at_k(*given)}
    if inverse_propensity is not None:
        values["PSP"] = psp_at_k(*given, inverse_propensity)
        values["PSnDCG"] = psndcg_at_k(*given, inverse_propensity)
    values["R"] = recall_at_k(*given)
    values["macroP"] = macro_precision_at_k(*given)
    values["macroR"] = macro_recall_at_k(*given)
    values["macroF1"] = macro_f1_at_k(*given)
    values["coverage"] = coverage_at_k(*given)
    return {f"{name}@{k}": 100 * float(at[k - 1]) for name, at in values.items() for k in places}


def _best_weights(judged: Judged, weights: FloatArray) -> FloatArray:
    """The k largest weights among each point's labels, in order, then zeros; (n_samples, k)."""
    truth, k = judged.truth, judged.hits.shape[1]
    by_weight = np.argsort(-weights, kind="stable")
    rank = np.empty_like(by_weight)
    rank[by_weight] = np.arange(len(rank))
    rows = row_of_each_entry(truth)
    keys = np.sort(
        rows * judged.n_labels + rank[truth.indices]
    )  # sorted within rows, as keys grow with the row
    column = np.arange(len(rows)) - truth.indptr[rows]
    kept = column < k
    best = np.zeros((truth.shape[0], k))
    best[rows[kept], column[kept]] = weights[by_weight[keys[kept] % judged.n_labels]]
    return best


def _discounts(k: int) -> FloatArray:
    discounts: FloatArray = 1 / np.log2(np.arange(2, k + 2))
    return discounts


def _ideal_dcg(n_true: IntArray, k: int) -> FloatArray:
    """DCG at 1..k of a perfect ranking of n_true labels; 1 for points without; (n_samples, k)."""
    places = np.minimum(np.maximum(n_true, 1)[:, None], np.arange(1, k + 1))
    ideal: FloatArray = _discounts(k).cumsum()[places - 1]
    return ideal


def _ratio(numerator: ArrayLike, denominator: ArrayLike) -> FloatArray:
    """Division in which 0 / 0 is 0."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, np.float64), denominator)
    quotient: FloatArray = np.divide(top, bottom, out=np.zeros(top.shape), where=bottom != 0)
    return quotient


def _mean(per_point: FloatArray) -> FloatArray:
    """Mean over points of values (n_samples, k)."""
    return np.asarray(per_point.mean(axis=0), np.float64)


def _check_ks(ks: Iterable[int]) -> list[int]:
    places = [check_depth(k) for k in ks]
    if not places:
        raise DataFormatError("ks must hold at least one k; got none. Try ks=(1, 3, 5).")
    return places


def _check_frequency(label_frequency: ArrayLike, n_train: int) -> FloatArray:
    frequency = np.asarray(label_frequency)
    if frequency.ndim != 1 or frequency.dtype.kind not in "iuf":
        raise DataFormatError(
            "label_frequency must hold one number a label, shape (n_labels,); got "
            f"{frequency.dtype} of shape {frequency.shape}. Use Y_train.getnnz(axis=0)."
        )
    if n_train < 3:
        raise DataFormatError(
            f"n_train must be 3 or more, got {n_train}: below that ln N - 1 is negative and the "
            "propensities mean nothing. Pass the number of training points."
        )
    if frequency.size and not (frequency.min() >= 0 and frequency.max() <= n_train):
        raise DataFormatError(
            f"label_frequency must lie in 0..{n_train} (n_train); got "
            f"{frequency.min()}..{frequency.max()}. Count both on the same training set."
        )
    return frequency.astype(np.float64)


def _check_inverse_propensity(weights: NDArray[np.floating[Any]], n_labels: int) -> FloatArray:
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_labels,):
        raise DataFormatError(
            f"inverse_propensity must have shape ({n_labels},), one number a label of Y; got "
            f"{checked.shape}. Count label frequencies on training labels with the same columns."
        )
    if not (np.isfinite(checked).all() and checked.min() >= 1):
        raise DataFormatError(
            f"inverse_propensity must be finite and 1 or more; got {checked.min()}.."
            f"{checked.max()}. Pass 1/p, not the propensity p."
        )
    return checked
