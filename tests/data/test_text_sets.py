"""Registered data sets of texts: the recipe, the built matrices in the cache, the raw texts."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

from dxml.data import REGISTRY, _built, load_dataset, load_texts
from dxml.exceptions import DataFormatError, ParameterError
from dxml.progress import StageTimer

# id, title, abstract, labels and their names
ARTICLES = [
    (11, "Fish soup", "Of fish.", ["D3", "D1"], ["Food", "Animals"]),
    (15, "Soup stars", "", ["D9", "D1"], ["Stars", "Animals"]),
    (21, "[Fish.] Soup", "", ["D2"], ["Sea"]),
    (10, "", "", [], []),
    (12, "", "", [], []),
]
TRAIN = [("a1", "Fish soup\nIs food.\n", ["gnd:1", "gnd:22-X"]), ("a2", "Fish\n", ["gnd:4"])]
TEST = [("b1", "Soup of fish\n", ["gnd:22-X", "gnd:77"])]
NAMES = "".join(
    f"https://example.org/gnd/{id}\t{name}\n"
    for id, name in (("1", "Fish"), ("22-X", "Food"), ("4", "Food"), ("77", "Stars"))
)


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data sets of one file (`articles`) and of three (`books`); both folders, and the cache."""
    one, three = REGISTRY["pubmed-mesh"], REGISTRY["tibkat-gnd"]
    assert one.recipe and three.recipe
    shape = {"n_train": 3, "n_test": 2, "n_features": 2, "n_labels": 3}
    articles = replace(one, name="articles", files=("a.jsonl",), **shape)
    shape = {"n_train": 2, "n_test": 1, "n_features": 1, "n_labels": 3}
    recipe = replace(three.recipe, min_df=2)
    books = replace(three, name="books", recipe=recipe, **shape)
    for info in (articles, books):
        monkeypatch.setitem(REGISTRY, info.name, info)
        (tmp_path / info.name).mkdir()
    fields = ("pmid", "title", "abstract", "labels", "label_names")
    records = [dict(zip(fields, article, strict=True)) for article in ARTICLES]
    write_lines(tmp_path / "articles" / "a.jsonl.xz", records)
    for name, rows in (("train", TRAIN), ("dev", TEST)):
        records = [{"id": id, "text": text, "labels": labels} for id, text, labels in rows]
        write_lines(tmp_path / "books" / f"all-subjects_{name}.jsonl.xz", records)
    (tmp_path / "books" / "gnd-core-en.tsv").write_text(NAMES)
    monkeypatch.setenv("DXML_DATA", str(tmp_path))
    monkeypatch.setenv("DXML_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write_lines(path: Path, records: list[dict[str, object]]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(lzma.compress(text.encode()))


def test_the_recipe_by_hand(data_dir: Path) -> None:
    train, test = load_dataset("articles"), load_dataset("articles", "test")
    assert train.feature_names == test.feature_names == ("fish", "soup")
    twice = 1 + log(2)
    length = sqrt(twice**2 + 1)
    expected = [[twice / length, 1 / length], [1 / sqrt(2), 1 / sqrt(2)], [0, 0]]
    np.testing.assert_allclose(train.X.toarray(), expected, rtol=1e-6)
    assert test.X.toarray().tolist() == [[0, 1], [0, 0]]


def test_labels_of_train_only_by_name(data_dir: Path) -> None:
    train, test = load_dataset("articles"), load_dataset("articles", "test")
    assert train.label_names == test.label_names == ("Animals", "Sea", "Food")  # by their ids
    assert train.Y.toarray().astype(int).tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert test.Y.toarray().astype(int).tolist() == [[1, 0, 0], [0, 0, 0]]
    whole = load_dataset("articles", "all")
    assert whole.Y.toarray().tolist() == [*train.Y.toarray().tolist(), *test.Y.toarray().tolist()]
    assert (whole.name, whole.n_samples) == ("articles", 5)


def test_names_out_of_a_file(data_dir: Path) -> None:
    train, test = load_dataset("books"), load_dataset("books", "test")
    assert train.label_names == ("Fish", "Food (gnd:22-X)", "Food (gnd:4)")
    assert train.feature_names == ("fish",)
    assert test.Y.toarray().tolist() == [[False, True, False]]
    (data_dir / "books" / "gnd-core-en.tsv").write_text("https://example.org/gnd/4\tFood\n")
    assert load_dataset("books").label_names == ("gnd:1", "gnd:22-X", "Food")


def test_texts_stand_beside_the_points(data_dir: Path) -> None:
    table = load_texts("articles")
    assert table.ids == ("11", "21", "12")
    assert table.texts == ("Fish soup\nOf fish.", "[Fish.] Soup", "")
    assert table.titles == ("Fish soup", "[Fish.] Soup", "")
    assert table.labels == (("Animals", "Food"), ("Sea",), ())
    assert load_texts("articles", "test").labels == (("Animals",), ())
    assert load_texts("articles", "all").ids == ("11", "21", "12", "15", "10")
    assert load_texts("books", "test", data_dir=data_dir).labels == (("Food (gnd:22-X)",),)
    message = "'eurlex-4k' holds features, no texts. Use one of pubmed-mesh, tibkat-gnd, articles"
    with pytest.raises(ParameterError, match=message):
        load_texts("eurlex-4k")


def stages(name: str) -> list[str]:
    """What loading takes: reading and counting, or nothing where it is built already."""
    timer = StageTimer()
    assert load_dataset(name, progress=timer).n_samples == REGISTRY[name].n_train
    return list(timer.seconds)


BUILDING = ["read a.jsonl.xz", "count words"]


def test_built_once(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stages("articles") == BUILDING
    first = load_dataset("articles")
    assert stages("articles") == []
    assert len(list((data_dir / "cache" / "built").iterdir())) == 1
    again = load_dataset("articles")
    assert (first.X != again.X).nnz == (first.Y != again.Y).nnz == 0
    assert (first.label_names, first.feature_names) == (again.label_names, again.feature_names)
    monkeypatch.setattr(_built, "VERSION", _built.VERSION + 1)
    assert stages("articles") == BUILDING
    write_lines(data_dir / "articles" / "a.jsonl.xz", [])
    with pytest.raises(DataFormatError, match="archive holds an empty file"):
        load_dataset("articles")


def damage(folder: Path, how: str) -> None:
    arrays = next(folder.glob("*.safetensors"))
    content = bytearray(arrays.read_bytes())
    if how == "a flipped bit":
        content[-3] ^= 4
        arrays.write_bytes(content)
    elif how == "cut short":
        arrays.write_bytes(content[:-3])
    elif how == "no arrays":
        arrays.unlink()
    else:
        (folder / "config.json").write_text("{}")


@pytest.mark.parametrize("how", ["a flipped bit", "cut short", "no arrays", "no config"])
def test_a_damaged_cache_is_built_again(data_dir: Path, how: str) -> None:
    first = load_dataset("articles")
    (folder,) = (data_dir / "cache" / "built").iterdir()
    damage(folder, how)
    assert stages("articles") == BUILDING
    assert stages("articles") == []
    assert (load_dataset("articles").X != first.X).nnz == 0


def test_a_cache_that_cannot_be_written(data_dir: Path) -> None:
    (data_dir / "cache").write_text("a file")
    assert stages("articles") == stages("articles") == BUILDING


def test_the_shape_is_checked(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "articles", replace(REGISTRY["articles"], n_features=9))
    message = "a.jsonl.xz: 'articles' should have 3 points, 9 features and 3 labels, found 3, 2"
    with pytest.raises(DataFormatError, match=message):
        load_dataset("articles")


def test_ids_that_are_no_numbers(data_dir: Path) -> None:
    record = {"pmid": "x7", "title": "Fish", "abstract": "", "labels": [], "label_names": []}
    write_lines(data_dir / "articles" / "a.jsonl.xz", [record])
    message = r"a.jsonl.xz: expected ids that are whole numbers, found 'x7'. It is another version"
    with pytest.raises(DataFormatError, match=message):
        load_dataset("articles")


@pytest.mark.real
def test_real_pubmed() -> None:
    train, test = load_dataset("pubmed-mesh"), load_dataset("pubmed-mesh", "test")
    assert (train.X.shape, train.Y.shape) == ((23_997, 26_200), (23_997, 10_433))
    assert (test.X.shape, test.Y.shape) == ((6_001, 26_200), (6_001, 10_433))
    assert (train.label_names or ())[:2] == ("Calcimycin", "Abattoirs")
    table = load_texts("pubmed-mesh", "test")
    assert len(table) == test.n_samples
    assert {int(id) % 5 for id in table.ids or ()} == {0}
    assert sum(map(len, table.labels or ())) == test.Y.nnz


@pytest.mark.real
def test_real_tibkat() -> None:
    train, test = load_dataset("tibkat-gnd"), load_dataset("tibkat-gnd", "test")
    assert (train.X.shape, train.Y.shape) == ((81_937, 126_842), (81_937, 33_318))
    assert (test.X.shape, test.Y.shape) == ((13_666, 126_842), (13_666, 33_318))
    names = train.label_names or ()
    assert len(set(names)) == len(names)
    assert sum(name.startswith("gnd:") for name in names) == 17_927
    table = load_texts("tibkat-gnd", "test")
    assert (table.ids or ())[0] == "3A1762285517"
