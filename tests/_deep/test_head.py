from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from dxml._core.arrays import Arrays
from dxml._core.storage import read_folder, write_folder
from dxml._deep import DeepHead, Pretrained, Tokens, applying, fit_deep, open_pretrained
from dxml._deep.precision import Precision, quickest_here
from dxml._deep.searching import best_labels, pair_scores
from dxml.exceptions import DataFormatError

from .planting import CPU, TINY, WORDS, Planted, plant, plant_pairs, precision_at_1


@pytest.fixture(scope="module")
def trained(encoder_folder: Path) -> tuple[DeepHead, Planted]:
    """Trained with names on all labels; label 15 has no text."""
    pretrained = open_pretrained(encoder_folder, 32)
    train = plant(pretrained, 400, 0, n_labels=15)
    Y = sp.csr_matrix((train.Y.data, train.Y.indices, train.Y.indptr), (400, 16))
    head = fit_deep(
        train.tokens,
        Y,
        replace(TINY, epochs=15),
        start=pretrained,
        device=CPU,
        label_tokens=pretrained.reader.read(WORDS),
    )
    return head, train


def test_a_text_scores_the_same_in_any_company(trained: tuple[DeepHead, Planted]) -> None:
    head, train = trained
    together = head.all_scores(train.tokens.take(np.arange(50)))
    alone = [head.all_scores(train.tokens.take(np.array([row]))) for row in range(50)]
    assert np.allclose(together, np.concatenate(alone), atol=1e-5)
    with_longest = head.all_scores(
        Tokens.concatenate([train.tokens.take(np.array([0])), head.reader.read(["the " * 99])])
    )
    assert np.allclose(with_longest[0], together[0], atol=1e-5)


def test_pairs_and_best_are_taken_from_all_scores(trained: tuple[DeepHead, Planted]) -> None:
    head, train = trained
    tokens = train.tokens.take(np.arange(30))
    everything = head.all_scores(tokens)
    pairs = sp.csr_matrix(np.random.default_rng(0).random((30, 16)) < 0.3)
    rows, columns = pairs.nonzero()
    assert np.allclose(head.scores(tokens, pairs), everything[rows, columns], atol=1e-5)
    ids, scores = head.best(tokens, 4)
    assert ids.tolist() == np.argsort(-everything, axis=1)[:, :4].tolist()
    assert np.allclose(scores, -np.sort(-everything, axis=1)[:, :4], atol=1e-5)


def test_blocks_of_labels_find_what_one_product_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(20, 8, generator=generator)
    weight = torch.randn(50, 8, generator=generator)
    bias = torch.randn(50, generator=generator)
    monkeypatch.setattr("dxml._deep.searching.LABELS", {"cpu": 7})
    monkeypatch.setattr("dxml._deep.searching.ROWS", {"cpu": 3})
    monkeypatch.setattr("dxml._deep.searching.NUMBERS", 24)
    whole = (vectors @ weight.T + bias).numpy()
    ids, scores = best_labels(vectors, weight, bias, 10)
    assert ids.tolist() == np.argsort(-whole, axis=1)[:, :10].tolist()
    assert np.allclose(scores, -np.sort(-whole, axis=1)[:, :10], atol=1e-5)
    pairs = sp.csr_matrix(np.ones((20, 50), bool))
    found = pair_scores(vectors, weight, bias, pairs.indptr, pairs.indices)
    assert np.allclose(found.reshape(20, 50), whole, atol=1e-5)
    assert best_labels(vectors, weight, None, 99)[0].shape == (20, 50)


