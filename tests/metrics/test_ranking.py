"""Measures against fractions worked out by hand, a naive oracle, and napkinXC."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import normalize

from dxml import metrics
from dxml.exceptions import DataFormatError
from dxml.topk import TopK, tie_order, topk_from_csr

PLAIN = {
    "P": metrics.precision_at_k,
    "nDCG": metrics.ndcg_at_k,
    "R": metrics.recall_at_k,
    "macroP": metrics.macro_precision_at_k,
    "macroR": metrics.macro_recall_at_k,
    "macroF1": metrics.macro_f1_at_k,
    "coverage": metrics.coverage_at_k,
}
WEIGHTED = {"PSP": metrics.psp_at_k, "PSnDCG": metrics.psndcg_at_k}


def all_measures(Y, ranking, k, weights):
    plain = {name: measure(Y, ranking, k) for name, measure in PLAIN.items()}
    return plain | {name: m(Y, ranking, k, weights) for name, m in WEIGHTED.items()}


# ---------------------------------------------------------------- by hand

# Points have the labels {0, 2}, {1}, {} and {0, 1, 2}; no point has label 3.
Y = sp.csr_matrix([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]], dtype=bool)
RANKING = np.array([[2, 1, 0], [1, 3, -1], [0, -1, -1], [3, 0, 1]])
WEIGHTS = np.array([2.0, 4.0, 1.0, 8.0])
D2 = 1 / log2(3)  # the discount of the second place; the first has 1, the third 1/2

BY_HAND = {
    "P": [2 / 4, 3 / 8, 5 / 12],
    "R": [3 / 8, 11 / 24, 2 / 3],
    "nDCG": [2 / 4, 2 / 4, (1.5 / (1 + D2) + 1 + (D2 + 0.5) / (1.5 + D2)) / 4],
    "PSP": [5 / 10, 7 / 13, 13 / 14],
    "PSnDCG": [
        5 / 10,
        (1 / (1 + D2) + 4 + 2 * D2 / (1 + D2))
        / ((2 + D2) / (1 + D2) + 4 + (4 + 2 * D2) / (1 + D2)),
        (2 / (1 + D2) + 4 + (2 * D2 + 2) / (1.5 + D2))
        / ((2 + D2) / (1 + D2) + 4 + (4.5 + 2 * D2) / (1.5 + D2)),
    ],
    "macroP": [1 / 2, 1 / 2, 7 / 12],
    "macroR": [1 / 4, 3 / 8, 5 / 8],
    "macroF1": [1 / 3, 5 / 12, 17 / 30],
    "coverage": [2 / 3, 1, 1],
}


@pytest.mark.parametrize("name", BY_HAND)
def test_value_worked_out_by_hand(name):
    value = all_measures(Y, RANKING, 3, WEIGHTS)[name]
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, BY_HAND[name], rtol=1e-15)


def test_a_smaller_k_gives_the_first_values_of_a_larger():
    wide = all_measures(Y, RANKING, 3, WEIGHTS)
    for name, value in all_measures(Y, RANKING, 2, WEIGHTS).items():
        np.testing.assert_array_equal(value, wide[name][:2], err_msg=name)


def with_stored_zeros(matrix):
    rows, columns = np.indices(matrix.shape)
    return sp.csr_matrix((matrix.toarray().ravel(), (rows.ravel(), columns.ravel())), matrix.shape)


def with_duplicates(matrix):
    entries = sp.coo_matrix(matrix)
    twice = [np.concatenate([part, part[::-1]]) for part in (entries.row, entries.col)]
    return sp.coo_matrix((np.ones(2 * entries.nnz, bool), tuple(twice)), matrix.shape)


@pytest.mark.parametrize(
    "convert",
    [
        sp.csr_array,
        sp.csc_matrix,
        sp.coo_matrix,
        sp.lil_matrix,
        lambda Y: Y.astype(np.float32),
        lambda Y: Y.astype(np.int64),
        with_stored_zeros,
        with_duplicates,
    ],
)
def test_every_sparse_form_of_the_truth_gives_the_same(convert):
    converted = convert(Y)
    stored = converted.nnz
    for name, value in all_measures(converted, RANKING, 3, WEIGHTS).items():
        np.testing.assert_allclose(value, BY_HAND[name], rtol=1e-15, err_msg=name)
    assert converted.nnz == stored  # the caller's matrix is left as it was


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_arrays_of_any_integer_type_and_topk_give_the_same(dtype):
    ids = RANKING.astype(dtype)
    topk = TopK(RANKING.astype(np.int32), np.zeros(RANKING.shape, np.float32))
    for ranking in (ids, np.asfortranarray(ids), topk):
        for name, value in all_measures(Y, ranking, 3, WEIGHTS).items():
            np.testing.assert_allclose(value, BY_HAND[name], rtol=1e-15, err_msg=name)


def test_truth_without_any_label_scores_zero_everywhere():
    nothing = sp.csr_matrix(Y.shape, dtype=bool)
    for name, value in all_measures(nothing, RANKING, 3, WEIGHTS).items():
        np.testing.assert_array_equal(value, np.zeros(3), err_msg=name)


def test_no_prediction_at_all_scores_zero_everywhere():
    for name, value in all_measures(Y, np.full((4, 2), -1), 2, WEIGHTS).items():
        np.testing.assert_array_equal(value, np.zeros(2), err_msg=name)


def test_inverse_propensity_by_hand():
    # a = 1, b = 1, N = e² rounded down to 7: c = 2 (ln 7 - 1)
    c = 2 * (np.log(7) - 1)
    weights = metrics.inverse_propensity([0, 1, 3], n_train=7, a=1, b=1)
    np.testing.assert_allclose(weights, [1 + c, 1 + c / 2, 1 + c / 4], rtol=1e-15)


# ---------------------------------------------------------------- evaluate


def test_evaluate_gives_percentages_under_the_fields_names():
    scores = metrics.evaluate(Y, RANKING, ks=[1, 3], inverse_propensity=WEIGHTS)
    assert list(scores) == [
        f"{name}@{k}"
        for name in "P nDCG PSP PSnDCG R macroP macroR macroF1 coverage".split()
        for k in (1, 3)
    ]
    assert all(type(value) is float for value in scores.values())
    for name, values in BY_HAND.items():
        assert scores[f"{name}@1"] == pytest.approx(100 * values[0], rel=1e-14)
        assert scores[f"{name}@3"] == pytest.approx(100 * values[2], rel=1e-14)


def test_evaluate_without_propensities_leaves_their_measures_out():
    scores = metrics.evaluate(Y, RANKING, ks=(2,))
    assert list(scores) == [f"{name}@2" for name in PLAIN]


def test_evaluate_reports_1_3_and_5_unless_told():
    truth = sp.csr_matrix(np.eye(5, dtype=bool))
    everything = np.tile(np.arange(5), (5, 1))
    assert metrics.evaluate(truth, everything)["P@5"] == 20.0


def test_many_labels_never_become_a_dense_matrix():
    n_samples, n_labels = 20_000, 670_000  # dense: 13 GB
    truth = np.arange(3 * n_samples).reshape(n_samples, 3) * 11 % n_labels
    indptr = np.arange(0, truth.size + 1, 3)
    matrix = sp.csr_matrix(
        (np.ones(truth.size, bool), truth.ravel(), indptr), (n_samples, n_labels)
    )
    weights = np.full(n_labels, 2.0)
    scores = metrics.evaluate(matrix, truth, ks=(1, 3), inverse_propensity=weights)
    assert scores["P@3"] == scores["R@3"] == 100.0
    assert scores["coverage@3"] == 100.0
    assert scores["macroR@3"] == pytest.approx(100 * 60_000 / n_labels)


# ---------------------------------------------------------------- oracle


def oracle(truth, ranking, k, weights, n_labels):
    """Every measure at exactly k, as written in the papers, one loop at a time."""
    n = len(truth)
    top = [[label for label in row[:k] if label >= 0] for row in ranking]
    total = dict.fromkeys(("P", "R", "nDCG", "gain", "best", "dcg gain", "dcg best"), 0.0)
    for labels, row in zip(truth, ranking, strict=True):
        if not labels:
            continue
        hits = [label in labels for label in row[:k]]
        ideal = sum(1 / log2(i + 2) for i in range(min(k, len(labels))))
        best = sorted((weights[label] for label in labels), reverse=True)[:k]
        total["P"] += sum(hits) / k
        total["R"] += sum(hits) / len(labels)
        total["nDCG"] += sum(hit / log2(i + 2) for i, hit in enumerate(hits)) / ideal
        total["gain"] += sum(weights[row[i]] for i in range(k) if hits[i]) / k
        total["best"] += sum(best) / k
        gains = (weights[row[i]] / log2(i + 2) for i in range(k) if hits[i])
        total["dcg gain"] += sum(gains) / ideal
        total["dcg best"] += sum(w / log2(i + 2) for i, w in enumerate(best)) / ideal
    macro = {"macroP": 0.0, "macroR": 0.0, "macroF1": 0.0}
    present, covered = 0, 0
    for label in range(n_labels):
        right = sum(
            label in row and label in labels for row, labels in zip(top, truth, strict=True)
        )
        predicted = sum(label in row for row in top)
        actual = sum(label in labels for labels in truth)
        macro["macroP"] += right / predicted if predicted else 0
        macro["macroR"] += right / actual if actual else 0
        macro["macroF1"] += 2 * right / (predicted + actual) if predicted + actual else 0
        present += actual > 0
        covered += right > 0
    return {
        "P": total["P"] / n,
        "R": total["R"] / n,
        "nDCG": total["nDCG"] / n,
        "PSP": total["gain"] / total["best"] if present else 0,
        "PSnDCG": total["dcg gain"] / total["dcg best"] if present else 0,
        "coverage": covered / present if present else 0,
    } | {name: value / n_labels for name, value in macro.items()}


@st.composite
def cases(draw):
    """Label sets, padded rankings and weights of a handful of points and labels."""
    n_labels = draw(st.integers(1, 8))
    k = draw(st.integers(1, 10))
    label = st.integers(0, n_labels - 1)
    points = draw(
        st.lists(
            st.tuples(st.sets(label), st.lists(label, unique=True, max_size=k)),
            min_size=1,
            max_size=8,
        )
    )
    truth = [labels for labels, _ in points]
    ranking = np.array([row + [-1] * (k - len(row)) for _, row in points])
    weight = st.floats(1, 50) | st.sampled_from([1.0, 2.0])
    weights = np.array(draw(st.lists(weight, min_size=n_labels, max_size=n_labels)))
    return truth, ranking, k, weights, n_labels


def to_csr(truth, n_labels):
    matrix = np.zeros((len(truth), n_labels), dtype=bool)
    for row, labels in zip(matrix, truth, strict=True):
        row[list(labels)] = True
    return sp.csr_matrix(matrix)


@given(cases())
def test_agrees_with_the_oracle_at_every_place(case):
    truth, ranking, k, weights, n_labels = case
    values = all_measures(to_csr(truth, n_labels), ranking, k, weights)
    for place in range(1, k + 1):
        for name, expected in oracle(truth, ranking, place, weights, n_labels).items():
            np.testing.assert_allclose(
                values[name][place - 1], expected, rtol=1e-12, err_msg=f"{name}@{place}"
            )


# ---------------------------------------------------------------- relations


@given(cases())
def test_at_one_place_gain_and_precision_are_the_same(case):
    truth, ranking, k, weights, n_labels = case
    values = all_measures(to_csr(truth, n_labels), ranking, k, weights)
    assert values["P"][0] == values["nDCG"][0]
    assert values["PSP"][0] == values["PSnDCG"][0]


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_points_and_the_numbering_of_labels_do_not_matter(case, random):
    truth, ranking, k, weights, n_labels = case
    matrix = to_csr(truth, n_labels)
    rows = random.sample(range(len(truth)), len(truth))
    new_id = np.array([*random.sample(range(n_labels), n_labels), -1])  # -1 stays -1
    old_id = np.argsort(new_id[:-1])
    moved = all_measures(matrix[rows][:, old_id], new_id[ranking[rows]], k, weights[old_id])
    for name, value in all_measures(matrix, ranking, k, weights).items():
        np.testing.assert_allclose(moved[name], value, rtol=1e-12, err_msg=name)


@given(cases())
def test_values_lie_between_0_and_1(case):
    truth, ranking, k, weights, n_labels = case
    for name, value in all_measures(to_csr(truth, n_labels), ranking, k, weights).items():
        assert value.min() >= 0, name
        assert value.max() <= 1 + 1e-12, name


@given(cases())
def test_equal_weights_make_psndcg_of_labelled_points_the_ndcg(case):
    truth, ranking, k, _, n_labels = case
    matrix, ones = to_csr(truth, n_labels), np.ones(n_labels)
    labelled = np.mean([bool(labels) for labels in truth])
    np.testing.assert_allclose(
        metrics.psndcg_at_k(matrix, ranking, k, ones) * labelled,
        metrics.ndcg_at_k(matrix, ranking, k),
        rtol=1e-12,
    )


@given(cases())
def test_a_perfect_ranking_scores_1(case):
    truth, _, k, weights, n_labels = case
    truth = [labels or {0} for labels in truth]
    best_first = [sorted(labels, key=lambda label: -weights[label]) for labels in truth]
    ranking = np.array([(row + [-1] * k)[:k] for row in best_first])
    values = all_measures(to_csr(truth, n_labels), ranking, k, weights)
    for name in ("nDCG", "PSP", "PSnDCG"):
        np.testing.assert_allclose(values[name], np.ones(k), rtol=1e-12, err_msg=name)
    if k >= max(map(len, truth)):
        assert values["R"][-1] == pytest.approx(1)
        assert values["coverage"][-1] == 1


# ---------------------------------------------------------------- napkinXC


def napkinxc_measures(truth, ranking, weights):
    """All measures of napkinXC at 1..5; its macro ones know no other k."""
    napkinxc = pytest.importorskip("napkinxc.metrics")
    Y_true = [row.indices.tolist() for row in sp.csr_matrix(truth)]
    Y_pred = [[label for label in row if label >= 0] for row in ranking.tolist()]
    return {
        "P": napkinxc.precision_at_k(Y_true, Y_pred, k=5),
        "nDCG": napkinxc.ndcg_at_k(Y_true, Y_pred, k=5),
        "R": napkinxc.recall_at_k(Y_true, Y_pred, k=5),
        "PSP": napkinxc.psprecision_at_k(Y_true, Y_pred, weights, k=5),
        "PSnDCG": napkinxc.psndcg_at_k(Y_true, Y_pred, weights, k=5),
        "coverage": napkinxc.coverage_at_k(Y_true, Y_pred, k=5),
        "macroP": napkinxc.macro_precision_at_k(Y_true, Y_pred, k=5),
        "macroR": napkinxc.macro_recall_at_k(Y_true, Y_pred, k=5),
        "macroF1": napkinxc.macro_f1_measure_at_k(Y_true, Y_pred, k=5),
    }


def assert_agrees_with_napkinxc(truth, ranking, weights):
    theirs = napkinxc_measures(truth, ranking, weights)
    for name, value in all_measures(truth, ranking, 5, weights).items():
        np.testing.assert_allclose(value, theirs[name], rtol=1e-12, err_msg=name)


def generated(seed, n_samples=300, n_labels=60):
    """Long-tailed truth with unlabelled points, and rankings that are half right, some short."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, n_labels + 1)
    scores = rng.random((n_samples, n_labels)) ** (1 / popularity)
    truth = scores > 0.6
    truth[:20] = False
    truth[20, -1] = True  # the last label occurs, so that napkinXC counts all of them
    order = np.argsort(-(scores + 0.5 * rng.random(scores.shape)), axis=1)[:, :5]
    lengths = rng.integers(0, 8, size=(n_samples, 1))
    return sp.csr_matrix(truth), np.where(np.arange(5) < lengths, order, -1)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_napkinxc_on_generated_predictions(seed):
    truth, ranking = generated(seed)
    weights = metrics.inverse_propensity(truth.getnnz(axis=0), truth.shape[0])
    assert_agrees_with_napkinxc(truth, ranking, weights)


