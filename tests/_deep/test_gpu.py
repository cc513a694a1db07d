"""What only a GPU can show: `make test-gpu`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dxml._deep import DeepSettings, Keep, Pretrained, fit_deep
from dxml._deep.batches import PlacedTokens
from dxml._deep.encoder import TextEncoder
from dxml._deep.recorded import WORTH, RecordedEncoder
from dxml._deep.training import Trainer

from .planting import CPU, TINY, plant, precision_at_1

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda")
SHORT = replace(TINY, shortlist=True, random=4, own=2)


@contextmanager
def no_waiting() -> Iterator[None]:
    """Inside, whatever makes the host wait for the GPU is an error."""
    _debug("error")
    try:
        yield
    finally:
        _debug("default")


def _debug(mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the mode is a prototype
        torch.cuda.set_sync_debug_mode(mode)


@pytest.mark.parametrize("settings", [TINY, SHORT])
def test_a_step_never_waits_for_the_gpu(pretrained: Pretrained, settings: DeepSettings) -> None:
    train = plant(pretrained, 200, 0)
    names = pretrained.reader.read(train.names)
    trainer = Trainer(train.tokens, train.Y, settings, pretrained, 0, GPU, label_tokens=names)
    order = trainer.plan(0)
    for _ in range(WORTH + 1):  # the optimisers' state is made, every length recorded
        for batch in range(len(order)):
            trainer.step(order, batch, batch)
    with no_waiting():
        for batch in range(len(order)):
            trainer.step(order, batch, batch)
    assert trainer.mean_loss() > 0


def test_what_is_recorded_is_what_the_encoder_does(pretrained: Pretrained) -> None:
    encoder = TextEncoder(deepcopy(pretrained.transformer), 16, 0.0).to(GPU).train()
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    texts = PlacedTokens(plant(pretrained, 8, 0).tokens, pretrained.reader.pad, 32, GPU)
    recorded = RecordedEncoder(encoder, 8)
    first, second = np.arange(8), np.arange(8)[::-1].copy()

    def slopes(reading: Any, rows: Any) -> list[torch.Tensor]:
        encoder.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            hidden, embedded = reading(*texts.batch(rows))
            names = reading.embed(*texts.batch(rows[:5]))
        ((hidden.float() ** 2).sum() + (embedded[:5] * names).sum()).backward()
        return [
            hidden,
            names,
            *(p.grad.clone() for p in encoder.parameters() if p.grad is not None),
        ]

    for _ in range(WORTH):
        slopes(recorded, first)
    recorded.record()
    assert len(recorded.lengths) == 2
    for ours, theirs in zip(slopes(recorded, second), slopes(encoder, second), strict=True):
        assert torch.allclose(ours.float(), theirs.float(), rtol=0.05, atol=0.02)


def test_what_is_recorded_drops_others_each_time(pretrained: Pretrained) -> None:
    encoder = TextEncoder(deepcopy(pretrained.transformer), 16).to(GPU).train()
    texts = PlacedTokens(plant(pretrained, 8, 0).tokens, pretrained.reader.pad, 32, GPU)
    recorded = RecordedEncoder(encoder, 8)
    batch = texts.batch(np.arange(8))
    with torch.autocast("cuda", torch.bfloat16):
        for _ in range(WORTH):
            recorded(*batch)
    recorded.record()
    assert recorded.lengths
    with torch.autocast("cuda", torch.bfloat16):
        first, second = recorded(*batch)[0].clone(), recorded(*batch)[0].clone()
    assert not torch.equal(first, second)  # drops others each time


@pytest.mark.parametrize("settings", [TINY, SHORT])
def test_a_gpu_learns_what_a_cpu_learns(pretrained: Pretrained, settings: DeepSettings) -> None:
    train, test = plant(pretrained, 400, 0), plant(pretrained, 100, 1)
    head = fit_deep(train.tokens, train.Y, settings, start=pretrained, device=GPU)
    there, here = head.all_scores(test.tokens, GPU), head.all_scores(test.tokens, CPU)
    assert precision_at_1(there, test.Y) > 0.95
    assert np.allclose(there, here, atol=0.05)


def test_a_run_is_resumed_on_a_gpu(pretrained: Pretrained, tmp_path: Path) -> None:
    train = plant(pretrained, 100, 0)
    keep = Keep(tmp_path, interval=0.0, resume=True)
    settings = replace(TINY, epochs=2)
    fit_deep(train.tokens, train.Y, settings, start=pretrained, device=GPU, keep=keep)
    for newest in sorted(tmp_path.glob("step-*"))[1:]:
        for file in newest.iterdir():
            file.unlink()
        newest.rmdir()
    head = fit_deep(train.tokens, train.Y, settings, start=pretrained, device=GPU, keep=keep)
    assert np.isfinite(head.all_scores(train.tokens, GPU)).all()


def test_little_memory_is_enough(pretrained: Pretrained) -> None:
    train = plant(pretrained, 64, 0)
    trainer = Trainer(train.tokens, train.Y, replace(TINY, epochs=1), pretrained, 0, GPU)
    forward = trainer.encoder.forward

    def greedy(ids: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if len(ids) > 8:  # really more than there is
            torch.empty(1 << 50, dtype=torch.uint8, device=GPU)
        return forward(ids, real)

    trainer.encoder.forward = greedy  # type: ignore[method-assign]
    trainer.run()
    assert trainer.parts == 2