def test_a_saved_head_gives_the_same_bits(
    trained: tuple[DeepHead, Planted], tmp_path: Path
) -> None:
    head, train = trained
    write_folder(tmp_path / "model", {}, head.arrays())
    again = DeepHead.from_arrays(read_folder(tmp_path / "model")[1])
    texts = train.texts[:40]
    tokens = again.reader.read(texts)
    assert np.array_equal(tokens.ids, head.reader.read(texts).ids)
    assert np.array_equal(again.all_scores(tokens), head.all_scores(tokens))
    assert np.array_equal(again.nearest_names(tokens, 5)[1], head.nearest_names(tokens, 5)[1])
    assert again.arrays().keys() == head.arrays().keys()
    stored = {array.dtype for name, array in head.arrays().items() if ".encoder." in name}
    assert stored == {np.dtype(np.float16)}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_first_text_unpacks_the_encoder(
    precision: Precision, trained: tuple[DeepHead, Planted], tmp_path: Path
) -> None:
    """As docs/what-holds.md says: 16 bits in the file, 32 in memory, but for large products."""
    write_folder(tmp_path / "model", {}, trained[0].arrays())
    head = DeepHead.from_arrays(read_folder(tmp_path / "model")[1])
    head = replace(head, precision=precision)
    assert {array.dtype for array in head.encoder.weights.values()} == {np.dtype(np.float16)}
    assert not head.encoder._placed
    head.all_scores(head.reader.read(["one text"]))
    [network] = head.encoder._placed.values()
    found = {weight.dtype for weight in network.parameters()}
    assert found == {torch.float32, getattr(torch, precision)}
    assert network.widen.weight.dtype == torch.float32


def test_a_label_never_seen_is_found_by_its_name(pretrained: Pretrained) -> None:
    train = plant_pairs(pretrained, 400, 0, without=6)
    names = pretrained.reader.read(train.names)
    settings = replace(TINY, epochs=20)
    head = fit_deep(
        train.tokens, train.Y, settings, start=pretrained, device=CPU, label_tokens=names
    )
    first, second = train.names[6].split()
    asked = head.reader.read([f"notes on {second} and {first}", f"{first} of a new {second}"])
    ids, scores = head.nearest_names(asked, 3)
    assert ids[:, 0].tolist() == [6, 6]
    assert 5 < scores[0, 0] <= 20 and scores[0, 0] > scores[0, 1]
    assert (head.all_scores(asked)[:, 6] < 0).all()  # the head has never seen one
    pairs = sp.csr_matrix(([True, True], [6, 6], [0, 1, 2]), (2, 16))
    assert np.allclose(head.name_scores(asked, pairs), scores[:, 0], atol=1e-4)


def test_labels_can_be_added_by_name_or_by_texts(pretrained: Pretrained) -> None:
    train = plant(pretrained, 400, 0, n_labels=14)
    names = pretrained.reader.read(WORDS[:14])
    settings = replace(TINY, epochs=15)
    head = fit_deep(
        train.tokens, train.Y, settings, start=pretrained, device=CPU, label_tokens=names
    )
    few = [f"new {WORDS[14]} study", f"the {WORDS[14]} of a case", f"report with {WORDS[14]}"]
    Y = sp.csr_matrix(np.array([[1, 0]] * 3, dtype=bool))
    read = head.reader.read
    grown = head.add_labels(2, name_tokens=read(WORDS[14:16]), tokens=read(few), Y=Y)
    assert grown.n_labels == 16 and grown.names is not None and len(grown.names) == 16
    assert np.array_equal(grown.all_scores(names)[:, :14], head.all_scores(names))
    asked = read([f"notes on {WORDS[14]} and old", f"notes on {WORDS[15]} and old"])
    assert grown.all_scores(asked)[0].argmax() == 14
    assert grown.nearest_names(asked, 1)[0].ravel().tolist() == [14, 15]
    assert np.allclose(grown.all_scores(asked)[:, 15], head.levels.low, atol=1e-3)
    own = grown.all_scores(read(few))[:, 14].mean()
    assert own == pytest.approx(head.levels.high, abs=0.1)


def test_taught_texts_are_learnt_and_others_kept(trained: tuple[DeepHead, Planted]) -> None:
    head, train = trained
    texts = [f"{WORDS[15]} {rest}" for rest in ("notes", "of the case", "report on new", "study")]
    tokens = head.reader.read(texts)
    Y = sp.csr_matrix((np.ones(4, bool), np.full(4, 15), np.arange(5)), (4, 16))
    known = train.tokens.take(np.arange(100))
    known_Y = sp.csr_matrix((train.Y.data, train.Y.indices, train.Y.indptr), (400, 16))[:100]
    taught = head.train_on(tokens, Y, known=known, known_Y=known_Y)
    assert (head.all_scores(tokens).argmax(axis=1) != 15).all()
    assert (taught.all_scores(tokens).argmax(axis=1) == 15).all()
    fresh = head.reader.read([f"old notes with {WORDS[15]}"])
    assert taught.all_scores(fresh)[0, 15] > head.all_scores(fresh)[0, 15] + 5
    assert precision_at_1(taught.all_scores(known), known_Y) > 0.95