@pytest.mark.parametrize("name", ["macroP", "macroR", "macroF1"])
def test_napkinxc_averages_only_up_to_the_largest_label_it_meets(name):
    truth, ranking = generated(0)
    wider = sp.hstack([truth, sp.csr_matrix((truth.shape[0], 20), dtype=bool)], format="csr")
    theirs = napkinxc_measures(wider, ranking, np.ones(80))[name]
    np.testing.assert_allclose(PLAIN[name](wider, ranking, 5), theirs * 60 / 80, rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
def test_inverse_propensity_agrees_with_napkinxc(a, b):
    napkinxc = pytest.importorskip("napkinxc.metrics")
    truth, _ = generated(0)
    np.testing.assert_allclose(
        metrics.inverse_propensity(truth.getnnz(axis=0), truth.shape[0], a, b),
        napkinxc.Jain_et_al_inverse_propensity(truth, A=a, B=b),
        rtol=1e-15,
    )


@pytest.mark.real
def test_agrees_with_napkinxc_on_neighbour_votes_for_bibtex():
    from dxml.data import load_dataset

    train, test = (load_dataset("bibtex", part=part, split=1) for part in ("train", "test"))
    similarity = (normalize(test.X) @ normalize(train.X).T).tocsr()
    neighbours = topk_from_csr(similarity, 10, np.arange(train.X.shape[0], dtype=np.int32))
    votes = neighbours.to_csr(train.X.shape[0]) @ train.Y.astype(np.float32)
    frequency = train.Y.getnnz(axis=0)
    ranking = topk_from_csr(sp.csr_matrix(votes), 5, tie_order(frequency)).indices
    weights = metrics.inverse_propensity(frequency, train.Y.shape[0])
    assert metrics.precision_at_k(test.Y, ranking, 1)[0] > 0.5
    assert_agrees_with_napkinxc(test.Y, ranking, weights)


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        (RANKING[:3], r"as many rows; got 4 and 3\. Pass the truth and the predictions"),
        (RANKING[:, :2], r"k=3 needs a ranking of at least 3 places; got 2\. Predict with k=3"),
        (np.where(RANKING == 3, 4, RANKING), r"row 1: label id 4 is outside 0\.\.3.*from 0"),
        (np.where(RANKING == 2, -2, RANKING), r"row 0: label id -2 is outside 0\.\.3.*pad with -1"),
        (np.where(RANKING == 3, 0, RANKING), r"row 3: label 0 stands there twice.*Drop the rep"),
        (RANKING.astype(float), r"TopK or an integer array.*ndarray of float64.*ranked first"),
        (RANKING[0], r"shape \(n_samples, k\).*shape \(3,\)"),
        (Y, r"TopK or an integer array.*got csr_matrix of bool.*ranked first"),
        (RANKING.tolist(), r"TopK or an integer array.*got list"),
    ],
)
def test_bad_ranking_is_refused(ranking, message):
    for measure in PLAIN.values():
        with pytest.raises(DataFormatError, match=message):
            measure(Y, ranking, 3)
    for measure in WEIGHTED.values():
        with pytest.raises(DataFormatError, match=message):
            measure(Y, ranking, 3, WEIGHTS)
    with pytest.raises(DataFormatError, match=message):
        metrics.evaluate(Y, ranking, ks=(1, 3))


