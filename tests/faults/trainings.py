"""``dxml train``, where a model of something else is; most store what is done, and go on from it.

Steps that take less than seconds, and states that are younger than minutes, would not be stored;
here all are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from .scenario import Scenario, command
from .taggers import TEXTS, labels_of, one_tagger, ranked

ENCODER = "encoders/tiny"
PIECES = ("--set", "n_trees=3", "--set", "C=1")
STATES = ("--set", "dim=4", "--set", "epochs=3")
STEPS = ("--set", "candidates=nearest", "--set", "width=0")


def _texts(folder: Path) -> None:
    one_tagger(folder)
    rows = zip(TEXTS, labels_of(1), strict=True)
    lines = (json.dumps({"text": text, "labels": labels}) for text, labels in rows)
    (folder / "texts.jsonl").write_text("\n".join(lines))


def _train(folder: Path, *options: object) -> None:
    command(
        *("train", folder / "texts.jsonl", "--text", "text", "--labels", "labels"),
        *("--model", folder / "model", "--quiet", *options),
    )


def _points(folder: Path) -> None:
    from dxml.data import make_planted, write
    from dxml.joint import Joint

    old, new = (
        make_planted(80, 30, 6, labels_per_point=2, features_per_point=8, random_state=seed)
        for seed in (0, 1)
    )
    Joint(width=0).fit(old.X, old.Y).save(folder / "model")
    write(new, folder / "new.txt")


def _train_by_stages(folder: Path) -> None:
    """Linear heads and label trees: each result is stored."""
    from dxml._core import stages

    words = ("train", folder / "new.txt", "--model", folder / "model", "--resume", "--quiet")
    with patch.object(stages, "LEAST", 0.0):
        command(*words, *STEPS)


def _train_baseline(*words: str) -> Callable[[Path], None]:
    """Of small data, where each piece of the work and each state is stored."""

    def act(folder: Path) -> None:
        from dxml._core import stages

        with patch.object(stages, "LEAST", 0.0):
            command(
                *("train", folder / "new.txt", "--model", folder / "model", "--resume", "--quiet"),
                *("--method", *words),
            )

    return act


def _arrays(folder: Path) -> dict[str, Any]:
    """All arrays of a model, bit by bit."""
    from dxml.methods import load_model

    digest = hashlib.sha256()
    for name, array in sorted(load_model(folder / "model")._packed()[1].items()):
        digest.update(name.encode() + array.tobytes())
    return {"model": digest.hexdigest()}


def _texts_and_encoder(folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    from .._deep.planting import make_tokenizer

    _texts(folder)
    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder / ENCODER)
    tokenizer.save(str(folder / ENCODER / "tokenizer.json"))


def _train_encoder(folder: Path) -> None:
    """A text encoder: its state is stored after every step."""
    from dxml.joint import _model
    from dxml.joint.parts import _deep

    small = replace(_deep.SETTINGS, epochs=1, width=16, batch_size=64)
    with patch.object(_model, "KEPT_EVERY", 0.0), patch.object(_deep, "SETTINGS", small):
        _train(folder, "--encoder", folder / ENCODER, "--device", "cpu", "--resume")


TRAININGS: dict[str, Scenario] = {
    "train": Scenario(_texts, _train, ranked),
    "stages": Scenario(_points, _train_by_stages, _arrays),
    "pieces": Scenario(_points, _train_baseline("fastxml", *PIECES), _arrays),
    "states": Scenario(_points, _train_baseline("wsabie", *STATES), _arrays),
    "encoder": Scenario(_texts_and_encoder, _train_encoder, ranked),
}
