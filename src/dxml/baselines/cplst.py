"""CPLST: label directions that are both large and easy to predict.

Y.-N. Chen, H.-T. Lin: Feature-aware Label Space Dimension Reduction for Multi-label
Classification. NIPS 2012. With Z = Y − 1 ȳᵀ and the ridge regression hat matrix
P = X (Xᵀ X + α I)⁻¹ Xᵀ, it takes the `dim` leading eigenvectors V of

    Zᵀ P Z   (n_labels × n_labels),

regresses the codes Z V on X, and decodes a predicted code t to V t + ȳ. The columns of V trade
the error of reducing labels (‖Z − Z V Vᵀ‖²) for that of predicting codes (‖P Z V − Z V‖²).

Where we differ: X is centred too, which leaves the regression's intercept without penalty; labels
are ranked by V t + ȳ, where the paper rounds it to 0 and 1. With many labels the eigenvectors come
from Lanczos iterations on products with the sparse Y and X, and Zᵀ P Z is never formed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.scaling import ScalingChoice, fit_scaler
from dxml._core.stages import Pieces, remembered
from dxml._core.threads import blas_threads
from dxml.baselines._gram import MAX_DIRECT, Gram, ridge
from dxml.baselines._linear import LowRankScores, label_offset
from dxml.baselines._low_rank import LowRankClassifier
from dxml.progress import Progress

__all__ = ["CPLST", "conditional_directions"]

Doubles = npt.NDArray[np.float64]


def conditional_directions(
    gram: Gram,
    Y: sp.csr_matrix,
    dim: int,
    alpha: float,
    rng: np.random.Generator,
    direct: int = MAX_DIRECT,
) -> Doubles:
    """The `dim` leading eigenvectors of Zᵀ P Z, largest first: (n_labels, dim).

    Parameters
    ----------
    gram : Gram
        Of the features.
    Y : float64 csr_matrix of shape (n_samples, n_labels)
    direct : int
        Labels up to which the matrix is formed.
    """
    n_labels = Y.shape[1]
    inputs = {"X": gram.checksum, "Y": Y, "dim": dim, "alpha": alpha, "threads": blas_threads()}
    if n_labels <= direct or dim >= n_labels:

        def compute() -> dict[str, Doubles]:
            cross = gram.correlate(Y)  # (n_features, n_labels)
            matrix = cross.T @ gram.solve(cross, alpha)
            subset = (n_labels - dim, n_labels - 1)
            _, vectors = scipy.linalg.eigh(matrix, subset_by_index=subset, overwrite_a=True)
            return {"vectors": vectors}

        vectors = remembered("directions", inputs, compute)["vectors"]
    else:
        start = rng.standard_normal(n_labels)
        with Pieces("products", {**inputs, "start": start}) as pieces:
            # what eigsh asks for next depends on the products before: they are stored in a row

            def product(v: Doubles) -> Doubles:
                return pieces.next(lambda: {"product": multiplied(v)})["product"]

            def multiplied(v: Doubles) -> Doubles:
                codes = Y @ v.reshape(n_labels, -1)
                return Y.T @ gram.project(gram.solve(gram.correlate(codes), alpha))

            shape = (n_labels, n_labels)
            operator = LinearOperator(shape, product, matmat=product, dtype=np.float64)
            _, vectors = eigsh(operator, dim, v0=start, tol=1e-4)
    return np.ascontiguousarray(vectors[:, ::-1])


class CPLST(LowRankClassifier):
    """Conditional principal label space transformation.

    Attributes
    ----------
    scores_ : LowRankScores
        Its encoder predicts the code of a point, its decoder is Vᵀ, its offset ȳ.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = CPLST(dim=5).fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "cplst"
    summary: ClassVar[str] = "ridge regression onto the label directions easiest to predict"

    def __init__(
        self,
        *,
        dim: Annotated[int | None, Range(1), "size of a code; None: 500, or all labels"] = None,
        alpha: Annotated[
            float, Range(0, open_low=True), "penalty of the ridge regression on codes"
        ] = 1.0,
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
        dim = min(self.dim or 500, self.n_labels_)
        rng = spawn(self.random_state, "directions")["directions"]
        with progress.stage("features"):
            gram = Gram(self.scaler_.transform(X))
        with progress.stage("directions"):
            V = conditional_directions(gram, labels, dim, self.alpha, rng)
        mean = self.label_frequency_ / self.n_samples_
        with progress.stage("regression"):
            encoder = ridge(gram, labels @ V - mean @ V, self.alpha)
        offset = label_offset(mean, self.label_frequency_)
        self.scores_ = LowRankScores(encoder, np.ascontiguousarray(V.T, np.float32), offset)
