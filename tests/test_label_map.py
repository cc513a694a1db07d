"""The label map: related labels by brute force, planted communities apart, odd shapes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from dxml.label_map import INNER, LabelMap, make_label_map


def planted(
    n_groups: int = 4, labels_each: int = 15, points: int = 1200, seed: int = 0
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Every point has labels of one group; Y, and each label's group."""
    rng = np.random.default_rng(seed)
    n_labels = n_groups * labels_each
    Y = np.zeros((points, n_labels), dtype=bool)
    for point in range(points):
        group = rng.integers(n_groups)
        Y[point, group * labels_each + rng.choice(labels_each, 3, replace=False)] = True
    return sp.csr_matrix(Y), np.repeat(np.arange(n_groups), labels_each)


def distances(labels: LabelMap) -> np.ndarray:
    return np.linalg.norm(labels.positions[:, None] - labels.positions[None], axis=2)


def brute_force(Y: np.ndarray, n_related: int) -> list[list[tuple[int, float]]]:
    counts = Y.sum(axis=0)
    found = []
    for label in range(Y.shape[1]):
        pairs = []
        for other in range(Y.shape[1]):
            both = int((Y[:, label] & Y[:, other]).sum())
            if other != label and both:
                cosine = both / np.sqrt(counts[label] * counts[other])
                pairs.append((other, cosine * both / (both + 2)))
        pairs.sort(key=lambda pair: (-pair[1], -counts[pair[0]], pair[0]))
        found.append(pairs[:n_related])
    return found


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 8]))
def test_related_labels_are_those_of_brute_force(seed: int, n_related: int) -> None:
    Y = np.random.default_rng(seed).random((30, 9)) < 0.2
    labels = make_label_map(sp.csr_matrix(Y), n_related=n_related, n_placed=2)
    for label, pairs in enumerate(brute_force(Y, n_related)):
        filling = n_related - len(pairs)
        expected = [other for other, _ in pairs] + [-1] * filling
        assert labels.related[label].tolist() == expected
        strength = [value for _, value in pairs] + [0.0] * filling
        np.testing.assert_allclose(labels.strength[label], strength, rtol=1e-6)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Y, _ = planted(points=200)
    whole = make_label_map(Y, n_placed=10)
    monkeypatch.setattr("dxml.label_map.BLOCK", 7)
    blocks = make_label_map(Y, n_placed=10)
    assert (blocks.related == whole.related).all()
    assert (blocks.strength == whole.strength).all()
    assert (blocks.positions == whole.positions).all()


@pytest.mark.parametrize("n_placed", [60, 24])
def test_planted_communities_are_apart(n_placed: int) -> None:
    """Also where most labels are not laid out themselves but stand among those that are."""
    Y, group = planted()
    labels = make_label_map(Y, n_placed=n_placed)
    assert (group[labels.related] == group[:, None]).all()
    apart = distances(labels)
    same = group[:, None] == group[None]
    own = ~np.eye(len(group), dtype=bool)
    assert apart[same & own].mean() < 0.5 * apart[~same].mean()
    np.fill_diagonal(apart, np.inf)
    assert (group[apart.argmin(axis=1)] == group).mean() > 0.95


def test_the_same_seed_gives_the_same_map_whatever_the_threads() -> None:
    Y, _ = planted(points=300)
    with threadpool_limits(2):
        first = make_label_map(Y, n_placed=40, random_state=3)
    with threadpool_limits(1):
        second = make_label_map(Y, n_placed=40, random_state=3)
    assert (first.positions == second.positions).all()
    other = make_label_map(Y, n_placed=40, random_state=4)
    assert (other.positions != first.positions).any()
    assert (other.related == first.related).all()


def test_labels_without_relations_stand_around_the_others() -> None:
    Y, group = planted(points=300)
    alone = sp.csr_matrix(np.eye(5, dtype=bool))  # five labels, each with a point of its own
    Y = sp.block_diag([Y, alone, np.zeros((1, 2), dtype=bool)], format="csr")  # two without points
    labels = make_label_map(Y)
    radius = np.linalg.norm(labels.positions, axis=1)
    n = len(group)
    assert radius[:n].max() <= INNER + 1e-6
    assert (radius[n:] > INNER).all() and radius.max() <= 1
    assert (labels.related[n:] == -1).all() and (labels.strength[n:] == 0).all()
    assert labels.frequency[n:].tolist() == [1] * 5 + [0] * 2
    assert len(np.unique(labels.positions[n:], axis=0)) == 7


@pytest.mark.parametrize(
    ("rows", "related"),
    [
        (np.ones((3, 1)), [[-1]]),
        (np.ones((3, 2)), [[1], [0]]),
        (np.eye(2), [[-1], [-1]]),
        (np.ones((1, 3)), [[1], [0], [0]]),
        (np.zeros((4, 3)), [[-1], [-1], [-1]]),
        (np.ones((2, 4)), [[1], [0], [0], [0]]),
        (np.zeros((0, 2)), [[-1], [-1]]),
        (np.zeros((2, 0)), []),
    ],
)
def test_few_labels(rows: np.ndarray, related: list[list[int]]) -> None:
    labels = make_label_map(sp.csr_matrix(rows.astype(bool)), n_related=1)
    assert labels.related.tolist() == related
    assert labels.positions.shape == (rows.shape[1], 2)
    assert np.isfinite(labels.positions).all() and (abs(labels.positions) <= 1).all()
    assert labels.frequency.tolist() == rows.sum(axis=0).tolist()
    assert len(np.unique(labels.positions, axis=0)) == rows.shape[1]


def test_stored_zeros_and_counts_do_not_matter() -> None:
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 1]], dtype=np.float32))
    odd = sp.csr_matrix(([5.0, 2.0, 0.0, 3.0, 1.0], [1, 0, 2, 2, 1], [0, 3, 5]), shape=(2, 3))
    assert (make_label_map(odd).related == make_label_map(Y).related).all()
    assert (make_label_map(odd).frequency == [1, 2, 1]).all()
