"""What a tagger answers: the labels of texts, why they are given, and what it knows.

`rank` goes from texts to rows, and the model from rows to labels; `tag` gives these their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.html import Shown
from dxml._core.listed import Listed
from dxml.exceptions import (
    DataFormatError,
    ParameterError,
    not_fitted,
)
from dxml.joint._explaining import strongest
from dxml.joint.parts._deep import DeepPart
from dxml.joint.parts._vectors import VectorsPart
from dxml.progress import SILENT, Progress
from dxml.tagging._classifying import Classifying
from dxml.tagging._known_texts import (
    KnownTexts,
    first_line,
    indicator_of,
    label_rows,
    listed_texts,
)
from dxml.tagging._tags import Explanation, Neighbour, Tag, Tags
from dxml.tagging._thesaurus import (
    LabelInfo,
    Thesaurus,
    close_name,
)
from dxml.text._languages import main_language
from dxml.topk import TopK, default_top

__all__ = ["Answering"]

LONG_TITLE = 30  # characters, from which on two texts with the same title are taken for one
FEW_TITLES = 5  # short ones that come again, below which it may be by chance
MOST_WORDS = 50  # left out one by one for an explanation: the heaviest


class Answering(Classifying):
    """A tagger that is fitted or opened; `dxml.tagging.TextTagger` describes its attributes."""

    thesaurus: Thesaurus | None
    _points: KnownTexts | None

    @property
    def labels_(self) -> tuple[str, ...]:
        """The labels' names, in the order of the model's columns."""
        return tuple(self._known.names)

    @property
    def ids_(self) -> tuple[str, ...]:
        """The ids of the training texts, row by row."""
        return tuple(self._known.ids)

    @property
    def language(self) -> str | None:
        """The code of the language of most training texts, told by their titles; None: not told."""
        return main_language(self._known.titles)

    def name_of(self, column: int) -> str:
        """The name of one label."""
        return self._known.names[column]

    def column_of(self, name: str) -> int | None:
        """The column of the label of this name; None where there is none."""
        return self._known.names.place(name)

    def knows(self, id: str) -> bool:
        """Whether there is a training text of this id."""
        return id in self._known.ids

    @overload
    def tag(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self,
        texts: str,
        top: int | None = None,
        threshold: float | None = None,
        *,
        precision: float | None = None,
        recall: float | None = None,
        with_parents: bool = False,
    ) -> Tags: ...

    @overload
    def tag(
        self,
        texts: Sequence[str],
        top: int | None = None,
        threshold: float | None = None,
        *,
        precision: float | None = None,
        recall: float | None = None,
        with_parents: bool = False,
    ) -> list[Tags]: ...

    def tag(
        self,
        texts: str | Sequence[str],
        top: int | None = None,
        threshold: float | None = None,
        *,
        precision: float | None = None,
        recall: float | None = None,
        with_parents: bool = False,
    ) -> Tags | list[Tags]:
        """The most probable labels, best first: a list for one text, a list of lists for several.

        Where nothing of a text is known its labels are only those frequent among such texts; its
        list says so by ``nothing_known``.

        Parameters
        ----------
        top : int, optional
            Labels a text, at most: 5 by default, or 50 with a threshold.
        threshold : float, optional
            Only labels of at least this probability; it may be none.
        precision, recall : float, optional
            Only labels above the threshold that keeps this; see `threshold_for`.
        with_parents : bool
            Whether all broader labels of those are added, each as probable as the most probable
            that it stands above.
        """
        if texts is None:
            raise DataFormatError("expected a text or a list of texts, found None.")
        several = [texts] if isinstance(texts, str) else listed_texts(texts)
        threshold = self._least(top, threshold, precision, recall)
        depth = default_top(threshold) if top is None else top
        named = self.named(self.rank(several, depth), threshold, with_parents=with_parents)
        mute = set(self.nothing_known(several))
        tags = Shown(Tags(row, nothing_known=place in mute) for place, row in enumerate(named))
        return tags[0] if isinstance(texts, str) else tags

    def named(
        self, ranking: TopK, threshold: float | None = None, *, with_parents: bool = False
    ) -> list[list[Tag]]:
        """The names of what `rank` gave, as `tag` gives them."""
        names, least = self._known.names, -1.0 if threshold is None else threshold
        tags = [[Tag(names[i], p) for i, p in row if p >= least] for row in ranking.rows()]
        return [self._raised(row) for row in tags] if with_parents else tags

    def _raised(self, tags: list[Tag]) -> list[Tag]:
        """With the broader labels; a label before what is broader and no more probable."""
        if self.thesaurus is None:
            raise ParameterError(
                "this tagger knows no parents of labels. Give label_info when it is trained."
            )
        best: dict[str, float] = {}
        for name, probability in tags:  # most probable first
            for each in (name, *self.thesaurus.ancestors(name)):
                best.setdefault(each, probability)
        return [Tag(name, probability) for name, probability in best.items()]

    def describe(self, name: str) -> LabelInfo:
        """What is known of a label: other names, description, parents, the way to it, children."""
        thesaurus = self.thesaurus or Thesaurus({}, {})
        name = name if name in self._known.names else thesaurus.resolve(name) or name
        if name not in self._known.names and name not in thesaurus:
            close = close_name(name, [*self._known.names, *thesaurus])
            raise ParameterError(f"there is no label {name!r}{close}.")
        return thesaurus.info(name)

    def rank(self, texts: Sequence[str], top: int = 5, *, progress: Progress = SILENT) -> TopK:
        """As `tag`, with the labels by their columns; see `labels_`."""
        known, frequency = self._known, self.model.label_frequency_
        if isinstance(top, bool) or not hasattr(top, "__index__") or top < 1:
            raise DataFormatError(f"top must be a whole number, 1 or more, got {top!r}.")
        # Labels whose last text was forgotten, where a name alone is not enough.
        lost = 0 if self.model.names_suffice else int((frequency == 0).sum())
        depth = min(top + lost, len(known.names))
        texts = listed_texts(texts)
        rows = self.features.transform(texts)
        ranking = self.model.predict_topk(rows, depth, texts=texts, progress=progress)
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
        found = {each.label: each for each in self.model.explain_labels(X, labels, texts=[text])}
        return Shown(
            Explanation(
                names[label],
                probability,
                found[label].from_head,
                found[label].from_neighbours,
                strongest(words, effects[:, i], n_words),
                tuple(self._neighbour(voter) for voter in found[label].voters[:n_neighbours]),
            )
            for i, (label, probability) in enumerate(best)
        )

    def _word_effects(
        self, text: str, X: sp.csr_matrix, labels: list[int]
    ) -> tuple[list[str], npt.NDArray[np.float32]]:
        """The heaviest words of a text, and their effect on each label, (n_words, n_labels)."""
        weights = self.features.words(text)
        reads = {DeepPart.name, VectorsPart.name} & set(self.model.parts_)
        if self.features.only_words and not reads:  # others have no effect then
            weights = {word: weight for word, weight in weights.items() if weight}
        words = sorted(weights, key=lambda word: -weights[word])[:MOST_WORDS]
        shorter = [self.features.without_word(text, word) for word in words]
        without = self.features.transform(shorter)
        return words, self.model.effects(X, without, labels, texts=[text, *shorter])

    def _neighbour(self, voter: Any) -> Neighbour:
        known = self._known
        return Neighbour(
            known.ids[voter.point],
            known.titles[voter.point],
            voter.similarity,
            voter.weight,
            tuple(self._names_of(voter.point)),
        )

    def labels_of(self, id: str) -> list[str]:
        """The names of the labels that a known text carries."""
        return self._names_of(self._row(id))

    def _names_of(self, row: int) -> list[str]:
        names = self._known.names
        return [names[label] for label in self.model.point_labels(row).tolist()]

    def without_known_words(self, texts: Sequence[str]) -> list[int]:
        """The places of texts of which no word is known."""
        return self.features.empty_rows(texts)

    def nothing_known(self, texts: Sequence[str]) -> list[int]:
        """The places of texts of which no word is known, where no other part reads them either."""
        if self._reads_texts:
            return []
        places = self.features.empty_rows(texts)
        read = self.model.are_read([texts[place] for place in places])
        return [place for place, is_read in zip(places, read, strict=True) if not is_read]

    def wordless(self, ids: Iterable[str]) -> list[str]:
        """Those of these known texts that have no word at all: no prediction changes by them."""
        return [id for id in ids if not self._reads_texts and self.model.is_empty(self._row(id))]

    def without_words(self, texts: Sequence[str]) -> list[int]:
        """The places of texts that have no word at all: learnt, they would change nothing."""
        return [] if self._reads_texts else self.features.without_terms(texts)

    @property
    def _reads_texts(self) -> bool:
        _ = self._known
        return DeepPart.name in self.model.parts_

    def label_names(self, labels: Iterable[Iterable[str]] | Any) -> list[list[str]]:
        """Labels by their names, where a vocabulary calls them otherwise too."""
        return self._by_name(label_rows(labels)[0])

    def _by_name(self, rows: list[list[str]]) -> list[list[str]]:
        return rows if self.thesaurus is None else self.thesaurus.resolved(rows)

    def unknown_labels(self, labels: Iterable[Iterable[str]]) -> tuple[list[str], sp.csr_matrix]:
        """The names that no label has, and a 0/1 indicator of them, a column a name."""
        rows = [[n for n in row if n not in self._known.names] for row in self.label_names(labels)]
        names = sorted(set().union(*rows))
        return names, indicator_of(rows, Listed(names))

    def known_again(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> list[int]:
        """The places of texts that were trained on or learnt, as far as id and title tell.

        Without ids a short title, which may come again by chance, counts only where most do.
        """
        known = self._known
        titles = set(known.titles)
        found: list[int] = []
        short: list[int] = []
        n_short = 0
        for place, text in enumerate(texts):
            title = first_line(text)
            row = None if ids is None else known.ids.place(str(ids[place]))
            if row is not None and known.titles[row] == title:
                found.append(place)
                continue
            is_short = len(title) < LONG_TITLE
            n_short += is_short
            if title in titles:
                (short if is_short else found).append(place)
        most = len(short) >= FEW_TITLES and 2 * len(short) > n_short
        return sorted([*found, *short]) if most else found

    def labelled_again(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> list[int]:
        """The places of texts that are known with labels, as far as id and title tell.

        Without ids a title tells it that is long, or that is the whole text.
        """
        known, found = self._known, []
        rows = {title: row for row, title in enumerate(known.titles)}
        for place, text in enumerate(texts):
            title = first_line(text)
            row = None if ids is None else known.ids.place(str(ids[place]))
            if row is None or known.titles[row] != title:
                telling = len(title) >= LONG_TITLE or title == text.strip()
                row = rows.get(title) if telling else None
            if row is not None and len(self.model.point_labels(row)):
                found.append(place)
        return found

    def _row(self, id: str) -> int:
        row = self._known.ids.place(id)
        if row is None:
            raise ParameterError(f"there is no text with the id {id!r}.")
        return row

    @property
    def _known(self) -> KnownTexts:
        if self._points is None:
            raise not_fitted(
                "this TextTagger has not been fitted. Call fit(texts, labels) or load(folder)."
            )
        return self._points


def _without(ranking: TopK, dropped: npt.NDArray[np.bool_]) -> TopK:
    """The ranking less the dropped labels, the others moved up."""
    gone = (ranking.indices < 0) | dropped[ranking.indices]
    order = np.argsort(gone, axis=1, kind="stable")
    indices = np.take_along_axis(np.where(gone, -1, ranking.indices), order, axis=1)
    scores = np.take_along_axis(np.where(gone, 0, ranking.scores), order, axis=1)
    return TopK(indices.astype(np.int32), scores.astype(np.float32))