def test_places_beyond_k_are_not_looked_at():
    beyond = np.hstack([RANKING, [[99], [99], [99], [99]]])
    np.testing.assert_array_equal(
        metrics.precision_at_k(Y, beyond, 3), metrics.precision_at_k(Y, RANKING, 3)
    )


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (Y.toarray(), r"scipy\.sparse matrix.*got ndarray of bool, shape \(4, 4\)\. Wrap it"),
        ([[0], [1], [], [2]], r"scipy\.sparse matrix.*got list\. Wrap it"),
        (sp.coo_array(np.array([1, 0, 1, 0])), r"scipy\.sparse matrix.*shape \(4,\)"),
        (sp.csr_matrix((0, 4), dtype=bool), r"at least one row.*got shape \(0, 4\)"),
        (sp.csr_matrix((4, 0), dtype=bool), r"at least one row.*got shape \(4, 0\)"),
    ],
)
def test_bad_truth_is_refused(truth, message):
    with pytest.raises(DataFormatError, match=message):
        metrics.precision_at_k(truth, RANKING, 3)


@pytest.mark.parametrize("k", [0, -1, 2.0, "3", None, True])
def test_bad_k_is_refused(k):
    message = rf"k must be a whole number, 1 or more; got {k!r}\. Try k=5"
    with pytest.raises(DataFormatError, match=message):
        metrics.precision_at_k(Y, RANKING, k)
    with pytest.raises(DataFormatError, match=message):
        metrics.evaluate(Y, RANKING, ks=(1, k))