def test_effects_name_the_planted_word(trained: tuple[DeepHead, Planted]) -> None:
    head, _ = trained
    text = f"The {WORDS[2]} study, {WORDS[9]} and old {WORDS[2].upper()}"
    found = head.effects(text, [2, 9])
    strongest = [max(found, key=lambda each: float(each.effects[i])) for i in (0, 1)]
    assert [each.word for each in strongest] == [WORDS[2], WORDS[9]]
    spans = strongest[0].spans
    assert [text[start:stop].lower() for start, stop in spans] == [WORDS[2]] * 2
    shorter = head.all_scores(head.reader.read([text, f"The study, {WORDS[9]} and old"]))
    assert strongest[0].effects[0] == pytest.approx(shorter[0, 2] - shorter[1, 2], abs=1e-4)
    assert head.effects("", [1]) == []


def test_predicting_halves_batches_that_do_not_fit(
    trained: tuple[DeepHead, Planted], monkeypatch: pytest.MonkeyPatch
) -> None:
    head, train = trained
    tokens = train.tokens.take(np.arange(20))
    expected = head.all_scores(tokens)
    network = head._network(CPU)
    forward, tried = network.forward, []

    def limited(ids: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tried.append(len(ids))
        if len(ids) > 3:
            raise torch.cuda.OutOfMemoryError("no memory")
        return forward(ids, real)

    monkeypatch.setattr(network, "forward", limited)
    assert np.abs(head.all_scores(tokens) - expected).max() < 1e-4
    assert max(tried) == 20 and sum(size for size in tried if size <= 3) == 20
    monkeypatch.setattr(network, "forward", lambda *_: (_ for _ in ()).throw(
        applying.out_of_memory("none at all")))  # fmt: skip
    with pytest.raises(torch.cuda.OutOfMemoryError):
        head.all_scores(tokens)


def test_names_are_asked_for_only_where_there_are_some(pretrained: Pretrained) -> None:
    train = plant(pretrained, 20, 0)
    head = fit_deep(train.tokens, train.Y, replace(TINY, epochs=1), start=pretrained, device=CPU)
    with pytest.raises(DataFormatError, match="trained without the labels' names"):
        head.nearest_names(train.tokens, 1)
    assert head.add_labels(1).names is None
    named = head.add_labels(1, name_tokens=head.reader.read(["ship"])).names
    assert named is not None and named.shape == (17, 32) and not named[:16].any()


@pytest.mark.parametrize(("precision", "within"), [("bfloat16", 0.2), ("int8", 1.0)])
def test_quicker_arithmetic_agrees_with_float32(
    trained: tuple[DeepHead, Planted], precision: str, within: float
) -> None:
    head, train = trained
    tokens = train.tokens.take(np.arange(60))
    quick = DeepHead.from_arrays(Arrays(head.arrays()), precision=precision)  # type: ignore[arg-type]
    plain = DeepHead.from_arrays(Arrays(head.arrays()), precision="float32")
    ours, exact = quick.all_scores(tokens), plain.all_scores(tokens)
    assert 0 < np.abs(ours - exact).max() < within
    assert (ours.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.95


@pytest.mark.parametrize(
    ("able", "chosen"),
    [((), "float32"), (("_is_avx512_bf16_supported",), "bfloat16"),
     (("_is_amx_tile_supported",), "bfloat16")],
)  # fmt: skip
def test_a_cpu_multiplies_in_bfloat16_where_it_can_by_itself(
    able: tuple[str, ...],
    chosen: str,
    monkeypatch: pytest.MonkeyPatch,
    trained: tuple[DeepHead, Planted],
) -> None:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda name=name: name in able, raising=False)
    quickest_here.cache_clear()
    try:
        assert quickest_here() == chosen
        head, train = trained
        tokens = train.tokens.take(np.arange(60))
        here, plain = (
            DeepHead.from_arrays(Arrays(head.arrays()), precision=each)  # type: ignore[arg-type]
            for each in (None, "float32")
        )
        ours, exact = here.best(tokens, 3)[0], plain.best(tokens, 3)[0]
        assert np.mean(ours == exact) > 0.9
        assert np.array_equal(here.all_scores(tokens), plain.all_scores(tokens)) == (
            chosen == "float32"
        )
    finally:
        quickest_here.cache_clear()
