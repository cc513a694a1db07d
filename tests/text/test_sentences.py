"""A sentence model beside tf-idf or instead of it; a stand-in with the same interface is used."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dxml.exceptions import ModelFormatError, ParameterError
from dxml.tagging._tagger import TextTagger
from dxml.text import TextFeatures
from dxml.text import _sentences as module

WIDTH = 16
MEANING = {"dog": "animal", "hound": "animal", "puppy": "animal", "cat": "pet"}
"""Words that mean the same: what tf-idf cannot know."""


class Model:
    """Each word has a direction by its meaning; a text is the sum of its words'."""

    calls: list[int]
    settings: dict[str, Any]

    def __init__(self, name: str, **settings: Any) -> None:
        Model.settings = settings
        if name == "missing":
            raise OSError("there is no such model\nand a long story")
        self.seed = zlib.crc32(Path(name).read_bytes()) if Path(name).is_file() else 0
        Model.calls = []

    def encode(
        self, texts: list[str], *, batch_size: int, normalize_embeddings: bool, **other: Any
    ) -> np.ndarray:
        assert normalize_embeddings and batch_size > 0 and other == {"show_progress_bar": False}
        Model.calls.append(len(texts))
        rows = np.array([self._one(text) for text in texts]).reshape(len(texts), WIDTH)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def _one(self, text: str) -> np.ndarray:
        total = np.full(WIDTH, 1e-3)
        for word in text.lower().split():
            key = zlib.crc32(MEANING.get(word, word).encode()) ^ self.seed
            total += np.random.default_rng(key).standard_normal(WIDTH)
        return total


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = SimpleNamespace(SentenceTransformer=Model, __version__="6.2.0")
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    module._open.cache_clear()
    yield
    module._open.cache_clear()


TEXTS = ["fish soup", "fish sea", "soup salt", "the dog", ""]


def test_words_and_sentences_are_half_of_a_row_each() -> None:
    plain = TextFeatures(min_df=1)
    both = TextFeatures(min_df=1, sentences="m")
    W, X = plain.fit_transform(TEXTS).toarray(), both.fit_transform(TEXTS).toarray()
    S = Model("m").encode(TEXTS, batch_size=1, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(X[:4], np.hstack([W, S])[:4] / np.sqrt(2), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(X[4], np.hstack([W, S])[4], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(both.transform(TEXTS).toarray(), X)
    assert both.feature_names == (*plain.feature_names, *(f"sentence:{i}" for i in range(WIDTH)))


def test_sentences_instead_of_words(heard: Any) -> None:
    alone = TextFeatures(sentences="m", tfidf=False)
    X = alone.fit_transform(TEXTS, progress=heard)
    assert X.shape == (5, WIDTH) and heard.stages[-1] == ("encode sentences", 5, "texts")
    np.testing.assert_allclose(np.linalg.norm(X.toarray(), axis=1), 1, rtol=1e-6)
    assert alone.words("a dog, a fish") == {"dog": 0.0, "fish": 0.0}
    back = TextFeatures.from_arrays(alone.get_params(), alone.arrays())
    np.testing.assert_array_equal(back.transform(TEXTS).toarray(), X.toarray())


def test_blocks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TextFeatures(sentences="m", tfidf=False).fit_transform(TEXTS).toarray()
    monkeypatch.setattr(module, "BLOCK", 2)
    blocks = TextFeatures(sentences="m", tfidf=False).fit_transform(TEXTS).toarray()
    np.testing.assert_array_equal(blocks, whole)
    assert Model.calls[-3:] == [2, 2, 1]


def test_mistakes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="tfidf=False leaves no features: name a model"):
        TextFeatures(tfidf=False).fit(TEXTS)
    with pytest.raises(ParameterError, match="char_ngrams are tf-idf too"):
        TextFeatures(tfidf=False, sentences="m", char_ngrams=3).fit(TEXTS)
    message = (
        r"the sentence model 'missing' cannot be opened \(there is no such model\). Give the folder"
    )
    with pytest.raises(ParameterError, match=message):
        TextFeatures(sentences="missing").fit(TEXTS)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ParameterError, match=r"'m' needs the package .*'dxml\[sentences\]'"):
        TextFeatures(sentences="m").fit(TEXTS)


def write_modules(folder: Path, *modules: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(list(modules)))
    return folder


OWN = {"type": "sentence_transformers.models.Transformer", "path": ""}


def test_nothing_is_trusted_that_comes_with_a_model(tmp_path: Path) -> None:
    folder = write_modules(tmp_path / "model", OWN, {**OWN, "path": "1_Pooling"})
    TextFeatures(sentences=str(folder), tfidf=False).fit(TEXTS)
    expected = {"trust_remote_code": False, "model_kwargs": {"use_safetensors": True}}
    assert Model.settings == {**expected, "local_files_only": True}
    TextFeatures(sentences="m", tfidf=False).fit(TEXTS)
    assert Model.settings == {**expected, "local_files_only": False}


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ([{"type": "evil.Module", "path": ""}], "type 'evil.Module' is not one of sentence-transf"),
        ([OWN, {"type": "sentence_transformers_evil.M", "path": ""}], "is not one of sentence-tr"),
        ([{"type": 3, "path": ""}], "the module type 3 is not one of"),
        ([{**OWN, "path": "../elsewhere"}], "the module '../elsewhere' lies outside"),
        ([{**OWN, "path": "/elsewhere"}], "the module '/elsewhere' lies outside"),
        ([{"type": "x"}], "expected a list of modules, each with type and path"),
        ([7], "expected a list of modules, each with type and path"),
    ],
)
def test_a_folder_that_would_run_code_is_not_opened(
    tmp_path: Path, modules: list[Any], said: str
) -> None:
    folder = write_modules(tmp_path / "model", *modules)
    Model.calls = []
    with pytest.raises(ParameterError, match=said):
        TextFeatures(sentences=str(folder), tfidf=False).fit(TEXTS)
    assert Model.calls == []


