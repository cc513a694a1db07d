"""LEML: a low-rank linear map from features to labels.

H.-F. Yu, P. Jain, P. Kar, I. Dhillon: Large-scale Multi-label Learning with Missing Labels.
ICML 2014. With the squared loss and every label observed, its problem, with the trace norm
written as a sum over the two factors, is

    min_{W, H} J(W, H) = ½ ‖Y − X W Hᵀ‖² + ½ λ (‖W‖² + ‖H‖²),   W: d × r, H: L × r,

solved alternately, each step an exact least squares problem:

    H ← Yᵀ A (Aᵀ A + λ I)⁻¹  with A = X W;
    W: Xᵀ X W (Hᵀ H) + λ W = Xᵀ Y H by conjugate gradients.

Labels are ranked by the rows of X W Hᵀ. No array has both n and L as its sides.

Where we differ: X and Y are centred, which is the same as an intercept for each label that is not
penalised; the means are kept apart, so both stay sparse. Hᵀ H = Q Λ Qᵀ is diagonalised first,
after which the columns of W Q are independent systems (λᵢ Xᵀ X + λ I), each
with its own steps of conjugate gradients. Training stops when a round lowers J by less than
`tol`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from dxml._core.arrays import Arrays, reals
from dxml._core.params import Range, Seed
from dxml._core.random import spawn
from dxml._core.scaling import ScalingChoice, fit_scaler
from dxml._core.sparse import sparse_product
from dxml._core.stages import Newest
from dxml._core.threads import blas_threads
from dxml.baselines._gram import Gram, conjugate_gradient
from dxml.baselines._linear import LinearMap, LowRankScores, label_offset
from dxml.baselines._low_rank import LowRankClassifier
from dxml.progress import Progress

__all__ = ["LEML"]

Doubles = npt.NDArray[np.float64]


class LEML(LowRankClassifier):
    """Low-rank empirical risk minimisation for multi-label learning.

    Attributes
    ----------
    scores_ : LowRankScores
        Its encoder is x ↦ Wᵀ (x − μ), its decoder Hᵀ, its offset the mean of each label.
    history_ : list of float
        J after each round.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = LEML().fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "leml"
    summary: ClassVar[str] = "a low-rank linear map from features to labels, squared loss"
    former_names: ClassVar[Mapping[str, str]] = {"iterations": "max_iter", "tolerance": "tol"}
    curve: ClassVar[tuple[str, str] | None] = ("turn", "objective J")

    def __init__(
        self,
        *,
        rank: Annotated[
            int | None, Range(1), "columns r of W and H; None: 200, or 100 from 20,000 labels on"
        ] = None,
        alpha: Annotated[float, Range(0, open_low=True), "weight λ of ‖W‖² + ‖H‖²"] = 1.0,
        max_iter: Annotated[int, Range(1), "most rounds, each of which solves for W and H"] = 10,
        cg_steps: Annotated[int, Range(1), "most steps of conjugate gradients in a round"] = 10,
        tol: Annotated[float, Range(0), "stop when a round lowers J by a smaller share"] = 1e-3,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.max_iter = max_iter
        self.cg_steps = cg_steps
        self.tol = tol
        self.scaling = scaling
        self.random_state = random_state

    @property
    def n_iter_(self) -> int:
        """Rounds that were made."""
        self._check_fitted()
        return len(self.history_)

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self.scaler_ = fit_scaler(X, self.scaling)
        with progress.stage("features"):
            gram = Gram(self.scaler_.transform(X))
        labels = Y.astype(np.float64)
        W, H = self._alternate(gram, labels, progress)
        encoder = LinearMap(W.astype(np.float32), (-gram.mean @ W).astype(np.float32))
        mean = label_offset(self.label_frequency_ / self.n_samples_, self.label_frequency_)
        self.scores_ = LowRankScores(encoder, np.ascontiguousarray(H.T, np.float32), mean)

    def _alternate(
        self, gram: Gram, Y: sp.csr_matrix, progress: Progress
    ) -> tuple[Doubles, Doubles]:
        """W of shape (n_features, rank) and H of shape (n_labels, rank)."""
        rank = self.rank or (100 if self.n_labels_ >= 20_000 else 200)
        rank = min(rank, self.n_labels_, gram.n_features)
        rng = spawn(self.random_state, "start")["start"]
        newest = self._newest(gram, Y, rank, rng)
        H = rng.standard_normal((self.n_labels_, rank))
        W = np.zeros((gram.n_features, rank))
        mean = self.label_frequency_ / self.n_samples_
        spread = Y.nnz - self.n_samples_ * float(mean @ mean)  # ‖Y‖² of the centred Y
        points = Y.T.tocsr()  # of each label
        self.history_: list[float] = []
        if newest.found is not None:
            W, H = newest.found["W"], newest.found["H"]
            self.history_ = newest.found["history"].tolist()
        with progress.stage("factors", self.max_iter, "turns") as stage:
            stage.advance(len(self.history_))
            while len(self.history_) < self.max_iter and not self._has_settled():
                W, H = _turn(gram, Y, W, H, self.alpha, self.cg_steps)
                projected = gram.project(W)  # (n_samples, rank)
                right = sparse_product(points, projected)  # (n_labels, rank)
                H = _solve_labels(right, projected, self.alpha)
                self.history_.append(_objective(spread, right, projected, W, H, self.alpha))
                stage.advance()
                stage.note(f"J {self.history_[-1]:.4g}")
                newest.keep({"W": W, "H": H, "history": np.array(self.history_)})
        return W, H

    def _has_settled(self) -> bool:
        """Whether the last round lowered J by less than `tol`."""
        if len(self.history_) < 2:
            return False
        before, now = self.history_[-2:]
        return before - now < self.tol * before

    def _newest(self, gram: Gram, Y: sp.csr_matrix, rank: int, rng: np.random.Generator) -> Newest:
        """W, H and J of the last round that was stored."""
        names = ("alpha", "max_iter", "cg_steps", "tol")
        settings = {name: getattr(self, name) for name in names}
        inputs = {"X": gram.checksum, "Y": Y, "rank": rank, "threads": blas_threads()}
        return Newest("factors", inputs | settings, rng)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {"history": self.history_}, super()._state()[1]

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.history_ = reals(config["history"], "history")
        super()._restore(config, arrays)


def _turn(
    gram: Gram, Y: sp.csr_matrix, W: Doubles, H: Doubles, alpha: float, steps: int
) -> tuple[Doubles, Doubles]:
    """W for the given H, both rotated to the eigenvectors of HᵀH, which leaves J unchanged."""
    curvature, axes = np.linalg.eigh(H.T @ H)
    H, start = H @ axes, W @ axes
    target = gram.correlate(sparse_product(Y, H))  # (n_features, rank)
    curvature = np.maximum(curvature, 0)
    return conjugate_gradient(gram, target, curvature, alpha, start, steps, 1e-3), H


def _solve_labels(right: Doubles, projected: Doubles, alpha: float) -> Doubles:
    """H for the given A = X W and Yᵀ A: the least squares problem of each label."""
    normal = projected.T @ projected + alpha * np.eye(projected.shape[1])
    solution: Doubles = scipy.linalg.solve(normal, right.T, assume_a="pos").T
    return solution


def _objective(
    spread: float, right: Doubles, projected: Doubles, W: Doubles, H: Doubles, alpha: float
) -> float:
    """J, from ‖Y − A Hᵀ‖² = ‖Y‖² − 2 ⟨Yᵀ A, H⟩ + ⟨Aᵀ A, Hᵀ H⟩."""
    agreement = float(np.sum(right * H))
    size = float(np.sum((projected.T @ projected) * (H.T @ H)))
    penalty = alpha * float(np.sum(W * W) + np.sum(H * H))
    return 0.5 * (spread - 2 * agreement + size + penalty)
