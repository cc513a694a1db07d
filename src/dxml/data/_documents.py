"""Generated documents: topics, labels and words drawn one after the other.

A label belongs to a topic, a group of labels that occur together. A topic has words, a label has
words of its own, and all words come from one vocabulary, in which few are frequent. A point draws a
topic, most of its labels from it and the others from all labels. Then it draws its words: common
ones, words of its labels and of their topics, and words of a topic that it is not about. Some
points are revisions of an earlier one and keep a part of its labels and words. Last, some labels
are exchanged for others of their topic, and some are lost, rare ones more often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dxml._core.compiled import compiled
from dxml._core.random import spawn, spawn_seed
from dxml._core.random_numba import below, next_bits, unit, weighted
from dxml.data._dataset import Dataset
from dxml.data._drawing import MAX_DRAWS, taken, taken_once
from dxml.data._label_law import chances_to_be_lost, label_law, label_shares
from dxml.data._traits import Traits

__all__ = ["make_documents"]

_WORDS = 1.5  # words of a label, as a multiple of its share of a point's
_KEPT_LABELS = 0.8  # of an earlier point's labels that a revision keeps
_KEPT_WORDS = 0.6
_COMMON = 10.0  # words before the power law of the common words sets in


@compiled()
def _uniform(state: NDArray[np.uint64]) -> float:
    return unit(next_bits(state))


@compiled()
def _below(state: NDArray[np.uint64], n: int) -> int:
    return below(next_bits(state), n)


@compiled()
def _front(state: NDArray[np.uint64], n: int, emphasis: float) -> int:
    """A number in 0..n - 1: at 0 all alike, at 1 in proportion to the square root of 1 / r."""
    u = _uniform(state)
    return int(n * u * u**emphasis)


@compiled()
def _about(state: NDArray[np.uint64], mean: float) -> float:
    """A share in 0..1 with that mean: a power of a uniform number."""
    return _uniform(state) ** ((1 - mean) / mean) if mean > 0 else 0.0


@compiled()
def _draw(state: NDArray[np.uint64], ends: NDArray[np.float64], first: int, stop: int) -> int:
    return weighted(_uniform(state), ends, first, stop)


@compiled()
def _true_labels(
    row_ends: NDArray[np.int64],
    parents: NDArray[np.int64],
    ends: NDArray[np.float64],
    topic_ends: NDArray[np.float64],
    same: float,
    size: int,
    seed: int,
) -> NDArray[np.int32]:
    """Distinct labels of every point; labels of a topic are consecutive numbers."""
    n_labels = ends.size
    state = np.array([np.uint64(seed)])
    seen = np.full(n_labels, -1, np.int64)
    labels = np.empty(row_ends[-1], np.int32)
    for row in range(row_ends.size - 1):
        n, stop, parent = row_ends[row], row_ends[row + 1], parents[row]
        if parent >= 0:
            for i in range(row_ends[parent], row_ends[parent + 1]):
                if n < stop and _uniform(state) < _KEPT_LABELS:
                    seen[labels[i]] = row
                    labels[n] = labels[i]
                    n += 1
            first = labels[row_ends[parent]] // size * size
        else:
            first = _draw(state, topic_ends, 0, n_labels) // size * size
        tries = 0
        while n < stop:
            if tries > MAX_DRAWS:
                label = _below(state, n_labels)
            elif _uniform(state) < same:
                label = _draw(state, topic_ends, first, min(first + size, n_labels))
            else:
                label = _draw(state, ends, 0, n_labels)
            tries += 1
            if taken(label, row, seen, labels, n):
                n, tries = n + 1, 0
    return labels


@compiled()
def _words(
    row_ends: NDArray[np.int64],
    parents: NDArray[np.int64],
    label_ends: NDArray[np.int64],
    labels: NDArray[np.int32],
    own: NDArray[np.int32],
    shared: NDArray[np.int32],
    size: int,
    n_words: int,
    noise: float,
    distraction: float,
    overlap: float,
    emphasis: float,
    seed: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Distinct words of every point, and how often each was drawn."""
    state = np.array([np.uint64(seed)])
    draws = np.zeros(n_words, np.int32)
    words = np.empty(row_ends[-1], np.int32)
    counts = np.empty(row_ends[-1], np.float32)
    spread = np.log1p(n_words / _COMMON)
    for row in range(row_ends.size - 1):
        start, stop, parent = row_ends[row], row_ends[row + 1], parents[row]
        first, n_own = label_ends[row], label_ends[row + 1] - label_ends[row]
        common, off_topic = _about(state, noise), _about(state, distraction)
        aside = _below(state, shared.shape[0])
        n = start
        if parent >= 0:
            for i in range(row_ends[parent], row_ends[parent + 1]):
                if n < stop and _uniform(state) < _KEPT_WORDS:
                    draws[words[i]] = counts[i]
                    words[n] = words[i]
                    n += 1
        tries = 0
        while n < stop:
            if tries > MAX_DRAWS:
                word = _below(state, n_words)
            elif n_own == 0 or _uniform(state) < common:
                word = min(int(_COMMON * np.expm1(_uniform(state) * spread)), n_words - 1)
            elif _uniform(state) < off_topic:
                word = shared[aside, _front(state, shared.shape[1], 1.0)]
            else:
                label = labels[first + _front(state, n_own, emphasis)]
                if _uniform(state) < overlap:
                    word = shared[label // size, _front(state, shared.shape[1], 1.0)]
                else:
                    word = own[label, _front(state, own.shape[1], 1.0)]
            tries += 1
            if taken_once(word, draws, words, n):
                n, tries = n + 1, 0
        for i in range(start, stop):
            counts[i] = draws[words[i]]
            draws[words[i]] = 0
    return words, counts


@compiled()
def _listed(
    row_ends: NDArray[np.int64],
    labels: NDArray[np.int32],
    topic_ends: NDArray[np.float64],
    general: NDArray[np.bool_],
    lost: NDArray[np.float64],
    size: int,
    label_noise: float,
    seed: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The labels that are written down, and their rows' ends: some exchanged, some lost.

    The first that a label is exchanged for are those of its topic which no point has.
    """
    n_labels = topic_ends.size
    state = np.array([np.uint64(seed)])
    unused = np.ones(n_labels, np.bool_)
    unused[labels] = False
    next_label = np.arange(0, n_labels, size)
    seen = np.full(n_labels, -1, np.int64)
    listed = np.empty_like(labels)
    ends = np.zeros_like(row_ends)
    n = 0
    for row in range(row_ends.size - 1):
        start, wrong = n, _about(state, label_noise)
        for i in range(row_ends[row], row_ends[row + 1]):
            label = labels[i]
            topic, first = label // size, label // size * size
            stop = min(first + size, n_labels)
            keep = _uniform(state) >= lost[label]
            if not general[label] and _uniform(state) < wrong:
                while next_label[topic] < stop and not unused[next_label[topic]]:
                    next_label[topic] += 1
                if next_label[topic] < stop:
                    label = next_label[topic]
                    next_label[topic] += 1
                else:
                    label = _draw(state, topic_ends, first, stop)
            tries = 0
            while seen[label] == row and tries < MAX_DRAWS:
                label = _draw(state, topic_ends, first, stop)
                tries += 1
            last_chance = n == start and i == row_ends[row + 1] - 1
            if (keep or last_chance) and taken(label, row, seen, listed, n):
                n += 1
        ends[row + 1] = n
    return listed[:n], ends


@compiled()
def _weigh(
    row_ends: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.float32],
    idf: NDArray[np.float32],
) -> None:
    """Turn counts into tf-idf weights, in place; rows get length 1."""
    for row in range(row_ends.size - 1):
        total = 0.0
        for i in range(row_ends[row], row_ends[row + 1]):
            counts[i] = (1 + np.log(counts[i])) * idf[words[i]]
            total += counts[i] ** 2
        for i in range(row_ends[row], row_ends[row + 1]):
            counts[i] /= np.sqrt(total)


def _row_ends(
    rng: np.random.Generator, n_rows: int, mean: float, spread: float, most: int
) -> NDArray[np.int64]:
    """Boundaries of rows that hold `mean` entries on average, and one or more if mean >= 1."""
    least = 1.0 if mean >= 1 else 0.0
    factor = np.exp(spread * rng.standard_normal(n_rows) - spread**2 / 2)
    wanted = least + max(mean - least, 0.0) * factor / factor.mean()
    counts = np.minimum(np.floor(wanted + rng.random(n_rows)), most)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _signatures(
    rng: np.random.Generator, n_rows: int, n_words: int, n_features: int
) -> NDArray[np.int32]:
    """Words of a row each, the first ones the likeliest; word r has a weight of r ** -0.5."""
    places = rng.random((n_rows, n_words), dtype=np.float32)
    places *= places
    places *= n_features
    return np.minimum(places.astype(np.int32), n_features - 1)


def make_documents(
    n_samples: int,
    n_features: int,
    n_labels: int,
    labels_per_point: float = 3.0,
    features_per_point: float = 30.0,
    traits: Traits | None = None,
    propensity: tuple[float, float] = (0.55, 1.5),
    random_state: int | None = 0,
) -> Dataset:
    """Generate points that look like tf-idf rows of documents, with labels of uneven frequency.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        Shape of the data.
    labels_per_point, features_per_point : float
        Averages; a point has one or more of each where the average is 1 or more.
    traits : Traits, optional
        How difficult the data is.
    propensity : (A, B)
        Constants of the propensity model, by which rare labels are lost more often.
    random_state : int or None
        Same number, same data. None: new data every time.

    Returns
    -------
    Dataset
        Rows of X have length 1. Points that are revisions stand after what they revise: cut train
        and test at random, with `train_test`.
    """
    traits = traits or Traits()
    rng = spawn(random_state, "label counts", "lengths", "copies", "ranks", "words", "ids")
    mean_share = labels_per_point / n_labels
    head = max(traits.head, min(1.0, 1.5 * mean_share))
    least = min(0.7 / n_samples, 0.5 * mean_share)
    shares = label_shares(n_labels, labels_per_point, head, least)
    shares = shares[rng["ranks"].permutation(n_labels)]
    law = label_law(shares, chances_to_be_lost(shares, n_samples, traits.missing, propensity))
    parents = (rng["copies"].random(n_samples) * np.arange(n_samples)).astype(np.int64)
    parents[rng["copies"].random(n_samples) >= traits.copies] = -1
    parents[0] = -1
    label_ends = _row_ends(rng["label counts"], n_samples, law.true, traits.label_spread, n_labels)
    labels = _true_labels(
        label_ends,
        parents,
        law.anywhere_ends,
        law.topic_ends,
        law.same,
        law.size,
        spawn_seed(random_state, "labels"),
    )
    X = _features(
        n_features,
        features_per_point,
        traits,
        parents,
        label_ends,
        labels,
        n_labels,
        law.size,
        rng,
        spawn_seed(random_state, "features"),
    )
    listed, listed_ends = _listed(
        label_ends,
        labels,
        law.topic_ends,
        law.general,
        law.lost,
        law.size,
        traits.label_noise,
        spawn_seed(random_state, "listed"),
    )
    ids = rng["ids"].permutation(n_labels).astype(np.int32)
    Y = csr_matrix(
        (np.ones(listed.size, np.bool_), ids[listed], listed_ends), shape=(n_samples, n_labels)
    )
    Y.sort_indices()
    return Dataset(X, Y, name="documents", propensity=propensity)


def _features(
    n_features: int,
    features_per_point: float,
    traits: Traits,
    parents: NDArray[np.int64],
    label_ends: NDArray[np.int64],
    labels: NDArray[np.int32],
    n_labels: int,
    size: int,
    rng: dict[str, np.random.Generator],
    seed: int,
) -> csr_matrix:
    """The tf-idf rows of points whose true labels are given."""
    n_samples = parents.size
    labels_per_point = max(labels.size / n_samples, 1.0)
    n_own = max(3, round(_WORDS * features_per_point / labels_per_point))
    ends = _row_ends(
        rng["lengths"], n_samples, features_per_point, traits.length_spread, n_features
    )
    words, values = _words(
        ends,
        parents,
        label_ends,
        labels,
        _signatures(rng["words"], n_labels, n_own, n_features),
        _signatures(rng["words"], -(-n_labels // size), 2 * n_own, n_features),
        size,
        n_features,
        traits.noise,
        traits.distraction,
        traits.overlap,
        traits.emphasis,
        seed,
    )
    idf = np.log(1 + n_samples / (1 + np.bincount(words, minlength=n_features)))
    _weigh(ends, words, values, idf.astype(np.float32))
    ids = rng["ids"].permutation(n_features).astype(np.int32)
    X = csr_matrix((values, ids[words], ends), shape=(n_samples, n_features))
    X.sort_indices()
    return X
