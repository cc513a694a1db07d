"""How far names alone can be trusted: a planted line is found again."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from dxml._deep.name_line import NameLine
from dxml._deep.tokens import Tokens
from dxml._deep.unseen import fit_name_line

CPU = torch.device("cpu")


class Names:
    """Scores that are given, in place of a head."""

    def __init__(self, scores: Any) -> None:
        self.scores = scores
        self.named = np.ones(scores.shape[1], dtype=bool)

    def nearest_names(self, texts: Tokens, k: int, device: torch.device, *, among: Any) -> Any:
        own = self.scores[:, among]
        best = np.argsort(-own, axis=1, kind="stable")[:, :k]
        return best.astype(np.int32), np.take_along_axis(own, best, axis=1)


def planted(line: NameLine, counts: list[int]) -> tuple[Any, sp.csr_matrix, Any]:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0, 10, size=(4000, len(counts))).astype(np.float32)
    right = rng.random(scores.shape) < line.probability(scores)
    return Names(scores), sp.csr_matrix(right), np.array(counts)


def test_the_planted_line_is_found_from_labels_without_examples() -> None:
    wanted = NameLine(1.2, -7.0)
    head, truth, counts = planted(wanted, [0, 0, 0, 50, 50])
    head.scores[:, 3:] = 0  # labels with examples would tell another story
    found = fit_name_line(head, Tokens.of([[1]] * 4000), truth, counts, CPU)
    assert found is not None
    assert np.allclose(found, wanted, rtol=0.1)


def test_labels_of_few_texts_stand_in_for_those_of_none() -> None:
    head, truth, counts = planted(NameLine(1.2, -7.0), [2, 2, 50])
    assert fit_name_line(head, Tokens.of([[1]] * 4000), truth, counts, CPU) is not None
    assert fit_name_line(head, Tokens.of([[1]] * 4000), truth, counts + 3, CPU) is None


def test_names_that_mislead_are_not_used() -> None:
    head, truth, counts = planted(NameLine(1.2, -7.0), [0, 0])
    head.scores = 10 - head.scores
    assert fit_name_line(head, Tokens.of([[1]] * 4000), truth, counts, CPU) is None


def test_probability_is_the_logistic_function_of_the_line() -> None:
    found = NameLine(2.0, -4.0).probability(np.array([1.0, 2.0, 3.0], dtype=np.float32))
    assert np.allclose(found, [1 / (1 + np.exp(2)), 0.5, 1 / (1 + np.exp(-2))])
