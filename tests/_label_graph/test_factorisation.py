"""The solver: every sweep goes down, and a sample keeps the expectation."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._label_graph import factorisation
from dxml._label_graph.cooccurrence import index_walks
from dxml._label_graph.factorisation import factorise
from dxml._label_graph.skipgram import NegativeProblem, TreeProblem, train_skipgram

from .naive import newton_sums


@pytest.mark.parametrize("hierarchical", [False, True])
def test_every_sweep_goes_down(cliques, hierarchical):
    index = index_walks(cliques, 62, 4)
    seen = np.flatnonzero(index.counts)
    problem = (
        TreeProblem.build(index, seen)
        if hierarchical
        else NegativeProblem.build(index, seen, 5, 0.75)
    )
    losses = []
    for sweeps in range(11):
        factors = factorise(problem, 12, sweeps, seed=0)
        losses.append(newton_sums(problem, factors.U, factors.V)[2])
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.65 * losses[0]


def test_tiles_kept_or_made_anew_are_the_same(cliques, monkeypatch):
    kept = train_skipgram(cliques, 62, 8)
    monkeypatch.setattr(factorisation, "CACHE_ENTRIES", 0)
    assert train_skipgram(cliques, 62, 8).tobytes() == kept.tobytes()


def test_the_sample_keeps_the_heavy_and_the_expectation():
    mass = np.arange(100.0)
    draws = [factorisation._sample(mass, 20, np.random.default_rng(i)) for i in range(400)]
    assert all(set(draw.ids[:10]) == set(range(90, 100)) for draw in draws)
    estimate = np.mean([(mass[draw.ids] * draw.weights).sum() for draw in draws])
    assert estimate == pytest.approx(mass.sum(), rel=0.02)
