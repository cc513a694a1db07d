"""Texts → sparse rows of tf-idf, as scikit-learn's `TfidfVectorizer` computes them.

A text is lowered and cut into words of two or more letters or digits. A word that stands c times in
a text weighs (1 + log c) · idf, with idf = 1 + log((1 + n) / (1 + df)) over the n training texts,
df of which hold the word; then a row is divided by its length. Character n-grams, where asked for,
are columns of their own after the words; words and n-grams then count for half of a row each.
The vectors of a sentence model, where asked for, are the last columns, and count for as much as
each of the others, or stand alone.

Where more than a tenth of the training texts is written without spaces, as Chinese and Thai are,
such stretches are cut into short n-grams that stand among the words (`dxml.text.unspaced`), unless
`char_ngrams` says otherwise.

The values are those of ``TfidfVectorizer(sublinear_tf=True, min_df=…, dtype=numpy.float32)``, bit
for bit, where nothing is cut so. The code is ours because one text by itself is then quick to
transform, and because what it learns is a few plain arrays.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack, vstack
from sklearn.base import BaseEstimator

from dxml._core.arrays import Arrays
from dxml._core.params import Range, check_params
from dxml.exceptions import DataFormatError, NotFittedError, ParameterError
from dxml.progress import SILENT, Progress, Stage
from dxml.text.sentences import SentenceModel
from dxml.text.strings import pack_strings
from dxml.text.unspaced import WORD_OR_STRETCH, find_words_and_grams, share_unspaced

__all__ = ["TextFeatures"]

_WORD = re.compile(r"\w\w+")
_find_words = _WORD.findall
_BLOCK = 1000  # texts counted at a time
_SHORTEST_GRAM = 3
_MUCH_UNSPACED = 0.1  # of the characters, from which on text without spaces is cut into n-grams
_LOOKED_AT = 1000  # texts, or up to twice as many, in which they are counted
_CHAR = "char:"  # what the name of a character n-gram's column starts with
_SENTENCE = "sentence:"  # and that of a sentence model's


class TextFeatures(BaseEstimator):
    """Tf-idf over words, and over character n-grams beside them.

    Parameters are stored as given and checked in `fit`.

    Attributes
    ----------
    idf_ : array of shape (n_features,), float32
        The weight of each column.
    unspaced_ : bool
        Whether text without spaces is cut into n-grams.
    """

    def __init__(
        self,
        *,
        min_df: Annotated[int, Range(1), "texts that must hold a word, for it to be a column"] = 2,
        word_ngrams: Annotated[int, Range(1, 5), "longest run of words that is a column"] = 1,
        char_ngrams: Annotated[
            int | None,
            Range(0, 8),
            "longest character n-gram inside a word; the shortest is 3; 0: none; "
            "None: only short ones of text without spaces, such as Chinese and Thai",
        ] = None,
        lowercase: Annotated[bool, "whether capitals are made small"] = True,
        sublinear_tf: Annotated[bool, "1 + log(count) rather than the count"] = True,
        sentences: Annotated[
            str | None,
            "name or folder of a sentence-transformers model, for columns of its vectors",
        ] = None,
        tfidf: Annotated[bool, "false: only the vectors of `sentences`, no words"] = True,
    ) -> None:
        self.min_df = min_df
        self.word_ngrams = word_ngrams
        self.char_ngrams = char_ngrams
        self.lowercase = lowercase
        self.sublinear_tf = sublinear_tf
        self.sentences = sentences
        self.tfidf = tfidf

    _model: SentenceModel | None = None

    def fit(
        self, texts: Iterable[str], y: object = None, *, progress: Progress = SILENT
    ) -> TextFeatures:
        """Learn the columns and their idf; `y` is not looked at."""
        self.fit_transform(texts, progress=progress)
        return self

    def fit_transform(
        self, texts: Iterable[str], y: object = None, *, progress: Progress = SILENT
    ) -> csr_matrix:
        """Learn from `texts` and give their rows, the same as `transform` then gives.

        Parameters
        ----------
        texts : iterable of str
        progress : Progress
            Hears of the texts done.

        Returns
        -------
        X : csr_matrix of shape (n_texts, n_features), float32, int32 indices
            Rows of length 1; a text without a known word is an empty row.
        """
        check_params(self)
        self._check_kinds()
        texts = _checked(texts)
        some = texts[:: max(1, len(texts) // _LOOKED_AT)]
        self.unspaced_ = self.char_ngrams is None and share_unspaced(some) > _MUCH_UNSPACED
        cutters = self._cutters()
        self._model = None if self.sentences is None else SentenceModel(self.sentences)
        with progress.stage("count words", len(cutters) * len(texts), "texts") as stage:
            kinds = [_fit_kind(texts, cutter, self.min_df, stage) for cutter in cutters]
        counts = [counts for _, _, counts in kinds]
        if counts and not any(matrix.shape[1] for matrix in counts):
            raise DataFormatError(
                f"no word stands in {self.min_df} or more of the {len(texts)} texts. "
                "Lower min_df, or give more texts."
            )
        self._vocabularies = [vocabulary for vocabulary, _, _ in kinds]
        self.idf_ = np.concatenate([np.empty(0, np.float32), *(idf for _, idf, _ in kinds)])
        return self._rows(texts, counts, progress)

    def transform(self, texts: Iterable[str], *, progress: Progress = SILENT) -> csr_matrix:
        """The rows of `texts`; words that `fit` did not see, or too rarely, are left out."""
        self._check_fitted()
        texts = _checked(texts)
        kinds = list(zip(self._cutters(), self._vocabularies, strict=True))
        with progress.stage("count words", len(kinds) * len(texts), "texts") as stage:
            counts = [
                _join(_count(texts, cutter(known.get), stage), len(known))
                for cutter, known in kinds
            ]
        return self._rows(texts, counts, progress)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name a column: the word, ``char:`` and the n-gram, or ``sentence:`` and a number."""
        self._check_fitted()
        words, *grams = self._vocabularies or [{}]
        width = 0 if self._model is None else self._model.width
        return (
            *words,
            *(f"{_CHAR}{gram}" for kind in grams for gram in kind),
            *(f"{_SENTENCE}{i}" for i in range(width)),
        )

    @property
    def only_words(self) -> bool:
        """Whether words that are no column make no difference."""
        return not (self.char_ngrams or self.sentences)

    def words(self, text: str) -> dict[str, float]:
        """The distinct words of a text and what they weigh in it; those not known weigh 0."""
        self._check_fitted()
        found = Counter(self._cut(text.lower() if self.lowercase else text))
        known, idf = self._vocabularies[0] if self.tfidf else {}, self.idf_
        return {
            word: (1 + math.log(count) if self.sublinear_tf else count) * float(idf[known[word]])
            if word in known
            else 0.0
            for word, count in found.items()
        }

    def without_word(self, text: str, word: str) -> str:
        """The text with one of its `words` taken out wherever it stands."""

        def keep(found: re.Match[str]) -> str:
            if found.lastindex:  # a stretch without spaces
                return found[0].replace(word, " ")
            as_known = found[0].lower() if self.lowercase else found[0]
            return "" if as_known == word else found[0]

        return (WORD_OR_STRETCH if self.unspaced_ else _WORD).sub(keep, text)

    def saved_params(self) -> dict[str, Any]:
        """`get_params()` as a saved model has them: a sentence model's folder by its whole path."""
        params: dict[str, Any] = self.get_params()
        if self.sentences is not None and Path(self.sentences).is_dir():
            params["sentences"] = str(Path(self.sentences).resolve())
        return params

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a saved model holds of it, beside `get_params()`."""
        self._check_fitted()
        vocabulary, ends = pack_strings(chain(*self._vocabularies))
        probe = {} if self._model is None else {"text.sentences_probe": self._model.probe}
        return probe | {
            "text.vocabulary": vocabulary,
            "text.vocabulary_ends": ends,
            "text.kinds": np.array([len(kind) for kind in self._vocabularies], dtype=np.int64),
            "text.idf": self.idf_,
            "text.unspaced": np.array([self.unspaced_]),
        }

    @classmethod
    def from_arrays(
        cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]] | Arrays
    ) -> TextFeatures:
        """The inverse of `get_params()` and `arrays()`; a sentence model must be the same."""
        found = arrays if isinstance(arrays, Arrays) else Arrays(arrays)
        features = cls(**params)
        check_params(features)
        features.unspaced_ = False  # once there was none
        if "text.unspaced" in found:
            features.unspaced_ = bool(found.flags("text.unspaced", 1)[0])
        terms = found.strings("text.vocabulary")
        counts = found.counts("text.kinds", len(features._cutters())).tolist()
        ends = [0, *accumulate(counts)]
        features._vocabularies = [
            {term: column for column, term in enumerate(terms[start:stop])}
            for start, stop in pairwise(ends)
        ]
        if ends[-1] != len(terms) or counts != [len(kind) for kind in features._vocabularies]:
            raise ValueError("'text.vocabulary' must hold as many terms as there are columns")
        features.idf_ = found.floats("text.idf", len(terms))
        if features.sentences is not None:
            probe = found.floats("text.sentences_probe", None)
            features._model = SentenceModel.again(features.sentences, probe)
        return features

    @property
    def n_columns(self) -> int:
        """The width of a row."""
        self._check_fitted()
        return len(self.idf_) + (0 if self._model is None else self._model.width)

    def _check_fitted(self) -> None:
        if not hasattr(self, "idf_"):
            raise NotFittedError("this TextFeatures has not been fitted. Call fit(texts) first.")

    def _check_kinds(self) -> None:
        if not self.tfidf and self.sentences is None:
            raise ParameterError("tfidf=False leaves no features: name a model with sentences=.")
        if not self.tfidf and self.char_ngrams:
            raise ParameterError("char_ngrams are tf-idf too: leave them or tfidf=False out.")

    @property
    def _cut(self) -> _Cut:
        return find_words_and_grams if self.unspaced_ else _find_words

    def _cutters(self) -> list[Callable[[_Find], _Cutter]]:
        """One for each kind of term; given what finds a term's id, it cuts texts into ids."""
        if not self.tfidf:
            return []
        cutters: list[Callable[[_Find], _Cutter]] = [
            lambda find: _Words(find, self._cut, self.lowercase, self.word_ngrams)
        ]
        if longest := self.char_ngrams:
            cutters.append(lambda find: _Grams(find, self.lowercase, longest))
        return cutters

    def _rows(
        self, texts: Sequence[str], kinds: list[csr_matrix], progress: Progress
    ) -> csr_matrix:
        """Each kind of column with rows of length 1, joined to rows of length 1."""
        self._weigh(kinds)
        if self._model is not None:
            kinds = [*kinds, csr_matrix(self._model.encode(texts, progress))]
        if len(kinds) == 1:
            return kinds[0]
        joined = csr_matrix(hstack(kinds, format="csr"))
        _normalise(joined)
        return joined

    def _weigh(self, kinds: list[csr_matrix]) -> None:
        """Counts of each kind of term → tf-idf, in place, rows of length 1."""
        start = 0
        for counts in kinds:
            weights = counts.data.astype(np.float32)
            if self.sublinear_tf:
                np.log(weights, out=weights)
                weights += 1.0
            weights *= self.idf_[start + counts.indices]
            counts.data = weights
            _normalise(counts)
            start += counts.shape[1]


