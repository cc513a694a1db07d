"""The linear head: against a minimiser of its objective, by hand, and by relations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from dxml._core.packed import Packed
from dxml._core.precision import Precision, pack_sparse
from dxml._core.threads import threads
from dxml._learners import linear_head as scoring
from dxml._learners import linear_training as module
from dxml._learners.linear_examples import all_signs, label_signs
from dxml._learners.linear_head import LinearHead
from dxml._learners.linear_training import fit_linear
from dxml.data import make_planted
from dxml.progress import StageTimer

C = 0.7
N_LABELS = 6


def some_data(n: int = 40, d: int = 12) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Points, two of them without features; labels, one of them on no point."""
    data = make_planted(n, d, N_LABELS - 1, 1.5, 4, noise=0.3, random_state=3)
    X = data.X.tolil()
    X[[4, 9]] = 0
    Y = sp.hstack([data.Y, sp.csr_matrix((n, 1), dtype=bool)], format="csr")
    return X.tocsr(), Y


def everything(Y: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix(np.ones(Y.shape, dtype=bool))


def some_shortlist(Y: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix(np.random.default_rng(1).random(Y.shape) < 0.4)


def solve(
    X: sp.csr_matrix,
    signs: sp.csr_matrix,
    duals: npt.NDArray[np.float32] | None = None,
    times: int = 60,
    **settings: Any,
) -> np.ndarray:
    """The optimum to float32: every call goes on from the duals of the one before."""
    for _ in range(times):
        head, duals = fit_linear(X, signs, C=C, max_iter=100, prune=0, duals=duals, **settings)
    return head.weights.toarray()


def objective(w: np.ndarray, X: np.ndarray, signs: np.ndarray) -> tuple[float, np.ndarray]:
    """½‖w‖² + C Σ max(0, 1 − t (xᵀw − 1))² over the points whose sign is not 0, and its slope."""
    gap = np.where(signs != 0, np.maximum(0, 1 - signs * (X @ w - 1)), 0)
    return w @ w / 2 + C * gap @ gap, w - 2 * C * X.T @ (signs * gap)


def minimum(X: np.ndarray, signs: np.ndarray) -> np.ndarray:
    start = np.zeros(X.shape[1])
    found = minimize(objective, start, (X, signs), jac=True, options={"gtol": 1e-9})
    return found.x


def test_a_label_learns_from_its_points_and_its_shortlists() -> None:
    Y = sp.csr_matrix(np.array([[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=bool))
    shortlist = sp.csr_matrix(np.array([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]], np.float32))
    signs = label_signs(Y, shortlist)
    assert signs.toarray().tolist() == [[1, 0, 0], [-1, -1, 1], [0, 0, 0], [1, 0, -1]]
    assert signs.nnz == 6 and signs.dtype == np.int8


def test_what_is_stored_on_a_shortlist_counts_whatever_its_value() -> None:
    Y = sp.csr_matrix(np.array([[1, 0]], dtype=bool))
    shortlist = sp.csr_matrix((np.float32([0, 0]), [0, 1], [0, 2]), shape=(1, 2))
    assert label_signs(Y, shortlist).toarray().tolist() == [[1], [-1]]


def test_one_point_by_hand() -> None:
    """x = 2, t = 1: w²/2 + C (2 − 2 w)² is least where w = 4 C (2 − 2 w), at 8 C / (1 + 8 C)."""
    X = sp.csr_matrix(np.float32([[2]]))
    Y = sp.csr_matrix(np.array([[True]]))
    assert solve(X, label_signs(Y, Y))[0, 0] == pytest.approx(8 * C / (1 + 8 * C), rel=1e-5)


@pytest.mark.parametrize("shortlist", [everything, some_shortlist])
def test_the_weights_minimise_the_objective(shortlist) -> None:  # type: ignore[no-untyped-def]
    X, Y = some_data()
    given = label_signs(Y, shortlist(Y))
    weights = solve(X, given)
    dense, signs = X.toarray().astype(np.float64), given.toarray().astype(np.float64)
    for label in range(N_LABELS):
        expected = minimum(dense, signs[label])
        np.testing.assert_allclose(weights[label], expected, atol=1e-4)
        slope = objective(weights[label].astype(np.float64), dense, signs[label])[1]
        assert np.abs(slope).max() < 1e-3
    assert np.abs(weights).max() > 0.5


def test_one_call_stops_near_the_optimum() -> None:
    X, Y = some_data()
    weights = fit_linear(X, label_signs(Y, everything(Y)), C=C, max_iter=500, prune=0)[0].weights
    dense = X.toarray().astype(np.float64)
    signs = np.where(Y.toarray().T, 1.0, -1.0)
    for label in range(N_LABELS):
        found = objective(weights.toarray()[label].astype(np.float64), dense, signs[label])[0]
        best = objective(minimum(dense, signs[label]), dense, signs[label])[0]
        assert best - 1e-6 <= found <= 1.01 * best + 1e-6


def test_a_smaller_tolerance_comes_nearer_in_the_same_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compiled code had the tolerance of its first call, and kept it on disk."""
    X, Y = some_data()
    signs, dense = label_signs(Y, everything(Y)), X.toarray().astype(np.float64)
    slopes = []
    for tol in (0.1, 1e-5):
        monkeypatch.setattr(module, "TOL", np.float32(tol))
        weights = fit_linear(X, signs, C=C, max_iter=500, prune=0)[0].weights.toarray()
        own = zip(weights.astype(np.float64), signs.toarray(), strict=True)
        slopes.append(max(np.abs(objective(w, dense, t)[1]).max() for w, t in own))
    assert slopes[1] < 1e-3 < slopes[0]


def test_with_no_margin_broken_off_the_shortlist_it_is_one_vs_all() -> None:
    """Points that share no feature with a label's own have wᵀx − 1 = −1: leaving them out is free.

    Only the bound t (wᵀx − 1) ≥ 1 of a left-out point has to hold, and it holds with equality.
    """
    X = np.zeros((12, 6), np.float32)
    for i in range(12):
        X[i, 2 * (i // 4) : 2 * (i // 4) + 2] = [1, 0.3 * (i % 4)]  # three groups, two features
    Y = np.zeros((12, 6), dtype=bool)
    Y[np.arange(12), 2 * (np.arange(12) // 4) + (np.arange(12) % 4 > 1)] = True  # two labels each
    group = np.repeat(np.eye(3, dtype=bool), [4, 4, 4], axis=0)
    near = sp.csr_matrix(np.repeat(group, 2, axis=1))  # the labels of a point's own group
    rows, labels = sp.csr_matrix(X), sp.csr_matrix(Y)
    weights = solve(rows, label_signs(labels, near))
    np.testing.assert_allclose(weights, solve(rows, label_signs(labels, everything(labels))), 1e-4)
    for label in range(6):
        signs = np.where(Y[:, label], 1.0, -1.0)
        slope = objective(weights[label].astype(np.float64), X.astype(np.float64), signs)[1]
        assert np.abs(slope).max() < 1e-3


def test_points_that_may_not_be_used_do_not_matter() -> None:
    X, Y = some_data()
    shortlist = some_shortlist(Y)
    use = np.random.default_rng(2).random(40) < 0.6
    part = solve(X, label_signs(Y, shortlist), rows=use)
    alone = solve(X[use], label_signs(Y[use], shortlist[use]))
    np.testing.assert_allclose(part, alone, atol=1e-4)
    assert not np.allclose(part, solve(X, label_signs(Y, shortlist)), atol=1e-2)
    noise = X.tolil()
    noise[np.flatnonzero(~use)] = 5
    other = solve(noise.tocsr(), label_signs(Y, shortlist), rows=use)
    np.testing.assert_allclose(other, part, atol=1e-4)


def test_training_goes_on_from_the_duals() -> None:
    X, Y = some_data(200, 40)
    signs = label_signs(Y, everything(Y))
    optimum = solve(X, signs)
    gaps, duals = [], None
    for _ in range(4):
        head, duals = fit_linear(X, signs, C=C, max_iter=1, prune=0, duals=duals)
        gaps.append(np.linalg.norm(head.weights.toarray() - optimum))
    assert gaps[3] < gaps[1] < gaps[0] and gaps[3] < 0.5 * gaps[0]
    held_first = np.arange(200) >= 50
    _, some = fit_linear(X, signs, C=C, max_iter=5, rows=held_first)
    assert not some[np.isin(signs.indices, np.arange(50))].any() and some.any()
    np.testing.assert_allclose(solve(X, signs, some), optimum, atol=1e-3)


def test_what_is_given_stays_as_it_was() -> None:
    X, Y = some_data(200, 40)
    signs = label_signs(Y, everything(Y))
    start, duals = fit_linear(X, signs, C=C, max_iter=1)
    given = [X.data, signs.data, duals, start.weights.data]
    before = [array.copy() for array in given]
    _, later = fit_linear(X, signs, C=C, max_iter=3, duals=duals)
    fit_linear(X, signs, C=C, max_iter=3, start=start.weights)
    assert all(np.array_equal(*pair) for pair in zip(given, before, strict=True))
    assert not np.array_equal(later, duals)


def test_duals_and_weights_agree() -> None:
    """w = Σ α t x, with α ≥ 0: what the optimum is made of."""
    X, Y = some_data()
    signs = label_signs(Y, some_shortlist(Y))
    head, duals = fit_linear(X, signs, C=C, max_iter=7, prune=0)
    mixed = signs.astype(np.float32)
    mixed.data = mixed.data * duals
    assert (duals >= 0).all() and duals.any()
    np.testing.assert_allclose(head.weights.toarray(), (mixed @ X).toarray(), atol=1e-5)


@pytest.mark.parametrize("block", [1, 30])
def test_labels_are_trained_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = some_data()
    timer = StageTimer()
    whole = fit_linear(X, label_signs(Y, everything(Y)), prune=0.05)[0].weights
    monkeypatch.setattr(module, "BLOCK", block)
    parts, _ = fit_linear(X, label_signs(Y, everything(Y)), prune=0.05, stage="s", progress=timer)
    assert parts.weights.shape == (N_LABELS, 12)
    assert np.array_equal(parts.weights.toarray(), whole.toarray())
    assert parts.weights.has_sorted_indices and "s" in timer.seconds


def test_small_weights_and_no_others_are_dropped() -> None:
    X, Y = some_data()
    all_weights, kept = (
        fit_linear(X, label_signs(Y, everything(Y)), prune=prune)[0].weights for prune in (0, 0.2)
    )
    dense = all_weights.toarray()
    assert np.array_equal(kept.toarray(), np.where(np.abs(dense) > 0.2, dense, 0))
    assert 0 < kept.nnz < all_weights.nnz == np.count_nonzero(dense)


def test_features_that_no_point_has_change_nothing() -> None:
    """Few features are looked through one by one for weights, of many only those of the points."""
    X, Y = some_data()
    wide = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(40, 5000))
    signs = label_signs(Y, some_shortlist(Y))
    for C in (0.1, 1.0):
        head, duals = fit_linear(X, signs, C=C, prune=0.05)
        other, theirs = fit_linear(wide, signs, C=C, prune=0.05)
        again, _ = fit_linear(wide, signs, C=C, prune=0.05)
        assert duals.tobytes() == theirs.tobytes()
        assert head.weights.nnz and other.weights.has_sorted_indices
        assert head.weights.data.tobytes() == other.weights.data.tobytes()
        assert np.array_equal(head.weights.indices, other.weights.indices)
        assert other.weights.data.tobytes() == again.weights.data.tobytes()


def test_labels_without_points_and_points_without_features() -> None:
    X, Y = some_data()
    assert Y[:, -1].nnz == 0 and X[4].nnz == 0
    head, _ = fit_linear(X, label_signs(Y, Y), max_iter=3, prune=0)
    assert head.weights[N_LABELS - 1].nnz == 0
    empty = sp.csr_matrix((3, 12), dtype=np.float32)
    nothing, _ = fit_linear(empty, label_signs(Y[:3], everything(Y[:3])), prune=0)
    assert nothing.weights.shape == (N_LABELS, 12) and nothing.weights.nnz == 0
    nobody, _ = fit_linear(X, label_signs(Y, Y), rows=np.zeros(40, dtype=bool))
    assert nobody.weights.nnz == 0


def test_scores_of_pairs_equal_the_dense_product() -> None:
    X, Y = some_data()
    head, _ = fit_linear(X, label_signs(Y, everything(Y)), prune=0.05)
    expected = X.toarray() @ head.weights.toarray().T - 1
    for pairs in (everything(Y), some_shortlist(Y)):
        rows = np.repeat(np.arange(40), np.diff(pairs.indptr))
        found = head.scores(X, pairs)
        np.testing.assert_allclose(found, expected[rows, pairs.indices], atol=1e-5)
        assert found.dtype == np.float32
    backwards = sp.csr_matrix((np.ones(2, bool), np.int32([5, 0]), [0, 2]), shape=(1, N_LABELS))
    np.testing.assert_allclose(head.scores(X[0], backwards), expected[0, [5, 0]], atol=1e-5)
    assert head.scores(X[:0], everything(Y)[:0]).shape == (0,)
    assert (head.scores(X[4], everything(Y)[4]) == -1).all()


def test_the_bits_depend_on_the_seed_alone() -> None:
    X, Y = some_data(200, 40)

    def train(seed: int) -> tuple[bytes, bytes]:
        signs = label_signs(Y, everything(Y))
        head, _ = fit_linear(X, signs, max_iter=2, prune=0.01, seed=seed)
        return head.weights.data.tobytes(), head.scores(X, everything(Y)).tobytes()

    many = train(0)
    with threads(1):
        assert train(0) == many
    assert train(1) != many


def test_all_signs_have_every_label_on_every_shortlist() -> None:
    Y = sp.random(30, N_LABELS, 0.2, format="csr", random_state=1).astype(bool)
    found = all_signs(Y)
    expected = label_signs(Y, everything(Y))
    assert np.array_equal(found.toarray(), expected.toarray())
    assert np.array_equal(found.indices, expected.indices)
    assert found.nnz == 30 * N_LABELS and found.dtype == np.int8


def test_training_goes_on_from_known_weights() -> None:
    """Without points the weights stay; with the same multipliers it is one problem in two steps."""
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(rng.normal(size=(40, 6)).astype(np.float32) / 3)
    Y = sp.csr_matrix(rng.random((40, 3)) < 0.4)
    head, _ = fit_linear(X, label_signs(Y, everything(Y)), max_iter=200, prune=0)
    nothing = label_signs(Y[:0], everything(Y)[:0])
    same, _ = fit_linear(X[:0], nothing, start=head.weights, prune=0)
    assert abs(same.weights - head.weights).max() == 0
    pruned, _ = fit_linear(X[:0], nothing, start=head.weights, prune=0.2)
    assert abs(pruned.weights.data).min() > 0.2
    more = sp.csr_matrix(rng.normal(size=(5, 6)).astype(np.float32) / 3)
    wanted = sp.csr_matrix(np.ones((5, 3), dtype=bool))
    extra = label_signs(wanted, wanted)
    on, found = fit_linear(more, extra, start=head.weights, max_iter=200, prune=0)
    by_hand = head.weights.toarray() + np.array(
        [found[5 * label : 5 * label + 5] @ more.toarray() for label in range(3)]
    )
    assert on.weights.toarray() == pytest.approx(by_hand, abs=1e-4)
    margins = more @ on.weights.toarray().T - 1  # the dual's optimum: 1 − margin = α / 2C, or α = 0
    duals = found.reshape(3, 5).T
    assert np.where(duals > 0, 1 - margins - duals / 2, 0) == pytest.approx(0, abs=0.05)


def test_scores_of_all_labels_are_those_of_every_pair() -> None:
    rng = np.random.default_rng(0)
    head = LinearHead(sp.random(7, 20, 0.3, format="csr", dtype=np.float32, random_state=2))
    X = sp.random(9, 20, 0.4, format="csr", dtype=np.float32, random_state=3)
    expected = X.toarray() @ head.weights.toarray().T - 1
    np.testing.assert_allclose(head.all_scores(X), expected, atol=1e-6)
    every = sp.csr_matrix(np.ones((9, 7), dtype=bool))
    np.testing.assert_allclose(head.scores(X, every), expected.ravel(), atol=1e-6)
    some = sp.csr_matrix(rng.random((9, 7)) < 0.5)
    np.testing.assert_allclose(head.scores(X, some), expected[some.toarray()], atol=1e-6)


def test_all_labels_are_scored_after_some_were_replaced() -> None:
    """As a head made of the same weights scores them, while only the changed ones are put anew."""
    X = sp.random(7, 12, 0.5, format="csr", dtype=np.float32, random_state=1)
    head = LinearHead(sp.random(40, 10, 0.4, format="csr", dtype=np.float32, random_state=2))
    head.all_scores(X[:, :10])
    first = head.by_feature
    for turn, labels in enumerate(([3, 40], [3, 7], [5, 40], [1, 2])):
        wide = 10 + min(turn, 2)
        fresh = sp.random(2, wide, 0.6, format="csr", dtype=np.float32, random_state=turn)
        head = head.widened(wide).replaced(np.array(labels), fresh, 41)
        assert (head._earlier is None) == (turn == 3), "six changed labels of 41 are too many"
        found = head.all_scores(X[:, :wide])
        assert np.array_equal(found, LinearHead(head.weights).all_scores(X[:, :wide]))
        if turn < 3:
            assert head._earlier is not None and "by_feature" not in vars(head)
            assert np.shares_memory(head._earlier.by_feature.data, first.data)


def test_rows_are_replaced_as_in_a_matrix_and_the_head_before_stays() -> None:
    rng = np.random.default_rng(0)
    head = LinearHead(sp.random(7, 20, 0.3, format="csr", dtype=np.float32, random_state=2))
    first, expected = head, head.weights.toarray()
    kept = expected.copy()
    for turn in range(40):
        n_labels = len(expected) + turn % 2
        labels = np.sort(rng.choice(n_labels, 2, replace=False))
        fresh = sp.random(2, 20 + turn, 0.3, format="csr", dtype=np.float32, random_state=turn)
        expected = np.pad(expected, ((0, n_labels - len(expected)), (0, int(turn > 0))))
        expected[labels] = fresh.toarray()
        head = head.widened(20 + turn).replaced(labels, fresh, n_labels)
        assert head.n_labels == n_labels and head._rows.stored.shape[0] <= 2 * n_labels
        X = sp.random(3, 20 + turn, 0.4, format="csr", dtype=np.float32, random_state=turn)
        every = sp.csr_matrix(np.ones((3, n_labels), dtype=bool))
        scores = (X.toarray() @ expected.T - 1).ravel()
        np.testing.assert_allclose(head.scores(X, every), scores, atol=1e-5)
        np.testing.assert_allclose(head.all_scores(X).ravel(), scores, atol=1e-5)
        assert np.array_equal(head.weights.toarray(), expected)
        asked = np.array([0, n_labels - 1, n_labels + 3])
        assert np.array_equal(head.rows(asked).toarray()[:2], expected[asked[:2]])
        assert head.rows(asked)[2].nnz == 0
    assert np.array_equal(first.weights.toarray(), kept)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize("n_features", [20, 70_000])
def test_packed_weights_score_as_the_unpacked(precision: Precision, n_features: int) -> None:
    """In each precision, with ids of two and of four bytes."""
    weights = sp.random(
        7, n_features, 6 / n_features, format="csr", dtype=np.float32, random_state=2
    )
    weights.data -= 0.5
    packed = Packed("linear", pack_sparse("linear", weights, precision))
    head, unpacked = LinearHead(packed), LinearHead(packed.unpacked())
    X = sp.random(9, n_features, 8 / n_features, format="csr", dtype=np.float32, random_state=3)
    pairs = sp.csr_matrix(np.random.default_rng(0).random((9, 7)) < 0.5)
    assert np.array_equal(head.scores(X, pairs), unpacked.scores(X, pairs))  # to the last bit
    np.testing.assert_allclose(head.all_scores(X), unpacked.all_scores(X), atol=1e-5)
    some = np.array([6, 1, 9])  # the last it does not have
    assert np.array_equal(head.rows(some).toarray(), unpacked.rows(some).toarray())
    fresh = sp.random(2, n_features, 0.1, format="csr", dtype=np.float32, random_state=4)
    taught, expected = (each.replaced(some[:2], fresh, 7) for each in (head, unpacked))
    assert head.packed is packed and taught.packed is None
    assert np.array_equal(taught.weights.toarray(), expected.weights.toarray())
    assert head.widened(n_features + 1).packed is None


def test_numpy_scores_what_compiled_code_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, for labels and points without anything too."""
    X, Y = some_data()
    head, _ = fit_linear(X, label_signs(Y, some_shortlist(Y)), C=C)
    taught = head.replaced(np.array([1, 4]), head.weights[[2, 3]], N_LABELS + 1)
    pairs = sp.csr_matrix(np.random.default_rng(0).random((X.shape[0], N_LABELS + 1)) < 0.5)
    packed = [
        LinearHead(Packed("linear", pack_sparse("linear", head.weights, precision)))
        for precision in ("float32", "float16", "int8")
    ]
    for each in (head, taught, *packed):
        wanted = pairs[:, : each.n_labels].tocsr()
        found = []
        for spared in (False, True):
            monkeypatch.setattr(scoring, "spare", lambda n, it=spared: it)
            found.append((each.scores(X, wanted), each.all_scores(X)))
        assert np.array_equal(found[0][0], found[1][0])
        assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(
    ("sizes", "threads", "wanted"),
    [
        ([5] * 100, 2, []),  # a GPU takes 4 · 5, until it has none of them
        ([5] * 4, 2, [0, 1, 2, 3]),  # two threads take 10
        ([10, 100, 10], 2, [1]),  # 4 · 100 before, 100 on the CPU and 40 on the GPU after
        ([60, 70, 80, 90, 100], 1, [2, 3, 4]),  # 270 on the CPU, 280 on the GPU
        ([60, 70, 80, 90, 100], 2, [0, 1, 2, 3, 4]),  # 200 on the CPU
        ([], 2, []),
    ],
)
def test_labels_of_many_points_are_for_the_cpu(
    sizes: list[int], threads: int, wanted: list[int]
) -> None:
    found = module.labels_for_cpu(np.array(sizes, dtype=np.int64), threads)
    assert sorted(found.tolist()) == wanted
