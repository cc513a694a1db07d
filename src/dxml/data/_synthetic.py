"""Planted data: generated data of any shape whose correct labels are known.

Labels come in groups that occur together, with frequencies that follow a power law. Every label has
signature features; a point's features are drawn from its labels' signatures, and a share of them
at random. A method that works finds the labels again; the label graph shows the groups.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dxml._core.compiled import compiled
from dxml._core.random import spawn, spawn_seed
from dxml._core.random_numba import below, star, unit, weighted, xorshift
from dxml.data._dataset import Dataset
from dxml.data._drawing import MAX_DRAWS, taken, taken_once
from dxml.exceptions import ParameterError

__all__ = ["make_planted", "train_test", "train_test_rows"]

_SAME_GROUP_CHANCE = 0.8  # that a point's next label is from the group of one it has


@compiled()
def _bits(state: NDArray[np.uint64]) -> np.uint64:
    """The next 64 bits of an xorshift64* generator."""
    state[0] = xorshift(state[0])
    return star(state[0])


@compiled()
def _uniform(state: NDArray[np.uint64]) -> float:
    return unit(_bits(state))


@compiled()
def _below(state: NDArray[np.uint64], n: int) -> int:
    return below(_bits(state), n)


@compiled()
def _draw(state: NDArray[np.uint64], ends: NDArray[np.float64], first: int, stop: int) -> int:
    return weighted(_uniform(state), ends, first, stop)


@compiled()
def _plant_labels(
    row_ends: NDArray[np.int64], ends: NDArray[np.float64], group: int, seed: int
) -> NDArray[np.int32]:
    """Distinct label positions for every point; positions of one group are consecutive."""
    n_labels = ends.size
    state = np.array([np.uint64(seed) | np.uint64(1)])
    seen = np.full(n_labels, -1, np.int64)
    positions = np.empty(row_ends[-1], np.int32)
    for row in range(row_ends.size - 1):
        start = row_ends[row]
        tries = 0
        n = start
        while n < row_ends[row + 1]:
            if tries > MAX_DRAWS:
                position = _below(state, n_labels)
            elif n > start and _uniform(state) < _SAME_GROUP_CHANCE:
                first = positions[start + _below(state, n - start)] // group * group
                position = _draw(state, ends, first, min(first + group, n_labels))
            else:
                position = _draw(state, ends, 0, n_labels)
            tries += 1
            if taken(position, row, seen, positions, n):
                n, tries = n + 1, 0
    return positions


@compiled()
def _plant_features(
    row_ends: NDArray[np.int64],
    label_ends: NDArray[np.int64],
    labels: NDArray[np.int32],
    signatures: NDArray[np.int32],
    n_features: int,
    noise: float,
    seed: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Distinct features for every point, with values that grow with the number of draws."""
    state = np.array([np.uint64(seed) | np.uint64(1)])
    draws = np.zeros(n_features, np.int32)
    indices = np.empty(row_ends[-1], np.int32)
    values = np.empty(row_ends[-1], np.float32)
    for row in range(row_ends.size - 1):
        start, stop = row_ends[row], row_ends[row + 1]
        first, n_own = label_ends[row], label_ends[row + 1] - label_ends[row]
        tries = 0
        n = start
        while n < stop:
            if n_own == 0 or tries > MAX_DRAWS or _uniform(state) < noise:
                feature = _below(state, n_features)
            else:
                label = labels[first + _below(state, n_own)]
                feature = signatures[label, _below(state, signatures.shape[1])]
            tries += 1
            if taken_once(feature, draws, indices, n):
                n, tries = n + 1, 0
        total = 0.0
        for i in range(start, stop):
            values[i] = np.log1p(draws[indices[i]])
            total += values[i] ** 2
            draws[indices[i]] = 0
        values[start:stop] /= np.float32(np.sqrt(total)) if total > 0 else np.float32(1)
    return indices, values


