"""Texts in, label names out.

`TextTagger` is `dxml.text.TextFeatures` and `dxml.joint.Joint` in one, with the labels' names, and
with the id and the first line of every training text, so that a prediction can be explained by the
texts it rests on. It learns from more texts without being trained anew (`dxml.teaching`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from dxml._params import Parameter, parameters_of
from dxml._progress import SILENT, Progress
from dxml._storage import read_folder, write_folder
from dxml.exceptions import (
    DataFormatError,
    ModelFormatError,
    NotFittedError,
    ParameterError,
    did_you_mean,
)
from dxml.explaining import strongest
from dxml.joint import Joint
from dxml.methods import TAGGER
from dxml.tags import Explanation, Neighbour, Tag
from dxml.text.features import TextFeatures
from dxml.text.strings import pack_strings, unpack_strings
from dxml.topk import TopK

__all__ = ["Columns", "TextTagger"]

MOST_WORDS = 50  # left out one by one for an explanation: the heaviest
TITLE = 120  # characters of a title
_FIXED: dict[str, Any] = {"scaling": "rows"}  # rows of tf-idf have length 1 already


@dataclass(frozen=True)
class Columns:
    """Where a table has its texts, labels and ids; kept with a model for the next table."""

    text: tuple[str, ...]
    labels: str | None = None
    id: str | None = None
    label_separator: str | None = None


@dataclass
class _Points:
    """What is known of the points beside their features: their labels' names, ids and titles."""

    names: list[str]
    ids: list[str]
    titles: list[str]
    column: dict[str, int] = field(init=False, repr=False)
    row: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.column = {name: i for i, name in enumerate(self.names)}
        self.row = {id: i for i, id in enumerate(self.ids)}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        found: dict[str, npt.NDArray[Any]] = {}
        for what in ("names", "ids", "titles"):
            packed, ends = pack_strings(getattr(self, what))
            found |= {f"tagger.{what}": packed, f"tagger.{what}_ends": ends}
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> _Points:
        names, ids, titles = (
            unpack_strings(arrays[f"tagger.{what}"], arrays[f"tagger.{what}_ends"])
            for what in ("names", "ids", "titles")
        )
        return cls(names, ids, titles)


