from __future__ import annotations

import numpy as np

from dxml._deep import Pretrained
from dxml._deep.cost import training_seconds
from dxml._deep.features import frozen_features, static_features

from .planting import CPU, TINY, plant


def test_frozen_features_are_means_of_the_last_layer(pretrained: Pretrained) -> None:
    tokens = pretrained.reader.read(["the heart of a storm", "ship"])
    found = frozen_features(pretrained, tokens, CPU)
    alone = frozen_features(pretrained, tokens.take(np.array([1])), CPU)
    assert found.shape == (2, 32) and np.allclose(found[1], alone[0], atol=1e-6)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_static_features_know_words_but_not_their_order(pretrained: Pretrained) -> None:
    read = pretrained.reader.read
    found = static_features(pretrained, read(["heart lung", "lung heart", "ship sail"]))
    assert np.allclose(found[0], found[1], atol=1e-6)
    assert found[0] @ found[2] < 0.9
    table = pretrained.transformer.get_input_embeddings().weight.detach().numpy()  # type: ignore
    ids = read(["ship sail"]).ids
    by_hand = (table - table.mean(axis=0))[ids].sum(axis=0)
    assert np.allclose(found[2], by_hand / np.linalg.norm(by_hand), atol=1e-5)


def test_cost_grows_with_texts_and_epochs_and_changes_nothing(pretrained: Pretrained) -> None:
    train = plant(pretrained, 64, 0)
    before = {name: value.clone() for name, value in pretrained.transformer.state_dict().items()}
    seconds = training_seconds(train.tokens, train.Y, TINY, pretrained, CPU)
    assert seconds > 0
    for name, value in pretrained.transformer.state_dict().items():
        assert value.equal(before[name])