def _row_ends(rng: np.random.Generator, n_rows: int, mean: float, most: int) -> NDArray[np.int64]:
    """Row boundaries of rows that hold `mean` entries on average, and one or more if mean >= 1."""
    least = 1 if mean >= 1 else 0
    counts = np.minimum(least + rng.poisson(max(mean - least, 0.0), n_rows), most)
    if mean >= most:
        counts[:] = most
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _check(**ranges: tuple[float, float, float]) -> None:
    for name, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise ParameterError(f"{name} must be in {low:g}..{high:g}, got {value!r}.")


def make_planted(
    n_samples: int,
    n_features: int,
    n_labels: int,
    labels_per_point: float = 3.0,
    features_per_point: float = 30,
    power: float = 1.0,
    noise: float = 0.1,
    random_state: int | None = 0,
) -> Dataset:
    """Generate points whose labels can be told from their features.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        Shape of the data.
    labels_per_point, features_per_point : float
        Averages; a point has at least one of each where the average is 1 or more.
    power : float
        The label of rank r is drawn with a chance in proportion to r ** -power; 0 is uniform.
    noise : float in 0..1
        Share of feature draws that are random rather than from a signature of the point's labels.
    random_state : int or None
        Same number, same data. None: new data every time.

    Returns
    -------
    Dataset
        Rows of X have length 1. Which labels are frequent, and which belong together, has nothing
        to do with their ids. Rows do not depend on one another: any cut is a fair train and test.
    """
    _check(
        n_samples=(n_samples, 1, 2**31 - 1),
        n_features=(n_features, 1, 2**31 - 1),
        n_labels=(n_labels, 1, 2**31 - 1),
        labels_per_point=(labels_per_point, 0, n_labels),
        features_per_point=(features_per_point, 0, n_features),
        power=(power, 0, 10),
        noise=(noise, 0, 1),
    )
    rng = spawn(random_state, "label counts", "feature counts", "ranks", "ids", "signatures")
    label_ends = _row_ends(rng["label counts"], n_samples, labels_per_point, n_labels)
    row_ends = _row_ends(rng["feature counts"], n_samples, features_per_point, n_features)
    weights = (1.0 + rng["ranks"].permutation(n_labels)) ** -power
    group = max(4, round(2 * labels_per_point))
    positions = _plant_labels(
        label_ends, np.cumsum(weights / weights.sum()), group, spawn_seed(random_state, "labels")
    )
    labels = rng["ids"].permutation(n_labels).astype(np.int32)[positions]
    size = max(3, int(np.ceil(1.5 * features_per_point / max(labels_per_point, 1.0))))
    signatures = rng["signatures"].integers(n_features, size=(n_labels, size), dtype=np.int32)
    indices, values = _plant_features(
        row_ends,
        label_ends,
        labels,
        signatures,
        n_features,
        noise,
        spawn_seed(random_state, "features"),
    )
    X = csr_matrix((values, indices, row_ends), shape=(n_samples, n_features))
    ones = np.ones(labels.size, dtype=np.bool_)
    Y = csr_matrix((ones, labels, label_ends), shape=(n_samples, n_labels))
    X.sort_indices()
    Y.sort_indices()
    return Dataset(X, Y, name="planted")


def train_test(
    dataset: Dataset, n_test: int, random_state: int | None = 0
) -> tuple[Dataset, Dataset]:
    """Cut off `n_test` points at random: (train, test), each in the order of `dataset`."""
    train, test = train_test_rows(dataset.n_samples, n_test, random_state)
    return dataset.take(train), dataset.take(test)


def train_test_rows(
    n_samples: int, n_test: int, random_state: int | None = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The rows of both parts, as `train_test` cuts them."""
    if not 0 < n_test < n_samples:
        raise ParameterError(
            f"n_test must leave points on both sides, 1..{n_samples - 1}, got {n_test}."
        )
    rng = spawn(random_state, "train_test")["train_test"]
    is_test = np.zeros(n_samples, dtype=np.bool_)
    is_test[rng.permutation(n_samples)[:n_test]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
