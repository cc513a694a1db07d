"""What a tagger learns later; `dxml.joint._teaching` says how its model does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Self

import scipy.sparse as sp

from dxml.exceptions import (
    ParameterError,
    did_you_mean,
)
from dxml.progress import SILENT, Progress
from dxml.tagging._answering import Answering
from dxml.tagging._known_texts import (
    checked_ids,
    checked_pair,
    first_line,
    indicator_of,
)
from dxml.tagging._thesaurus import (
    label_text,
)
from dxml.text._features import TextFeatures

__all__ = ["Teachable"]


class Teachable(Answering):
    """Takes up, forgets and corrects texts, and trains on with them."""

    def learn(
        self,
        texts: Sequence[str],
        labels: Iterable[Iterable[str]],
        *,
        ids: Sequence[str] | None = None,
    ) -> Self:
        """Learn from more texts at once; labels may be new.

        The texts vote from now on, and the labels they carry are predicted. A text whose id is
        known takes the place of the old one. Words that were unknown are known from now on. Parts
        of the model that only `refit` changes stay what they are; see `dxml.joint._teaching`.

        Parameters
        ----------
        texts, labels, ids
            As in `fit`; ids go on from the number of texts by default.
        """
        texts, rows, *_ = checked_pair(texts, labels)
        ids = checked_ids(ids, len(texts), self._known.ids)
        features, X = self.features.grow_transform(texts)
        self._learn(features, X, texts, self._by_name(rows), ids)
        return self

    def _learn(
        self,
        features: TextFeatures,
        X: sp.csr_matrix,
        texts: Sequence[str],
        rows: list[list[str]],
        ids: Sequence[str],
    ) -> None:
        known, model = self._known, copy(self.model)  # nothing changes by halves
        new = sorted(name for name in set().union(*rows) if name not in known.names)
        Y = indicator_of(rows, known.names, new)
        replaced = [row for id in ids if (row := known.ids.place(id)) is not None]
        new_texts = [label_text(name, self.thesaurus) for name in new]
        model.widen(X.shape[1]).partial_fit(X, Y, texts=texts, label_texts=new_texts)
        self.features, self.model = features, model
        self._points = known.add(new, ids, [first_line(text) for text in texts])
        if replaced:
            self._drop(replaced)

    def forget(self, id: str) -> Self:
        """Take a text out of the vote; a label that no other text carries is predicted no more."""
        self._drop([self._row(id)])
        return self

    def remove_label(self, id: str, name: str) -> Self:
        """Take a wrong label off a text that was learnt."""
        row, own = self._row(id), self.labels_of(id)
        if name not in own:
            raise ParameterError(
                f"the text {id!r} does not carry the label {name!r}{did_you_mean(name, own)}"
            )
        label = self._known.names.place(name)
        assert label is not None
        self.model.remove_label(row, label)
        return self

    def catch_up(self, *, progress: Progress = SILENT) -> Self:
        """Train the parts on from where they are, with all the texts that are known.

        A good deal quicker than `refit`, and about as good; see `Joint.catch_up`.
        """
        _ = self._known
        self.model.catch_up(progress=progress)
        return self

    def refit(self, *, progress: Progress = SILENT) -> Self:
        """Train all parts of the model again, on the rows of all the texts that are known.

        The words stay those of `fit` and of what was learnt since: texts are not kept.
        """
        names = [label_text(name, self.thesaurus) for name in self._known.names]
        model = copy(self.model)  # nothing changes by halves
        self.model = model.refit(label_texts=names, progress=progress)
        return self

    def _drop(self, rows: list[int]) -> None:
        self.model.forget(rows)
        self._points = self._known.drop(rows)