_Find = Callable[[str], int | None]
_Cut = Callable[[str], list[str]]
_Kind = tuple[dict[str, int], npt.NDArray[np.float32], csr_matrix]


class _Words:
    """A text → the ids of its words, and of runs of up to `longest` words."""

    def __init__(self, find: _Find, cut: _Cut, lowercase: bool, longest: int) -> None:
        self.find = find
        self.cut = cut
        self.lowercase = lowercase
        self.longest = longest

    def ids(self, text: str) -> Iterable[int]:
        words = self.cut(text.lower() if self.lowercase else text)
        if self.longest > 1:
            words = list(
                chain.from_iterable(self._runs(words, n) for n in range(1, self.longest + 1))
            )
        return [id for id in map(self.find, words) if id is not None]

    def _runs(self, words: list[str], size: int) -> list[str]:
        return [" ".join(words[i : i + size]) for i in range(len(words) - size + 1)]


class _Grams(dict[str, list[int]]):
    """A text → the ids of its words' character n-grams, which are looked up once a word.

    A word has a space at either end.
    """

    def __init__(self, find: _Find, lowercase: bool, longest: int) -> None:
        self.find = find
        self.lowercase = lowercase
        self.sizes = range(min(_SHORTEST_GRAM, longest), longest + 1)

    def ids(self, text: str) -> Iterable[int]:
        words = (text.lower() if self.lowercase else text).split()
        return chain.from_iterable(map(self.__getitem__, words))

    def __missing__(self, word: str) -> list[int]:
        padded = f" {word} "
        grams = []
        for size in self.sizes:
            grams += [padded[i : i + size] for i in range(max(1, len(padded) - size + 1))]
            if len(padded) <= size:  # longer ones would be the whole word again
                break
        self[word] = [id for id in map(self.find, grams) if id is not None]
        return self[word]


