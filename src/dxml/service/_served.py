"""One interface for both kinds of model that can be served: taggers, and joint models of features.

A served model never changes. `ServedTagger.learnt`, `forgotten` and `unlabelled` return another one
that shares unchanged arrays with the old, so that requests under way keep theirs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml.exceptions import ModelFormatError
from dxml.joint import Joint
from dxml.methods import TAGGER, saved_method
from dxml.service._errors import ServiceError
from dxml.tagging._tagger import TextTagger
from dxml.topk import TopK

__all__ = [
    "Change",
    "Point",
    "Served",
    "ServedJoint",
    "ServedTagger",
    "check_method",
    "open_served",
]

LARGEST = float(np.finfo(np.float32).max)
"""Values of features are kept in 32 bits."""

Point = str | Mapping[int, float]
"""What is ranked: a text, or features by their column."""


class Served(ABC):
    """What both kinds of model have in common."""

    takes: ClassVar[str]
    """"text" or "features": the field of a request that the model wants."""

    @property
    @abstractmethod
    def joint(self) -> Joint:
        """The model inside."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The labels' names, column by column."""

    @abstractmethod
    def name(self, label: int) -> str:
        """That of one label."""

    @abstractmethod
    def check(self, points: Sequence[Point]) -> None:
        """Refuse what this model cannot rank."""

    @abstractmethod
    def rank(self, points: Sequence[Any], top: int) -> TopK:
        """The best labels of each point."""

    @abstractmethod
    def explain(self, point: Any, top: int) -> list[dict[str, Any]]:
        """Why these labels."""

    def nothing_known(self, points: Sequence[Any]) -> list[int]:
        """The places of points of which the model knows nothing."""
        return []

    def about(self, name: str) -> dict[str, Any]:
        """A label's description and parents, where they are known."""
        return {}

    def applied_from(self, journal: str) -> int:
        """Number of the last entry of a journal that the saved model has applied; 0 for none."""
        return 0

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Of the points and of the labels' names; None where it is not known."""
        return None, None

    @property
    def frequency(self) -> npt.NDArray[np.int64]:
        """Points that carry each label."""
        return self.joint.label_frequency_

    @property
    def n_points(self) -> int:
        """Points known."""
        return self.joint.n_samples_

    @cached_property
    def n_labels(self) -> int:
        """Labels that some point carries."""
        return int((self.frequency > 0).sum())

    @cached_property
    def _by_frequency(self) -> list[tuple[str, str, int]]:
        """(name for comparing, name, points) of labels in use: most frequent first, then by name.

        Two names that differ in case alone are compared alike.
        """
        counts = self.frequency.tolist()
        found = [
            (name.casefold(), name, n) for name, n in zip(self.names, counts, strict=True) if n
        ]
        return sorted(found, key=lambda label: (-label[2], label[1]))

    def labels(self, query: str) -> list[tuple[str, int]]:
        """Labels whose names hold the query, in any case, with the points that carry them."""
        folded = query.casefold()
        return [(name, n) for known, name, n in self._by_frequency if folded in known]


Change = Literal["rename", "merge", "delete"]
"""What may be done with labels."""


