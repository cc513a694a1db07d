"""Points of a folder by feature: searched as they are, and the same rows as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.precision import Precision, pack_sparse, unpack_sparse
from dxml.data import make_planted
from dxml.exceptions import ModelFormatError
from dxml.joint import Joint
from dxml.joint._points import FeatureSpace
from dxml.joint._stored_points import StoredPoints, rows_of

PRECISIONS: list[Precision] = ["float32", "float16", "int8"]
DATA = make_planted(120, 60, 20, features_per_point=8, random_state=3)
SEARCHED = np.arange(60) % 4 > 0


def points() -> sp.csr_matrix:
    X = DATA.X.copy()
    X.data[X.indptr[7] : X.indptr[8]] = 0  # a point of nothing
    X.eliminate_zeros()
    return X


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows_come_back_as_they_are_packed(precision: Precision) -> None:
    X = points()
    stored = StoredPoints.of(X, SEARCHED, precision)
    packed = unpack_sparse("x", pack_sparse("x", X, precision))
    assert stored.precision == precision and stored.shape == X.shape
    assert (stored.rows != packed).nnz == 0 and rows_of(stored) is stored.rows
    again = StoredPoints.restore(Arrays(stored.arrays), X.shape)
    assert (again.rows != packed).nnz == 0


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_search_finds_what_a_search_of_the_rows_finds(precision: Precision) -> None:
    stored = StoredPoints.of(points(), SEARCHED, precision)
    near = FeatureSpace(stored, SEARCHED).search(DATA.X, 12, "cpu")
    expected = FeatureSpace(stored.rows, SEARCHED).search(DATA.X, 12, "cpu")
    assert np.array_equal(near.ids, expected.ids)
    assert np.array_equal(near.cosines, expected.cosines)  # to the last bit
    assert np.abs(near.cosines).max() > 0.5 and near.ids.max() < 120


def test_points_that_come_later_are_found_beside_those_of_the_folder() -> None:
    stored = StoredPoints.of(DATA.X[:100], SEARCHED, "float16")
    late = DATA.X[100:]
    whole = sp.csr_matrix(sp.vstack([stored.rows, late]))
    grown = FeatureSpace(stored, SEARCHED).add(late, whole)
    found, expected = (
        space.search(DATA.X, 9, "cpu") for space in (grown, FeatureSpace(whole, SEARCHED))
    )
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.cosines, expected.cosines) and found.ids.max() >= 100
    wider = FeatureSpace(stored, SEARCHED).widen(70)
    queries = sp.csr_matrix((DATA.X.data, DATA.X.indices, DATA.X.indptr), shape=(120, 70))
    np.testing.assert_allclose(
        wider.search(queries, 9, "cpu").cosines,
        FeatureSpace(stored, SEARCHED).search(DATA.X, 9, "cpu").cosines,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("columns.indices", lambda a: a.at(0, 100), "must hold numbers up to 99, and holds 100"),
        ("columns.indptr", lambda a: a.at(1, -1), "must hold row boundaries that never fall"),
        ("columns.unit", lambda a: a.at(0, np.nan), "must hold finite numbers"),
        ("columns.data", lambda a: a.at(0, np.inf), "must hold finite numbers"),
        ("columns.scale", lambda a: a.at(0, -1), "must hold numbers from 0 on"),
    ],
)
def test_damage_is_found(name: str, change: Any, said: str) -> None:
    class Changed:
        def __init__(self, array: Any) -> None:
            self.array = array.copy()

        def at(self, place: int, value: float) -> Any:
            self.array[place] = value
            return self.array

    precision: Precision = "int8" if name.endswith("scale") else "float16"
    arrays = StoredPoints.of(DATA.X[:100], SEARCHED, precision).arrays
    damaged = Arrays({**arrays, name: change(Changed(arrays[name]))})
    with pytest.raises(ModelFormatError, match=f"{name}.*{said}"):
        StoredPoints.restore(damaged, (100, 60))


OPENED = """
import sys
from dxml.data import make_planted
from dxml.joint import Joint

for folder in sys.argv[1:]:
    model = Joint.load(folder)
    model.predict_topk(make_planted(50, 2000, 3000, random_state=1).X, 5)
    wanted = {"Size", "Rss", "Private_Dirty", "Shared_Clean"}
    found, inside = dict.fromkeys(wanted, 0), False
    for line in open("/proc/self/smaps"):
        first, *rest = line.split()
        if not first.endswith(":"):
            inside = folder in line
        elif inside and first[:-1] in wanted:
            found[first[:-1]] += int(rest[0])
    print("rows" in vars(model._ensemble.known.held), *(found[name] for name in sorted(wanted)))
"""


def test_two_processes_share_the_pages(tmp_path: Path) -> None:
    """This one has read all of the files, and what another touches of them is the same memory."""
    data = make_planted(2000, 2000, 3000, features_per_point=50, random_state=0)
    settings: dict[str, Any] = {"max_iter": 1, "width": 0, "C": 1.0, "n_negatives": 5, "n_trees": 1}
    model = Joint(candidates="nearest", device="cpu", precision="float32", **settings)
    model.fit(data.X, data.Y)
    here = []
    for precision in PRECISIONS:
        model.precision = precision
        here.append(Joint.load(model.save(tmp_path / precision)))
        here[-1].predict_topk(data.X[:100], 5)
    command = [sys.executable, "-c", OPENED, *(str(tmp_path / name) for name in PRECISIONS)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    for line in ran.stdout.splitlines():
        unpacked, dirty, resident, shared, size = line.split()
        assert unpacked == "False", "rows were made, though nothing was learnt"
        assert int(size) > 400 and int(resident) > 0.1 * int(size)  # others were given back
        assert int(dirty) == 0 and int(shared) > 0.9 * int(resident)
    assert len(ran.stdout.splitlines()) == len(PRECISIONS)
