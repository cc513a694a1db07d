"""A text encoder as a part of a joint model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from dxml import TextTagger
from dxml._deep import open_pretrained
from dxml._deep import unseen as unseen_module
from dxml._deep.name_line import NameLine
from dxml._deep.texts import Texts
from dxml._deep.training import Trainer
from dxml.exceptions import DataFormatError, ParameterError
from dxml.joint import Joint
from dxml.joint import _model as joint_module
from dxml.joint._exporting import export_onnx
from dxml.joint.parts import _deep as module
from dxml.joint.parts._deep import DeepPart
from dxml.progress import SILENT, Progress, Stage
from dxml.text import TextFeatures

from ..._deep.planting import TINY, WORDS, Planted, plant

EPOCHS = 8


@pytest.fixture(autouse=True)
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny encoder without pretraining needs larger steps."""
    monkeypatch.setattr(module, "SETTINGS", replace(TINY, name_every=2))


@pytest.fixture(scope="module")
def planted(encoder_folder: Path) -> tuple[Planted, Planted]:
    pretrained = open_pretrained(encoder_folder, 32)
    return plant(pretrained, 300, 0), plant(pretrained, 80, 1)


def tagger(folder: Path, candidates: str = "nearest") -> TextTagger:
    return TextTagger(
        encoder=str(folder), encoder_epochs=EPOCHS, device="cpu", candidates=candidates, width=0
    )


def names_of(data: Planted) -> list[list[str]]:
    return [[WORDS[label] for label in row.indices] for row in data.Y]


@pytest.fixture(scope="module")
def fitted(encoder_folder: Path, planted: tuple[Planted, Planted]) -> TextTagger:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SETTINGS", replace(TINY, name_every=2))
        return tagger(encoder_folder).fit(planted[0].texts, names_of(planted[0]))


def precision_at_1(model: TextTagger, data: Planted) -> float:
    best = [model.labels_[label] for label in model.rank(data.texts, 1).indices[:, 0]]
    right = [name in own for name, own in zip(best, names_of(data), strict=True)]
    return float(np.mean(right))


def test_it_is_planned_fitted_weighed_and_ranked_with(
    fitted: TextTagger, planted: tuple[Planted, Planted]
) -> None:
    assert fitted.model.plan_.parts["deep"] == {"epochs": EPOCHS}
    assert fitted.model.mixture_.weights["deep"][0] > 0
    assert precision_at_1(fitted, planted[1]) > 0.95


def test_it_says_something_where_words_say_nothing(
    fitted: TextTagger, planted: tuple[Planted, Planted]
) -> None:
    """Its scores alone rank the planted label first."""
    part = fitted.model.parts_["deep"]
    assert isinstance(part, DeepPart)
    tokens = part.head.reader.read(planted[1].texts)
    best = part.head.best(tokens, 1)[0][:, 0]
    own = names_of(planted[1])
    assert (
        np.mean([fitted.labels_[b] in o for b, o in zip(best, own, strict=True)]) > 0.5
    )  # one in ten by chance


def test_every_label_may_be_scored(encoder_folder: Path, planted: tuple[Planted, Planted]) -> None:
    model = tagger(encoder_folder, "all").fit(planted[0].texts, names_of(planted[0]))
    assert model.model.plan_.every_label and "deep" in model.model.parts_
    assert precision_at_1(model, planted[1]) > 0.95


def test_it_proposes_labels_that_no_neighbour_has(
    fitted: TextTagger, planted: tuple[Planted, Planted]
) -> None:
    X = fitted.features.transform(["with notes of"])  # filler alone: neighbours say little
    deep = fitted.model.parts_["deep"]
    assert isinstance(deep, DeepPart)
    query = fitted.model._ensemble.ask(
        fitted.model.scaler_.transform(X), "cpu", Texts(deep.head.reader.read(["a heart"]))
    )
    assert fitted.labels_.index("heart") in query.pairs.indices


def test_saved_opened_and_the_same(
    fitted: TextTagger, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    again = TextTagger.load(fitted.save(tmp_path / "model"))
    ours, theirs = (each.rank(planted[1].texts, 5) for each in (fitted, again))
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.scores, theirs.scores)
    assert sorted(path.suffix for path in (tmp_path / "model").iterdir() if path.suffix) == [
        ".json",
        ".md",
        ".safetensors",
    ]


def test_explained_by_the_word_that_matters(fitted: TextTagger) -> None:
    [why] = fitted.explain("new notes on the anchor", top=1)
    assert why.name == "anchor" and why.words[0][0] == "anchor"
    X = fitted.features.transform(["new notes on the anchor"])
    [evidence] = fitted.model.explain_labels(
        X, [fitted.labels_.index("anchor")], texts=["new notes on the anchor"]
    )
    assert evidence.added["deep"] > 0


