"""The linear head as a part: whom a new label is told from, and what training on minimises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._learners.linear_examples import label_signs
from dxml.data import Dataset
from dxml.joint import Joint
from dxml.joint._ensemble import every_pair
from dxml.joint._points import Known
from dxml.joint.parts._linear import TRAIN_ON_C, LinearPart, _lesson_signs
from dxml.joint.parts.protocol import Data, Lesson, Options, Query, Task
from dxml.topk import tie_order

KNOWN = 10  # of the 12 labels; the last two are new


def shortlisted(known: Known, options: Options) -> Data:
    """The known points with their hard negatives, as training on has them."""
    count = options.n_negatives
    return Data(known.points, known.labels, known.own_shortlists(count, count, "cpu"))


@pytest.fixture
def task(known: Known, options: Options) -> Task:
    return Task(shortlisted(known, options), options)


@pytest.fixture(scope="module")
def fitted(planted: Dataset, halves: Any) -> Joint:
    old = halves[0]
    model = Joint(candidates="nearest", width=0, device="cpu")
    return model.fit(planted.X[old], planted.Y[old][:, :KNOWN])


def the_linear(model: Joint) -> LinearPart:
    part = model.parts_["linear"]
    assert isinstance(part, LinearPart)
    return part


def as_taught(fitted: Joint, X: Any, Y: Any) -> tuple[LinearPart, Lesson]:
    """The part of a model, and a lesson of points that it does not know."""
    before, options = fitted._ensemble.known, fitted._options()
    rows = fitted.scaler_.transform(X)
    after = before.add(rows, Y)
    return the_linear(fitted), Lesson(rows, Y, before, after, options)


def test_signs_are_of_all_labels_or_of_shortlists(known: Known, options: Options) -> None:
    every = Data(known.points, known.labels).signs
    assert np.array_equal(every.toarray(), np.where(known.labels.toarray().T, 1, -1))
    data = shortlisted(known, options)
    assert data.negatives is not None
    expected = label_signs(known.labels, data.negatives)
    assert np.array_equal(data.signs.toarray(), expected.toarray())


def test_a_fit_goes_on_from_another_and_leaves_it(task: Task) -> None:
    """It is nearer to the solution than a fit of as many passes from nothing."""
    settings = {"C": 1.0}
    first = LinearPart.fit(task, settings)
    assert first.duals is not None and first.C == 1.0
    before = first.duals.copy(), first.head.weights.toarray()
    second = LinearPart.fit(task, settings, start=first)
    assert np.array_equal(first.duals, before[0])
    assert np.array_equal(first.head.weights.toarray(), before[1])
    assert second.duals is not None and not np.array_equal(second.duals, first.duals)
    again = LinearPart.fit(task, settings, start=first)
    assert np.array_equal(again.duals, second.duals)  # type: ignore[arg-type]
    best = second
    for _ in range(60):
        best = LinearPart.fit(task, settings, start=best)
    gaps = [
        np.linalg.norm((each.head.weights - best.head.weights).toarray())
        for each in (first, second)
    ]
    assert gaps[1] < gaps[0]


def test_a_trial_learns_nothing_from_held_out_points(
    known: Known, options: Options, task: Task
) -> None:
    rows = np.arange(30) < 20
    part = LinearPart.fit(Task(task.data, options, rows), {"C": 1.0})
    held = np.isin(task.data.signs.indices, np.flatnonzero(~rows))
    assert part.duals is not None and not part.duals[held].any() and part.duals[~held].any()


def test_a_strength_that_is_given_is_not_chosen(options: Options) -> None:
    assert LinearPart.fixed(options) is None
    given = Options(standardised=False, device="cpu", precision="float32", random_state=0, C=0.25)
    assert LinearPart.fixed(given) == {"C": 0.25}


def test_it_must_earn_its_place_beside_another_head(task: Task) -> None:
    part = LinearPart.fit(task, {"C": 1.0})
    assert LinearPart.optional(True, {"kernel": part}) and LinearPart.optional(True, {"wide": part})
    assert not LinearPart.optional(True, {"vote": part})
    assert not LinearPart.optional(False, {"wide": part})


def test_saved_and_restored(known: Known, task: Task) -> None:
    part = LinearPart.fit(task, {"C": 0.3})
    config, arrays = part.state("float32")
    again = LinearPart.restore(config, Arrays(arrays), known)
    assert (again.head.weights != part.head.weights).nnz == 0 and again.C == 0.3
    near = known.search(known.points, 3, "cpu")
    for every in (True, False):
        query = Query(known.points, near, every_pair(30, 8), every, known, "cpu")
        assert np.array_equal(again.scores(query), part.scores(query))


def test_a_new_label_is_told_from_the_points_nearby(fitted: Joint, planted: Dataset) -> None:
    Y = sp.csr_matrix(np.array([[0] * KNOWN + [1], [1] + [0] * KNOWN], dtype=bool))
    _, lesson = as_taught(fitted, planted.X[400:402], Y)
    found = _lesson_signs(lesson)
    assert KNOWN in found.labels
    signs = np.zeros(lesson.after.n_points)
    signs[found.points] = found.values[int(np.searchsorted(found.labels, KNOWN))].toarray()[0]
    assert signs[-2] == 1 and (signs[:-2] <= 0).all() and (signs[:-1] == 1).sum() == 1
    near = lesson.before.search(lesson.X[[0]], 50, "cpu").ids
    assert (signs[near[0][:40]] == -1).all()


def test_labels_of_which_little_is_new_stay(fitted: Joint, planted: Dataset) -> None:
    """A new point of a frequent label is no tenth of its points; one of a new label is all."""
    before = fitted._ensemble.known
    counts = np.bincount(before.labels.indices, minlength=KNOWN)
    frequent = int(np.argmin(tie_order(counts)))
    assert counts[frequent] > 20
    Y = np.zeros((1, KNOWN + 1), dtype=bool)
    Y[0, [frequent, KNOWN]] = True
    part, lesson = as_taught(fitted, planted.X[400], sp.csr_matrix(Y))
    grown = part.add(lesson)
    assert grown.head.weights.shape[0] == KNOWN + 1 and grown.head.weights[KNOWN].nnz
    assert (grown.head.weights[:KNOWN] != part.head.weights).nnz == 0
    assert part.head.weights.shape[0] == KNOWN, "the part before stays as it was"


def test_training_on_moves_weights_to_less_loss(
    fitted: Joint, planted: Dataset, halves: Any
) -> None:
    """½ ‖w − w₀‖² + C' Σ loss is lower than where it starts, and no weight goes far."""
    part, lesson = as_taught(fitted, planted.X[halves[1]], planted.Y[halves[1]])
    start, options = part.add(lesson), lesson.options
    data = shortlisted(lesson.after, options)
    before, signs = start.head.weights.toarray(), data.signs.toarray()

    def objective(weights: Any) -> float:
        scores = (data.X @ weights.T).T - 1  # (n_labels, n_samples)
        loss = np.where(signs != 0, np.maximum(0, 1 - signs * scores) ** 2, 0).sum()
        return float(0.5 * np.square(weights - before).sum() + TRAIN_ON_C * start.C * loss)

    after = start.train_on(Task(data, options), {"C": start.C})
    assert objective(after.head.weights.toarray()) < 0.8 * objective(before)
    assert after.C == start.C
    assert np.array_equal(start.head.weights.toarray(), before)
