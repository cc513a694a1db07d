"""Which labels a batch is compared with where there are too many for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._deep.settings import DeepSettings

__all__ = ["Shortlists"]


class Shortlists:
    """Draws the labels of a batch.

    The labels that the batch's texts have, hard negatives that were given, those that the model
    itself ranked highest at the start of the epoch, and random ones. With the weights beside them
    the random ones stand for all labels that were not drawn: the loss over the shortlist is, on
    average, the loss over all labels, as far as `DeepSettings.most_weight` allows.

    Parameters
    ----------
    negatives : csr_matrix of shape (n_texts, n_labels), optional
        Its stored pairs are candidates, e.g. labels of neighbours.
    """

    def __init__(
        self, n_labels: int, settings: DeepSettings, seed: int, negatives: sp.csr_matrix | None
    ) -> None:
        self.own = np.empty((0, 0), dtype=np.int32)
        self._n_labels, self._settings, self._seed = n_labels, settings, seed
        self._negatives = negatives

    def draw(
        self, texts: npt.NDArray[np.int64], labels: npt.NDArray[Any], step: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Labels, each once in rising order, and how many labels each stands for."""
        rng = np.random.default_rng([self._seed, step])
        kinds = [labels, self._given(texts, rng)]
        if len(self.own):
            kinds.append(self.own[texts].ravel())
        hard = np.unique(np.concatenate(kinds).astype(np.int64))
        drawn = rng.integers(self._n_labels, size=self._settings.random)
        drawn = np.setdiff1d(drawn, hard)
        both = np.union1d(hard, drawn)
        share = (self._n_labels - len(hard)) / max(len(drawn), 1)
        weights = np.full(len(both), min(share, self._settings.most_weight), dtype=np.float32)
        weights[np.searchsorted(both, hard)] = 1
        return both, weights

    def _given(
        self, texts: npt.NDArray[np.int64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Some of the given negatives of each text."""
        if self._negatives is None:
            return np.empty(0, dtype=np.int64)
        indptr = self._negatives.indptr.astype(np.int64)
        starts, counts = indptr[texts], indptr[texts + 1] - indptr[texts]
        chance = rng.random((len(texts), self._settings.hard))
        places = starts[:, None] + (chance * counts[:, None]).astype(np.int64)
        return np.asarray(self._negatives.indices[places[counts > 0]]).ravel().astype(np.int64)