class ServedTagger(Served):
    """A tagger of texts, which can be taught."""

    takes = "text"

    def __init__(self, tagger: TextTagger) -> None:
        self.tagger = tagger

    @property
    def joint(self) -> Joint:
        """The model inside."""
        return self.tagger.model

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The labels' names, column by column."""
        return self.tagger.labels_

    def name(self, label: int) -> str:
        """That of one label."""
        return self.tagger.name_of(label)

    def texts_of(self, name: str) -> int | None:
        """How many texts carry the label of this name; None where there is no such label."""
        column = self.tagger.column_of(name)
        return None if column is None else int(self.frequency[column])

    def knows(self, id: str) -> bool:
        """Whether there is a text with this id."""
        return self.tagger.knows(id)

    def labels_of(self, id: str) -> list[str]:
        """The names of the labels that a text carries."""
        return self.tagger.labels_of(id)

    def outside(self, labels: Sequence[Sequence[str]]) -> list[str]:
        """The labels of these rows that the vocabulary lacks, where there is one."""
        known = self.tagger.thesaurus
        return [] if known is None else list(known.outside(labels))

    def about(self, name: str) -> dict[str, Any]:
        """A label's description and parents, where they are known."""
        known = self.tagger.thesaurus
        if known is None or name not in known:
            return {}
        about = {"description": known.descriptions[name], "parents": list(known.parents[name])}
        return {what: value for what, value in about.items() if value}

    def applied_from(self, journal: str) -> int:
        """Number of the last entry of a journal that the saved model has applied; 0 for none."""
        known = self.tagger.applied_lessons
        return known.number if known is not None and known.journal == journal else 0

    @cached_property
    def languages(self) -> tuple[str | None, str | None]:
        """Of the texts, and of the labels' names: that of the vocabulary, else of the texts."""
        texts, known = self.tagger.language, self.tagger.thesaurus
        return texts, (known.language if known is not None else None) or texts

    def check(self, points: Sequence[Point]) -> None:
        """Refuse features."""
        if not all(isinstance(point, str) for point in points):
            raise ServiceError("invalid", "this model takes texts: give 'text', not 'features'.")

    def rank(self, points: Sequence[Any], top: int) -> TopK:
        """The best labels of each text."""
        return self.tagger.rank(points, top)

    def nothing_known(self, points: Sequence[Any]) -> list[int]:
        """The places of texts of which no word is known."""
        return self.tagger.nothing_known(points)

    def explain(self, point: Any, top: int) -> list[dict[str, Any]]:
        """Words, neighbours and shares for each label."""
        return [why.to_dict() for why in self.tagger.explain(point, top)]

    def learnt(
        self, texts: Sequence[str], labels: Sequence[Sequence[str]], ids: Sequence[str]
    ) -> ServedTagger:
        """A tagger that has learnt these too."""
        return ServedTagger(self._copy().learn(texts, labels, ids=ids))

    def forgotten(self, id: str) -> ServedTagger:
        """A tagger without this text."""
        return ServedTagger(self._copy().forget(id))

    def unlabelled(self, id: str, name: str) -> ServedTagger:
        """A tagger that has unlearnt a label of a text."""
        return ServedTagger(self._copy().remove_label(id, name))

    def relabelled(self, how: Change, labels: Sequence[str], into: str | None) -> ServedTagger:
        """A tagger with labels renamed, merged or deleted."""
        tagger = self._copy()
        if how == "delete" or into is None:
            for name in labels:
                tagger.delete_label(name)
        elif how == "merge":
            tagger.merge_labels(labels, into)
        else:
            tagger.rename_label(labels[0], into)
        return ServedTagger(tagger)

    def relabelled_again(
        self, how: Change, labels: Sequence[str], into: str | None
    ) -> ServedTagger:
        """As `relabelled`, for a model that may have come later.

        It may lack some of the labels, or have the new name already.
        """
        known = [name for name in dict.fromkeys(labels) if name in self.names]
        if not known or (how == "delete" and len(known) == len(self.names)):
            return self
        if how != "delete":
            how = "merge" if len({*known, into}.intersection(self.names)) > 1 else "rename"
        return self if known == [into] else self.relabelled(how, known, into)

    def _copy(self) -> TextTagger:
        """Teaching replaces the attributes of a tagger and of its model, never their contents."""
        tagger = copy.copy(self.tagger)
        tagger.model = copy.copy(self.tagger.model)
        return tagger


class ServedJoint(Served):
    """A joint model of features."""

    takes = "features"

    def __init__(self, model: Joint) -> None:
        self.model = model

    @property
    def joint(self) -> Joint:
        """The model inside."""
        return self.model

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The labels' names, or their columns where they have none."""
        names = self.model.label_names_
        known = range(self.model.n_labels_) if names is None else names.tolist()
        return tuple(map(str, known))

    def name(self, label: int) -> str:
        """That of one label."""
        return self.names[label]

    def check(self, points: Sequence[Point]) -> None:
        """Refuse texts, features that the model does not have, and values it cannot hold."""
        width = self.model.n_features_in_
        for point in points:
            if isinstance(point, str):
                message = "this model takes features: give 'features', not 'text'."
                raise ServiceError("invalid", message)
            for column, value in point.items():
                if not 0 <= column < width:
                    raise ServiceError(
                        "invalid", f"features go from 0 to {width - 1}, got {column}."
                    )
                if not -LARGEST <= value <= LARGEST:
                    message = f"values go up to {LARGEST:.2g}, got {value:g} for feature {column}."
                    raise ServiceError("invalid", message)

    def rank(self, points: Sequence[Any], top: int) -> TopK:
        """The best labels of each point."""
        return self.model.predict_topk(self._rows(points), min(top, self.model.n_labels_))

    def explain(self, point: Any, top: int) -> list[dict[str, Any]]:
        """Features, neighbours by their row, and shares for each label."""
        found = self.model.explain(self._rows([point]), min(top, self.model.n_labels_))
        return [
            {
                "name": self.names[why.label],
                "probability": why.probability,
                "from_head": why.from_head,
                "from_neighbours": why.from_neighbours,
                "features": why.features,
                "neighbours": [
                    {"id": str(near.point), "similarity": near.similarity, "weight": near.weight}
                    for near in why.voters[:5]
                ],
            }
            for why in found
        ]

    def _rows(self, points: Sequence[Mapping[int, float]]) -> sp.csr_matrix:
        sizes = [len(point) for point in points]
        columns = np.array([column for point in points for column in point], dtype=np.int64)
        values = np.array([v for point in points for v in point.values()], dtype=np.float32)
        indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        shape = (len(points), self.model.n_features_in_)
        return sp.csr_matrix((values, columns, indptr), shape=shape)


def open_served(folder: str | Path) -> Served:
    """Open a saved model of either kind."""
    if check_method(folder) == TAGGER:
        return ServedTagger(TextTagger.load(folder))
    return ServedJoint(Joint.load(folder))


def check_method(folder: str | Path) -> str:
    """The method of a saved model; one that cannot be served is refused."""
    method = saved_method(folder)
    if method not in (TAGGER, Joint.method):
        raise ModelFormatError(
            f"{folder}: holds a model of method {method!r}. "
            "Served are taggers of texts and models of method 'joint'."
        )
    return method
