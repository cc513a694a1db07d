"""Batches of a recorded encoder; what a GPU records is tested in test_gpu.py."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from dxml._deep import Pretrained
from dxml._deep.batches import PlacedTokens
from dxml._deep.encoder import TextEncoder
from dxml._deep.recorded import WORTH, RecordedEncoder

from .planting import CPU, plant


@pytest.fixture
def encoder(pretrained: Pretrained) -> TextEncoder:
    return TextEncoder(deepcopy(pretrained.transformer), 16, 0.0).eval()


@pytest.fixture
def texts(pretrained: Pretrained) -> PlacedTokens:
    return PlacedTokens(plant(pretrained, 20, 0).tokens, pretrained.reader.pad, 32, CPU)


@pytest.fixture
def recorded(encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> RecordedEncoder:
    """It believes that it can record; a recording is the module itself."""

    def keep(self: Any, key: tuple[str, int], ids: torch.Tensor, real: torch.Tensor) -> None:
        self._recorded[key] = self._plain[key[0]]

    monkeypatch.setattr(RecordedEncoder, "_record", keep)
    made = RecordedEncoder(encoder, 8)
    assert not made.on  # on a CPU there is nothing to gain
    made.on = True
    return made


def test_a_length_is_recorded_when_it_comes_again(
    recorded: RecordedEncoder, encoder: TextEncoder, texts: PlacedTokens
) -> None:
    batch = texts.batch(np.arange(8))
    for _ in range(WORTH - 1):
        recorded(*batch)
    recorded.record()
    assert recorded.lengths == []
    recorded(*batch)
    recorded.record()
    hidden, embedded = recorded(*batch)
    assert recorded.lengths == [("texts", batch[0].shape[1])]
    expected = encoder(*batch)
    assert torch.equal(hidden, expected[0])
    assert torch.equal(embedded, expected[1])


def test_batches_that_are_not_full_are_not_recorded(
    recorded: RecordedEncoder, encoder: TextEncoder, texts: PlacedTokens
) -> None:
    batch = texts.batch(np.arange(5))
    for _ in range(WORTH + 1):
        assert torch.equal(recorded(*batch)[0], encoder(*batch)[0])
    recorded.record()
    assert recorded.lengths == []


@pytest.mark.parametrize("n", [3, 8])
def test_few_names_are_filled_up_and_the_filling_is_cut_off(
    recorded: RecordedEncoder, encoder: TextEncoder, texts: PlacedTokens, n: int
) -> None:
    batch = texts.batch(np.arange(n))
    for _ in range(WORTH):
        recorded.embed(*batch)
    recorded.record()
    found = recorded.embed(*batch)
    assert recorded.lengths == [("names", batch[0].shape[1])]
    assert torch.allclose(found, encoder.embed(*batch), atol=1e-6)


def test_nothing_is_recorded_after_a_stop(recorded: RecordedEncoder, texts: PlacedTokens) -> None:
    batch = texts.batch(np.arange(8))
    for _ in range(WORTH):
        recorded(*batch)
    recorded.record()
    recorded.stop()
    for _ in range(WORTH):
        recorded(*batch)
        recorded.embed(*batch)
    recorded.record()
    assert recorded.lengths == []