def test_taught_forgotten_and_trained_again(
    encoder_folder: Path, planted: tuple[Planted, Planted], tmp_path: Path, fitted: TextTagger
) -> None:
    model = TextTagger.load(fitted.save(tmp_path / "model"))
    n = len(model.ids_)
    model.learn(["the compass of a ship", "old compass and ship"], [["route"], ["route"]])
    part = model.model.parts_["deep"]
    assert isinstance(part, DeepPart) and len(part.texts) == n + 2
    assert part.head.n_labels == len(model.labels_) == len(WORDS) + 1
    assert "route" in [tag.name for tag in model.tag("a compass of the ship", top=3)]
    model.forget(model.ids_[0])
    opened = TextTagger.load(model.save(tmp_path / "taught"))
    part = opened.model.parts_["deep"]
    assert isinstance(part, DeepPart) and len(part.texts) == len(opened.ids_) == n + 1
    model.catch_up()
    model.forget(model.ids_[0])
    model.refit()
    part = model.model.parts_["deep"]
    assert isinstance(part, DeepPart) and len(part.texts) == n
    assert "deep" in model.model.parts_ and precision_at_1(model, planted[1]) > 0.9


@pytest.mark.parametrize("candidates", ["nearest", "all"])
def test_words_that_no_text_had_are_learnt(
    encoder_folder: Path, planted: tuple[Planted, Planted], tmp_path: Path, candidates: str
) -> None:
    model = tagger(encoder_folder, candidates).fit(planted[0].texts, names_of(planted[0]))
    assert model.without_known_words(["honey bees"]) == [0]
    assert not model.tag("honey bees").nothing_known, "the encoder reads it"
    model.learn(["honey bees"], [["bees"]])
    for opened in (model, TextTagger.load(model.save(tmp_path / "model"))):
        assert opened.tag("honey bees")[0].name == "bees"
        [why] = opened.explain("honey bees", top=1)
        assert "honey" in [word for word, effect in why.words if effect > 0]
        assert precision_at_1(opened, planted[1]) > 0.9


def test_texts_are_needed(fitted: TextTagger, planted: tuple[Planted, Planted]) -> None:
    X = fitted.features.transform(planted[1].texts)
    with pytest.raises(DataFormatError, match="reads texts beside features. Give texts"):
        fitted.model.predict_topk(X, 3)
    with pytest.raises(DataFormatError, match="expected a text for each of 80 points, got 1"):
        fitted.model.predict_topk(X, 3, texts=["one"])
    with pytest.raises(DataFormatError, match="Give texts"):
        fitted.model.partial_fit(X[:1], fitted.model.train_labels_[:1])


def test_a_model_without_an_encoder_needs_no_texts() -> None:
    assert Joint().encoder == "auto" and Joint().max_tokens is None


class Heard:
    """The names of the stages."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        self.stages.append(name)
        with SILENT.stage(name) as stage:
            yield stage


def break_off(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The step after so many steps of training fails."""
    step, made = Trainer.step, [0]

    def counted(self: Trainer, *arguments: Any) -> None:
        made[0] += 1
        if made[0] > after:
            raise KeyboardInterrupt
        step(self, *arguments)

    monkeypatch.setattr(Trainer, "step", counted)


def trained(folder: Path, data: Planted, progress: Progress = SILENT, **how: Any) -> Joint:
    """A model of a hundred texts: five steps an epoch of 80, seven of 100."""
    model = Joint(encoder=str(folder), encoder_epochs=4, device="cpu", width=0, encoder_minutes=1e9)
    X = TextFeatures().fit_transform(data.texts[:100])
    return model.fit(
        X, data.Y[:100], texts=data.texts[:100], label_texts=data.names, progress=progress, **how
    )


@pytest.mark.parametrize("after", [4 + 7, 4 + 20 + 3], ids=["validation", "all points"])
def test_a_training_that_broke_off_goes_on_to_the_same_model(
    encoder_folder: Path,
    planted: tuple[Planted, Planted],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: int,
) -> None:
    """Four steps are made to estimate the cost, then twenty without the held-out points."""
    monkeypatch.setattr(joint_module, "KEPT_EVERY", 0.0)
    whole = trained(encoder_folder, planted[0])
    with monkeypatch.context() as patch:
        break_off(patch, after)
        with pytest.raises(KeyboardInterrupt):
            trained(encoder_folder, planted[0], checkpoint=tmp_path)
    kept = {path.name: len(list(path.glob("step-*"))) for path in tmp_path.iterdir()}
    assert kept == ({"validation": 2} if after < 24 else {"validation": 2, "all": 2})
    resumed = trained(encoder_folder, planted[0], checkpoint=tmp_path, resume=True)
    (ours, arrays), (theirs, expected) = resumed._packed(), whole._packed()
    assert arrays.keys() == expected.keys()
    assert all(np.array_equal(arrays[name], expected[name]) for name in arrays)
    ours.pop("seconds"), theirs.pop("seconds")
    assert ours == theirs


