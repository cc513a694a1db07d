"""DXML whose f_x reads texts, on a tiny encoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dxml import load_model
from dxml._deep import open_pretrained
from dxml.exceptions import DataFormatError
from dxml.metrics import precision_at_k
from dxml.paper import DXML
from dxml.paper import _text_encoder as module
from dxml.paper._text_encoder import TextPointEncoder, TextRows, fit_text_encoder, read_texts
from dxml.text import TextFeatures

from .._deep.planting import TINY, Planted, plant

QUICK: dict[str, Any] = {
    "dim": 16,
    "hidden": 32,
    "label_vectors": "random",
    "n_partitions": 1,
    "n_neighbors": 5,
    "dropout": 0.0,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny encoder without pretraining needs larger steps."""
    monkeypatch.setattr(module, "SETTINGS", replace(TINY, epochs=10))


@pytest.fixture(scope="module")
def planted(encoder_folder: Path) -> tuple[Planted, Planted]:
    pretrained = open_pretrained(encoder_folder, 32)
    return plant(pretrained, 300, 0), plant(pretrained, 60, 1)


def test_points_come_near_their_targets(encoder_folder: Path, planted: Any) -> None:
    rows = read_texts(str(encoder_folder), planted[0].texts)
    targets = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    goal = np.stack([targets[row.indices[0]] for row in planted[0].Y])
    assert rows.start is not None
    before = {name: value.clone() for name, value in rows.start.transformer.state_dict().items()}
    found, history = fit_text_encoder(rows, goal, hidden=32, dropout=0.0)
    points = found.embed(rows)
    assert np.allclose(np.linalg.norm(points, axis=1), 1, atol=1e-5)
    assert len(history) == 10 and history[-1] < 0.7 * history[0]
    assert np.einsum("ij,ij->i", points, goal).mean() > 0.4  # 0 by chance
    for name, value in rows.start.transformer.state_dict().items():
        assert value.equal(before[name]), "what training starts from stays"
    again, _ = fit_text_encoder(rows, goal, hidden=32, dropout=0.0)
    assert np.allclose(again.embed(rows), points, atol=1e-4), "a seed repeats"


def test_rows_are_picked_by_mask_and_by_number(encoder_folder: Path) -> None:
    rows = read_texts(str(encoder_folder), ["heart", "ship sail", "eye"])
    mask, numbers = np.array([False, True, True]), np.array([1, 2])
    assert rows.shape == (3,) and rows[mask].shape == (2,)
    assert np.array_equal(rows[mask].tokens.ids, rows[numbers].tokens.ids)


def test_dxml_with_an_encoder_finds_planted_labels(
    encoder_folder: Path, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    train, test = planted
    features = TextFeatures()
    X, Xt = features.fit_transform(train.texts), features.transform(test.texts)
    model = DXML(encoder=str(encoder_folder), **QUICK).fit(X, train.Y, texts=train.texts)
    assert isinstance(model.encoder_, TextPointEncoder) and len(model.history_) == 10
    ranking = model.predict_topk(Xt, 3, texts=test.texts)
    assert precision_at_k(test.Y, ranking, 1)[0] > 0.5  # one in ten by chance
    again = load_model(model.save(tmp_path / "model"))
    assert isinstance(again, DXML)
    assert np.array_equal(again.predict_topk(Xt, 3, texts=test.texts).indices, ranking.indices)


def test_k_and_m_are_chosen_on_texts_held_out(
    encoder_folder: Path, planted: tuple[Planted, Planted]
) -> None:
    settings = QUICK | {"n_neighbors": None, "n_partitions": None}
    X = TextFeatures().fit_transform(planted[0].texts)
    model = DXML(encoder=str(encoder_folder), **settings)
    model.fit(X, planted[0].Y, texts=planted[0].texts)
    assert model.n_neighbors_ >= 1 and model.n_partitions_ == 1


def test_texts_are_needed(encoder_folder: Path, planted: tuple[Planted, Planted]) -> None:
    X, Y = TextFeatures().fit_transform(planted[0].texts), planted[0].Y
    model = DXML(encoder=str(encoder_folder), **QUICK)
    with pytest.raises(DataFormatError, match="Give texts"):
        model.fit(X, Y)
    with pytest.raises(DataFormatError, match="expected a text for each of 300 points, got 1"):
        model.fit(X, Y, texts=["one"])
    without = DXML(**QUICK, epochs=1).fit(X, Y)
    assert np.array_equal(
        without.predict_topk(X, 3).indices, without.predict_topk(X, 3, texts=["a"] * 300).indices
    )
    assert isinstance(read_texts(str(encoder_folder), ["a"]), TextRows)
