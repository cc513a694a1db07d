"""ML-CSSP: predict a few labels, chosen by their leverage, and the others from them.

W. Bi, J. Kwok: Efficient Multi-label Classification with Many Labels. ICML 2013. Label selection
is a column subset selection problem: find r columns C of Y that leave ‖Y − Y_C Y_C⁺ Y‖ small. It
draws them at random by the leverage scores

    p_l = ‖(V_r)_l‖² / r,   V_r the r leading right singular vectors of Y,

until r different labels are found. Only these are learned, here by ridge regression, and a
prediction z is extended to all labels by

    ŷ = Dᵀ z,   D = Y_C⁺ Y   (r × n_labels).

Where we differ: labels are ranked by ŷ, where the paper rounds it; the regression has an intercept
that is not penalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from dxml._core.arrays import Arrays
from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.scaling import ScalingChoice, fit_scaler
from dxml._core.stages import remembered
from dxml._core.threads import blas_threads
from dxml.baselines._gram import MAX_DIRECT, Gram, ridge
from dxml.baselines._linear import LowRankScores, label_offset
from dxml.baselines._low_rank import LowRankClassifier
from dxml.progress import Progress

__all__ = ["MLCSSP", "interpolation", "leverage_scores"]

Doubles = npt.NDArray[np.float64]


def leverage_scores(
    Y: sp.csr_matrix, rank: int, rng: np.random.Generator, direct: int = MAX_DIRECT
) -> Doubles:
    """p_l of shape (n_labels,), which sum to 1.

    Parameters
    ----------
    Y : float64 csr_matrix of shape (n_samples, n_labels)
    rank : int
        Singular vectors taken, 1 to n_labels.
    direct : int
        Labels up to which Yᵀ Y is formed.
    """
    n_labels = Y.shape[1]
    if n_labels <= direct or rank >= min(Y.shape):
        subset = (n_labels - rank, n_labels - 1)
        squares, columns = scipy.linalg.eigh((Y.T @ Y).toarray(), subset_by_index=subset)
        vectors = columns.T
    else:
        start = rng.standard_normal(min(Y.shape))
        _, values, vectors = svds(Y, rank, v0=start, return_singular_vectors="vh")
        squares = values**2
    real = squares > 1e-10 * squares.max()  # the others are rounding errors: Y has a lower rank
    leverage: Doubles = np.sum(vectors[real] ** 2, axis=0)  # of (rank, n_labels)
    leverage[leverage < 1e-12] = 0
    return leverage / leverage.sum()


def interpolation(Y: sp.csr_matrix, chosen: npt.NDArray[np.int64]) -> Doubles:
    """D = Y_C⁺ Y of shape (chosen, n_labels): labels as linear combinations of the chosen ones."""
    columns = Y[:, chosen]
    normal = (columns.T @ columns).toarray()
    cross = (columns.T @ Y).toarray()
    solution: Doubles = np.linalg.pinv(normal, hermitian=True) @ cross
    return solution


class MLCSSP(LowRankClassifier):
    """Multi-label classification by column subset selection.

    Attributes
    ----------
    chosen_ : int64 array, sorted
        The labels that are learned.
    scores_ : LowRankScores
        Its encoder predicts the chosen labels, its decoder is D.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = MLCSSP().fit(data.X, data.Y)
    >>> model.chosen_.shape
    (5,)
    """

    method: ClassVar[str] = "ml-cssp"
    summary: ClassVar[str] = "ridge regression of a few labels; the others follow from them"

    def __init__(
        self,
        *,
        dim: Annotated[
            int | None, Range(1), "labels r that are learned; None: half of them, at most 500"
        ] = None,
        alpha: Annotated[float, Range(0, open_low=True), "penalty of the ridge regression"] = 1.0,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.dim = dim
        self.alpha = alpha
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self.scaler_ = fit_scaler(X, self.scaling)
        labels = Y.astype(np.float64)
        with progress.stage("selection"):
            self.chosen_ = self._select(labels)
            decoder = interpolation(labels, self.chosen_)
        with progress.stage("features"):
            gram = Gram(self.scaler_.transform(X))
        with progress.stage("regression"):
            encoder = ridge(gram, labels[:, self.chosen_], self.alpha)
        offset = label_offset(np.zeros(self.n_labels_), self.label_frequency_)
        self.scores_ = LowRankScores(encoder, decoder.astype(np.float32), offset)

    def _select(self, Y: sp.csr_matrix) -> npt.NDArray[np.int64]:
        """r labels, drawn without replacement by leverage."""
        dim = min(self.dim or min((self.n_labels_ + 1) // 2, 500), self.n_labels_)
        rng = spawn(self.random_state, "selection")["selection"]
        inputs = {"Y": Y, "dim": dim, "threads": blas_threads()}
        found = remembered(
            "leverage", inputs, lambda: {"chance": leverage_scores(Y, dim, rng)}, rng
        )
        chance = found["chance"]
        dim = min(dim, int(np.count_nonzero(chance)))
        return np.sort(rng.choice(self.n_labels_, dim, replace=False, p=chance))

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        config, arrays = super()._state()
        return config, {**arrays, "chosen": self.chosen_}

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.chosen_ = arrays.ids("chosen", None, below=self.n_labels_)
        super()._restore(config, arrays)
