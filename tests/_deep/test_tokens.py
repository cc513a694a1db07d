from __future__ import annotations

import numpy as np
import pytest

from dxml._deep import Pretrained, Reader, Tokens
from dxml.exceptions import ModelFormatError, ParameterError

from .planting import make_tokenizer


@pytest.mark.parametrize("wrong", ["", "{", "[]", "\x01", '{"model": {"type": "none"}}'])
def test_a_damaged_tokenizer_is_named(wrong: str) -> None:
    """As in a folder whose checksums are right: it was an error of no kind, at the first text."""
    with pytest.raises(ModelFormatError, match="the tokenizer of the texts' tokens is damaged"):
        Reader(wrong, 8)


def test_texts_are_taken_and_joined() -> None:
    tokens = Tokens.of([[1, 2, 3], [4], [5, 6]])
    assert len(tokens) == 3 and tokens.lengths.tolist() == [3, 1, 2]
    some = tokens.take(np.array([2, 0, 2]))
    assert some.ids.tolist() == [5, 6, 1, 2, 3, 5, 6] and some.ends.tolist() == [0, 2, 5, 7]
    both = Tokens.concatenate([tokens, some])
    assert both.take(np.arange(3, 6)).ids.tolist() == some.ids.tolist()


def test_a_reader_cuts_as_its_tokenizer_does(pretrained: Pretrained) -> None:
    texts = ["the heart", "", "a storm " * 40]
    tokens = pretrained.reader.read(texts)
    expected = [make_tokenizer().encode(text).ids for text in texts]
    assert tokens.take(np.array([0])).ids.tolist() == expected[0]
    assert tokens.take(np.array([1])).ids.tolist() == expected[1] == [2, 3]
    assert tokens.lengths[2] == 32 and tokens.ids[-1] == 3  # cut, with its last special token
    assert len(pretrained.reader.read([])) == 0


def test_a_text_without_any_token_gets_one() -> None:
    tokenizer = make_tokenizer()
    tokenizer.post_processor = None
    reader = Reader(tokenizer.to_str(), 16)
    assert reader.read([""]).ids.tolist() == [reader.pad] == [0]


def test_padding_and_cutting_of_a_stored_tokenizer_are_left_out() -> None:
    tokenizer = make_tokenizer()
    tokenizer.enable_padding(length=40, pad_id=7)
    tokenizer.enable_truncation(5)
    reader = Reader(tokenizer.to_str(), 16)
    assert reader.pad == 7
    assert reader.read(["the heart and the lung of a storm"]).lengths.tolist() == [10]


def test_words_know_their_characters_and_tokens(pretrained: Pretrained) -> None:
    text = "Heart, harboursail"
    tokens, words = pretrained.reader.words(text)
    assert [text[word.start : word.stop] for word in words] == ["Heart", ",", "harboursail"]
    places = [place for word in words for place in word.places]
    assert places == list(range(1, int(tokens.lengths[0]) - 1))


def test_too_short_a_length_is_refused() -> None:
    with pytest.raises(ParameterError, match="max_length must be 4 tokens or more, got 3"):
        Reader(make_tokenizer().to_str(), 3)
