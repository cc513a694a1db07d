"""Rows of a logistic head that become one."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._learners.merged_rows import merged_row


def test_points_keep_their_logits_and_the_average_is_that_of_the_union() -> None:
    weight = np.array([[4, 0, 0], [0, 4, 0]], dtype=np.float32)
    bias = np.array([-3, -3], dtype=np.float32)
    own = [np.array([[1, 0, 0]], np.float32), np.array([[0, 1, 0]], np.float32)]
    others = np.array([[0, 0, 1]] * 8, dtype=np.float32)
    row, shift = merged_row(weight, bias, np.array([5.0, 5.0]), own, others)
    logits = np.concatenate(own) @ row + shift
    assert logits == pytest.approx([1, 1]), "as by their own labels"
    assert others[0] @ row + shift == pytest.approx(np.log(2 * np.exp(-3)))


def test_a_rare_label_changes_little() -> None:
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(2, 6)).astype(np.float32), np.zeros(2, np.float32)
    own = [rng.normal(size=(20, 6)).astype(np.float32) + 2 * weight[i] for i in range(2)]
    others = rng.normal(size=(50, 6)).astype(np.float32)
    row, _ = merged_row(weight, bias, np.array([1000.0, 1.0]), own, others)
    cosine = row @ weight[0] / np.linalg.norm(row) / np.linalg.norm(weight[0])
    assert cosine > 0.999


def test_without_points_it_is_the_mean() -> None:
    weight = np.array([[2, 0], [0, 2]], dtype=np.float32)
    none = np.empty((0, 2), np.float32)
    row, shift = merged_row(weight, np.ones(2, np.float32), np.zeros(2), [none, none], none)
    assert row.tolist() == [1, 1] and shift == 1
