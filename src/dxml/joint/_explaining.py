"""Why a joint model gives a label: what each part adds, who voted, which features matter.

A mixed score is a weighted sum of what the parts say (`dxml.joint._mixture`). What a part **adds**
is its weighted terms less those it would have for a point of which nothing is known: no features,
no neighbour. For the vote that is a share of 0, for the linear head wᵀx = 0, for kernel and wide
layer what they say of an empty row. A label's frequency is the same for both and adds nothing. So

    score of the label − its score for an empty point = Σ over the parts of what they add.

The **shares** of head and neighbours are the positive ones of these two sums, made to add up to 1:
the head is linear head, kernel and wide layer together, the neighbours are the vote.

A feature's **effect** is how much lower the score is where it is 0 and the other features are what
they were (the row is not made longer again: evidence that is there twice would then count for
nothing). All is computed anew: other neighbours, other votes, another score of the head. For a
linear head alone that is its weight times the feature.

A label that no known point carries is told by its name alone (`Part.unseen_scores`). Its score is
the log-odds that the name gives, and an effect is how much lower these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.html import MOST_SHOWN, bar, not_shown, table
from dxml._core.sparse import plain_csr, stack_rows
from dxml._deep.texts import Texts
from dxml.joint._ensemble import Ensemble, every_pair
from dxml.joint._mixture import Mixture
from dxml.joint._points import Near
from dxml.joint.parts._vote import Vote
from dxml.joint.parts.protocol import Query

__all__ = ["Evidence", "Explainer", "Voter", "strongest"]

MOST_FEATURES = 50  # left out one by one: the heaviest

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
Name = TypeVar("Name")


def strongest(
    names: Sequence[Name], effects: npt.NDArray[np.floating], count: int
) -> tuple[tuple[Name, float], ...]:
    """The names with the largest positive effects, and these.

    >>> strongest(["a", "b", "c"], np.array([0.5, -1.0, 2.0]), 2)
    (('c', 2.0), ('a', 0.5))
    """
    order = np.argsort(-effects, kind="stable")[:count].tolist()
    return tuple((names[i], float(effects[i])) for i in order if effects[i] > 0)


@dataclass(frozen=True)
class Voter:
    """A training point near the query that carries the label.

    Attributes
    ----------
    point : int
        Its row.
    similarity : float
        Its cosine with the query, in the space of the vote.
    weight : float
        Its share of all votes, from 0 to 1.
    """

    point: int
    similarity: float
    weight: float


@dataclass(frozen=True)
class Evidence:
    """Why one label was given.

    Attributes
    ----------
    label : int
    probability : float
    added : dict of floats
        What each part adds to the score: "vote", and of "linear", "kernel" and "wide" those that
        the model has. In log-odds, about.
    voters : tuple of Voter
        All that voted for the label, heaviest first.
    features : tuple of (int, float)
        Features of the point with a positive effect, and the effect, largest first.
    """

    label: int
    probability: float
    added: Mapping[str, float]
    voters: tuple[Voter, ...]
    features: tuple[tuple[int, float], ...] = ()

    @property
    def from_neighbours(self) -> float:
        """The vote's share of what speaks for the label, from 0 to 1."""
        vote, head = self._sums()
        return vote / (vote + head) if vote + head else 0.0

    @property
    def from_head(self) -> float:
        """The other parts' share; both shares are 0 where nothing speaks for the label."""
        vote, head = self._sums()
        return head / (vote + head) if vote + head else 0.0

    def _sums(self) -> tuple[float, float]:
        vote = self.added["vote"]
        return max(vote, 0.0), max(sum(self.added.values()) - vote, 0.0)

    def _repr_html_(self) -> str:
        """What the parts add, the strongest features and the heaviest voters."""
        added = [[part, f"{value:+.2f}"] for part, value in self.added.items()]
        features = [[feature, f"{effect:+.2f}"] for feature, effect in self.features]
        voters = [
            [voter.point, f"{voter.similarity:.2f}", bar(voter.weight)]
            for voter in self.voters[:MOST_SHOWN]
        ]
        return "".join(
            [
                f"<p><b>label {self.label}</b> {bar(self.probability)}</p>",
                table(["part", "adds"], added),
                table(["feature", "effect"], features) if features else "",
                table(["point that voted", "similarity", "share of the votes"], voters),
                not_shown(len(self.voters), "points"),
            ]
        )