def test_no_k_at_all_is_refused():
    with pytest.raises(DataFormatError, match=r"ks must hold at least one k.*Try ks=\(1, 3, 5\)"):
        metrics.evaluate(Y, RANKING, ks=())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (WEIGHTS[:3], r"shape \(4,\), one number a label of Y; got \(3,\)\. Count label freq"),
        (WEIGHTS[None, :], r"shape \(4,\), one number a label of Y; got \(1, 4\)"),
        (1 / WEIGHTS, r"finite and 1 or more; got 0\.125\.\.1\.0\. Pass 1/p, not the propensity"),
        (np.array([1, 2, np.nan, 3]), r"finite and 1 or more"),
        (np.array([1, 2, np.inf, 3]), r"finite and 1 or more"),
    ],
)
def test_bad_inverse_propensity_is_refused(weights, message):
    for measure in WEIGHTED.values():
        with pytest.raises(DataFormatError, match=message):
            measure(Y, RANKING, 3, weights)
    with pytest.raises(DataFormatError, match=message):
        metrics.evaluate(Y, RANKING, ks=(1, 3), inverse_propensity=weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], 10), r"shape \(n_labels,\); got int64 of shape \(1, 2\)\. Use Y_train\.getnnz"),
        ((["a"], 10), r"one number a label"),
        (([1, 2], 2), r"n_train must be 3 or more, got 2"),
        (([1, 11], 10), r"lie in 0\.\.10 \(n_train\); got 1\.\.11\. Count both on the same"),
        (([-1, 1], 10), r"lie in 0\.\.10 \(n_train\); got -1\.\.1"),
        (([1.0, np.nan], 10), r"lie in 0\.\.10"),
        (([1, 2], 10, -0.5), r"a must be 0 or more and b above 0; got a=-0\.5, b=1\.5"),
        (([1, 2], 10, 0.5, 0), r"b above 0; got a=0\.5, b=0\. Use the defaults"),
    ],
)
def test_bad_propensity_arguments_are_refused(arguments, message):
    with pytest.raises(DataFormatError, match=message):
        metrics.inverse_propensity(*arguments)


