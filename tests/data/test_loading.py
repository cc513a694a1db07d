"""Finding data sets by name, and the parts of their splits."""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dxml.data import REGISTRY, DatasetInfo, cache_directory, load_dataset, open_data
from dxml.exceptions import DataFormatError, DatasetNotFoundError, ParameterError

DATA = "4 3 2\n0 0:1\n1 1:2\n0,1 2:3\n 0:4\n"


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two small data sets, `cut` by split files and `parted` in two files."""
    shape = {"n_features": 3, "n_labels": 2, "labels_per_point": 1.0, "features_per_point": 1.0}
    base = DatasetInfo("cut", 3, 1, n_splits=2, files=("d.txt", "tr.txt", "ts.txt"), sources=(),
                       note="Made up.", propensity=(0.6, 2.6), **shape)  # fmt: skip
    parted = replace(base, name="parted", n_train=4, n_test=2, n_splits=1)
    sources = REGISTRY["bibtex"].sources
    parted = replace(parted, files=("train.txt", "test.txt"), sources=sources)
    monkeypatch.setitem(REGISTRY, "cut", base)
    monkeypatch.setitem(REGISTRY, "parted", parted)
    monkeypatch.delenv("DXML_DATA", raising=False)
    monkeypatch.setenv("DXML_CACHE", str(tmp_path / "cache"))
    for name in ("cut", "parted"):
        (tmp_path / name).mkdir()
    (tmp_path / "cut" / "d.txt.xz").write_bytes(lzma.compress(DATA.encode()))
    (tmp_path / "cut" / "tr.txt").write_text("1 4\n2 3\n3 2\n")
    (tmp_path / "cut" / "ts.txt").write_text("4 1\n")
    (tmp_path / "parted" / "train.txt").write_text(DATA)
    (tmp_path / "parted" / "test.txt").write_text("2 3 2\n1 0:5\n0 2:6\n")
    return tmp_path


def first_values(name: str, data_dir: Path, **options: object) -> list[float]:
    dataset = load_dataset(name, data_dir=data_dir, **options)  # type: ignore[arg-type]
    assert (dataset.name, dataset.propensity) == (name, (0.6, 2.6))
    return np.asarray(dataset.X.sum(axis=1)).ravel().tolist()


def test_parts_of_a_data_set_with_split_files(data_dir: Path) -> None:
    assert first_values("cut", data_dir) == [1, 2, 3]
    assert first_values("cut", data_dir, part="test") == [4]
    assert first_values("cut", data_dir, split=2) == [4, 3, 2]
    assert first_values("cut", data_dir, part="test", split=2) == [1]
    assert first_values("cut", data_dir, part="all") == [1, 2, 3, 4]


def test_parts_of_a_data_set_with_one_official_split(data_dir: Path) -> None:
    assert first_values("parted", data_dir) == [1, 2, 3, 4]
    assert first_values("parted", data_dir, part="test", split=1) == [5, 6]
    assert first_values("parted", data_dir, part="all") == [1, 2, 3, 4, 5, 6]


def test_the_environment_names_the_data_and_the_cache(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DXML_DATA", str(data_dir))
    assert load_dataset("CUT").n_samples == 3
    monkeypatch.setenv("DXML_DATA", str(data_dir / "elsewhere"))
    monkeypatch.setenv("DXML_CACHE", str(data_dir))
    assert load_dataset("cut").n_samples == 3


def test_the_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DXML_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("DXML_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "dxml"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "dxml"


def test_a_data_set_that_is_not_here(data_dir: Path) -> None:
    (data_dir / "cut" / "ts.txt").unlink()
    message = (
        r"data set 'cut' is not here: looked for d.txt, tr.txt, ts.txt .* It cannot be fetched: "
        r"place the files there yourself; or set DXML_DATA .* holds it\. Made up\."
    )
    with pytest.raises(DatasetNotFoundError, match=message):
        load_dataset("cut", data_dir=data_dir)
    message = r"in .*cache/parted. `dxml data get parted` would fetch it; or set DXML_DATA"
    with pytest.raises(DatasetNotFoundError, match=message):
        load_dataset("parted")


def test_splits_and_parts_that_do_not_exist(data_dir: Path) -> None:
    with pytest.raises(ParameterError, match=r"no split 3 of 'cut': it has splits 1..2"):
        load_dataset("cut", split=3)
    with pytest.raises(ParameterError, match=r"no split 2 of 'parted': it has one official split"):
        load_dataset("parted", split=2)
    with pytest.raises(ParameterError, match=r"unknown part 'tset'; did you mean 'test'"):
        load_dataset("cut", part="tset")  # type: ignore[arg-type]


def test_shapes_are_checked(data_dir: Path) -> None:
    (data_dir / "parted" / "test.txt").write_text("1 3 2\n1 0:5\n")
    message = "should have 2 points, 3 features and 2 labels, found 1, 3 and 2. It is another"
    with pytest.raises(DataFormatError, match=message):
        load_dataset("parted", "test", data_dir=data_dir)
    (data_dir / "cut" / "tr.txt").write_text("1 1\n2 2\n")
    message = "tr.txt: the train part of 'cut' should have 3 rows, found 2"
    with pytest.raises(DataFormatError, match=message):
        load_dataset("cut", data_dir=data_dir)
    (data_dir / "cut" / "tr.txt").write_text("1\n2\n5\n")
    with pytest.raises(DataFormatError, match=r"line 3: row 5 is outside 1..4 of the data"):
        load_dataset("cut", data_dir=data_dir)


def test_open_data_takes_a_file_or_a_name(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_data("cut", "test", data_dir=data_dir).n_samples == 1
    assert open_data(str(data_dir / "parted" / "train.txt")).n_samples == 4
    (data_dir / "cut2").write_text(DATA)
    monkeypatch.chdir(data_dir)
    assert open_data("cut2", format="repository").n_samples == 4
    assert open_data("cut", data_dir=data_dir).n_samples == 3  # a folder without X.npz is no file
    with pytest.raises(ParameterError, match=r"train.txt is a file, which has no split 2"):
        open_data(data_dir / "parted" / "train.txt", split=2)
    with pytest.raises(DataFormatError, match=r"nowhere.txt: there is no such file"):
        open_data("nowhere.txt")
    with pytest.raises(DatasetNotFoundError, match=r"unknown data set 'cit'; did you mean 'cut'"):
        open_data("cit")


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "label_free", "unseen_labels"),
    [
        ("bibtex", 0, 0),
        ("delicious", 14, 0),
        ("mediamill", 1730, 0),
        ("eurlex-4k", 34, 37),
        ("pubmed-mesh", 0, 0),
        ("tibkat-gnd", 266, 0),
    ],
)
def test_real_data_has_the_known_statistics(name: str, label_free: int, unseen_labels: int) -> None:
    info = REGISTRY[name]
    found = load_dataset(name, "all").describe()
    assert (found["points"], found["features"]) == (info.n_samples, info.n_features)
    assert found["labels"] == info.n_labels
    assert found["points without labels"] == label_free
    assert found["labels without points"] == unseen_labels
    assert found["labels a point"] == pytest.approx(info.labels_per_point, abs=0.01)
    assert found["features a point"] == pytest.approx(info.features_per_point, rel=0.01)


@pytest.mark.real
@pytest.mark.parametrize("name", ["bibtex", "delicious", "mediamill"])
def test_real_splits_cover_every_point_once(name: str) -> None:
    info = REGISTRY[name]
    train, test = load_dataset(name, "train", split=10), load_dataset(name, "test", split=10)
    assert (train.n_samples, test.n_samples) == (info.n_train, info.n_test)
    whole = load_dataset(name, "all")
    assert train.X.nnz + test.X.nnz == whole.X.nnz
    assert train.Y.nnz + test.Y.nnz == whole.Y.nnz


@pytest.mark.real
def test_real_eurlex_has_labels_without_training_points() -> None:
    found = load_dataset("eurlex-4k").describe()
    assert (found["labels without points"], found["points without labels"]) == (207, 28)
    assert load_dataset("eurlex-4k", "test").describe()["points without labels"] == 6
