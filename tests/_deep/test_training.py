from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._deep import DeepHead, DeepSettings, Keep, Pretrained, fit_deep
from dxml._deep.cost import reading_seconds, training_seconds
from dxml._deep.resuming import remove_run, write_state
from dxml._deep.training import Trainer
from dxml.exceptions import DataFormatError, DxmlError, ParameterError

from .planting import CPU, TINY, plant, precision_at_1

SHORT = replace(TINY, shortlist=True, random=4, own=2, hard=2)
FEW = replace(TINY, epochs=3)


class Listening:
    """Hears every word, and stops the run after some advances."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.notes: list[str] = []
        self.totals: dict[str, float] = {}
        self.done = 0.0
        self._left = stop_after

    @contextmanager
    def stage(
        self, name: str, total: float | None = None, unit: str = "steps"
    ) -> Iterator[Listening]:
        self.totals[name] = total or 0
        yield self

    def advance(self, amount: float = 1) -> None:
        self.done += amount
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt

    def note(self, text: str) -> None:
        self.notes.append(text)


def same(first: DeepHead, second: DeepHead) -> bool:
    ours, theirs = first.arrays(), second.arrays()
    return ours.keys() == theirs.keys() and all(
        np.array_equal(ours[name], theirs[name]) for name in ours
    )


def test_planted_labels_are_found_in_new_texts(pretrained: Pretrained) -> None:
    train, test = plant(pretrained, 400, 0), plant(pretrained, 100, 1)
    head = fit_deep(train.tokens, train.Y, TINY, start=pretrained, device=CPU)
    assert precision_at_1(head.all_scores(test.tokens), test.Y) > 0.95


def test_shortlists_rank_like_all_labels(pretrained: Pretrained) -> None:
    train, test = plant(pretrained, 400, 0), plant(pretrained, 100, 1)
    full = fit_deep(train.tokens, train.Y, TINY, start=pretrained, device=CPU)
    short = fit_deep(train.tokens, train.Y, SHORT, start=pretrained, device=CPU)
    ours, theirs = short.all_scores(test.tokens), full.all_scores(test.tokens)
    assert precision_at_1(ours, test.Y) > 0.95
    own = test.Y.toarray()
    for scores in (ours, theirs):  # every label of a text before all others, nearly everywhere
        lowest = np.where(own, scores, np.inf).min(axis=1)
        highest = np.where(own, -np.inf, scores).max(axis=1)
        assert (lowest > highest).mean() > 0.9


def test_only_labels_on_a_shortlist_are_moved(pretrained: Pretrained) -> None:
    train = plant(pretrained, 16, 0)
    settings = replace(SHORT, random=0, own=0, epochs=1)
    trainer = Trainer(train.tokens, train.Y, settings, pretrained, 0, CPU)
    trainer.run()
    moved = trainer.head.weight.abs().sum(dim=1) > 0
    assert np.flatnonzero(moved.numpy()).tolist() == np.unique(train.Y.indices).tolist()


def test_the_seed_decides_everything(pretrained: Pretrained) -> None:
    train = plant(pretrained, 60, 0)
    before = torch.get_rng_state()
    settings = replace(FEW, dropout=0.3)
    heads = [
        fit_deep(train.tokens, train.Y, settings, start=pretrained, seed=seed, device=CPU)
        for seed in (3, 3, 4)
    ]
    assert same(heads[0], heads[1])
    assert not same(heads[0], heads[2])
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("shortlist", [False, True])
@pytest.mark.parametrize("stop_after", [2, 5, 9])  # within an epoch, after its end, in the last
def test_a_run_that_was_stopped_ends_in_the_same_bits(
    pretrained: Pretrained, tmp_path: Path, shortlist: bool, stop_after: int
) -> None:
    train = plant(pretrained, 60, 0)
    names = pretrained.reader.read(train.names)
    settings = replace(SHORT if shortlist else TINY, epochs=3, dropout=0.3)

    def fit(keep: Keep | None, progress: Listening) -> DeepHead:
        return fit_deep(
            train.tokens,
            train.Y,
            settings,
            start=pretrained,
            device=CPU,
            label_tokens=names,
            keep=keep,
            progress=progress,
        )

    whole = fit(None, Listening())
    keep = Keep(tmp_path, interval=0.0, resume=True)
    with pytest.raises(KeyboardInterrupt):
        fit(keep, Listening(stop_after))
    assert len(list(tmp_path.glob("step-*"))) == 2
    rest = Listening()
    assert same(fit(keep, rest), whole)
    assert rest.done - len(names) == rest.totals["text encoder"] == 180


def test_a_damaged_state_gives_way_to_the_one_before(
    pretrained: Pretrained, tmp_path: Path
) -> None:
    train = plant(pretrained, 60, 0)
    keep = Keep(tmp_path, interval=0.0, resume=True)
    how = {"start": pretrained, "device": CPU}
    with pytest.raises(KeyboardInterrupt):
        fit_deep(train.tokens, train.Y, FEW, keep=keep, progress=Listening(6), **how)
    newest = max(tmp_path.glob("step-*"))
    next(newest.glob("*.safetensors")).write_bytes(b"cut short")
    resumed = fit_deep(train.tokens, train.Y, FEW, keep=keep, **how)
    assert same(resumed, fit_deep(train.tokens, train.Y, FEW, **how))


def test_another_run_is_not_resumed(pretrained: Pretrained, tmp_path: Path) -> None:
    train, other = plant(pretrained, 60, 0), plant(pretrained, 60, 5)
    keep = Keep(tmp_path, interval=0.0, resume=True)
    how = {"start": pretrained, "device": CPU, "keep": keep}
    fit_deep(train.tokens, train.Y, FEW, **how)
    with pytest.raises(ParameterError, match="started with another settings .*another folder"):
        fit_deep(train.tokens, train.Y, replace(FEW, dropout=0.1), **how)
    with pytest.raises(ParameterError, match="started with another data "):
        fit_deep(other.tokens, other.Y, FEW, **how)
    with pytest.raises(ParameterError, match="started with another data "):
        names = pretrained.reader.read(train.names)
        fit_deep(train.tokens, train.Y, FEW, label_tokens=names, **how)


@pytest.mark.parametrize(("every", "times"), [(1, 12), (5, 3), (99, 1)])
def test_names_are_read_once_in_so_many_steps(
    pretrained: Pretrained, monkeypatch: pytest.MonkeyPatch, every: int, times: int
) -> None:
    train = plant(pretrained, 60, 0)
    settings = replace(FEW, name_every=every)
    names = pretrained.reader.read(train.names)
    trainer = Trainer(train.tokens, train.Y, settings, pretrained, 0, CPU, label_tokens=names)
    embed, read = trainer.encoder.embed, []
    monkeypatch.setattr(
        trainer.encoder, "embed", lambda *batch: read.append(len(batch[0])) or embed(*batch)
    )
    trainer.run()
    assert len(read) == times and 2 <= max(read) <= 16


def narrow_memory(trainer: Trainer, most: int) -> list[int]:
    """A device that can hold `most` texts; the sizes that were tried."""
    forward, tried = trainer.encoder.forward, []

    def limited(ids: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tried.append(len(ids))
        if len(ids) > most:
            raise torch.cuda.OutOfMemoryError("no memory")
        return forward(ids, real)

    trainer.encoder.forward = limited  # type: ignore[method-assign]
    return tried


@pytest.mark.parametrize("settings", [TINY, SHORT])
def test_out_of_memory_halves_the_batch_and_makes_the_same_update(
    pretrained: Pretrained, settings: DeepSettings, caplog: pytest.LogCaptureFixture
) -> None:
    train = plant(pretrained, 64, 0)
    settings = replace(settings, epochs=1)
    weights = []
    for most in (16, 5):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            trainer = Trainer(train.tokens, train.Y, settings, pretrained, 0, CPU)
        tried, heard = narrow_memory(trainer, most), Listening()
        with caplog.at_level(logging.WARNING):
            trainer.run(progress=heard)
        weights.append([each.detach() for each in trainer.encoder.parameters()])
        weights[-1].append(trainer.head.weight.detach())
    assert tried[:3] == [16, 8, 4] and set(tried[3:]) == {4}
    assert "out of GPU memory: batches in 4 pieces" in heard.notes[-1]
    assert "batches of 16 texts are now computed in 4 pieces" in caplog.text
    for ours, theirs in zip(*weights, strict=True):
        assert torch.allclose(ours, theirs, atol=2e-4)


@pytest.mark.parametrize("shortlist", [False, True])
def test_products_in_bfloat16_learn_the_same(pretrained: Pretrained, shortlist: bool) -> None:
    train = plant(pretrained, 64, 0)
    settings = replace(SHORT if shortlist else TINY, epochs=4, own=0)
    names, losses = pretrained.reader.read(train.names), []
    for fast in (False, True):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            trainer = Trainer(
                train.tokens, train.Y, settings, pretrained, 0, CPU, label_tokens=names
            )
        trainer.fast = fast  # as on a GPU
        heard = Listening()
        trainer.run(progress=heard)
        losses.append([float(note.split(",")[0].removeprefix("loss ")) for note in heard.notes])
        assert {each.dtype for each in trainer.encoder.parameters()} == {torch.float32}
        assert trainer.head.weight.dtype == torch.float32
    assert losses[0] != losses[1]
    assert np.allclose(losses[0], losses[1], rtol=0.05)


def test_too_little_memory_for_one_text_is_said(pretrained: Pretrained) -> None:
    train = plant(pretrained, 20, 0)
    trainer = Trainer(train.tokens, train.Y, FEW, pretrained, 0, CPU)
    narrow_memory(trainer, 0)
    with pytest.raises(DxmlError, match="does not suffice for a single text.*smaller encoder"):
        trainer.run()


def test_progress_tells_loss_and_time_left(pretrained: Pretrained) -> None:
    train, heard = plant(pretrained, 60, 0), Listening()
    settings = replace(TINY, epochs=4)
    fit_deep(train.tokens, train.Y, settings, start=pretrained, device=CPU, progress=heard)
    assert heard.done == heard.totals["text encoder"] == 240
    losses = [float(note.split(",")[0].removeprefix("loss ")) for note in heard.notes]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert heard.notes[-1].endswith(", 0 s left")


def test_training_goes_on_from_a_trained_head(pretrained: Pretrained) -> None:
    train = plant(pretrained, 200, 0, n_labels=8)
    first = fit_deep(train.tokens, train.Y, TINY, start=pretrained, device=CPU)
    settings = replace(TINY, epochs=1, encoder_rate=1e-9, head_rate=1e-9)
    wider = sp.csr_matrix((train.Y.data, train.Y.indices, train.Y.indptr), (200, 9))
    again = fit_deep(train.tokens, wider, settings, start=first, device=CPU)
    known, more = first.all_scores(train.tokens), again.all_scores(train.tokens)
    assert np.allclose(known, more[:, :8], atol=1e-2)
    assert np.allclose(more[:, 8], TINY.bias, atol=1e-2)  # nothing is known of it
    with pytest.raises(ParameterError, match="width of 64, the settings ask for 32"):
        fit_deep(train.tokens, wider, replace(TINY, width=32), start=first, device=CPU)


def test_settings_without_work_are_refused() -> None:
    with pytest.raises(ParameterError, match="epochs must be 1 or more, got 0"):
        DeepSettings(epochs=0)
    with pytest.raises(ParameterError, match="batch_size must be 1 or more, got -2"):
        DeepSettings(batch_size=-2)


def test_what_does_not_fit_together_is_refused(pretrained: Pretrained) -> None:
    train = plant(pretrained, 20, 0)
    how = {"start": pretrained, "device": CPU}
    with pytest.raises(DataFormatError, match="got 20 texts and 19 rows"):
        fit_deep(train.tokens, train.Y[:19], TINY, **how)
    names = pretrained.reader.read(["one"])
    with pytest.raises(DataFormatError, match="a name for each of 16 labels, got 1"):
        fit_deep(train.tokens, train.Y, TINY, label_tokens=names, **how)
    with pytest.raises(DataFormatError, match=r"negatives of shape \(20, 16\), got \(19, 16\)"):
        fit_deep(train.tokens, train.Y, TINY, negatives=train.Y[:19], **how)


def test_a_run_that_is_not_resumed_removes_the_states_of_an_older_one(
    pretrained: Pretrained, tmp_path: Path
) -> None:
    """Else the older ones, of higher steps, would push out the new."""
    train, how = plant(pretrained, 60, 0), {"start": pretrained, "device": CPU}
    fit_deep(train.tokens, train.Y, FEW, keep=Keep(tmp_path, interval=0.0), **how)
    keep = Keep(tmp_path, interval=0.0)
    with pytest.raises(KeyboardInterrupt):
        fit_deep(train.tokens, train.Y, FEW, seed=1, keep=keep, progress=Listening(3), **how)
    steps = sorted(int(path.name.removeprefix("step-")) for path in tmp_path.glob("step-*"))
    assert len(steps) == 2 and steps[-1] == 3
    resumed = fit_deep(train.tokens, train.Y, FEW, seed=1, keep=replace(keep, resume=True), **how)
    assert same(resumed, fit_deep(train.tokens, train.Y, FEW, seed=1, **how))


def test_states_that_the_disk_does_not_give_up_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_state(tmp_path / "deep", 7, {}, {"x": np.zeros(3)})

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "config.json")

    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(OSError, match="Input/output") as stop:
        remove_run(tmp_path)
    assert stop.value.filename == str(tmp_path / "deep" / "step-000000007")


def test_a_finished_run_is_taken_from_its_last_state(
    pretrained: Pretrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, how = plant(pretrained, 60, 0), {"start": pretrained, "device": CPU}
    keep = Keep(tmp_path, interval=1e9, resume=True)  # too short a run for a state on the way
    whole = fit_deep(train.tokens, train.Y, FEW, keep=keep, **how)
    monkeypatch.delattr(Trainer, "step")  # no step is made again
    rest = Listening()
    assert same(fit_deep(train.tokens, train.Y, FEW, keep=keep, progress=rest, **how), whole)
    assert rest.done == rest.totals["text encoder"] == 180


def test_a_run_of_another_encoder_is_not_resumed(pretrained: Pretrained, tmp_path: Path) -> None:
    train = plant(pretrained, 60, 0)
    how = {"device": CPU, "keep": Keep(tmp_path, interval=1e9, resume=True)}
    fit_deep(train.tokens, train.Y, FEW, start=pretrained, **how)
    other = replace(pretrained, transformer=deepcopy(pretrained.transformer))
    next(other.transformer.parameters()).data[0, 0] += 1
    with pytest.raises(ParameterError, match="started with another encoder "):
        fit_deep(train.tokens, train.Y, FEW, start=other, **how)


def test_cost_grows_with_texts_and_epochs_and_changes_nothing(pretrained: Pretrained) -> None:
    train = plant(pretrained, 64, 0)
    before = {name: value.clone() for name, value in pretrained.transformer.state_dict().items()}
    seconds = training_seconds(train.tokens, train.Y, TINY, pretrained, CPU)
    assert seconds > 0 and reading_seconds(train.tokens, pretrained, CPU) > 0
    for name, value in pretrained.transformer.state_dict().items():
        assert value.equal(before[name])
