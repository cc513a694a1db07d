"""The parts of a joint model: which there are, and what each says, against plain numpy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.arrays import Arrays
from dxml._core.device import memory_for
from dxml._core.precision import Precision
from dxml.data import make_planted
from dxml.joint.parts import Parts, Plan, make_plan, vote_ranking, without_self
from dxml.learners.kernel_ridge import KERNELS, fit_kernel
from dxml.learners.linear_head import LinearHead
from dxml.learners.wide_layer import WideHead
from dxml.neighbors.cosine import cosine_weights
from dxml.topk import tie_order

CPU = torch.device("cpu")
NEAREST = Plan(every_label=False, kernel=False, linear=True, width=0)
ALL = Plan(every_label=True, kernel=False, linear=False, width=0)


def plan(n: int, d: int, n_labels: int, device: str = "cpu", **settings: Any) -> Plan:
    X = sp.csr_matrix((n, d), dtype=np.float32)
    return make_plan(X, n_labels, **({"device": device, "memory": 8e9} | settings))


def some_parts(kind: Plan = ALL, **changes: Any) -> Parts:
    """Thirty points with eight labels; the third label is on no point."""
    data = make_planted(30, 40, 8, 2.0, 6, random_state=0)
    Y = data.Y.toarray()
    Y[:, 2] = False
    labels = sp.csr_matrix(Y)
    place = tie_order(Y.sum(axis=0))
    return Parts(kind, data.X, labels, place, np.ones(40, dtype=bool), **changes)


def some_wide(width: int = 16) -> WideHead:
    rng = np.random.default_rng(0)
    shapes = ((width, 40), width, (8, width), 8)
    return WideHead(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes))


def test_a_wide_layer_needs_room_for_its_features() -> None:
    """76,000 points × 42,000 features × 2 bytes on a GPU: 6.4 GB, of which half of 8 is too few."""
    shape = (76_000, 42_000, 20_000, "cuda")
    assert plan(*shape) == NEAREST
    assert plan(*shape, memory=37e9) == replace(NEAREST, width=1024)


def test_memory_where_nobody_says_how_much() -> None:
    assert memory_for("cpu") == 8e9


@pytest.mark.gpu
def test_memory_of_a_gpu() -> None:
    whole = torch.cuda.mem_get_info()[1]
    assert memory_for("cuda") == pytest.approx(max(8e9, whole / 4), rel=0.05)


def test_small_data_are_scored_for_every_label() -> None:
    assert plan(4096, 50, 4096).every_label  # 2²⁴ pairs
    assert not plan(4096, 50, 4097).every_label
    assert plan(4096, 50, 4097, candidates="all").every_label
    assert not plan(40, 50, 4, candidates="nearest").every_label


@pytest.mark.parametrize("n", [400, 9_999])
def test_a_kernel_stands_alone_on_few_points(n: int) -> None:
    for device in ("cpu", "cuda"):
        found = plan(n, 500, 100, device, epochs=25)
        assert found == Plan(every_label=True, kernel=True, linear=True, width=0)


def test_a_wide_layer_joins_the_kernel_on_more_points() -> None:
    assert plan(10_000, 500, 100, "cuda") == Plan(True, True, True, 4096, learners=4, epochs=40)
    # 1.5e12 operations / (6 · 25 epochs · 10,000 points · 600) = 1,666: whole 1,024s
    assert plan(10_000, 500, 100) == Plan(True, True, True, 1024)
    assert plan(10_000, 500, 100, epochs=1) == Plan(True, True, True, 2048, epochs=1)
    assert plan(10_000, 500, 100, epochs=50).width == 768  # 833: whole 256s


def test_small_sparse_data_have_a_linear_head_beside_what_can_be_afforded() -> None:
    # 24,000 texts of 597 labels: no kernel on a CPU, and a wide layer would have 17 units
    assert plan(24_000, 24_000, 597) == Plan(True, False, True, 0)
    assert plan(24_000, 24_000, 597, "cuda") == Plan(True, True, True, 3072, learners=4, epochs=40)
    assert plan(24_000, 24_000, 597, candidates="nearest") == NEAREST


def test_small_dense_data_have_a_wide_layer_instead_of_a_linear_head() -> None:
    X = sp.csr_matrix(np.ones((20_000, 120), dtype=np.float32))
    settings: dict[str, Any] = {"device": "cpu", "memory": 8e9}
    assert make_plan(X, 800, **settings) == Plan(True, False, False, 512)  # 543: whole 256s
    assert make_plan(X, 800, **settings | {"epochs": 90}).width == 256  # afforded: 150
    assert make_plan(X, 800, **settings | {"memory": 1e6}) == ALL


def test_dense_features_have_one_learner() -> None:
    X = sp.csr_matrix(np.ones((200, 8), dtype=np.float32))
    settings: dict[str, Any] = {"device": "cuda", "memory": 8e9, "width": 64}
    assert make_plan(X, 5, **settings).learners == 1
    X = sp.csr_matrix(X.shape, dtype=np.float32)
    assert make_plan(X, 5, **settings).learners == 4
    assert make_plan(X, 5, **settings | {"width": 66}).learners == 1
    assert make_plan(X, 5, **settings | {"device": "cpu"}).learners == 1
    assert make_plan(X, 5, **settings | {"candidates": "nearest"}).learners == 1


def test_a_cpu_solves_for_so_many_votes_and_no_more() -> None:
    assert plan(14_000, 500, 1_000).kernel
    assert not plan(14_001, 500, 1_000).kernel
    assert plan(14_001, 500, 1_000, "cuda").kernel


def test_large_data_have_a_linear_head_and_a_wide_layer_where_it_can_be_afforded() -> None:
    shape = 20_000, 5_000, 4_000
    assert plan(*shape) == NEAREST
    assert plan(*shape, "cuda") == replace(NEAREST, width=4096)
    assert plan(19_999, *shape[1:], "cuda").epochs == 15
    # At most 1e8 weights over 49,000 features and labels: 2,040; over 99,000: 1,010, too narrow
    assert plan(20_000, 45_000, 4_000, "cuda") == replace(NEAREST, width=1024)
    assert plan(20_000, 95_000, 4_000, "cuda") == NEAREST
    assert plan(20_000, 95_000, 4_000, "cuda", candidates="all").width == 768


def test_little_memory_switches_parts_off() -> None:
    assert plan(1_000, 500, 100, memory=8e6).kernel  # K and its factor: 8 · 1,000²
    assert not plan(1_000, 500, 100, memory=7.9e6).kernel
    # Half the memory for the weights, 16 bytes each: 4e6 / (16 · 600) = 416 units
    assert plan(1_000, 500, 100, memory=7.9e6).width == 256
    assert plan(1_000, 500, 100, memory=1e6) == replace(ALL, linear=True)
    assert plan(1_000, 500, 100, memory=8.9e5) == ALL  # 9 bytes a point and label
    # On a GPU the points are there too, dense, in half of the memory
    assert plan(20_000, 5_000, 4_000, "cuda", memory=4.1e8).width > 0
    assert plan(20_000, 5_000, 4_000, "cuda", memory=3.9e8).width == 0


def test_a_width_that_is_given_is_taken() -> None:
    assert plan(400, 50, 10, width=7) == Plan(True, True, True, 7)
    assert plan(20_000, 5_000, 4_000, width=33) == replace(NEAREST, width=33)
    assert plan(20_000, 500, 100, "cuda", width=0).width == 0


def test_each_point_is_taken_off_its_own_list() -> None:
    ids = np.array([[0, 2, 1], [2, 1, 0], [0, 1, 3], [-1, -1, -1]], np.int32)
    cosines = np.float32([[1, 0.5, 0.2], [1, 0.9, 0.1], [0.9, 0.8, 0.7], [0, 0, 0]])
    found, near = without_self(ids, cosines)
    assert found.tolist() == [[2, 1], [2, 0], [0, 1], [-1, -1]]
    assert near.tolist() == np.float32([[0.5, 0.2], [1, 0.1], [0.9, 0.8], [0, 0]]).tolist()


def test_shortlists_by_hand() -> None:
    Y = sp.csr_matrix(np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]], dtype=bool))
    place = tie_order(np.array([1, 3, 2, 0]))
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    parts = Parts(NEAREST, X, Y, place, np.ones(3, bool), n_candidates=2)
    ids = np.array([[0, 1, 2], [1, -1, -1], [-1, -1, -1]], np.int32)
    # Squares of the cosines: label 0 gets 0.64, label 1 gets 0.25 + 0.25, label 2 gets 0.25
    cosines = np.float32([[0.8, 0.5, 0.5], [0.3, 0, 0], [0, 0, 0]])
    found = parts.shortlist(ids, cosines, 2)
    assert found.shape == (3, 4)
    assert [row.tolist() for row in np.split(found.indices, found.indptr[1:-1])] == [
        [0, 1],
        [1, 2],
        [1, 2],  # nobody near: the most frequent
    ]
    assert parts.shortlist(ids, cosines, 1)[0].indices.tolist() == [0]
    assert (parts.candidates(ids, cosines) != found).nnz == 0
    assert parts.shortlist(ids, cosines, 99)[0].indices.tolist() == [0, 1, 2]
    assert parts.shortlist(ids, cosines, 99)[2].indices.tolist() == [0, 1, 2, 3]


def test_every_label_is_a_candidate_of_a_small_model() -> None:
    parts = some_parts()
    ids, cosines = parts.search(parts.points[:3], 5, "cpu")
    pairs = parts.candidates(ids, cosines)
    assert pairs.shape == (3, 8) and pairs.toarray().all()
    assert pairs.indices.tolist() == [*range(8)] * 3


def test_rows_are_searched_by_the_chosen_features() -> None:
    parts = some_parts()
    parts.searched[::2] = False
    queries = parts.points[:6]
    dense = parts.points.toarray() * parts.searched
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-9)
    cosines = dense[:6] @ dense.T
    ids, found = parts.search(queries, 99, "cpu")
    assert ids.shape == (6, 30)
    np.testing.assert_allclose(found, -np.sort(-cosines, axis=1), atol=1e-6)
    for i in range(6):
        near = ids[i][ids[i] >= 0]
        assert len(near) == (cosines[i] > 0).sum()
        np.testing.assert_allclose(cosines[i, near], found[i, : len(near)], atol=1e-6)


def test_a_wide_layer_gives_the_space_where_every_label_is_scored() -> None:
    parts = some_parts(wide=some_wide())
    hidden = np.asarray(parts.wide.hidden(parts.points, CPU))  # type: ignore[union-attr]
    hidden /= np.linalg.norm(hidden, axis=1, keepdims=True)
    ids, cosines = parts.search(parts.points[:9], 4, "cpu")
    expected = -np.sort(-(hidden[:9] @ hidden.T), axis=1)[:, :4]
    np.testing.assert_allclose(cosines, expected, atol=1e-5)
    assert ids[:, 0].tolist() == [*range(9)] and ids.dtype == np.int32
    by_features = some_parts(NEAREST, wide=some_wide()).search(parts.points[:9], 4, "cpu")
    assert not np.array_equal(by_features[0], ids)


def test_what_the_parts_say_equals_numpy() -> None:
    rng = np.random.default_rng(0)
    weights = sp.random(8, 40, 0.3, format="csr", random_state=1, dtype=np.float32)
    wide = some_wide()
    parts = some_parts(NEAREST, linear=LinearHead(weights), wide=wide, n_neighbors=4, power=3.0)
    X, Y = parts.points[:7], parts.labels.toarray()
    ids, cosines = parts.search(X, 9, "cpu")
    pairs = sp.csr_matrix(rng.random((7, 8)) < 0.5)
    rows, columns = np.repeat(np.arange(7), np.diff(pairs.indptr)), pairs.indices
    votes = np.zeros((7, 8))
    for i in range(7):
        voters, far = ids[i, :4][ids[i, :4] >= 0], cosines[i, :4][ids[i, :4] >= 0]
        votes[i] = far.astype(float) ** 3 / (far.astype(float) ** 3).sum() @ Y[voters]
    dense = X.toarray()
    hidden = np.maximum(dense @ wide.inner.T + wide.inner_bias, 0)
    expected = {
        "vote": votes,
        "frequency": np.tile(np.log((1 + Y.sum(axis=0)) / (1 + len(Y))), (7, 1)),
        "linear": dense @ weights.toarray().T - 1,
        "wide": hidden @ wide.outer.T + wide.outer_bias,
    }
    found = parts.scores(X, ids, cosines, pairs, "cpu")
    assert sorted(found) == sorted(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values[rows, columns], atol=1e-4, err_msg=name)
    every = parts.scores(X, ids, cosines, sp.csr_matrix(np.ones((7, 8), bool)), "cpu")
    np.testing.assert_allclose(every["wide"], expected["wide"].ravel(), atol=1e-4)


def test_a_kernel_speaks_of_every_pair() -> None:
    parts = some_parts()
    parts.kernel = fit_kernel(parts.points, parts.labels, KERNELS[1], CPU)
    X = parts.points[:5]
    near = parts.search(X, 3, "cpu")
    found = parts.scores(X, *near, parts.candidates(*near), "cpu")["kernel"]
    assert np.array_equal(found.reshape(5, 8), parts.kernel.scores(X, CPU))


def test_the_vote_alone_ranks_by_its_power() -> None:
    Y = sp.csr_matrix(np.array([[1, 0], [0, 1], [0, 1]], dtype=bool))
    X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    parts = Parts(ALL, X, Y, tie_order(np.array([1, 2])), np.ones(3, bool))
    ids, cosines = np.array([[0, 1, 2]], np.int32), np.float32([[0.9, 0.6, 0.6]])
    for power, best in ((1.0, 1), (2.0, 0)):  # 0.9 : 1.2, and 0.81 : 0.72
        ranking = vote_ranking(parts, ids, cosines, power, 2)
        assert ranking.indices[0, 0] == best
        weights = cosine_weights(ids, cosines, power)[0]
        assert ranking.scores[0, 0] == pytest.approx(max(weights[0], weights[1:].sum()))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    "kind",
    [
        Plan(True, True, False, 16),
        Plan(True, True, True, 16),
        replace(NEAREST, width=16),
        NEAREST,
        ALL,
    ],
)
def test_saved_and_restored(kind: Plan, precision: Precision) -> None:
    parts = some_parts(kind, n_neighbors=7, power=8.0, n_candidates=5)
    parts.searched[3] = False
    if kind.kernel:
        related = replace(KERNELS[2], pull=1.0)
        parts.kernel = fit_kernel(parts.points, parts.labels, related, CPU)
        assert np.abs(parts.kernel.relations).max() > 0.1
    if kind.linear:
        weights = sp.random(8, 40, 0.3, format="csr", random_state=1, dtype=np.float32)
        parts.linear = LinearHead(weights)
    if kind.width:
        parts.wide = some_wide()
    again = Parts.from_arrays(Arrays(parts.arrays(precision)), parts.plan, parts.place)
    assert again.plan == kind
    assert (again.n_neighbors, again.power, again.n_candidates) == (7, 8.0, 5)
    assert np.array_equal(again.searched, parts.searched)
    assert (again.labels != parts.labels).nnz == 0
    X = parts.points[:6]
    near = parts.search(X, 9, "cpu")
    pairs = parts.candidates(*near)
    expected, found = (some.scores(X, *near, pairs, "cpu") for some in (parts, again))
    assert sorted(found) == sorted(expected)
    step = {"float32": 1e-6, "float16": 2e-3, "int8": 2e-2}[precision]
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=step * max(1, np.abs(values).max()))
    twice = Parts.from_arrays(Arrays(again.arrays(precision)), parts.plan, parts.place).scores(
        X, *near, pairs, "cpu"
    )
    for name, values in found.items():
        assert np.array_equal(twice[name], values), name