_Cutter = _Words | _Grams


def _checked(texts: Iterable[str]) -> Sequence[str]:
    if isinstance(texts, str):
        raise DataFormatError("expected a list of texts, found one text. Put it into a list.")
    texts = texts if isinstance(texts, list | tuple) else list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataFormatError(
                f"text {row} is {text!r:.40} ({type(text).__name__}), expected a str. "
                "Replace missing texts by ''."
            )
    return texts


def _blocks(texts: Sequence[str], stage: Stage) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK]
        yield block
        stage.advance(len(block))


def _count(texts: Sequence[str], cutter: _Cutter, stage: Stage) -> list[csr_matrix]:
    """How often each id stands in each text: a matrix for each block, as wide as its largest id."""
    blocks = []
    for block in _blocks(texts, stage):
        ids, row_ends = array("i"), array("i", [0])
        for text in block:
            ids.extend(cutter.ids(text))
            row_ends.append(len(ids))
        indices = np.array(ids, dtype=np.int32)
        ones = np.ones(indices.size, dtype=np.int32)
        shape = (len(block), int(indices.max(initial=-1)) + 1)
        counts = csr_matrix((ones, indices, np.array(row_ends, dtype=np.int32)), shape=shape)
        counts.sum_duplicates()
        blocks.append(counts)
    return blocks


