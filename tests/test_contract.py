"""Every method keeps one contract. A new method is tested by adding one line to CHEAP."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import dxml
from dxml._core.storage import read_config, sealed
from dxml.base import Classifier
from dxml.data import Dataset, make_planted
from dxml.exceptions import DataFormatError, ModelFormatError, NotFittedError, ParameterError
from dxml.methods import METHODS, load_model, method_class
from dxml.metrics import precision_at_k
from dxml.progress import StageTimer

CHEAP: dict[str, dict[str, Any]] = {
    "joint": {"epochs": 5, "width": 256},
    "joint/nearest": {"candidates": "nearest", "epochs": 2},
    "joint/int8": {"candidates": "nearest", "precision": "int8", "epochs": 3, "width": 64},
    "dxml": {"epochs": 20, "walks_per_label": 10, "dim": 32, "hidden": 64},
    "sleec": {"n_learners": 2, "n_clusters": 2, "dim": 20, "max_iter": 5},
    "leml": {"max_iter": 5},
    "wsabie": {"dim": 20},
    "cplst": {},
    "cs": {},
    "ml-cssp": {},
    "fastxml": {"n_trees": 10},
    "lpsr": {"leaf_size": 100},
    "one-vs-all": {},
    "knn": {},
}
"""Settings that make a method quick on the planted data; every method has a line.

What stands behind a slash tells lines of one method apart."""

SINGLE_LABEL: dict[str, dict[str, Any]] = {"dxml": {"label_vectors": "random"}}
"""What a method needs besides to learn from one label only: DXML's graph would have no edge."""


@pytest.fixture(scope="module")
def planted() -> tuple[Dataset, Dataset]:
    """500 points to learn from and 100 to predict, with an answer that can be known."""
    data = make_planted(
        600, 300, 20, labels_per_point=2.0, features_per_point=20, noise=0.05, random_state=1
    )
    return data.take(np.arange(500)), data.take(np.arange(500, 600))


_FITTED: dict[str, Classifier] = {}


@pytest.fixture(params=sorted(CHEAP))
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fitted(method: str, planted: tuple[Dataset, Dataset]) -> Classifier:
    """One fit of each method, shared by the checks that only read it."""
    if method not in _FITTED:
        _FITTED[method] = fresh(method).fit(planted[0].X, planted[0].Y)
    return _FITTED[method]


def fresh(method: str, **changes: Any) -> Classifier:
    return method_class(method.partition("/")[0])(**(CHEAP[method] | changes))


def same(first: Classifier, second: Classifier, X: sp.csr_matrix) -> bool:
    a, b = first.predict_topk(X, 5), second.predict_topk(X, 5)
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.scores, b.scores)


def test_every_method_is_in_the_suite() -> None:
    assert {line.partition("/")[0] for line in CHEAP} == set(METHODS)


def test_recovers_planted_labels(fitted: Classifier, planted: tuple[Dataset, Dataset]) -> None:
    test = planted[1]
    assert precision_at_k(test.Y, fitted.predict_topk(test.X, 1), 1)[0] > 0.7


def test_batch_equals_single(fitted: Classifier, planted: tuple[Dataset, Dataset]) -> None:
    X = planted[1].X[:20]
    together = fitted.predict_topk(X, 5)
    for i in range(20):
        alone = fitted.predict_topk(X[i], 5)
        assert np.array_equal(alone.indices[0], together.indices[i])
        assert np.allclose(alone.scores[0], together.scores[i], atol=1e-5)


def test_sparse_equals_dense(fitted: Classifier, planted: tuple[Dataset, Dataset]) -> None:
    X = planted[1].X
    sparse, dense = fitted.predict_topk(X, 5), fitted.predict_topk(X.toarray(), 5)
    assert np.array_equal(sparse.indices, dense.indices)


def test_a_seed_repeats_the_result(
    method: str, fitted: Classifier, planted: tuple[Dataset, Dataset]
) -> None:
    train, test = planted
    assert same(fresh(method).fit(train.X, train.Y), fitted, test.X)


