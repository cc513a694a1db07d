"""Fitted parts together: what they say against plain numpy, saved and restored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.arrays import Arrays
from dxml._core.precision import Precision
from dxml._learners.kernel_ridge import KERNELS, fit_kernel
from dxml._learners.linear_head import LinearHead
from dxml._learners.wide_layer import WideHead
from dxml.exceptions import ModelFormatError
from dxml.joint._ensemble import Ensemble, every_pair, space_of, with_candidates
from dxml.joint._plan import Plan
from dxml.joint._points import Known, Near
from dxml.joint.parts._frequency import Frequency
from dxml.joint.parts._kernel import KernelPart
from dxml.joint.parts._linear import LinearPart
from dxml.joint.parts._vote import Vote
from dxml.joint.parts._wide import WidePart
from dxml.joint.parts.protocol import Part, Query

CPU = torch.device("cpu")


def some_wide(width: int = 16) -> WidePart:
    rng = np.random.default_rng(0)
    shapes: tuple[Any, ...] = ((width, 40), width, (8, width), 8)
    return WidePart(WideHead(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes)))


def some_linear() -> LinearPart:
    weights = sp.random(8, 40, 0.3, format="csr", random_state=1, dtype=np.float32)
    return LinearPart(LinearHead(weights), 0.3)


def some_kernel(known: Known) -> KernelPart:
    kernel = replace(KERNELS[2], pull=1.0, second=1.0)
    return KernelPart(fit_kernel(known.points, known.labels, kernel, CPU))


def ensemble(
    known: Known,
    every_label: bool,
    *parts: Part,
    vote: Vote | None = None,
    searched: Any = None,
    n_candidates: int = 100,
) -> Ensemble:
    """The parts, with those that every model has."""
    every: tuple[Part, ...] = (*parts, Frequency.of(known), vote or Vote())
    own = {part.name: part for part in every}
    plan = Plan(every_label, {name: part.settings for name, part in own.items()})
    searched = np.ones(40, dtype=bool) if searched is None else searched
    known = replace(known, space=space_of(plan, own, known.points, searched))
    return Ensemble(plan, known, own, searched, n_candidates)


def test_every_label_is_a_candidate_of_a_small_model(known: Known) -> None:
    query = ensemble(known, True, vote=Vote(5)).ask(known.points[:3], "cpu")
    assert query.near.ids.shape == (3, 5) and query.every_label
    assert query.pairs.shape == (3, 8) and query.pairs.toarray().all()
    assert query.pairs.indices.tolist() == [*range(8)] * 3
    assert (every_pair(3, 8) != query.pairs).nnz == 0


def test_the_labels_of_the_nearest_are_candidates_of_a_large_one(known: Known) -> None:
    large = ensemble(known, False, n_candidates=4)
    query = large.ask(known.points[:3], "cpu")
    near = known.search(known.points[:3], 4, "cpu")
    assert np.array_equal(query.near.ids, near.ids) and not query.every_label
    assert (query.pairs != known.shortlist(near, 4)).nnz == 0
    assert np.diff(query.pairs.indptr).max() <= 4


def test_a_wide_layer_gives_the_space_where_every_label_is_scored(known: Known) -> None:
    wide = some_wide()
    hidden = np.asarray(wide.head.hidden(known.points, CPU))
    hidden /= np.linalg.norm(hidden, axis=1, keepdims=True)
    ids, cosines = ensemble(known, True, wide).known.search(known.points[:9], 4, "cpu")
    expected = -np.sort(-(hidden[:9] @ hidden.T), axis=1)[:, :4]
    np.testing.assert_allclose(cosines, expected, atol=1e-5)
    assert ids[:, 0].tolist() == [*range(9)] and ids.dtype == np.int32
    by_features = ensemble(known, False, wide).known.search(known.points[:9], 4, "cpu")
    assert not np.array_equal(by_features.ids, ids)


def test_what_the_parts_say_equals_numpy(known: Known) -> None:
    rng = np.random.default_rng(0)
    linear, wide = some_linear(), some_wide()
    some = ensemble(known, False, linear, wide, vote=Vote(4, 3.0))
    X, Y = known.points[:7], known.labels.toarray()
    near = some.known.search(X, 9, "cpu")
    pairs = sp.csr_matrix(rng.random((7, 8)) < 0.5)
    rows, columns = np.repeat(np.arange(7), np.diff(pairs.indptr)), pairs.indices
    votes = np.zeros((7, 8))
    for i in range(7):
        there = near.ids[i, :4] >= 0
        voters, cosines = near.ids[i, :4][there], near.cosines[i, :4][there].astype(float)
        votes[i] = cosines**3 / (cosines**3).sum() @ Y[voters]
    dense, head = X.toarray(), wide.head
    hidden = np.maximum(dense @ head.inner.T + head.inner_bias, 0)
    expected = {
        "vote": votes,
        "frequency": np.tile(np.log((1 + Y.sum(axis=0)) / (1 + len(Y))), (7, 1)),
        "linear": dense @ linear.head.weights.toarray().T - 1,
        "wide": hidden @ head.outer.T + head.outer_bias,
    }
    query = Query(X, near, pairs, False, some.known, "cpu")
    found = some.scores(query)
    assert sorted(found) == sorted(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values[rows, columns], atol=1e-4, err_msg=name)
    every = replace(query, pairs=every_pair(7, 8))
    for asked in (every, replace(every, every_label=True)):
        for name, values in expected.items():
            said = some.parts[name].scores(asked)
            np.testing.assert_allclose(said, values.ravel(), atol=1e-4, err_msg=name)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    ("every_label", "names"),
    [
        (True, {"kernel", "wide"}),
        (True, {"kernel", "wide", "linear"}),
        (False, {"wide", "linear"}),
        (False, {"linear"}),
        (True, set()),
    ],
)
def test_saved_and_restored(
    known: Known, every_label: bool, names: set[str], precision: Precision
) -> None:
    kernel = some_kernel(known)
    assert kernel.vote.relations is not None and np.abs(kernel.vote.relations).max() > 0.1
    assert kernel.vote.second is not None and np.abs(kernel.vote.second.votes).max() > 0.1
    there = [part for part in (kernel, some_wide(), some_linear()) if part.name in names]
    some = ensemble(
        known,
        every_label,
        *there,
        vote=Vote(7, 8.0),
        searched=np.arange(40) != 3,
        n_candidates=5,
    )
    config, arrays = some.state(precision)
    again = Ensemble.restore(config, Arrays(arrays), known.tie_order, known.points.shape)
    assert again.plan == some.plan and set(again.parts) == {"frequency", "vote", *names}
    assert again.parts["vote"] == Vote(7, 8.0) and again.n_candidates == 5
    assert np.array_equal(again.searched, some.searched)
    assert (again.known.labels != known.labels).nnz == 0
    X = known.points[:6]
    near = some.known.search(X, 9, "cpu")
    query = with_candidates(
        Query(X, near, every_pair(6, 8), every_label, some.known, "cpu"), some.parts, 5
    )
    expected, found = some.scores(query), again.scores(replace(query, known=again.known))
    assert sorted(found) == sorted(expected)
    step = {"float32": 1e-6, "float16": 2e-3, "int8": 2e-2}[precision]
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=step * max(1, np.abs(values).max()))
    twice = again.rounded(precision)
    for name, values in found.items():
        said = twice.parts[name].scores(replace(query, known=twice.known))
        assert np.array_equal(said, values), name
    ours, theirs = (each.known.search(X, 4, "cpu") for each in (again, twice))
    assert np.array_equal(ours.ids, theirs.ids), "it is searched as it was"


def test_a_part_that_is_not_known(known: Known) -> None:
    config, arrays = ensemble(known, True).state("float32")
    config["parts"]["oracle"] = {}
    with pytest.raises(ModelFormatError, match="a part 'oracle' that this dxml does not know"):
        Ensemble.restore(config, Arrays(arrays), known.tie_order, known.points.shape)


@pytest.mark.parametrize("every_label", [True, False])
def test_a_damaged_model_without_votes_or_parts(known: Known, every_label: bool) -> None:
    config, arrays = ensemble(known, every_label).state("float32")
    config["parts"] = {
        name: own for name, own in config["parts"].items() if every_label and name != "vote"
    }
    with pytest.raises(ModelFormatError, match="a joint model needs the part 'vote'"):
        Ensemble.restore(config, Arrays(arrays), known.tie_order, known.points.shape)


def test_a_query_without_a_neighbour_gets_no_votes(known: Known) -> None:
    some = ensemble(known, True)
    nobody = Near(np.full((1, 3), -1, np.int32), np.zeros((1, 3), np.float32))
    query = Query(known.points[:1], nobody, every_pair(1, 8), True, known, "cpu")
    assert not some.scores(query)["vote"].any()
