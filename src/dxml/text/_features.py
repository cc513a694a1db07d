"""Texts → sparse rows of tf-idf.

A text is lowercased and split into words of two or more letters or digits. A word that occurs c
times in a text has the weight (1 + log c) · idf. Here idf = 1 + log((1 + n) / (1 + df)), n is the
number of training texts, and df is how many of them contain the word. Every row is then divided by
its Euclidean length.

A word is a column where two training texts or more have it. Where that leaves many of them without
a word, as names and single words are, a word of one text is a column too (`min_df="auto"`).

Character n-grams are optional and have columns of their own after the words. Words and n-grams are
each scaled to length 1 before they are joined, so both count for half of a row. Where many training
texts share no word with another, as single words and names do, only parts of words can tell what is
alike, and n-grams are taken (`char_ngrams="auto"`). The vectors of a
sentence model are optional too. They are the last columns, and count as much as words do; or they
are the only columns.

Chinese, Thai and some other scripts put no spaces between words. Where more than a tenth of the
training text is in such a script, it is split into short n-grams that are treated as words
(`dxml.text._unspaced`), unless a number is given for `char_ngrams`.

Texts that are learnt later may add columns for their new words, at the end (`TextFeatures.grow`).

Of whole words, the values equal those of scikit-learn's ``TfidfVectorizer(sublinear_tf=True,
min_df=…, dtype=numpy.float32)`` bit for bit, where a text has spaces between words and, in NFC, no
combining marks or joiners. scikit-learn cuts words at these. Ours stays because it is faster, most
of all for one text, which a service is asked for: measured in one run on PubMed-MeSH, scikit-learn
takes 5.0 times as long to transform one abstract (1.85 ms for 0.37 ms), 1.2 times for 5,000
abstracts, and 1.5 times to fit 23,997.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack

from dxml._core.arrays import Arrays, whole
from dxml._core.estimator import Estimator
from dxml._core.params import Range, check_params
from dxml.exceptions import DataFormatError, ParameterError, advise, not_fitted
from dxml.progress import SILENT, Progress
from dxml.text._counting import (
    CountedTerms,
    Vocabulary,
    count_all_terms,
    count_terms,
    join_rows,
    learn_terms,
)
from dxml.text._sentences import SentenceModel
from dxml.text._strings import pack_strings
from dxml.text._tokens import (
    MARKED_WORD,
    WORD,
    Cut,
    Find,
    GramIds,
    TermIds,
    WordIds,
    find_marked_words,
    find_words,
)
from dxml.text._unspaced import (
    MARKED_WORD_OR_STRETCH,
    WORD_OR_STRETCH,
    find_marked_words_and_grams,
    find_words_and_grams,
    share_unspaced,
)

__all__ = ["TextFeatures", "need_ngrams"]

_MIN_UNSPACED_SHARE = 0.1  # share of unspaced characters above which they are split into n-grams
_MOST_EMPTY = 0.01  # share of texts without a word of two texts above which a word of one counts
_MOST_ALONE = 0.2  # share of texts without a word of two texts from which on n-grams are taken
_LEAST_ALONE = 10  # and their number
_CHOSEN_NGRAMS = 4  # the longest of those then
_SAMPLE_SIZE = 1000  # texts in which that share is measured, at least, where there are as many
_CHAR_PREFIX = "char:"  # of the names of columns of character n-grams
_SENTENCE_PREFIX = "sentence:"  # of the names of columns of a sentence model


def need_ngrams(n_alone: int, n_texts: int) -> bool:
    """Whether so many of the texts share no word with another that parts of words must count."""
    return n_alone >= max(_LEAST_ALONE, _MOST_ALONE * n_texts)


class TextFeatures(Estimator):
    """Tf-idf over words, and over character n-grams beside them.

    Parameters are stored as given and checked in `fit`.

    Attributes
    ----------
    idf_ : array of shape (n_terms,), float32
        The weight of each term: those of words first, then those of n-grams.
    min_df_ : int
        Texts that a word must occur in, as it was given or chosen.
    char_ngrams_ : int or None
        Longest character n-gram, as it was given or chosen.
    unspaced_ : bool
        Whether text without spaces is cut into n-grams.
    marks_ : bool
        Whether combining marks continue a word; only models of before cut words at them.
    """

    def __init__(
        self,
        *,
        min_df: Annotated[
            int | Literal["auto"],
            Range(1),
            "texts that a word must occur in to become a column; "
            "auto: 2, or 1 where 2 would leave over 1 % of the texts without a word",
        ] = "auto",
        word_ngrams: Annotated[
            int, Range(1, 5), "largest number of consecutive words that form a column"
        ] = 1,
        char_ngrams: Annotated[
            int | Literal["auto"] | None,
            Range(0, 8),
            "longest character n-gram inside a word; the shortest is 3; 0: none; "
            "None: only short ones of text without spaces, such as Chinese and Thai; "
            "auto: 4 where a fifth of the texts share no word with another, else None",
        ] = "auto",
        lowercase: Annotated[bool, "whether text is lowercased"] = True,
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
    _places: npt.NDArray[np.int32] | None = None  # of columns, where terms were added by `grow`

    def fit(
        self, texts: Iterable[str], y: object = None, *, progress: Progress = SILENT
    ) -> TextFeatures:
        """Learn the columns and their idf; `y` is ignored."""
        self.fit_transform(texts, progress=progress)
        return self

    def fit_transform(
        self, texts: Iterable[str], y: object = None, *, progress: Progress = SILENT
    ) -> csr_matrix:
        """Learn the columns from `texts`, and return the rows that `transform(texts)` would give.

        Parameters
        ----------
        texts : iterable of str
        progress : Progress
            Told how many texts are done.

        Returns
        -------
        X : csr_matrix of shape (n_texts, n_features), float32, int32 indices
            Rows of length 1; a text without a known word is an empty row.
        """
        check_params(self)
        self._check_kinds()
        texts = _checked(texts)
        sample = texts[:: max(1, len(texts) // _SAMPLE_SIZE)]
        numbered = isinstance(self.char_ngrams, int)
        self.unspaced_ = not numbered and share_unspaced(sample) > _MIN_UNSPACED_SHARE
        self.marks_ = True
        self.char_ngrams_ = None if self.char_ngrams == "auto" else self.char_ngrams
        cutters = self._cutters()
        self._model = None if self.sentences is None else SentenceModel(self.sentences)
        with progress.stage("count words", len(cutters) * len(texts), "texts") as stage:
            counted = [learn_terms(texts, cutter, stage) for cutter in cutters]
        if self.char_ngrams == "auto" and self._are_alone(counted):
            self.char_ngrams_ = _CHOSEN_NGRAMS
            with progress.stage("count parts of words", len(texts), "texts") as stage:
                counted.append(learn_terms(texts, self._cutters()[-1], stage))
        self.min_df_ = self._choose_min_df(counted)
        kinds = [each.columns(self.min_df_) for each in counted]
        counts = [counts for _, _, counts in kinds]
        if counts and not any(matrix.shape[1] for matrix in counts):
            raise DataFormatError(self._no_columns(texts))
        self._vocabularies = [Vocabulary(terms) for terms, _, _ in kinds]
        self._places = None
        self.idf_ = np.concatenate([np.empty(0, np.float32), *(idf for _, idf, _ in kinds)])
        return self._rows(texts, counts, progress)

    def _choose_min_df(self, counted: Sequence[CountedTerms]) -> int:
        """The number that was given; by default the share of texts that 2 leaves empty decides."""
        if self.min_df != "auto":
            return self.min_df
        if self.sentences is not None:  # no row is empty
            return 2
        with_any, with_two = (
            np.logical_or.reduce([each.texts_with(least) for each in counted]) for least in (1, 2)
        )
        left_empty = with_any.sum() - with_two.sum()
        return 1 if left_empty > _MOST_EMPTY * len(with_any) else 2

    def _are_alone(self, counted: Sequence[CountedTerms]) -> bool:
        """Whether many texts share no word with another; a sentence model sees parts of words."""
        if not counted or self.unspaced_ or self.sentences is not None:
            return False
        [words] = counted
        some = words.texts_with(1)
        return need_ngrams(int(some.sum() - words.texts_with(2).sum()), len(some))

    def transform(self, texts: Iterable[str], *, progress: Progress = SILENT) -> csr_matrix:
        """The rows of `texts`; words that are no columns are left out."""
        self._check_fitted()
        texts = _checked(texts)
        kinds = list(zip(self._cutters(), self._vocabularies, strict=True))
        with progress.stage("count words", len(kinds) * len(texts), "texts") as stage:
            counts = [
                join_rows(count_terms(texts, cutter(known.find), stage), len(known))
                for cutter, known in kinds
            ]
        return self._rows(texts, counts, progress)

    def grow(self, texts: Iterable[str]) -> TextFeatures:
        """As `grow_transform`, without the rows."""
        return self.grow_transform(texts)[0]

    def grow_transform(self, texts: Iterable[str]) -> tuple[TextFeatures, csr_matrix]:
        """With a column for every term of `texts` that has none, and the rows of `texts` then.

        New columns come after those there are. What a known term weighs stays. A new one has the
        idf of the rarest known term: how many texts of the fit had it was not kept, and they were
        fewer than `min_df`. A column of `fit` is where it was, so rows from before are those of now
        with zeros at their end.
        """
        self._check_fitted()
        texts = _checked(texts)
        kinds = zip(self._cutters(), self._vocabularies, strict=True)
        with SILENT.stage("count words") as stage:
            counted = [count_all_terms(texts, cutter, known, stage) for cutter, known in kinds]
        grown = self._grown([terms for terms, _ in counted])
        return grown, grown._rows(texts, [counts for _, counts in counted], SILENT)

    def _grown(self, fresh: Sequence[Sequence[str]]) -> TextFeatures:
        """With more terms of each kind."""
        if not any(fresh):
            return self
        grown: TextFeatures = copy(self)
        grown._vocabularies = [
            known.add(terms) for known, terms in zip(self._vocabularies, fresh, strict=True)
        ]
        before = np.cumsum([len(known) for known in self._vocabularies])
        where = np.repeat(before, [len(terms) for terms in fresh])
        grown.idf_ = np.insert(self.idf_, where, self.idf_.max())
        old = np.arange(self.n_columns) if self._places is None else self._places
        places = np.insert(old, where, self.n_columns + np.arange(len(where)))
        last = (places == np.arange(len(places))).all()
        grown._places = None if last else places.astype(np.int32)
        return grown

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name a column: the word, ``char:`` and the n-gram, or ``sentence:`` and a number."""
        self._check_fitted()
        words, *grams = self._vocabularies or [Vocabulary({})]
        width = 0 if self._model is None else self._model.width
        names = (
            *words,
            *(f"{_CHAR_PREFIX}{gram}" for kind in grams for gram in kind),
            *(f"{_SENTENCE_PREFIX}{i}" for i in range(width)),
        )
        if self._places is None:
            return names
        return tuple(names[i] for i in np.argsort(self._places).tolist())

    def without_terms(self, texts: Sequence[str]) -> list[int]:
        """The places of texts that have no word, and no n-gram either, known or unknown."""
        return self._mute(texts, [cutter(lambda term: 0) for cutter in self._cutters()])

    def empty_rows(self, texts: Sequence[str]) -> list[int]:
        """The places of texts whose rows are empty: none of their terms is known."""
        self._check_fitted()
        kinds = zip(self._cutters(), self._vocabularies, strict=True)
        return self._mute(texts, [cutter(known.find) for cutter, known in kinds])

    def _mute(self, texts: Sequence[str], cutters: Sequence[TermIds]) -> list[int]:
        if self.sentences is not None:
            return []
        says = [
            any(True for cutter in cutters for _ in cutter.ids(text)) for text in _checked(texts)
        ]
        return [place for place, any_term in enumerate(says) if not any_term]

    def remarks(self) -> list[str]:
        """What `fit` chose otherwise than for texts of usual length, in words."""
        self._check_fitted()
        if self.char_ngrams != "auto" or self.char_ngrams_ is None:
            return []
        off = advise("char_ngrams=None takes", "--set char_ngrams=none takes")
        return [
            f"parts of words count too (char_ngrams={self.char_ngrams_}), as many texts share no "
            f"word with another; {off} whole words alone"
        ]

    @property
    def only_words(self) -> bool:
        """Whether unknown words leave a row unchanged; n-grams and sentence models see them too."""
        return not (self.char_ngrams_ or self.sentences)

    def words(self, text: str) -> dict[str, float]:
        """The distinct words of a text and their tf-idf weights; unknown words have weight 0."""
        self._check_fitted()
        [text] = _checked([text])
        found = Counter(self._cut(text.lower() if self.lowercase else text))
        find, idf = (self._vocabularies[0] if self.tfidf else Vocabulary({})).find, self.idf_
        return {
            word: 0.0
            if (term := find(word)) is None
            else (1 + math.log(count) if self.sublinear_tf else count) * float(idf[term])
            for word, count in found.items()
        }

    def without_word(self, text: str, word: str) -> str:
        """The text with every occurrence of one of its `words` removed."""
        [text] = _checked([text])

        def keep(found: re.Match[str]) -> str:
            if found.lastindex:  # a stretch without spaces
                return found[0].replace(word, " ")
            as_known = found[0].lower() if self.lowercase else found[0]
            return "" if as_known == word else found[0]

        if self.marks_:
            return (MARKED_WORD_OR_STRETCH if self.unspaced_ else MARKED_WORD).sub(keep, text)
        return (WORD_OR_STRETCH if self.unspaced_ else WORD).sub(keep, text)

    def saved_params(self) -> dict[str, Any]:
        """`get_params()` as a saved model has them: a sentence model's folder by its whole path.

        `min_df` and `char_ngrams` are those that were chosen, which older versions read too.
        """
        self._check_fitted()
        chosen = {"min_df": self.min_df_, "char_ngrams": self.char_ngrams_}
        params: dict[str, Any] = self.get_params() | chosen
        if self.sentences is not None and Path(self.sentences).is_dir():
            params["sentences"] = str(Path(self.sentences).resolve())
        return params

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The learnt state as arrays for a saved model; the parameters are in `get_params()`."""
        self._check_fitted()
        vocabulary, ends = pack_strings(chain(*self._vocabularies))
        more = {} if self._model is None else {"text.sentences_probe": self._model.probe}
        if self._places is not None:
            more["text.places"] = self._places
        if self.min_df == "auto":
            more["text.min_df_chosen"] = np.array([self.min_df_])
        if self.char_ngrams == "auto":
            more["text.char_ngrams_chosen"] = np.array([True])
        return more | {
            "text.vocabulary": vocabulary,
            "text.vocabulary_ends": ends,
            "text.kinds": np.array([len(kind) for kind in self._vocabularies], dtype=np.int64),
            "text.idf": self.idf_,
            "text.unspaced": np.array([self.unspaced_]),
            "text.marks": np.array([self.marks_]),
        }

    @classmethod
    def from_arrays(
        cls, params: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]] | Arrays
    ) -> TextFeatures:
        """The inverse of `saved_params()` and `arrays()`; needs the sentence model of the fit."""
        found = arrays if isinstance(arrays, Arrays) else Arrays(arrays)
        features = cls(**params)
        check_params(features)
        if "text.min_df_chosen" in found:
            features.min_df = "auto"
            features.min_df_ = int(found.counts("text.min_df_chosen", 1)[0])
        else:
            features.min_df_ = whole(params, "min_df", 1)
        features.char_ngrams_ = None if features.char_ngrams == "auto" else features.char_ngrams
        if "text.char_ngrams_chosen" in found and found.flags("text.char_ngrams_chosen", 1)[0]:
            features.char_ngrams = "auto"
        features.unspaced_ = features.marks_ = False  # once there was none
        if "text.unspaced" in found:
            features.unspaced_ = bool(found.flags("text.unspaced", 1)[0])
        if "text.marks" in found:
            features.marks_ = bool(found.flags("text.marks", 1)[0])
        terms = found.strings("text.vocabulary")
        counts = found.counts("text.kinds", len(features._cutters())).tolist()
        ends = [0, *accumulate(counts)]
        features._vocabularies = [
            Vocabulary({term: column for column, term in enumerate(terms[start:stop])})
            for start, stop in pairwise(ends)
        ]
        if ends[-1] != len(terms) or counts != [len(kind) for kind in features._vocabularies]:
            raise ValueError("'text.vocabulary' must hold as many terms as there are columns")
        features.idf_ = found.floats("text.idf", len(terms))
        if features.sentences is not None:
            probe = found.floats("text.sentences_probe", None)
            features._model = SentenceModel.again(features.sentences, probe)
        if "text.places" in found:
            width = features.n_columns
            features._places = found.ids("text.places", width, below=width).astype(np.int32)
            if len(np.unique(features._places)) < width:
                raise ValueError("'text.places' must name every column once")
        return features

    @property
    def n_columns(self) -> int:
        """The width of a row."""
        self._check_fitted()
        return len(self.idf_) + (0 if self._model is None else self._model.width)

    def _check_fitted(self) -> None:
        if not hasattr(self, "idf_"):
            raise not_fitted("this TextFeatures has not been fitted. Call fit(texts) first.")

    def _no_columns(self, texts: Sequence[str]) -> str:
        """Why no word of these texts is a column, and what to do."""
        n = "1 text" if len(texts) == 1 else f"{len(texts):,} texts"
        if not texts:
            return "there are no texts to learn from. Give at least one."
        if len(self.without_terms(texts)) == len(texts):
            remedy = advise("Check the texts", "Check that --text names the column of the texts")
            return f"there is no word of two or more letters or digits in the {n}. {remedy}."
        lower = advise("Lower min_df", "Lower it with --set min_df=1")
        return f"no word stands in {self.min_df_} or more of the {n}. {lower}, or give more texts."

    def _check_kinds(self) -> None:
        if not self.tfidf and self.sentences is None:
            raise ParameterError("tfidf=False leaves no features: name a model with sentences=.")
        if not self.tfidf and self.char_ngrams not in (0, None, "auto"):
            raise ParameterError("char_ngrams are tf-idf too: leave them or tfidf=False out.")

    @property
    def _cut(self) -> Cut:
        if self.marks_:
            return find_marked_words_and_grams if self.unspaced_ else find_marked_words
        return find_words_and_grams if self.unspaced_ else find_words

    def _cutters(self) -> list[Callable[[Find], TermIds]]:
        """For each kind of term, a function that turns a term → id lookup into text → ids."""
        if not self.tfidf:
            return []
        cutters: list[Callable[[Find], TermIds]] = [
            lambda find: WordIds(find, self._cut, self.lowercase, self.word_ngrams, self.unspaced_)
        ]
        if longest := self.char_ngrams_:
            cutters.append(lambda find: GramIds(find, self.lowercase, longest))
        return cutters

    def _rows(
        self, texts: Sequence[str], kinds: list[csr_matrix], progress: Progress
    ) -> csr_matrix:
        """Join the kinds of columns, each with rows of length 1, into rows of length 1."""
        self._weigh(kinds)
        if self._model is not None:
            kinds = [*kinds, csr_matrix(self._model.encode(texts, progress))]
        if len(kinds) == 1:
            return kinds[0]
        joined = csr_matrix(hstack(kinds, format="csr"))
        _normalise(joined)
        if self._places is not None:
            placed = (joined.data, self._places[joined.indices], joined.indptr)
            joined = csr_matrix(placed, shape=joined.shape)
            joined.sort_indices()
        return joined

    def _weigh(self, kinds: list[csr_matrix]) -> None:
        """Turn the counts of each kind of term into tf-idf with rows of length 1, in place."""
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


def _checked(texts: Iterable[str]) -> Sequence[str]:
    """Texts in Unicode's normal form NFC, in which an é is one character."""
    if isinstance(texts, str):
        raise DataFormatError("expected a list of texts, found one text. Put it into a list.")
    texts = texts if isinstance(texts, list | tuple) else list(texts)
    normal = True
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataFormatError(
                f"text {row} is {text!r:.40} ({type(text).__name__}), expected a str. "
                "Replace missing texts by ''."
            )
        normal = normal and (text.isascii() or unicodedata.is_normalized("NFC", text))
    return texts if normal else [unicodedata.normalize("NFC", text) for text in texts]


def _normalise(X: csr_matrix) -> None:
    """Divide every row by its length, in place; empty rows stay."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=X.data * X.data, minlength=X.shape[0]))
    X.data = (X.data / lengths[rows]).astype(np.float32)