def test_a_trial_says_that_it_is_one(
    encoder_folder: Path, planted: tuple[Planted, Planted]
) -> None:
    heard = Heard()
    trained(encoder_folder, planted[0], heard)
    said = [name for name in heard.stages if name.startswith("text encoder")]
    assert said == ["text encoder (validation)", "text encoder"]


def test_there_is_nothing_to_resume_without_a_folder(
    encoder_folder: Path, planted: tuple[Planted, Planted]
) -> None:
    with pytest.raises(ParameterError, match="resume needs checkpoint"):
        trained(encoder_folder, planted[0], resume=True)


HIDDEN = WORDS[:2]


@pytest.fixture(scope="module")
def without_examples(encoder_folder: Path, planted: tuple[Planted, Planted]) -> TextTagger:
    """Trained on texts that carry none of two labels, whose names it is given."""
    rows = names_of(planted[0])
    kept = [i for i, row in enumerate(rows) if not set(row) & set(HIDDEN)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SETTINGS", replace(TINY, name_every=1))
        patch.setattr(unseen_module, "FEW", (0, 1000))  # there are no rare labels among sixteen
        return tagger(encoder_folder).fit(
            [planted[0].texts[i] for i in kept],
            [rows[i] for i in kept],
            label_info={"name": WORDS, "description": [""] * len(WORDS)},
        )


def test_labels_without_an_example_are_ranked_by_their_names(
    without_examples: TextTagger, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    part = without_examples.model.parts_["deep"]
    assert isinstance(part, DeepPart) and part.name_line is not None
    assert set(HIDDEN) <= set(without_examples.labels_)
    sure = replace(part, name_line=NameLine(1.0, 0.0))
    without_examples.model.parts_["deep"] = sure  # type: ignore[index]
    ranking = without_examples.rank(planted[1].texts, len(WORDS))
    names = [{without_examples.labels_[i] for i in row if i >= 0} for row in ranking.indices]
    assert all(set(HIDDEN) <= row for row in names)
    assert all(len(row) == len(WORDS) for row in names)  # each label once
    assert (np.diff(ranking.scores, axis=1) <= 0).all()
    labels = np.array([without_examples.labels_.index(name) for name in HIDDEN])
    tokens = part.head.reader.read(planted[1].texts)
    nearest, scores = part.head.nearest_names(tokens, 1, among=labels)
    places = (ranking.indices == labels[nearest[:, 0]][:, None]).argmax(axis=1)
    given = ranking.scores[np.arange(len(places)), places]
    assert np.allclose(given, 1 / (1 + np.exp(-scores[:, 0])), atol=1e-5)
    without_examples.save(tmp_path / "model")
    again = TextTagger.load(tmp_path / "model").rank(planted[1].texts, len(WORDS))
    assert np.array_equal(again.indices, ranking.indices)


def test_without_a_line_labels_without_an_example_are_not_named(
    without_examples: TextTagger, planted: tuple[Planted, Planted]
) -> None:
    part = without_examples.model.parts_["deep"]
    assert isinstance(part, DeepPart)
    silent = replace(part, name_line=None)
    without_examples.model.parts_["deep"] = silent  # type: ignore[index]
    best = without_examples.rank(planted[1].texts, 3).indices
    assert not {without_examples.labels_[i] for i in best.ravel()} & set(HIDDEN)
    without_examples.model.parts_["deep"] = part  # type: ignore[index]


def test_labels_are_merged_renamed_and_deleted(
    fitted: TextTagger, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    model = TextTagger.load(fitted.save(tmp_path / "m"))
    first, second, third = model.labels_[:3]
    before = model.model.parts_["deep"]
    assert isinstance(before, DeepPart) and before.head.names is not None
    model.merge_labels([first, second], into=first).delete_label(third)
    part = model.model.parts_["deep"]
    assert isinstance(part, DeepPart) and part.head.n_labels == len(model.labels_) == 14
    pairs = zip(planted[1].texts, names_of(planted[1]), strict=True)
    texts = [text for text, row in pairs if set(row) <= {first, second}]
    tokens = part.head.reader.read(texts)
    best = part.head.best(tokens, 1)[0][:, 0]
    was = np.isin(before.head.best(tokens, 1)[0][:, 0], [0, 1])
    assert texts and (best == model.labels_.index(first)).mean() >= was.mean()
    assert {model.tag(text, top=1)[0].name for text in texts} == {first}
    model.rename_label(first, "boat")
    renamed = model.model.parts_["deep"]
    assert isinstance(renamed, DeepPart) and renamed.head.names is not None
    assert part.head.names is not None
    changed = (renamed.head.names != part.head.names).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [model.labels_.index("boat")]


def test_arrays_are_predicted_and_explained_with_texts(
    fitted: TextTagger, planted: tuple[Planted, Planted]
) -> None:
    """`Joint` by itself answers as the tagger does, where it is given the texts."""
    model, texts = fitted.model, planted[1].texts
    X = fitted.features.transform(texts)
    ranking = fitted.rank(texts, 3)
    assert np.array_equal(model.predict_topk(X, 3, texts=texts).indices, ranking.indices)
    three = model.predict(X, 3, texts=texts)
    assert [set(row.indices) for row in three] == [set(row) for row in ranking.indices]
    likely = model.predict(X, threshold=0.5, texts=texts)
    assert (np.diff(likely.indptr) == (fitted.rank(texts, 16).scores >= 0.5).sum(axis=1)).all()
    assert model.predict(X, texts=texts).nnz >= len(texts)
    found = model.explain(X[:1], 3, texts=texts[:1])
    assert [why.label for why in found] == ranking.indices[0].tolist()
    assert [why.probability for why in found] == pytest.approx(ranking.scores[0].tolist())
    assert all("deep" in why.added for why in found)
    scores = model.score_labels(X[:1], [why.label for why in found], texts=texts[:1])
    assert (np.diff(scores[0]) <= 0).all()
    for call in (model.predict, model.explain):
        with pytest.raises(DataFormatError, match="Give texts"):
            call(X[:1])
    with pytest.raises(DataFormatError, match="Give texts"):
        model.score_labels(X[:1], [0])


def test_labels_without_an_example_are_explained_by_their_names(
    without_examples: TextTagger, planted: tuple[Planted, Planted]
) -> None:
    part = without_examples.model.parts_["deep"]
    assert isinstance(part, DeepPart)
    line = NameLine(1.0, -3.0)
    without_examples.model.parts_["deep"] = replace(part, name_line=line)  # type: ignore[index]
    try:
        text = f"old notes on the {HIDDEN[0]}"
        label = without_examples.labels_.index(HIDDEN[0])
        X = without_examples.features.transform([text])
        [why] = without_examples.model.explain_labels(X, [label], texts=[text])
        among = np.array([label])
        read = part.head.reader.read([text, ""])
        scores = part.head.nearest_names(read, 1, among=among)[1][:, 0]
        assert why.probability == pytest.approx(float(line.probability(scores[:1])[0]), abs=1e-5)
        assert why.added["deep"] == pytest.approx(scores[0] - scores[1], abs=1e-4)
        assert all(added == 0 for name, added in why.added.items() if name != "deep")
        assert why.voters == ()
        every = without_examples.explain(text, top=len(WORDS), n_words=20)
        [told] = [each for each in every if each.name == HIDDEN[0]]
        shorter = part.head.reader.read([text.replace(HIDDEN[0], "").strip()])
        less = scores[0] - part.head.nearest_names(shorter, 1, among=among)[1][0, 0]
        assert dict(told.words).get(HIDDEN[0], 0) == pytest.approx(max(less, 0), abs=1e-4)
        known = [each for each in every if each.name not in HIDDEN]
        assert known[0].probability > 0
    finally:
        without_examples.model.parts_["deep"] = part  # type: ignore[index]


def test_it_is_exported(
    fitted: TextTagger, planted: tuple[Planted, Planted], tmp_path: Path
) -> None:
    paths = {path.stem: path for path in export_onnx(fitted.model, tmp_path, fitted.labels_)}
    part = fitted.model.parts_["deep"]
    assert isinstance(part, DeepPart)
    session = onnxruntime.InferenceSession(paths["deep"], providers=["CPUExecutionProvider"])
    texts = planted[1].texts[:7]
    tokens = part.head.reader.read(texts)
    rows = [tokens.ids[a:b] for a, b in pairwise(tokens.ends.tolist())]
    length = max(map(len, rows))
    ids = np.full((len(rows), length), part.head.reader.pad, dtype=np.int64)
    real = np.zeros(ids.shape, dtype=bool)
    for row, own in enumerate(rows):
        ids[row, : len(own)], real[row, : len(own)] = own, True
    [found] = session.run(None, {"ids": ids, "real": real})
    np.testing.assert_allclose(found, part.head.all_scores(tokens), atol=2e-3)