def test_weights_that_may_hold_code_are_not_read(tmp_path: Path) -> None:
    folder = write_modules(tmp_path / "model", OWN)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ParameterError, match="weights are only read from model.safetensors"):
        TextFeatures(sentences=str(folder), tfidf=False).fit(TEXTS)
    (folder / "model.safetensors").write_bytes(b"")
    assert TextFeatures(sentences=str(folder), tfidf=False).fit_transform(TEXTS).shape[0] == 5


def test_a_package_that_would_run_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    package = SimpleNamespace(SentenceTransformer=Model, __version__="5.4.1")
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    with pytest.raises(ParameterError, match="needs sentence-transformers 6 or newer, this is 5.4"):
        TextFeatures(sentences="m", tfidf=False).fit(TEXTS)


def test_a_saved_tagger_names_folders_by_their_whole_path(
    lessons: tuple[list[str], list[list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_modules(tmp_path / "model", OWN)
    tagger = TextTagger(device="cpu", sentences="model").fit(*lessons)
    saved = tagger.save(tmp_path / "m")
    assert tagger.get_params()["sentences"] == "model"
    assert TextTagger.load(saved).get_params()["sentences"] == str(tmp_path / "model")
    with pytest.raises(ModelFormatError, match="in the folder 'model', and a model may name fold"):
        TextFeatures.from_arrays(tagger.features.get_params(), tagger.features.arrays())


@pytest.fixture(scope="module")
def lessons() -> tuple[list[str], list[list[str]]]:
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for i in range(120):
        word, label = [("dog", "animals"), ("soup", "food"), ("salt", "food")][i % 3]
        texts.append(f"{word} {' '.join(rng.choice(['old', 'new', 'big', 'far'], 2))}")
        labels.append([label])
    return texts, labels


@pytest.mark.parametrize("tfidf", [True, False])
def test_a_tagger_knows_words_that_mean_the_same(
    lessons: tuple[list[str], list[list[str]]], tfidf: bool, tmp_path: Path
) -> None:
    tagger = TextTagger(device="cpu", sentences="m", tfidf=tfidf).fit(*lessons)
    [(name, probability)] = tagger.tag("hound puppy", top=1)
    assert name == "animals" and probability > 0.5, "no text of the training data has these words"
    before = len(Model.calls)
    [why] = tagger.explain("old hound, new soup", top=1, n_neighbours=1)
    assert max(Model.calls[before:]) <= 51
    strongest, effect = why.words[0]
    assert strongest == {"animals": "hound", "food": "soup"}[why.name] and effect > 0
    opened = TextTagger.load(tagger.save(tmp_path / "m"))
    assert opened.tag("hound puppy") == tagger.tag("hound puppy")
    assert opened.get_params()["sentences"] == "m"


def test_a_saved_tagger_needs_the_same_model(
    lessons: tuple[list[str], list[list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "weights"
    weights.write_text("one")
    tagger = TextTagger(device="cpu", sentences=str(weights)).fit(*lessons)
    tagger.save(tmp_path / "m")
    weights.write_text("two")
    module._open.cache_clear()
    with pytest.raises(ModelFormatError, match="another sentence model than '.*weights' is now"):
        TextTagger.load(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    module._open.cache_clear()
    with pytest.raises(ModelFormatError, match="that is needed again: .* needs the package"):
        TextTagger.load(tmp_path / "m")
