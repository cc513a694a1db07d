"""Kernel ridge regression of all labels at once.

The scores of a point x are Σ_i k(x, x_i) votes_i over the training points x_i. With K the kernel
matrix of the training points and Y their labels, votes = (K + ridge·I)⁻¹ Y are the dual
coefficients, which minimise the squared error on the training points plus a penalty.

Where labels are correlated, the score of one label helps to predict others: scores S become S + S·R
with R (n_labels, n_labels), the "curds and whey" of Breiman and Friedman (1997). R is a ridge
regression of the residuals Y − S on S over the training points, where S are leave-one-out scores.
These have a closed form: S_i = Y_i − votes_i / [(K + ridge·I)⁻¹]_ii.

Or the residuals are learnt by a **second** kernel ridge regression. Its rows are the square roots
of a point's scores, made to length 1: their cosine says how alike the scores of two points are.

Labels are dense here and K holds all pairs, so this is for some ten thousands of points. All is
computed in float32, on a GPU without TF32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._learners.distances import (
    BLOCK,
    Distances,
    Rows,
    SteadyDistances,
    blocks,
    compact,
    full_precision,
    in_form,
)
from dxml._learners.steady_product import steady_product
from dxml.exceptions import DataFormatError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = [
    "KERNELS",
    "Kernel",
    "KernelVote",
    "extend_kernel",
    "fit_kernel",
]

Floats: TypeAlias = npt.NDArray[np.float32]

LEAST_RIDGE = 1e-3  # of a second try: a factor that only just exists gives votes of noise
MANY_LABELS = 2048  # from which on votes may be solved for by the inverse
RARELY = 20  # labels, of which a point carries one at most, for that
LEFT_OUT = 8000  # points that the relations are learnt from, at most
SECOND_GAMMA = 4.0  # exp(−4 (1 − cosine))


@dataclass(frozen=True)
class Kernel:
    """gauss: exp(-gamma·D²/2); laplace: exp(-gamma·D), with D the Euclidean distance.

    pull: ridge of the regression that relates the labels to each other; 0: they are not related.
    second: the same, of the second kernel regression; 0: there is none.
    """

    kind: Literal["gauss", "laplace"]
    gamma: float
    ridge: float
    pull: float = 0.0
    second: float = 0.0

    def apply_(self, squared: Tensor) -> Tensor:
        """Replace squared distances by values of the kernel."""
        if self.kind == "gauss":
            return squared.mul_(-self.gamma / 2).exp_()
        return squared.sqrt_().mul_(-self.gamma).exp_()


KERNELS = (
    Kernel("gauss", 2, 0.1),
    Kernel("gauss", 2, 1),
    Kernel("laplace", 1, 0.03),
    Kernel("laplace", 1, 0.1),
    Kernel("laplace", 1, 0.3),
)
"""The candidates, for rows of length about 1."""


def second_kernel(ridge: float) -> Kernel:
    """That of the second regression."""
    return Kernel("gauss", SECOND_GAMMA, ridge)


def kept_vote(
    points: Rows,
    votes: Tensor,
    kernel: Kernel,
    related: Tensor | None = None,
    second: KernelVote | None = None,
) -> KernelVote:
    relations = None if related is None else related.cpu().numpy()
    return KernelVote(points, votes.cpu().numpy(), kernel, relations, second)


def fit_kernel(X: Rows, Y: sp.csr_matrix, kernel: Kernel, device: torch.device) -> KernelVote:
    """The votes of the training points.

    Parameters
    ----------
    X : csr_matrix or float32 array of shape (n_samples, n_features)
        Scaled rows.
    Y : csr_matrix of shape (n_samples, n_labels), bool

    Notes
    -----
    Where K + ridge·I is singular to working precision, its Cholesky factorisation is tried again
    with ten times the ridge, and 0.001 at least; the result's `kernel` says what was used.
    """
    points, labels, related, second = compact(X), dense_labels(Y, device), None, None
    with full_precision():
        distances = Distances(points, device)
        factor, kernel = factorise(lambda: distances.squared(points), kernel)
        votes = _votes(factor, labels)
        if kernel.pull:
            related = relations_of(*left_out(factor, votes, labels), kernel.pull)
        if kernel.second:
            without = left_out(factor, votes, labels, len(factor))
            del factor
            second = second_of(*without, kernel.second)
    return kept_vote(points, votes, kernel, related, second)


def extend_kernel(
    known: KernelVote,
    Y_known: sp.csr_matrix,
    X: Rows,
    Y: sp.csr_matrix,
    rows: npt.NDArray[np.int64],
    device: torch.device,
) -> KernelVote:
    """With more points: their votes and those of some known points are solved for, others stay.

    Parameters
    ----------
    Y_known : csr_matrix of shape (n_known, n_labels), bool
        Labels of the known points, with the columns of Y.
    X, Y : as in `fit_kernel`
        The new points; Y may have more columns than `known` has labels.
    rows : int array
        The known points whose votes may change.

    Notes
    -----
    One step of block coordinate descent on what `fit_kernel` solves: with B the new points and the
    chosen known ones, votes_B += (K_BB + ridge·I)⁻¹ (Y_B − f(X_B) − ridge·votes_B). With all known
    points in it, that is the whole solution.
    """
    import torch

    fresh, n_rows = in_form(X, sp.issparse(known.points)), len(rows)
    votes = np.zeros((known.votes.shape[0] + X.shape[0], Y.shape[1]), dtype=np.float32)
    votes[: len(known.votes), : known.votes.shape[1]] = known.votes
    block = _below(known.points[rows], fresh)
    left = dense_labels(sp.csr_matrix(sp.vstack([Y_known[rows], Y], format="csr")), device)
    said = torch.from_numpy(known.own_scores(block, device)).to(device)
    left[:, : said.shape[1]] -= said
    left[:n_rows] -= known.kernel.ridge * torch.from_numpy(votes[rows]).to(device)
    with full_precision():
        distances = Distances(block, device)
        change, _ = solve(lambda: distances.squared(block), left, known.kernel)
    votes[rows] += change[:n_rows].cpu().numpy()
    votes[len(known.votes) :] = change[n_rows:].cpu().numpy()
    return replace(
        known,
        points=_below(known.points, fresh),
        votes=votes,
    )


def _below(first: Rows, second: Rows) -> Rows:
    """Rows under rows of the same form."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return sp.csr_matrix(sp.vstack([first, second], format="csr"))