def _join(blocks: list[csr_matrix], width: int) -> csr_matrix:
    """The blocks one below the other, each made `width` columns wide."""
    for block in blocks:
        block.resize(block.shape[0], width)
    if len(blocks) == 1:
        return blocks[0]
    return csr_matrix(vstack([csr_matrix((0, width), dtype=np.int32), *blocks], format="csr"))


def _fit_kind(
    texts: Sequence[str], cutter: Callable[[_Find], _Cutter], min_df: int, stage: Stage
) -> _Kind:
    """(term → column, idf, counts) of the terms that stand in `min_df` or more texts."""
    seen: defaultdict[str, int] = defaultdict()
    seen.default_factory = seen.__len__
    blocks = _count(texts, cutter(seen.__getitem__), stage)
    df = np.zeros(len(seen), dtype=np.int64)
    for counts in blocks:
        df[: counts.shape[1]] += np.bincount(counts.indices, minlength=counts.shape[1])
    kept = sorted(term for term, id in seen.items() if df[id] >= min_df)
    ids = np.fromiter((seen[term] for term in kept), dtype=np.int64, count=len(kept))
    columns = np.full(len(seen), -1, dtype=np.int32)
    columns[ids] = np.arange(len(kept), dtype=np.int32)
    idf = np.full(len(kept), 1 + len(texts), dtype=np.float32)
    idf /= df[ids].astype(np.float32) + np.float32(1)
    np.log(idf, out=idf)
    idf += 1.0
    renamed = [_rename(counts, columns, len(kept)) for counts in blocks]
    return {term: column for column, term in enumerate(kept)}, idf, _join(renamed, len(kept))


def _rename(counts: csr_matrix, columns: npt.NDArray[np.int32], width: int) -> csr_matrix:
    """`counts` with its columns moved to `columns`, or left out where that is -1."""
    indices = columns[counts.indices]
    known = indices >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[counts.indptr].astype(np.int32)
    renamed = csr_matrix((counts.data[known], indices[known], ends), shape=(counts.shape[0], width))
    renamed.sort_indices()
    return renamed


def _normalise(X: csr_matrix) -> None:
    """Divide every row by its length, in place; empty rows stay."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=X.data * X.data, minlength=X.shape[0]))
    X.data = (X.data / lengths[rows]).astype(np.float32)