class Explainer:
    """Scores given labels of scaled rows, and takes the scores apart."""

    def __init__(self, ensemble: Ensemble, mixture: Mixture, device: str) -> None:
        self._ensemble, self._mixture, self._device = ensemble, mixture, device

    def scores(self, X: sp.csr_matrix, labels: Ids, texts: Texts | None = None) -> Floats:
        """The mixed score of each label for each row, (n_samples, n_labels_given)."""
        near = self._near(X)
        mixed = self._mixture.mix(self._said(X, near, labels, texts))
        scores = mixed.reshape(X.shape[0], len(labels))
        for told, odds in self._by_name(X, near, labels, texts).values():
            scores[:, told] = odds
        return scores

    def added(
        self,
        X: sp.csr_matrix,
        labels: Ids,
        texts: Texts | None = None,
        no_text: Texts | None = None,
    ) -> tuple[Floats, list[dict[str, float]], list[tuple[Voter, ...]]]:
        """One row's probabilities of the labels, what each part adds to their scores, who voted.

        A label without an example that is told by its name has only what the name adds. `no_text`
        is an empty text.
        """
        near = self._near(X)
        nothing = plain_csr(X.data[:0], X.indices[:0], np.zeros_like(X.indptr), X.shape)
        nobody = Near(np.full_like(near.ids, -1), np.zeros_like(near.cosines))
        said = self._said(X, near, labels, texts)
        terms = self._mixture.terms(said)
        unsaid = self._mixture.terms(self._said(nothing, nobody, labels, no_text))
        names = sorted(name for name, part in self._ensemble.parts.items() if part.explains)
        rows = [
            {name: float(terms[name][i] - unsaid[name][i]) for name in names}
            for i in range(len(labels))
        ]
        probability = self._mixture.probability(self._mixture.mix(said))
        empty = self._by_name(nothing, nobody, labels, no_text)
        for part, (told, odds) in self._by_name(X, near, labels, texts).items():
            probability[told] = 1 / (1 + np.exp(-odds[0]))
            for i, more in zip(np.flatnonzero(told), odds[0] - empty[part][1][0], strict=True):
                rows[i] = dict.fromkeys(names, 0.0) | {part: float(more)}
        voters = [self._voters(near, label) for label in labels.tolist()]
        return probability, rows, voters

    def _by_name(
        self, X: sp.csr_matrix, near: Near, labels: Ids, texts: Texts | None
    ) -> dict[str, tuple[npt.NDArray[np.bool_], Floats]]:
        """The labels without an example that a part tells by their names, and their log-odds."""
        known = self._ensemble.known
        none = plain_csr(np.empty(0, bool), np.empty(0, np.int32), np.zeros(1, np.int32), (0, 0))
        query = Query(X, near, none, False, known, self._device, texts)
        found = {}
        for name, part in self._ensemble.parts.items():
            told = part.unseen_scores(query, labels)
            if told is not None:
                found[name] = told
        return found

    def _near(self, X: sp.csr_matrix) -> Near:
        return self._ensemble.known.search(X, self._ensemble.n_neighbors, self._device)

    def _voters(self, near: Near, label: int) -> tuple[Voter, ...]:
        """The neighbours of one row that carry the label, heaviest first."""
        vote, known = self._ensemble.parts[Vote.name], self._ensemble.known
        assert isinstance(vote, Vote)
        found = []
        for point, cosine, weight in zip(
            near.ids[0], near.cosines[0], vote.weights(near)[0], strict=True
        ):
            if point < 0:
                continue
            if label in known.labels_of(np.array([point])):
                row = int(known.holes.number_of(point))
                found.append(Voter(row, float(cosine), float(weight)))
        return tuple(sorted(found, key=lambda voter: -voter.weight))

    def effects(
        self, X: sp.csr_matrix, labels: Ids, texts: Texts | None = None
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        """(features, their effects on each label (n_features, n_labels_given)) of one row.

        A text stays what it is.
        """
        kept = np.sort(np.argsort(-np.abs(X.data), kind="stable")[:MOST_FEATURES])
        n, size = len(kept), X.nnz
        others = np.arange(size) != kept[:, None]  # (n, size)
        indptr = np.arange(n + 1, dtype=np.int32) * max(size - 1, 0)
        data, columns = np.tile(X.data, (n, 1))[others], np.tile(X.indices, (n, 1))[others]
        without = plain_csr(data, columns, indptr, (n, X.shape[1]))
        same = None if texts is None else texts.take(np.zeros(n + 1, np.int64))
        return X.indices[kept].astype(np.int64), self.differences(X, without, labels, same)

    def differences(
        self,
        X: sp.csr_matrix,
        without: sp.csr_matrix,
        labels: Ids,
        texts: Texts | None = None,
    ) -> Floats:
        """How much lower the labels' scores are for each row of `without` than for the one of X.

        `texts` are those of X and of `without`, in that order.
        """
        if not without.shape[0]:
            return np.empty((0, len(labels)), dtype=np.float32)
        scores = self.scores(stack_rows(X, without), labels, texts)
        return scores[:1] - scores[1:]

    def _said(
        self, X: sp.csr_matrix, near: Near, labels: Ids, texts: Texts | None
    ) -> dict[str, Floats]:
        """What the parts say of each (row, label), row by row in the order of `labels`."""
        ensemble, n = self._ensemble, X.shape[0]
        known, every = ensemble.known, ensemble.plan.every_label
        if every:
            pairs = every_pair(n, known.n_labels)
        else:
            indptr, wanted = np.arange(n + 1, dtype=np.int64) * len(labels), np.tile(labels, n)
            pairs = plain_csr(np.ones(len(wanted), bool), wanted, indptr, (n, known.n_labels))
        said = ensemble.scores(Query(X, near, pairs, every, known, self._device, texts))
        if not every:
            return said
        places = (np.arange(n)[:, None] * known.n_labels + labels).ravel()
        return {name: score[places] for name, score in said.items()}
