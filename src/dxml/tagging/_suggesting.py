"""Which texts to label next: telling ones that the tagger is unsure of, unlike each other.

A text counts by three numbers, each in standard deviations over the pool: how improbable its best
labels are, how typical of the pool it is (its cosine with the mean of all), and how much it says
(the logarithm of its known words). As many labels count as a training text carries on average, five
at most. Texts are chosen one by one; the more a text is like one that is chosen already, the less
it counts, and copies of one text are suggested once. Texts that the tagger knows with labels, their
copies, and texts without a word are not suggested.

Doubt alone is a bad guide: texts of a few words, of which nobody could be sure, come first by it.
benchmarks/suggest_next.py compares these numbers with a random choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._neighbors.cosine import unit_rows
from dxml.exceptions import ParameterError
from dxml.tagging._tagger import TextTagger
from dxml.tagging._tags import Tag
from dxml.text._near_duplicates import near_duplicates
from dxml.topk import TopK

__all__ = ["Measures", "Suggestion", "choose_apart", "suggest_next"]

LABELS = 5  # of a text, whose probabilities count at most
ALIKE = 3.0  # standard deviations that a text loses by being the same as a chosen one
MUCH = 0.5  # standard deviations from which on a number is a reason
DOUBT = 0.05  # below which a text is not called unsure


@dataclass(frozen=True)
class Suggestion:
    """A text that is worth labelling.

    Attributes
    ----------
    place : int
        In the pool.
    unsure : float
        1 less the mean probability of its best labels: as many as a training text carries on
        average, and five at most.
    typical : float
        Its cosine with the mean of the pool.
    n_words : int
        Known words of it, each counted once.
    reasons : tuple of str
        Why it was chosen.
    copies : tuple of int
        Places of texts that are nearly the same, and need no labels of their own.
    tags : tuple of Tag
        What the tagger would say.
    """

    place: int
    unsure: float
    typical: float
    n_words: int
    reasons: tuple[str, ...]
    copies: tuple[int, ...]
    tags: tuple[Tag, ...]


def suggest_next(
    tagger: TextTagger, texts: Sequence[str], n: int = 20, *, ids: Sequence[str] | None = None
) -> list[Suggestion]:
    """The `n` texts of a pool that are most worth labelling, best first.

    Parameters
    ----------
    tagger : TextTagger
        What has been learnt so far.
    texts : sequence of str
        The pool: texts without labels.
    n : int
        Texts that can be labelled.
    ids : sequence of str, optional
        Of the texts: those that were learnt with labels are known again by them.
    """
    if n < 1:
        raise ParameterError(f"the number of texts must be 1 or more, got {n}.")
    texts = list(texts)
    if not texts:
        return []
    ranking = tagger.rank(texts, LABELS)
    rows = unit_rows(tagger.features.transform(texts))
    measures = Measures.of(rows, ranking, labels_that_count(tagger))
    copies = {group[0]: tuple(group[1:]) for group in near_duplicates(texts)}
    wanted = np.array([bool(text.strip()) for text in texts])
    wanted[[place for group in copies.values() for place in group]] = False
    labelled = tagger.labelled_again(texts, ids)
    wanted[labelled] = False
    wanted[[one for one, others in copies.items() if not {*others}.isdisjoint(labelled)]] = False
    chosen = choose_apart(rows, np.where(wanted, measures.worth(), -np.inf), n)
    tags = tagger.named(ranking)
    return [
        Suggestion(
            place,
            float(measures.unsure[place]),
            float(measures.typical[place]),
            int(measures.n_words[place]),
            measures.reasons(place),
            copies.get(place, ()),
            tuple(tags[place]),
        )
        for place in chosen
    ]


def labels_that_count(tagger: TextTagger) -> int:
    """As many as a text carries on average: one sure label is enough where texts have one."""
    model = tagger.model
    return min(max(round(int(model.label_frequency_.sum()) / model.n_samples_), 1), LABELS)


@dataclass(frozen=True, eq=False)
class Measures:
    """What texts of a pool count by; arrays of shape (n_texts,).

    `unsure` is about the best `n_labels` labels of each.
    """

    unsure: npt.NDArray[Any]
    typical: npt.NDArray[Any]
    n_words: npt.NDArray[Any]
    n_labels: int

    @classmethod
    def of(cls, rows: sp.csr_matrix, ranking: TopK, n_labels: int) -> Measures:
        """Of rows of length 1, and what the tagger says of them."""
        middle = np.asarray(rows.mean(axis=0)).ravel()
        middle /= max(float(np.linalg.norm(middle)), 1e-9)
        sure = np.where(ranking.indices >= 0, ranking.scores, 0)[:, :n_labels]
        return cls(1 - sure.mean(axis=1), rows @ middle, np.diff(rows.indptr), n_labels)

    def worth(self) -> npt.NDArray[Any]:
        """The three together."""
        parts = (self.unsure, self.typical, np.log1p(self.n_words))
        return np.sum([_deviations(values) for values in parts], axis=0)

    def reasons(self, place: int) -> tuple[str, ...]:
        """What speaks for a text."""
        sure = f"{1 - self.unsure[place]:.0%}"
        doubt = f"labels have {sure} on average" if self.n_labels > 1 else f"label has {sure}"
        said = {
            f"unsure: its best {doubt}": self.unsure,
            f"typical of the pool: {self.typical[place]:.2f} like its mean": self.typical,
            f"tells much: {self.n_words[place]:,} known words": np.log1p(self.n_words),
        }
        if self.unsure[place] < DOUBT:  # more than of others, and yet none to speak of
            del said[f"unsure: its best {doubt}"]
        found = [why for why, values in said.items() if _deviations(values)[place] > MUCH]
        if not found and len(self.unsure) == 1:
            return ("there is no other",)
        return tuple(found) or ("unlike the other suggestions",)


def choose_apart(rows: sp.csr_matrix, worth: npt.NDArray[Any], n: int) -> list[int]:
    """Rows of high worth that are unlike each other, one by one.

    Parameters
    ----------
    rows : csr_matrix of shape (n_rows, n_features)
        Of length 1.
    worth : array of shape (n_rows,)
        -inf: not to be chosen.
    """
    left, alike = np.array(worth, dtype=np.float64), np.zeros(rows.shape[0])
    chosen: list[int] = []
    for _ in range(min(n, int(np.isfinite(left).sum()))):
        place = int(np.argmax(left - ALIKE * alike))
        chosen.append(place)
        left[place] = -np.inf
        np.maximum(alike, (rows @ rows[place].T).toarray().ravel(), out=alike)
    return chosen


def _deviations(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """In standard deviations from their mean."""
    return (values - values.mean()) / max(float(values.std()), 1e-9)
