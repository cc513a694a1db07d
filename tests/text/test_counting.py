"""How texts are cut into blocks, and counts as they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random

from dxml._core.blocks import BLOCK_BYTES, running_on
from dxml.text import TextFeatures
from dxml.text import _counting as counting
from dxml.text._counting import _blocks, _Packed
from dxml.text._tokens import GramIds, WordIds, find_words


class Frozen:
    """Runs blocks here; what comes back cannot be written to, as on a cluster."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def run(self, function: Any, shared: Any, blocks: Any) -> Iterator[Any]:
        for block in blocks:
            with running_on(None):
                result = function(shared, block)
            packed = result if isinstance(result, _Packed) else result[1]
            for array in packed[:3]:
                array.flags.writeable = False
            self.results.append(packed)
            yield result

    def run_each(self, make: Any, items: Any) -> Iterator[Any]:
        raise NotImplementedError


def words(longest: int = 1, unspaced: bool = False) -> WordIds:
    return WordIds(lambda word: 0, find_words, True, longest, unspaced)


def test_a_block_of_long_texts_has_half_as_many_letters_as_bytes() -> None:
    """Some hundredths of a second that a block costs are little beside the third that it takes."""
    text = "x" * 10_000
    with running_on(Frozen()):
        sizes = [len(block) for block in _blocks([text] * 2000, words())]
        assert sizes == [838, 838, 324]  # of 2 ** 23 letters
        assert len(next(_blocks([text] * 2000, words(longest=2)))) == 838 // 4
        assert len(next(_blocks([text] * 2000, words(unspaced=True)))) == 838 // 8
        grams = GramIds(lambda gram: 0, True, 4)
        assert len(next(_blocks([text] * 2000, grams))) == BLOCK_BYTES // (32 * 10_000)
        assert [len(block) for block in _blocks(["a"] * 70_000, words())] == [32_000, 32_000, 6_000]
    assert len(next(_blocks(["a"] * 70_000, words()))) == counting.BLOCK


@pytest.mark.parametrize(
    ("count", "column", "counts", "columns"),
    [
        (1, 3, np.uint8, np.uint8),
        (256, 300, np.uint16, np.uint16),
        (3, 70_000, np.uint8, np.uint32),
    ],
)
def test_counts_are_sent_in_the_smallest_types(
    count: int, column: int, counts: type, columns: type
) -> None:
    sent = csr_matrix(([1, count], ([0, 2], [1, column])), shape=(3, column + 1), dtype=np.int32)
    packed = _Packed.of(sent)
    assert (packed.counts.dtype, packed.columns.dtype) == (counts, columns)
    found = packed.unpacked()
    assert found.dtype == found.indices.dtype == found.indptr.dtype == np.int32
    assert found.shape == sent.shape and (found != sent).nnz == 0
    assert not np.shares_memory(found.indptr, packed.ends)


def test_columns_are_moved() -> None:
    sent = random(5, 4, 0.5, format="csr", random_state=0)
    sent.data = np.arange(1, sent.nnz + 1, dtype=np.int32)
    moved = _Packed.of(sent).unpacked(np.array([7, 0, 9, 2], np.int32))
    assert moved.shape == (5, 10)
    assert moved.toarray()[:, [7, 0, 9, 2]].tolist() == sent.toarray().tolist()
    assert moved.sum() == sent.sum()
    nothing = _Packed.of(csr_matrix((2, 0), dtype=np.int32)).unpacked(np.empty(0, np.int32))
    assert nothing.shape == (2, 0)


def test_the_same_rows_whatever_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "SENT", 7)
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.zipf(1.3, 30) % 500) for _ in range(60)]
    texts[20] = "often " * 300
    first = TextFeatures(word_ngrams=2, char_ngrams=3)
    expected = [first.fit_transform(texts[:40]), first.transform(texts)]
    expected.append(first.grow_transform(texts)[1])
    with running_on(runner := Frozen()):
        again = TextFeatures(word_ngrams=2, char_ngrams=3)
        found = [again.fit_transform(texts[:40]), again.transform(texts)]
        found.append(again.grow_transform(texts)[1])
    assert again.feature_names == first.feature_names
    for one, other in zip(found, expected, strict=True):
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert {packed.counts.dtype for packed in runner.results} == {np.dtype("u1"), np.dtype("u2")}
    assert len(runner.results) > 40