@dataclass(frozen=True, eq=False)
class KernelVote:
    """Training points and their votes.

    Attributes
    ----------
    points : csr_matrix, or float32 array if over half full, (n_points, n_features)
    votes : float32 (n_points, n_labels)
    kernel : Kernel
    relations : float32 (n_related, n_related) or None
        What a score of one label adds to the others. They are of the first labels: those that came
        later, by `extend_kernel`, are related to none, and take no room here.
    second : KernelVote or None
        The second regression, over scores of the first labels, by the first points. Those that came
        later do not take part.
    """

    points: Rows
    votes: Floats
    kernel: Kernel
    relations: Floats | None = None
    second: KernelVote | None = None
    _placed: dict[str, tuple[Distances, Tensor]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __getstate__(self) -> dict[str, Any]:
        """Without what was put on devices, which no pickle takes; it is put there again."""
        kept = {name: value for name, value in self.__dict__.items() if name != "_distances"}
        return kept | {"_placed": {}}

    def scores(self, X: Rows, device: torch.device) -> Floats:
        """Scores of all labels, (n_samples, n_labels)."""
        if device.type == "cpu":
            return self.steady_scores(X)
        own = self.own_scores(X, device)
        if self.second is not None:
            n_first = self.second.votes.shape[1]
            own[:, :n_first] += self.second.scores(rows_of_scores(own[:, :n_first]), device)
        if self.relations is None:
            return own
        import torch

        n_related = len(self.relations)
        said = torch.from_numpy(own[:, :n_related]).to(device)
        with full_precision():
            related = said @ torch.from_numpy(self.relations).to(device)
        own[:, :n_related] = (said + related).cpu().numpy()
        return own

    def steady_scores(self, X: Rows) -> Floats:
        """`scores` on a CPU, without torch: those of a row do not depend on the rows beside it."""
        own = self._steady_own(X)
        if self.second is not None:
            n_first = self.second.votes.shape[1]
            own[:, :n_first] += self.second.steady_scores(rows_of_scores(own[:, :n_first]))
        if self.relations is not None:
            n_related = len(self.relations)
            own[:, :n_related] += steady_product(own[:, :n_related], self.relations)
        return own

    def own_scores(self, X: Rows, device: torch.device) -> Floats:
        """Scores of all labels by the points' votes alone."""
        if device.type == "cpu":
            return self._steady_own(X)
        distances, votes = self._on(device)
        out = np.empty((X.shape[0], votes.shape[1]), dtype=np.float32)
        with full_precision():
            for part, rows in blocks(X, BLOCK // max(len(votes), 1)):
                values = self.kernel.apply_(distances.squared(rows))  # (rows, n_points)
                out[part] = (values @ votes).cpu().numpy()
        return out

    def _steady_own(self, X: Rows) -> Floats:
        out = np.empty((X.shape[0], self.votes.shape[1]), dtype=np.float32)
        for part, rows in blocks(X, BLOCK // max(len(self.votes), 1)):
            values = self._distances.squared(rows)
            if self.kernel.kind == "gauss":
                values *= np.float32(-self.kernel.gamma / 2)
            else:
                np.sqrt(values, out=values)
                values *= np.float32(-self.kernel.gamma)
            out[part] = steady_product(np.exp(values, out=values), self.votes)
        return out

    @cached_property
    def _distances(self) -> SteadyDistances:
        return SteadyDistances(self.points)

    def _on(self, device: torch.device) -> tuple[Distances, Tensor]:
        import torch

        key = str(device)
        if key not in self._placed:
            votes = torch.from_numpy(np.ascontiguousarray(self.votes)).to(device)
            self._placed[key] = Distances(self.points, device), votes
        return self._placed[key]


def factorise(squared: Callable[[], Tensor], kernel: Kernel) -> tuple[Tensor, Kernel]:
    """The Cholesky factor of K + ridge·I, and the kernel with the ridge that made one possible.

    `squared` gives a fresh array of squared distances, which becomes K and then its factor.
    """
    import torch

    while True:
        factor = kernel.apply_(squared()).mT  # column by column: factored where it lies
        factor.diagonal().add_(kernel.ridge)
        failed = torch.zeros((), dtype=torch.int32, device=factor.device)
        torch.linalg.cholesky_ex(factor, out=(factor, failed))
        if not failed.item():
            break
        if kernel.ridge > len(factor):  # K is at most 1 everywhere, so this ridge is enough
            raise DataFormatError("the kernel of the rows is not finite. Look for NaN in X.")
        kernel = replace(kernel, ridge=max(10 * kernel.ridge, LEAST_RIDGE))
    return factor, kernel


def solve(squared: Callable[[], Tensor], labels: Tensor, kernel: Kernel) -> tuple[Tensor, Kernel]:
    """The votes, without leaving the factor in memory, and the kernel with the ridge it needed."""
    factor, kernel = factorise(squared, kernel)
    return _votes(factor, labels), kernel


def _votes(factor: Tensor, labels: Tensor) -> Tensor:
    """(n, n_labels). For very many labels, of which points carry few, by the inverse."""
    import torch

    n, n_labels = labels.shape
    many = n_labels >= MANY_LABELS and 3 * n_labels > n and labels.device.type == "cpu"
    if many and RARELY * int(torch.count_nonzero(labels)) < labels.numel():
        inverse = torch.cholesky_inverse(factor).numpy()
        carried = sp.csr_matrix(labels.numpy()).T.tocsr()
        return torch.from_numpy(np.ascontiguousarray((carried @ inverse).T))
    half = torch.linalg.solve_triangular(factor, labels, upper=False)
    return torch.linalg.solve_triangular(factor.mT, half, upper=True).contiguous()


def left_out(
    factor: Tensor, votes: Tensor, labels: Tensor, most: int = LEFT_OUT
) -> tuple[Tensor, Tensor]:
    """Leave-one-out scores of some of the points, and the residuals of their labels."""
    import torch

    n, where = len(factor), factor.device
    every = torch.arange(n, device=where)
    rows = every if n <= most else torch.linspace(0, n - 1, most, device=where).long()
    spread = torch.empty(len(rows), device=factor.device)
    for start in range(0, len(rows), 1024):  # [(K + ridge·I)⁻¹]_ii, column by column
        part = rows[start : start + 1024]
        unit = torch.zeros(n, len(part), device=factor.device)
        unit[part, torch.arange(len(part), device=factor.device)] = 1
        half = torch.linalg.solve_triangular(factor, unit, upper=False)
        spread[start : start + 1024] = half.square_().sum(dim=0)
    left = votes[rows] / spread[:, None]
    return labels[rows] - left, left


def relations_of(left_out: Tensor, left: Tensor, pull: float) -> Tensor:
    """Ridge regression from leave-one-out scores to residuals, (n_labels, n_labels).

    Of fewer points than labels, in its dual form: Sᵀ (S Sᵀ + pull·I)⁻¹ left.
    """
    import torch

    few = len(left_out) < left_out.shape[1]
    gram = left_out @ left_out.mT if few else left_out.mT @ left_out
    gram.diagonal().add_(pull)
    if few:
        return left_out.mT @ torch.linalg.solve(gram, left)
    return torch.linalg.solve(gram, left_out.mT @ left)


def second_of(left_out: Tensor, left: Tensor, ridge: float) -> KernelVote:
    """Kernel ridge regression from leave-one-out scores to residuals."""
    rows, kernel = rows_of_scores(left_out.cpu().numpy()), second_kernel(ridge)
    distances = Distances(rows, left.device)
    votes, kernel = solve(lambda: distances.squared(rows), left, kernel)
    return kept_vote(rows, votes, kernel)


def rows_of_scores(scores: Floats) -> Floats:
    """The square roots of what is above 0, as rows of length 1; a row of nothing stays one."""
    rows = np.sqrt(np.maximum(scores, 0))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, np.float32(1)))


def dense_labels(Y: sp.csr_matrix, device: torch.device) -> Tensor:
    import torch

    return torch.from_numpy(Y.astype(np.float32).toarray()).to(device)