def test_refitting_starts_afresh(
    method: str, fitted: Classifier, planted: tuple[Dataset, Dataset]
) -> None:
    train, test = planted
    model = fresh(method).fit(train.X[:200], train.Y[:200])
    assert same(model.fit(train.X, train.Y), fitted, test.X)


def test_save_then_load_gives_the_same_ranking(
    fitted: Classifier, planted: tuple[Dataset, Dataset], tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert same(again, fitted, planted[1].X)
    assert again.get_params() == fitted.get_params()
    assert same(type(fitted).load(tmp_path / "m"), fitted, planted[1].X)
    again.save(tmp_path / "m")  # over the arrays it is still reading
    assert same(load_model(tmp_path / "m"), fitted, planted[1].X)


UNPACKED = {"joint", "joint/nearest"}
"""Models of which a kernel or a wide layer, the most part, is unpacked into memory. The arrays of
the others stay in the file."""


def _arrays_of(thing: Any) -> Iterator[np.ndarray]:
    """Every array that an object holds, however deep."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif sp.issparse(thing):
        yield from (thing.data, thing.indices, thing.indptr)
    elif isinstance(thing, dict | list | tuple):
        for value in thing.values() if isinstance(thing, dict) else thing:
            yield from _arrays_of(value)
    elif hasattr(thing, "__dict__") and type(thing).__module__.startswith("dxml"):
        yield from _arrays_of(vars(thing))


def _is_mapped(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def test_what_a_loaded_model_maps_and_what_it_copies(
    method: str, fitted: Classifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    (file,) = (tmp_path / "m").glob("*.safetensors")
    mapped = sum(a.nbytes for a in _arrays_of(vars(load_model(tmp_path / "m"))) if _is_mapped(a))
    if method in UNPACKED:
        assert mapped < 0.2 * file.stat().st_size
    else:
        assert mapped > 0.8 * file.stat().st_size


def test_features_stay_sparse_on_a_cpu(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_planted(700, 900, 8, labels_per_point=2, features_per_point=10, random_state=3)
    largest = 0

    def watched(kind: Any) -> Any:
        original = kind.toarray

        def toarray(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal largest
            if self.shape[1] == data.n_features != self.shape[0]:
                largest = max(largest, self.shape[0])
            return original(self, *args, **kwargs)

        return toarray

    for kind in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
        monkeypatch.setattr(kind, "toarray", watched(kind))
    on_cpu = {"device": "cpu"} if "device" in fresh(method).get_params() else {}
    fresh(method, **on_cpu).fit(data.X, data.Y).predict_topk(data.X, 3)
    assert largest <= 512, "more than a batch of rows was made dense"


@pytest.mark.parametrize("method", ["joint/nearest", "knn"])
def test_rows_that_no_memory_could_hold_dense(method: str) -> None:
    """20,000 points of 10 million features would be 800 GB."""
    small = make_planted(20_000, 400, 8, labels_per_point=1, features_per_point=5, random_state=5)
    X = sp.csr_matrix(
        (small.X.data, small.X.indices * 25_000, small.X.indptr), shape=(20_000, 10_000_000)
    )
    on_cpu = {"device": "cpu", "C": 1.0} if method.startswith("joint") else {"n_neighbors": 5}
    model = fresh(method, **on_cpu).fit(X[:19_000], small.Y[:19_000])
    found = precision_at_k(small.Y[19_000:], model.predict_topk(X[19_000:], 1), 1)[0]
    assert found > 0.7


ON_THREADS = """
import sys
import numpy as np
from dxml import DXML, Joint, make_planted
data = make_planted(900, 300, 20, labels_per_point=2, features_per_point=20, random_state=1)
models = {
    "dxml": DXML(device="cpu", epochs=10, walks_per_label=10, dim=32, hidden=64),
    "nearest": Joint(device="cpu", candidates="nearest", width=0),
    "kernel": Joint(device="cpu"),
    "wide": Joint(device="cpu", width=256, epochs=5),
}
for path in sys.argv[1:]:
    found = {}
    for name, model in models.items():
        ranking = model.fit(data.X[:700], data.Y[:700]).predict_topk(data.X[700:], 6)
        found |= {f"{name}.indices": ranking.indices, f"{name}.scores": ranking.scores}
    np.savez(path, **found)
"""


@pytest.mark.thorough
def test_a_seed_repeats_the_bits_and_threads_move_only_the_last_digits(tmp_path: Path) -> None:
    def found(threads: int, *names: str) -> Iterator[dict[str, Any]]:
        limits = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
        env = os.environ | dict.fromkeys(limits, str(threads))
        env["PYTHONPATH"] = str(Path(dxml.__file__).parents[1])
        paths = [str(tmp_path / f"{name}.npz") for name in names]
        subprocess.run([sys.executable, "-c", ON_THREADS, *paths], env=env, check=True)
        for path in paths:
            with np.load(path) as arrays:
                yield dict(arrays)

    two, again = found(2, "two", "again")
    [one] = found(1, "one")
    assert all(np.array_equal(two[name], again[name]) for name in two)
    for name in ("dxml", "nearest"):
        assert np.array_equal(one[f"{name}.indices"], two[f"{name}.indices"])
        assert np.array_equal(one[f"{name}.scores"], two[f"{name}.scores"])
    for name in ("kernel", "wide"):
        scores, other = one[f"{name}.scores"], two[f"{name}.scores"]
        assert np.abs(scores - other).max() < 0.002
        moved = (one[f"{name}.indices"] != two[f"{name}.indices"])[:, :5]
        below = -np.diff(scores, axis=1)  # from each of the first five to the next
        above = np.column_stack([np.full(len(below), np.inf), below[:, :-1]])
        gaps = np.minimum(above, below)
        assert (gaps[moved] < 0.002).all(), "labels changed places that are not near ties"


def test_labels_may_be_lists_and_names(method: str, planted: tuple[Dataset, Dataset]) -> None:
    train, test = planted
    ids = [train.Y[i].indices.tolist() for i in range(train.n_samples)]
    names = [[f"label {label:02d}" for label in row] for row in ids]
    by_matrix = fresh(method).fit(train.X, train.Y)
    by_name = fresh(method).fit(train.X, names)
    assert same(fresh(method).fit(train.X, ids), by_matrix, test.X)
    assert by_name.label_names_ is not None
    assert type(by_name.predict(test.X[:1])[0][0]) is str
    expected = [
        [f"label {label:02d}" for label in row if label >= 0]
        for row in by_matrix.predict_topk(test.X, 2).indices
    ]
    assert by_name.predict(test.X, k=2) == expected
    assert expected[0][0] in by_name.predict_topk(test.X[:1], 2)._repr_html_()
    truth = [[f"label {label:02d}" for label in test.Y[i].indices] for i in range(100)]
    for same_truth in (truth, test.Y, test.Y.toarray(), test.Y.toarray().astype(float)):
        assert by_name.score(test.X, same_truth) == by_matrix.score(test.X, test.Y)
    with pytest.raises(DataFormatError, match="labels of this model have names, got lists of ids"):
        by_name.score(test.X, [[0]] * 100)


def test_predict_and_decision_function_agree_with_the_ranking(
    fitted: Classifier, planted: tuple[Dataset, Dataset]
) -> None:
    test = planted[1]
    ranking = fitted.predict_topk(test.X, 3)
    indicator, scores = fitted.predict(test.X, k=3), fitted.decision_function(test.X, k=3)
    assert indicator.dtype == bool and indicator.shape == test.Y.shape
    for i, row in enumerate(ranking.rows()):
        assert sorted(label for label, _ in row) == indicator[i].indices.tolist()
        assert all(scores[i, label] == np.float32(score) for label, score in row)
    two = fitted.predict_topk(test.X, 2)  # a training point has two labels
    assert abs(int(fitted.predict(test.X).sum()) - int((two.indices >= 0).sum())) <= 30
    expected = precision_at_k(test.Y, ranking, 1)[0]
    assert fitted.score(test.X, test.Y) == pytest.approx(expected)


def test_clone_pipeline_and_grid_search(method: str, planted: tuple[Dataset, Dataset]) -> None:
    train, test = planted
    model = fresh(method)
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(MaxAbsScaler(), model)
    search = GridSearchCV(pipeline, {f"{type(model).__name__.lower()}__random_state": [0, 1]}, cv=2)
    search.fit(train.X[:120], train.Y[:120])
    assert search.best_score_ > 0.2
    assert search.predict(test.X).shape == test.Y.shape


def test_awkward_but_legal_data(method: str) -> None:
    """Labels without points, points without labels or features, and a single label."""
    data = make_planted(80, 40, 6, labels_per_point=1.5, features_per_point=8, random_state=2)
    Y = data.Y.tolil()
    Y[:10] = False
    Y = sp.hstack([sp.csr_matrix((80, 1), dtype=bool), Y.tocsr()], format="csr")
    X = data.X.tolil()
    X[5:15] = 0
    model = fresh(method).fit(X.tocsr(), Y)
    ranking = model.predict_topk(X.tocsr(), 7)
    assert not (ranking.indices[:, :2] == 0).any(), "a label without points came first"
    one = fresh(method, **SINGLE_LABEL.get(method, {})).fit(data.X, np.ones((80, 1)))
    assert (one.predict_topk(data.X[:5]).indices == 0).all(), "5 labels by default, if there are"
    assert len(model.predict_topk(sp.csr_matrix((0, 40)), 3)) == 0


def test_progress_hears_of_fit_and_predict(method: str, planted: tuple[Dataset, Dataset]) -> None:
    timer = StageTimer()
    model = fresh(method).fit(planted[0].X, planted[0].Y, progress=timer)
    assert timer.seconds
    model.predict_topk(planted[1].X, 1, progress=timer)
    assert "predict" in timer.seconds


def test_bad_input_is_named(
    method: str, fitted: Classifier, planted: tuple[Dataset, Dataset]
) -> None:
    train = planted[0]
    with pytest.raises(NotFittedError, match="has not been fitted. Call fit"):
        fresh(method).predict_topk(train.X)
    with pytest.raises(DataFormatError, match="X has 10 features, but .* is expecting 300 feat"):
        fitted.predict_topk(train.X[:, :10])
    with pytest.raises(DataFormatError, match="k must be a whole number from 1 to .* 20, got 21"):
        fitted.predict_topk(train.X, 21)
    with pytest.raises(DataFormatError, match="equally many rows, got 500 and 400"):
        fresh(method).fit(train.X, train.Y[:400])
    with pytest.raises(DataFormatError, match="Y must have 20 labels like the training data"):
        fitted.score(train.X, sp.csr_matrix((500, 3), dtype=bool))
    with pytest.raises(ParameterError, match="random_state of .* must be"):
        fresh(method, random_state=-1).fit(train.X, train.Y)


def test_a_damaged_model_is_named(fitted: Classifier, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    config = read_config(tmp_path)
    del config["sha256"]
    renamed = {name.replace("n_labels", "labels"): value for name, value in config.items()}
    (tmp_path / "config.json").write_bytes(sealed(renamed))
    with pytest.raises(ModelFormatError, match="damaged, something is missing or wrong in it"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_bytes(sealed(config | {"method": "unknown"}))
    with pytest.raises(ModelFormatError, match="a model of the unknown method 'unknown'"):
        load_model(tmp_path)
    with pytest.raises(ModelFormatError, match="holds a model of method 'unknown', not"):
        type(fitted).load(tmp_path)
