"""Vectors of texts without any training: static, and of an encoder as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from transformers import AutoModel, AutoTokenizer

from dxml._core.arrays import Arrays
from dxml._deep import static_vectors as module
from dxml._deep.frozen_vectors import FrozenVectors
from dxml._deep.static_vectors import StaticVectors, find_static
from dxml._deep.vectors import TextVectors, find_vectors
from dxml.exceptions import ModelFormatError, ParameterError

from .planting import make_tokenizer


@pytest.fixture
def folder(static_folder: Path) -> Path:
    return static_folder


def table_of(folder: Path) -> np.ndarray:
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")["embeddings"].astype(np.float32)


def test_a_text_is_the_mean_of_its_tokens(folder: Path) -> None:
    found = find_static(str(folder), 32)
    assert found is not None and found.size == 24
    table, ids = table_of(folder), make_tokenizer().get_vocab()
    rows = found.rows(["heart lung", "lung heart", "ship ship sail", ""], "cpu")
    assert np.allclose(rows[0], (table[ids["heart"]] + table[ids["lung"]]) / 2, atol=1e-6)
    assert np.array_equal(rows[0], rows[1])
    assert np.allclose(rows[2], (2 * table[ids["ship"]] + table[ids["sail"]]) / 3, atol=1e-6)
    assert not rows[3].any()


def test_only_so_many_tokens_are_read(folder: Path) -> None:
    found = find_static(str(folder), 4)
    assert found is not None
    rows = found.rows(["ship sail wave heart", "ship sail wave heart lung lung"], "cpu")
    assert np.array_equal(rows[0], rows[1])


def test_a_package_is_found_by_its_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As wordllama has them: in two folders, under names of its own."""

    class File(type(Path())):  # type: ignore[misc]
        def locate(self) -> Path:
            return Path(self)

    class Distribution:
        files = (tmp_path / "code.py", tmp_path / "w.safetensors", tmp_path / "tokenizer_c.json")

    save_file({"embedding.weight": table_of(folder)}, tmp_path / "w.safetensors")
    (tmp_path / "tokenizer_c.json").write_text((folder / "tokenizer.json").read_text())
    Distribution.files = tuple(File(file) for file in Distribution.files)
    monkeypatch.setattr(module.metadata, "distribution", lambda name: Distribution)
    found, ours = find_static("wordllama", 32), find_static(str(folder), 32)
    assert found is not None and ours is not None
    assert np.array_equal(found.rows(["a ship"], "cpu"), ours.rows(["a ship"], "cpu"))


def test_what_is_no_static_table_is_left_to_others(encoder_folder: Path) -> None:
    assert find_static(str(encoder_folder), 32) is None
    assert find_static("no-package-of-this-name", 32) is None
    assert isinstance(find_vectors(str(encoder_folder), 32), FrozenVectors)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_word_vectors_that_are_no_numbers_are_refused(
    folder: Path, tmp_path: Path, bad: float
) -> None:
    table = table_of(folder)
    table[2, 1] = bad
    save_file({"embeddings": table}, tmp_path / "model.safetensors")
    shutil.copy(folder / "tokenizer.json", tmp_path)
    with pytest.raises(ParameterError, match="word vectors that are not all numbers up to 65504"):
        find_static(str(tmp_path), 16)


def test_vectors_without_a_tokenizer_that_fits(folder: Path, tmp_path: Path) -> None:
    save_file({"embeddings": table_of(folder)[:5]}, tmp_path / "model.safetensors")
    with pytest.raises(ParameterError, match=r"expected a tokenizer\.json beside these word"):
        find_static(str(tmp_path), 32)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ParameterError, match="with a token for each"):
        find_static(str(tmp_path), 32)
    (tmp_path / "tokenizer.json").write_text((folder / "tokenizer.json").read_text())
    with pytest.raises(ParameterError, match="with a token for each"):
        find_static(str(tmp_path), 32)


def test_frozen_vectors_are_means_of_the_last_layer(encoder_folder: Path) -> None:
    texts = ["the heart of a storm", "ship", " "]
    rows = find_vectors(str(encoder_folder), 32).rows(texts, "cpu")
    model = AutoModel.from_pretrained(encoder_folder).eval()
    read = AutoTokenizer.from_pretrained(encoder_folder)(texts[0], return_tensors="pt")
    with torch.no_grad():
        mean = model(**read)[0][0].mean(dim=0)
    assert np.allclose(rows[0], mean / mean.norm(), atol=2e-3)  # weights in 16 bits
    assert np.allclose(np.linalg.norm(rows[:2], axis=1), 1, atol=1e-5) and not rows[2].any()


@pytest.mark.parametrize("kind", ["static", "frozen"])
def test_rows_lie_around_the_centre_and_are_the_same_when_opened(
    kind: str, folder: Path, encoder_folder: Path
) -> None:
    source = find_vectors(str(folder if kind == "static" else encoder_folder), 32)
    texts = ["the heart of a storm", "ship and sail", "old notes on the eye", "bone"]
    found = TextVectors.fit(source, texts, "cpu")
    raw = source.rows(texts, "cpu")
    by_hand = raw - raw.mean(axis=0)
    by_hand /= np.linalg.norm(by_hand, axis=1, keepdims=True)
    assert np.allclose(found.rows, by_hand, atol=2e-3)
    assert not found.how.read([""], "cpu").rows.any()
    config, arrays = found.how.state("v")
    assert config == {"source": kind}
    again = TextVectors.restore(config, Arrays(arrays), "v")
    assert np.array_equal(again.read(texts, "cpu").rows, found.rows)


def test_damage_is_told(folder: Path) -> None:
    source = find_static(str(folder), 32)
    assert isinstance(source, StaticVectors)
    arrays = source.arrays("v")
    with pytest.raises(ModelFormatError, match="The model is damaged"):
        StaticVectors.from_arrays(Arrays({**arrays, "v.table": arrays["v.table"][:5]}), "v")
    with pytest.raises(ModelFormatError, match="vectors of the kind 'odd'"):
        TextVectors.restore({"source": "odd"}, Arrays(arrays), "v")
