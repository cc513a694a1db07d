"""The Huffman tree: depths by hand, and chances that sum to 1."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._label_graph.huffman import huffman_tree


def test_huffman_depths_by_hand():
    tree = huffman_tree(np.array([8, 4, 2, 1, 1]))
    depth = [
        sum(lo <= p < hi for lo, hi in zip(tree.low, tree.high, strict=True)) for p in tree.position
    ]
    assert depth == [1, 2, 3, 4, 4]


def test_chances_of_the_leaves_sum_to_one():
    rng = np.random.default_rng(1)
    tree = huffman_tree(rng.integers(1, 50, size=20))
    left = rng.random(19)
    leaves = np.ones(20)
    for place in range(20):
        for node in np.flatnonzero((tree.low <= place) & (place < tree.high)):
            leaves[place] *= left[node] if place < tree.middle[node] else 1 - left[node]
    assert sorted(tree.position.tolist()) == list(range(20))
    assert leaves.sum() == pytest.approx(1)