def test_calibration_error_by_hand():
    Y = sp.csr_matrix([[1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    ids = np.array([[0, 1], [0, -1], [2, 0]])
    scores = np.array([[0.95, 0.25], [0.95, 0.0], [0.85, 0.15]], dtype=np.float32)
    # First places, ten bins: 0.95 twice, one of them right; 0.85 once, right.
    expected = (abs(1.9 - 1) + abs(0.85 - 1)) / 3
    found = metrics.calibration_error(Y, TopK(ids, scores), k=1, bins=10)
    assert found == pytest.approx(expected, abs=1e-6)
    # Both places: 0.25 and 0.15 are wrong, and the place that names nothing does not count.
    expected = (abs(1.9 - 1) + abs(0.85 - 1) + 0.25 + 0.15) / 5
    found = metrics.calibration_error(Y, TopK(ids, scores), k=2, bins=10)
    assert found == pytest.approx(expected, abs=1e-6)


def test_true_probabilities_have_no_calibration_error():
    rng = np.random.default_rng(0)
    scores = rng.random((40_000, 1)).astype(np.float32)
    Y = sp.csr_matrix(rng.random((40_000, 1)) < scores)
    ranking = TopK(np.zeros((40_000, 1), dtype=np.int32), scores)
    assert metrics.calibration_error(Y, ranking, k=1) < 0.01
    halved = TopK(ranking.indices, scores / 2)
    assert metrics.calibration_error(Y, halved, k=1) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("scores", "are"),
    [
        ([1.0, 0.0], True),
        ([1.000001, 0.5], True),
        ([1.001, 0.5], False),
        ([0.5, -1e-6], False),
    ],
)
def test_probabilities_may_be_rounded_to_a_little_over_one(scores: list[float], are: bool) -> None:
    ranking = TopK(np.array([[0, 1]]), np.array([scores], dtype=np.float32))
    assert metrics.are_probabilities(ranking) is are


def test_ten_neighbours_of_one_opinion_say_a_probability() -> None:
    """Their tenths, added up in 32 bits, are a little more than 1."""
    said = float(np.cumsum(np.full(10, 0.1, dtype=np.float32))[-1])
    assert said > 1
    ranking = TopK(np.array([[0]]), np.array([[said]], dtype=np.float32))
    assert metrics.are_probabilities(ranking)
    right = sp.csr_matrix([[True]])
    assert metrics.calibration_error(right, ranking, 1) < 1e-6