class TextTagger:
    """Tags texts with the labels that texts like them carry.

    Parameters
    ----------
    **settings
        Parameters of `TextFeatures` (``char_ngrams=5``) and of `Joint` (``precision="int8"``), by
        their names; ``scaling`` is not among them.

    Attributes
    ----------
    features : TextFeatures
    model : Joint
    columns : Columns or None
        Where the table of the training texts had them; the command line keeps it here.

    Examples
    --------
    >>> texts = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]
    >>> tagger = TextTagger().fit(texts, [["ocean"], ["ocean"], ["food"], ["food"]])
    >>> tagger.tag("fish of the sea", top=1)[0].name
    'ocean'
    """

    def __init__(self, **settings: Any) -> None:
        known = self.parameters()
        for name in settings:
            if name not in known:
                raise ParameterError(f"unknown option {name!r}{did_you_mean(name, known)}")
        ours = parameters_of(TextFeatures)
        self.features = TextFeatures(**{k: v for k, v in settings.items() if k in ours})
        self.model = Joint(**{k: v for k, v in settings.items() if k not in ours}, **_FIXED)
        self.columns: Columns | None = None
        self._points: _Points | None = None

    @staticmethod
    def parameters() -> dict[str, Parameter]:
        """What may be set: the features' parameters and the model's."""
        both = {**parameters_of(TextFeatures), **parameters_of(Joint)}
        return {name: parameter for name, parameter in both.items() if name not in _FIXED}

    def get_params(self) -> dict[str, Any]:
        """All settings, given or by default."""
        both = {**self.features.get_params(), **self.model.get_params()}
        return {name: value for name, value in both.items() if name not in _FIXED}

    def __repr__(self) -> str:
        known = {name: parameter.default for name, parameter in self.parameters().items()}
        given = {name: value for name, value in self.get_params().items() if value != known[name]}
        return f"TextTagger({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def labels_(self) -> tuple[str, ...]:
        """The labels' names, in the order of the model's columns."""
        return tuple(self._known.names)

    @property
    def ids_(self) -> tuple[str, ...]:
        """The ids of the training texts, row by row."""
        return tuple(self._known.ids)

    def fit(
        self,
        texts: Sequence[str],
        labels: Iterable[Iterable[str]],
        *,
        ids: Sequence[str] | None = None,
        progress: Progress = SILENT,
    ) -> Self:
        """Learn from texts and the names of their labels.

        Parameters
        ----------
        texts : sequence of str
        labels : a list of names for each text; it may be empty
        ids : sequence of str, optional
            What to call the texts in explanations, each by another name; "0", "1", … by default.
        progress : Progress
            Hears of the long steps.
        """
        texts, rows = _checked_pair(texts, labels)
        ids = _checked_ids(ids, len(texts), ())
        names = sorted(set().union(*rows))
        features, model = clone(self.features), clone(self.model)  # nothing changes by halves
        X = features.fit_transform(texts, progress=progress)
        points = _Points(names, ids, [_title(text) for text in texts])
        model.fit(X, _indicator(rows, points.column), progress=progress)
        self.features, self.model, self._points = features, model, points
        return self

    @overload
    def tag(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self, texts: str, top: int = 5, threshold: float | None = None
    ) -> list[Tag]: ...
    @overload
    def tag(
        self, texts: Sequence[str], top: int = 5, threshold: float | None = None
    ) -> list[list[Tag]]: ...
    def tag(
        self, texts: str | Sequence[str], top: int = 5, threshold: float | None = None
    ) -> list[Tag] | list[list[Tag]]:
        """The most probable labels, best first: a list for one text, a list of lists for several.

        Parameters
        ----------
        top : int
            Labels a text, at most.
        threshold : float, optional
            Only labels of at least this probability; it may be none.
        """
        ranking = self.rank([texts] if isinstance(texts, str) else texts, top)
        names, least = self._known.names, -1.0 if threshold is None else threshold
        tags = [[Tag(names[i], p) for i, p in row if p >= least] for row in ranking.rows()]
        return tags[0] if isinstance(texts, str) else tags

    def rank(self, texts: Sequence[str], top: int = 5, *, progress: Progress = SILENT) -> TopK:
        """As `tag`, with the labels by their columns; see `labels_`."""
        known, frequency = self._known, self.model.label_frequency_
        if isinstance(top, bool) or not hasattr(top, "__index__") or top < 1:
            raise DataFormatError(f"top must be a whole number, 1 or more, got {top!r}.")
        lost = int((frequency == 0).sum())  # labels whose last text was forgotten
        depth = min(top + lost, len(known.names))
        ranking = self.model.predict_topk(self.features.transform(texts), depth, progress=progress)
        if lost:
            ranking = _without(ranking, frequency == 0)
        return ranking.head(min(top, len(known.names)))

    def explain(
        self, text: str, top: int = 5, *, n_words: int = 8, n_neighbours: int = 5
    ) -> list[Explanation]:
        """Why the `top` labels of a text are what they are.

        Parameters
        ----------
        n_words, n_neighbours : int
            Words and neighbours named for each label, at most.

        Notes
        -----
        A word matters by how much lower the label's score is without it, the other words weighing
        what they weighed: other neighbours, other votes, another score of the head. The 50 heaviest
        words are tried, one by one.
        """
        names = self._known.names
        X = self.features.transform([text])
        best = [(label, p) for label, p in self.rank([text], top).row(0)]
        labels = [label for label, _ in best]
        words, effects = self._word_effects(text, X, labels)
        found = {each.label: each for each in self.model.explain_labels(X, labels)}
        return [
            Explanation(
                names[label],
                probability,
                found[label].from_head,
                found[label].from_neighbours,
                strongest(words, effects[:, i], n_words),
                tuple(self._neighbour(voter) for voter in found[label].voters[:n_neighbours]),
            )
            for i, (label, probability) in enumerate(best)
        ]

    def _word_effects(
        self, text: str, X: sp.csr_matrix, labels: list[int]
    ) -> tuple[list[str], npt.NDArray[np.float32]]:
        """The heaviest words of a text, and their effect on each label, (n_words, n_labels)."""
        weights = self.features.words(text)
        if not self.features.char_ngrams:  # words that are no column can then have no effect
            weights = {word: weight for word, weight in weights.items() if weight}
        words = sorted(weights, key=lambda word: -weights[word])[:MOST_WORDS]
        without = self.features.transform([self.features.without_word(text, w) for w in words])
        return words, self.model.effects(X, without, labels)

    def _neighbour(self, voter: Any) -> Neighbour:
        known, labels = self._known, self.model.parts_.labels
        own = labels.indices[labels.indptr[voter.point] : labels.indptr[voter.point + 1]]
        return Neighbour(
            known.ids[voter.point],
            known.titles[voter.point],
            voter.similarity,
            voter.weight,
            tuple(known.names[label] for label in own),
        )

    def learn(
        self,
        texts: Sequence[str],
        labels: Iterable[Iterable[str]],
        *,
        ids: Sequence[str] | None = None,
    ) -> Self:
        """Learn from more texts at once; labels may be new.

        The texts vote from now on, and the labels they carry are predicted. A text whose id is
        known takes the place of the old one. Words that `fit` did not see stay unknown, and parts
        of the model that only `refit` changes stay what they are; see `dxml.teaching`.

        Parameters
        ----------
        texts, labels, ids
            As in `fit`; ids go on from the number of texts by default.
        """
        known = self._known
        texts, rows = _checked_pair(texts, labels)
        ids = _checked_ids(ids, len(texts), known.ids)
        X = self.features.transform(texts)
        new = sorted(set().union(*rows) - known.column.keys())
        names = [*known.names, *new]
        Y = _indicator(rows, {name: i for i, name in enumerate(names)})
        replaced = [known.row[id] for id in ids if id in known.row]
        self.model.partial_fit(X, Y)
        titles = [*known.titles, *(_title(text) for text in texts)]
        self._points = _Points(names, [*known.ids, *ids], titles)
        if replaced:
            self._drop(replaced)
        return self

    def forget(self, id: str) -> Self:
        """Take a text out of the vote; a label that no other text carries is predicted no more."""
        self._drop([self._row(id)])
        return self

    def remove_label(self, id: str, name: str) -> Self:
        """Take a wrong label off a text that was learnt."""
        known, row = self._known, self._row(id)
        labels = self.model.parts_.labels
        own = [known.names[i] for i in labels.indices[labels.indptr[row] : labels.indptr[row + 1]]]
        if name not in own:
            raise ParameterError(
                f"the text {id!r} does not carry the label {name!r}{did_you_mean(name, own)}"
            )
        self.model.remove_label(row, known.column[name])
        return self

    def refit(self, *, progress: Progress = SILENT) -> Self:
        """Train all parts of the model again, on the rows of all the texts that are known.

        The words stay those of `fit`: texts themselves are not kept.
        """
        _ = self._known
        self.model = clone(self.model).fit(
            self.model.parts_.points, self.model.parts_.labels, progress=progress
        )
        return self

    def _drop(self, rows: list[int]) -> None:
        known, gone = self._known, set(rows)
        self.model.forget(rows)
        kept = [row for row in range(len(known.ids)) if row not in gone]
        ids, titles = [known.ids[row] for row in kept], [known.titles[row] for row in kept]
        self._points = _Points(known.names, ids, titles)

    def _row(self, id: str) -> int:
        row = self._known.row.get(id)
        if row is None:
            raise ParameterError(f"there is no text with the id {id!r}. The ids are in ids_.")
        return row

    def encode_labels(self, labels: Iterable[Iterable[str]]) -> sp.csr_matrix:
        """Names as a 0/1 indicator of the model's columns; unknown names are left out."""
        column = self._known.column
        rows = [[name for name in row if name in column] for row in _checked_names(labels)]
        return _indicator(rows, column)

    def save(self, folder: str | Path) -> Path:
        """Write the tagger as a folder of JSON and safetensors, in one step."""
        known = self._known
        config, arrays = self.model._packed()
        config = {
            "method": TAGGER,
            "text": self.features.get_params(),
            "columns": None if self.columns is None else asdict(self.columns),
            "model": config,
        }
        return write_folder(folder, config, arrays | self.features.arrays() | known.arrays())

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a saved tagger."""
        config, arrays = read_folder(folder)
        if config.get("method") != TAGGER:
            raise ModelFormatError(
                f"{folder}: holds a model of method {config.get('method')!r}, which takes "
                "features, not texts. Open it with dxml.load_model."
            )
        tagger = cls()
        try:
            tagger.features = TextFeatures.from_arrays(config["text"], arrays)
            tagger._points = _Points.from_arrays(arrays)
            if (columns := config["columns"]) is not None:
                tagger.columns = Columns(**columns | {"text": tuple(columns["text"])})
            tagger.model = Joint._unpacked(folder, config["model"], arrays)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ModelFormatError):
                raise
            raise ModelFormatError(
                f"{folder}: damaged, something is missing or wrong in it ({error!r}). "
                "Restore the folder from a copy or train again."
            ) from error
        return tagger

    @property
    def _known(self) -> _Points:
        if self._points is None:
            raise NotFittedError(
                "this TextTagger has not been fitted. Call fit(texts, labels) or load(folder)."
            )
        return self._points


def _title(text: str) -> str:
    line = text.strip().partition("\n")[0].strip()
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"


def _checked_pair(
    texts: Sequence[str], labels: Iterable[Iterable[str]]
) -> tuple[list[str], list[list[str]]]:
    if isinstance(texts, str):
        raise DataFormatError("expected a list of texts, found one text. Put it into a list.")
    texts, rows = list(texts), _checked_names(labels)
    if len(texts) != len(rows):
        raise DataFormatError(
            f"there are {len(texts)} texts but {len(rows)} lists of labels. "
            "Give one list for each text."
        )
    return texts, rows


def _checked_names(labels: Iterable[Iterable[str]]) -> list[list[str]]:
    rows = []
    for i, row in enumerate(labels):
        if isinstance(row, str) or not hasattr(row, "__iter__"):
            raise DataFormatError(
                f"expected a list of names as the labels of text {i}, found {row!r:.40}. "
                "Put a single label in a list of its own."
            )
        names = list(row)
        for name in names:
            if not isinstance(name, str) or not name:
                raise DataFormatError(
                    f"expected names as the labels of text {i}, found {name!r:.40}. "
                    "Write every label as a text of at least one character."
                )
        rows.append(names)
    return rows


def _checked_ids(ids: Sequence[str] | None, n: int, taken: Sequence[str]) -> list[str]:
    """The ids as given, or the numbers after those taken."""
    if ids is None:
        used = set(taken)
        free = (id for id in map(str, count(len(taken))) if id not in used)
        return list(islice(free, n))
    found = [str(id) for id in ids]
    if len(found) != n:
        raise DataFormatError(f"there are {n} texts but {len(found)} ids. Give one for each text.")
    if len(set(found)) < n:
        twice = Counter(found).most_common(1)[0][0]
        raise DataFormatError(f"the id {twice!r} stands twice. Give every text another id.")
    return found


def _indicator(rows: list[list[str]], column: Mapping[str, int]) -> sp.csr_matrix:
    lengths = [len(row) for row in rows]
    indices = np.array([column[name] for row in rows for name in row], dtype=np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ones = np.ones(len(indices), dtype=bool)
    found = sp.csr_matrix((ones, indices, indptr), shape=(len(rows), len(column)))
    found.sum_duplicates()
    return found


def _without(ranking: TopK, dropped: npt.NDArray[np.bool_]) -> TopK:
    """The ranking less the dropped labels, the others moved up."""
    gone = (ranking.indices < 0) | dropped[ranking.indices]
    order = np.argsort(gone, axis=1, kind="stable")
    indices = np.take_along_axis(np.where(gone, -1, ranking.indices), order, axis=1)
    scores = np.take_along_axis(np.where(gone, 0, ranking.scores), order, axis=1)
    return TopK(indices.astype(np.int32), scores.astype(np.float32))
