"""Vectors of texts as a part of a joint model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dxml import TextTagger
from dxml._deep import open_pretrained
from dxml.exceptions import DataFormatError
from dxml.joint import Joint
from dxml.joint.parts._vectors import VectorsPart

from ..._deep.planting import WORDS, Planted, plant


@pytest.fixture(scope="module")
def planted(encoder_folder: Path) -> tuple[Planted, Planted]:
    pretrained = open_pretrained(encoder_folder, 32)
    return plant(pretrained, 300, 0), plant(pretrained, 80, 1)


def names_of(data: Planted) -> list[list[str]]:
    return [[WORDS[label] for label in row.indices] for row in data.Y]


def tagger(folder: Path, candidates: str = "nearest") -> TextTagger:
    return TextTagger(vectors=str(folder), encoder="none", device="cpu", candidates=candidates)


@pytest.fixture(scope="module")
def fitted(static_folder: Path, planted: tuple[Planted, Planted]) -> TextTagger:
    return tagger(static_folder).fit(planted[0].texts, names_of(planted[0]))


def part_of(model: TextTagger) -> VectorsPart:
    part = model.model.parts_["vectors"]
    assert isinstance(part, VectorsPart)
    return part


def by_hand(model: TextTagger, texts: list[str]) -> np.ndarray:
    """Cosines with the mean of each label's texts, one label at a time."""
    part, known = part_of(model), model.model._ensemble.known
    points = part.points[known.holes.kept(known.n_rows)]
    rows = part.how.read(texts, "cpu").rows.astype(np.float32)
    found = []
    for label in range(len(model.labels_)):
        own = points[model.model.train_labels_[:, [label]].toarray().ravel()]
        total = own.astype(np.float32).sum(axis=0)
        found.append(rows @ (total / max(np.linalg.norm(total), 1e-12)))
    return np.stack(found, axis=1)


def said(model: TextTagger, texts: list[str]) -> np.ndarray:
    """What the part says of every label."""
    part = part_of(model)
    means = part.sums / np.maximum(np.linalg.norm(part.sums, axis=1, keepdims=True), 1e-12)
    return part.how.read(texts, "cpu").rows.astype(np.float32) @ means.T


@pytest.mark.parametrize("candidates", ["nearest", "all"])
def test_a_score_is_the_cosine_with_the_mean_of_the_labels_texts(
    static_folder: Path, planted: tuple[Planted, Planted], candidates: str
) -> None:
    model = tagger(static_folder, candidates).fit(planted[0].texts, names_of(planted[0]))
    texts = planted[1].texts[:20]
    X = model.model.scaler_.transform(model.features.transform(texts))
    query = model.model._ensemble.ask(X, "cpu", model.model._read(texts))
    found = part_of(model).scores(query)
    rows = np.repeat(np.arange(len(texts)), np.diff(query.pairs.indptr))
    assert np.allclose(found, by_hand(model, texts)[rows, query.pairs.indices], atol=1e-5)


def test_it_is_weighed_and_tells_planted_labels_by_itself(
    fitted: TextTagger, planted: tuple[Planted, Planted]
) -> None:
    assert fitted.model.mixture_.weights["vectors"].shape == (1,)
    best = said(fitted, planted[1].texts).argmax(axis=1)
    right = [
        fitted.labels_[label] in own for label, own in zip(best, names_of(planted[1]), strict=True)
    ]
    assert np.mean(right) > 0.5  # about one in ten by chance


def test_saved_opened_and_the_same(
    fitted: TextTagger, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    again = TextTagger.load(fitted.save(tmp_path / "model"))
    ours, theirs = (each.rank(planted[1].texts, 5) for each in (fitted, again))
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.scores, theirs.scores)
    suffixes = {path.suffix for path in (tmp_path / "model").iterdir() if path.suffix}
    assert suffixes == {".json", ".md", ".safetensors"}


def test_taught_corrected_and_forgotten_it_is_as_by_hand(
    fitted: TextTagger, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    model, texts = TextTagger.load(fitted.save(tmp_path / "model")), planted[1].texts
    model.learn(["the compass of a ship", "old heart"], [["route"], ["heart"]], ids=["a", "b"])
    assert np.allclose(said(model, texts), by_hand(model, texts), atol=1e-5)
    model.remove_label("b", "heart")
    assert np.allclose(said(model, texts), by_hand(model, texts), atol=1e-5)
    model.forget("a")
    assert len(part_of(model).holes) == 1, "it stays a hole for now"
    assert np.allclose(said(model, texts), by_hand(model, texts), atol=1e-5)
    model.learn(["the compass of a ship"], [["route"]])
    model.merge_labels(["bone", "brain"], "organ")
    assert len(part_of(model).sums) == len(model.labels_)
    assert np.allclose(said(model, texts), by_hand(model, texts), atol=1e-5)
    model.refit()
    assert "vectors" in model.model.parts_ and model.tag("compass of the ship", top=5)
    again = TextTagger.load(model.save(tmp_path / "model")).rank(texts, 5)
    assert np.array_equal(again.indices, model.rank(texts, 5).indices)


def test_it_explains(fitted: TextTagger) -> None:
    text = "new notes on the anchor"
    X, label = fitted.features.transform([text]), fitted.labels_.index("anchor")
    [why] = fitted.model.explain_labels(X, [label], texts=[text])
    weight = float(fitted.model.mixture_.weights["vectors"][0])
    assert why.added["vectors"] == pytest.approx(weight * said(fitted, [text])[0, label], abs=1e-4)


def test_a_frozen_encoder_is_stored_with_the_model(
    encoder_folder: Path, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    model = tagger(encoder_folder).fit(planted[0].texts, names_of(planted[0]))
    assert part_of(model).how.source.kind == "frozen" and "deep" not in model.model.parts_
    ours = model.rank(planted[1].texts, 5)
    theirs = TextTagger.load(model.save(tmp_path / "model")).rank(planted[1].texts, 5)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.allclose(ours.scores, theirs.scores, atol=1e-5)


@pytest.mark.parametrize("candidates", ["nearest", "all"])
def test_a_text_without_a_known_word_is_told_by_its_vector(
    static_folder: Path, candidates: str
) -> None:
    """Words that no training text has, whose vectors are nearly those of the labels' signs."""
    sign, other = WORDS[0], WORDS[1]
    pairs = [(sign, "a"), (other, "b"), (other, "b"), (f"{sign} {other}", "b")] * 8
    model = tagger(static_folder, candidates).fit(
        [text for text, _ in pairs], [[label] for _, label in pairs]
    )
    near_a, near_b = model.tag([f"{sign}s", f"{other}s"], top=2)
    assert not near_a.nothing_known
    assert dict(near_a)["a"] > dict(near_b)["a"] and dict(near_a)["b"] < dict(near_b)["b"]


def test_where_no_part_reads_anything_nothing_is_known(fitted: TextTagger) -> None:
    tags = fitted.tag("", top=3)
    shares = np.sort(fitted.model.label_frequency_ / len(fitted.ids_))[::-1]
    assert tags.nothing_known
    assert np.allclose([tag.probability for tag in tags], shares[:3])


def test_texts_are_needed(fitted: TextTagger, planted: tuple[Planted, Planted]) -> None:
    X = fitted.features.transform(planted[1].texts)
    with pytest.raises(DataFormatError, match="reads texts beside features. Give texts"):
        fitted.model.predict_topk(X, 3)
    with pytest.raises(DataFormatError, match="expected a text for each of 80 points, got 1"):
        Joint(vectors="none").fit(X, planted[1].Y, texts=["one"])
