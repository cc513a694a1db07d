"""Arrays of a damaged folder are refused by name, before anything computes with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core.arrays import Arrays, listed_texts, reading, real, reals, whole
from dxml._core.precision import pack, pack_sparse, unpack, unpack_sparse
from dxml._core.storage import pack_csr, read_folder, write_folder
from dxml.baselines._tree import Forest, Tree
from dxml.data import make_planted
from dxml.exceptions import DataFormatError, ModelFormatError
from dxml.methods import load_model, method_class
from dxml.tagging._tagger import TextTagger
from dxml.tagging._thesaurus import Thesaurus
from dxml.tagging._vocabulary import read_thesaurus

F32 = np.float32


@pytest.mark.parametrize(
    ("array", "read", "said"),
    [
        (np.zeros(3), lambda a: a.floats("x", 3), "must be of float32, is of float64"),
        (np.zeros(3, F32), lambda a: a.floats("x", 4), "must be 4 long, is 3 long"),
        (np.zeros(3, F32), lambda a: a.floats("x", 3, 1), "must be 3 × 1, is 3 long"),
        (np.array([0, np.nan], F32), lambda a: a.floats("x", None), "holds nan"),
        (np.array([0, np.inf], F32), lambda a: a.floats("x", None, never=True), "holds inf"),
        (np.array([0, -np.inf], F32), lambda a: a.floats("x", None), "holds -inf"),
        (np.array([-1, 2], F32), lambda a: a.floats("x", 2, least=0), "from 0 on, and holds -1.0"),
        (np.array([-1, 2], F32), lambda a: a.floats("x", 2, most=1), "up to 1, and holds 2.0"),
        (np.array([np.nan]), lambda a: a.numbers("x", 1), "must hold finite numbers"),
        (np.array([2], np.uint8).view(bool), lambda a: a.flags("x", 1), "and holds other bytes"),
        (np.array([-1]), lambda a: a.counts("x", 1), "from 0 on, and holds -1"),
        (np.array([0, 5], np.int32), lambda a: a.ids("x", 2, below=5), "up to 4, and holds 5"),
        (np.array([-2], np.int32), lambda a: a.ids("x", 1, below=5, least=-1), "from -1 on"),
        (np.array([0, 3, 2, 4]), lambda a: a.starts("x", 3, 4), "boundaries that never fall"),
        (np.array([1, 4]), lambda a: a.starts("x", 1, 4), "row boundaries from 0 to 4"),
        (np.array([0, 5]), lambda a: a.starts("x", 1, 4), "row boundaries from 0 to 4"),
        (np.array([], np.int64), lambda a: a.starts("x", None, 0), "row boundaries from 0 to 0"),
        (np.array([np.inf], np.float16), lambda a: a.packed("x", 1), "must hold finite numbers"),
        (np.array([[1]], np.int8), lambda a: a.packed("x", 1, 1), "'x.scale' is missing"),
    ],
)
def test_what_is_wrong_is_named(array: Any, read: Callable[[Arrays], object], said: str) -> None:
    with pytest.raises(ModelFormatError, match=said) as stop:
        read(Arrays({"x": array}, Path("m/arrays")))
    assert str(stop.value).startswith("m/arrays: damaged, the array 'x")


def test_what_is_right_is_given() -> None:
    never = np.array([-np.inf, 1], F32)
    arrays = Arrays({"never": never, "none": np.array([-np.inf], F32), "e": np.empty(0, F32)})
    assert arrays.floats("never", 2, never=True) is never
    assert arrays.floats("none", 1, never=True)[0] == -np.inf
    assert arrays.floats("e", None).shape == (0,)
    assert "never" in arrays and "other" not in arrays and len(arrays) == 3
    assert not hasattr(arrays, "__getitem__"), "an array must not be had unchecked"


MATRIX = sp.csr_matrix(np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], dtype=F32))


@pytest.mark.parametrize(
    ("part", "place", "value", "said"),
    [
        ("indptr", 1, 3, "never fall"),
        ("indptr", 3, 9, "boundaries from 0 to 3"),
        ("indptr", 0, -1, "boundaries from 0 to 3"),
        ("indices", 0, 3, "up to 2, and holds 3"),
        ("indices", 0, -1, "from 0 on, and holds -1"),
        ("shape", 0, 4, "must be 3 × 3, is 4 × 3"),
        ("shape", 1, -3, "must be 3 × 3, is 3 × -3"),
        ("data", 0, np.nan, "must hold finite numbers"),
    ],
)
def test_a_damaged_sparse_matrix_is_refused(part: str, place: int, value: float, said: str) -> None:
    good = {name: array.copy() for name, array in pack_csr("m", MATRIX).items()}
    assert (Arrays(good).csr("m", 3, 3) != MATRIX).nnz == 0
    good[f"m.{part}"][place] = value
    for read in (Arrays(good).csr, Arrays(good).packed_csr):
        with pytest.raises(ModelFormatError, match=f"'m.{part}' .*{said}"):
            read("m", 3, 3)


def test_numbers_that_are_missing_do_not_make_truth_values() -> None:
    packed = pack_csr("m", MATRIX)
    del packed["m.data"]
    assert Arrays(packed).csr("m", 3, 3, truth=True).dtype == bool
    for read in (Arrays(packed).csr, Arrays(packed).packed_csr):
        with pytest.raises(ModelFormatError, match="'m.data' is missing"):
            read("m", 3, 3)


def test_leaves_must_say_something() -> None:
    packed = pack_csr("m", MATRIX - 2 * MATRIX)
    assert Arrays(packed).csr("m", 3, 3).nnz == 3
    with pytest.raises(ModelFormatError, match="'m.data' must hold numbers above 0"):
        Arrays(packed).csr("m", 3, 3, positive=True)


def test_packed_arrays_of_every_precision_pass() -> None:
    rows = MATRIX.toarray()
    for precision in ("float32", "float16", "int8"):
        dense = Arrays(pack("m", rows, precision)).packed("m", 3, 3)
        np.testing.assert_allclose(unpack("m", dense), rows, rtol=0.01)
        sparse = Arrays(pack_sparse("m", MATRIX, precision)).packed_csr("m", 3, 3)
        np.testing.assert_allclose(unpack_sparse("m", sparse).toarray(), rows, rtol=0.01)


def test_strings_that_do_not_end_well() -> None:
    packed = np.frombuffer(b"abc\xff", np.uint8)
    for ends, said in (
        ([1, 3], "must end at 4"),
        ([3, 1, 4], "must never fall"),
        ([1, 4], "UTF-8"),
    ):
        with pytest.raises(ModelFormatError, match=said):
            Arrays({"s": packed, "s_ends": np.array(ends)}).strings("s")
    with pytest.raises(ModelFormatError, match="'s_ends' must be 3 long, is 1 long"):
        Arrays({"s": packed[:3], "s_ends": np.array([3])}).strings("s", 3)


def test_values_of_a_config() -> None:
    config = {"n": 3, "yes": True, "x": 0.5, "big": 1e999, "s": "3"}
    assert whole(config, "n", 1, 3) == 3 and real(config, "n") == 3.0 and real(config, "x") == 0.5
    for name in ("yes", "x", "s"):
        with pytest.raises(ValueError, match="must be a whole number"):
            whole(config, name)
    with pytest.raises(ValueError, match="'n' must be 4 or more, is 3"):
        whole(config, "n", 4)
    with pytest.raises(ValueError, match="'n' must be 0 to 2, is 3"):
        whole(config, "n", 0, 2)
    for name in ("yes", "big", "s"):
        with pytest.raises(ValueError, match="must be a number"):
            real(config, name)
    assert reals([1, 0.5], "history") == [1.0, 0.5] and listed_texts(["a"], "names", 1) == ["a"]
    with pytest.raises(ValueError, match="must be a list of numbers"):
        reals([True], "history")
    with pytest.raises(ValueError, match="must be a list of texts"):
        listed_texts([1], "names")
    with pytest.raises(ValueError, match="must have 2 entries, has 1"):
        listed_texts(["a"], "names", 2)


@pytest.mark.parametrize(
    "error", [KeyError("x"), TypeError("x"), RecursionError("x"), OverflowError("x")]
)
def test_whatever_else_goes_wrong_is_named(error: Exception) -> None:
    with pytest.raises(
        ModelFormatError, match=r"m: damaged, something is missing or wrong in it \('?x"
    ):
        with reading("m"):
            raise error


@pytest.mark.parametrize(
    ("children", "said"),
    [
        ([[1, 2], [0, 2], [-1, -1]], "must come after their parents"),
        ([[1, 2], [1, 2], [-1, -1]], "must come after their parents"),
        ([[1, 1], [-1, -1], [-1, -1]], "must each have one parent"),
        ([[1, -1], [-1, -1], [-1, -1]], "two to a node, or none"),
        ([[1, 3], [-1, -1], [-1, -1]], "up to 2, and holds 3"),
    ],
)
def test_a_tree_that_turns_back_is_refused(children: list[list[int]], said: str) -> None:
    good = np.array([[1, 2], [-1, -1], [-1, -1]], np.int32)
    splits = sp.csr_matrix(np.array([[1, 0], [0, 0], [0, 0]], F32))
    leaves = sp.csr_matrix(np.array([[0, 0], [1, 0], [0, 1]], F32))
    arrays = Forest.join([Tree(good, np.zeros(3, F32), splits, leaves)]).arrays()
    assert Forest.from_arrays(Arrays(arrays), 2, 2).depth == 1
    damaged = arrays | {"tree.children": np.array(children, np.int32)}
    with pytest.raises(ValueError, match=said):
        Forest.from_arrays(Arrays(damaged), 2, 2)


def test_a_thesaurus_in_a_circle_is_refused() -> None:
    known = read_thesaurus({"name": ["a", "b"], "parents": ["", "a"]})
    assert Thesaurus.from_arrays(Arrays(known.arrays())) == known
    circle = Thesaurus(known.descriptions, {"a": ("b",), "b": ("a",)})
    with pytest.raises(DataFormatError, match="is its own ancestor"):
        Thesaurus.from_arrays(Arrays(circle.arrays()))
    stray = Thesaurus(known.descriptions, {"a": (), "b": ("c",)})
    with pytest.raises(DataFormatError, match="the parent 'c' of 'b' has no row"):
        Thesaurus.from_arrays(Arrays(stray.arrays()))


def test_settings_of_a_saved_model_are_checked(tmp_path: Path) -> None:
    from dxml._core.storage import read_config, sealed

    data = make_planted(40, 12, 6, labels_per_point=2, features_per_point=4, random_state=0)
    method_class("knn")().fit(data.X, data.Y).save(tmp_path)
    config = read_config(tmp_path)
    del config["sha256"]
    for name, value, said in [
        ("n_labels", True, "'n_labels' must be a whole number"),
        ("n_features", 13, "'points.shape' must be any × 13, is 40 × 12"),
        ("label_names", ["a"], "'label_names' must have 6 entries, has 1"),
        ("parameters", {"power": "x"}, "power of KNN must be"),
        ("parameters", [], "'parameters' must be an object"),
        ("state", {"n_neighbors": 10**12}, "'n_neighbors' must be 1 to 40"),
        ("seconds", {"fit": "long"}, "'fit' must be a number"),
        ("method", ["knn"], "unknown method"),
    ]:
        (tmp_path / "config.json").write_bytes(sealed(config | {name: value}))
        with pytest.raises(ModelFormatError, match=said):
            load_model(tmp_path)


def test_a_tagger_whose_parts_do_not_fit_is_refused(tmp_path: Path) -> None:
    texts = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]
    tagger = TextTagger().fit(texts, [["ocean"], ["ocean"], ["food"], ["food"]])
    known = tagger._points
    assert known is not None
    known.titles._stored = 3
    tagger.save(tmp_path)
    with pytest.raises(ModelFormatError, match="'tagger.titles_ends' must be 4 long, is 3 long"):
        TextTagger.load(tmp_path)
    known.titles._stored = 4
    known.names._strings[1] = known.names[0]
    tagger.save(tmp_path)
    with pytest.raises(ModelFormatError, match="must name nothing twice"):
        TextTagger.load(tmp_path)


def test_pages_that_are_given_back_can_be_read_again(tmp_path: Path) -> None:
    values = np.arange(1 << 20, dtype=np.float32)
    write_folder(tmp_path / "m", {"method": "none"}, {"a": values})
    _, arrays = read_folder(tmp_path / "m")
    before = arrays.floats("a", None)
    arrays.release()
    assert np.array_equal(before, values) and np.array_equal(arrays.floats("a", None), values)
    Arrays({"a": values}).release()  # nothing to give back
