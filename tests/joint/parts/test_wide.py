"""The wide layer as a part: pairs, a space, new labels, and training on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.arrays import Arrays
from dxml.data import Dataset
from dxml.joint import Joint
from dxml.joint._ensemble import every_pair
from dxml.joint._points import Known
from dxml.joint.parts import _wide as module
from dxml.joint.parts._wide import WidePart
from dxml.joint.parts.protocol import Data, Options, Query, Task

CPU = torch.device("cpu")
KNOWN = 10  # of the 12 labels; the last two are new
SETTINGS = {"width": 32, "learners": 1, "epochs": 5, "voters": 0}


@pytest.fixture
def task(known: Known, options: Options) -> Task:
    return Task(Data(known.points, known.labels), options)


def test_pairs_are_those_of_all_scores(known: Known, task: Task) -> None:
    part = WidePart.fit(task, SETTINGS)
    near = known.search(known.points, 2, "cpu")
    every = part.head.scores(known.points, CPU)
    whole = Query(known.points, near, every_pair(30, 8), True, known, "cpu")
    assert np.array_equal(part.scores(whole), every.ravel())
    pairs = known.labels
    rows = np.repeat(np.arange(30), np.diff(pairs.indptr))
    some = Query(known.points, near, pairs, False, known, "cpu")
    np.testing.assert_allclose(part.scores(some), every[rows, pairs.indices], atol=1e-5)


def test_points_are_embedded_as_unit_rows(known: Known, task: Task) -> None:
    part = WidePart.fit(task, SETTINGS)
    found = part.embed(known.points, "cpu").numpy()
    hidden = np.asarray(part.head.hidden(known.points, CPU))
    lengths = np.linalg.norm(hidden, axis=1, keepdims=True)
    np.testing.assert_allclose(found, hidden / np.maximum(lengths, 1e-12), atol=1e-6)


def test_training_on_takes_two_fifths_of_the_epochs(task: Task) -> None:
    first = WidePart.fit(task, SETTINGS)
    weights = np.array(first.head.inner)
    assert len(first.history) == 5
    later = first.train_on(task, None)
    assert len(later.history) == 7 and later.history[:5] == first.history
    assert (later.learners, later.epochs) == (1, 5)
    assert later.history[-1] < first.history[0]
    assert np.array_equal(first.head.inner, weights), "the part before stays as it was"


def test_a_cpu_trains_a_gpus_layer_on_as_it_would_its_own(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step with voters takes seconds there; the folder still says what held-out points chose."""
    first, given = WidePart.fit(task, SETTINGS), []

    def asked(X: Any, Y: Any, settings: Any, **named: Any) -> Any:
        given.append((settings.voters, settings.epochs))
        return first.head, []

    monkeypatch.setattr(module, "fit_wide", asked)
    part = replace(first, voters=64, epochs=120)
    later = part.train_on(task, None)
    assert later.settings == part.settings
    filled = sp.csr_matrix(np.ones(task.data.X.shape, dtype=np.float32))
    dense = replace(task, data=replace(task.data, X=filled))
    for other in (dense, replace(task, options=replace(task.options, epochs=120))):
        part.train_on(other, None)
    assert given == [(0, 10), (0, 32), (0, 48)]  # two fifths of 25, of 80, and of what is asked


def test_saved_and_restored(known: Known, task: Task) -> None:
    part = WidePart.fit(task, SETTINGS)
    config, arrays = part.state("float32")
    assert config == {**SETTINGS, "history": list(part.history), "n_features": 40}
    again = WidePart.restore(config, Arrays(arrays), known)
    assert again.history == part.history and again.epochs == 5
    assert np.array_equal(again.head.scores(known.points, CPU), part.head.scores(known.points, CPU))


def test_a_new_label_has_logits_like_the_others(planted: Dataset, halves: Any) -> None:
    """Over its own points, and over all, a new label's mean logit is that of the known labels."""
    old, fresh, _ = halves
    model = Joint(device="cpu", candidates="all", width=64, epochs=8)
    model.fit(planted.X[old], planted.Y[old][:, :KNOWN])
    model.partial_fit(planted.X[fresh], planted.Y[fresh])
    part = model.parts_["wide"]
    assert isinstance(part, WidePart)
    logits = part.head.scores(model.train_features_, CPU)
    carried = model.train_labels_.toarray()
    low = logits[:, :KNOWN].mean()
    high = logits[:, :KNOWN][carried[:, :KNOWN]].mean()
    assert high > low + 0.3
    for label in range(KNOWN, 12):
        assert logits[:, label].mean() == pytest.approx(low, abs=0.1)
        assert logits[carried[:, label], label].mean() == pytest.approx(high, abs=0.1)
