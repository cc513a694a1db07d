"""Kernel ridge regression: a vote of all training points, corrected for one another.

A point's score for the labels is Σ_i k(x, x_i) votes_i over the training points x_i. Were the
votes the points' own labels, crowded regions would shout down sparse ones. With K the kernel
between the training points, votes = (K + ridge·I)⁻¹ Y are those that give their labels back.

Where labels hang together, what is said of one label tells something of the others: scores become
S + S·R with R (n_labels, n_labels), the "curds and whey" of Breiman and Friedman (1997). R is a
ridge regression of Y − S on S over training points, with S what the other points say of each: for
this model that is known without leaving any out, S_i = Y_i − votes_i / [(K + ridge·I)⁻¹]_ii.

Labels are dense here and K holds all pairs, so this is for some ten thousands of points. All is
computed in float32, on a GPU without TF32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from dxml.exceptions import DataFormatError
from dxml.metrics import mean_precision
from dxml.progress import SILENT, Progress
from dxml.topk import tie_order, topk_from_dense

__all__ = [
    "KERNELS",
    "Fold",
    "Kernel",
    "KernelVote",
    "choose_kernel",
    "extend_kernel",
    "fit_kernel",
]

Floats: TypeAlias = npt.NDArray[np.float32]
Rows: TypeAlias = sp.csr_matrix | Floats
Products: TypeAlias = Callable[[Rows], Tensor]

DENSE_SHARE = 0.5  # of non-zeros above which rows are kept dense
SAME_POINT = 1e-6  # squared distance, as a share of the squared lengths, that is only rounding
LEAST_RIDGE = 1e-3  # of a second try: a factor that only just exists gives votes of noise
BLOCK = 2**24  # numbers in a block of distances
PULLS = (10.0, 30.0, 100.0)  # ridges of the labels' regression that are tried
WORTH = 0.001  # of mean precision that the labels' relations must add to be kept
MOST_RELATED = 4096  # labels up to which their relations are looked for
LEFT_OUT = 8000  # points that the relations are learnt from, at most


@dataclass(frozen=True)
class Kernel:
    """gauss: exp(-gamma·D²/2); laplace: exp(-gamma·D), with D the Euclidean distance.

    pull: ridge of the regression that relates the labels to each other; 0: they are not related.
    """

    kind: Literal["gauss", "laplace"]
    gamma: float
    ridge: float
    pull: float = 0.0

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


class Fold(NamedTuple):
    """Points to fit on, and points held out: rows and labels as in `fit_kernel`."""

    X: Rows
    Y: sp.csr_matrix
    X_held: Rows
    Y_held: sp.csr_matrix


def choose_kernel(
    folds: Sequence[Fold],
    device: torch.device,
    candidates: Sequence[Kernel] = KERNELS,
    progress: Progress = SILENT,
) -> list[KernelVote]:
    """The candidate with the highest mean of P@1, P@3 and P@5 on held-out points; votes by fold.

    Kernels have the ridge that they needed (see `fit_kernel`) and the `pull` that earns its place.
    """
    best = -1.0
    with _full_precision(), progress.stage("kernel", len(candidates), "kernels") as report:
        attempts = [_Attempt(fold, device) for fold in folds]
        for candidate in candidates:
            reached = fmean([attempt.solve(candidate) for attempt in attempts])
            if reached > best:
                best = reached
                for attempt in attempts:
                    attempt.keep()
            report.advance()
            report.note(f"{attempts[0].kernel.kind}, mean precision {best:.4f}")
        if folds[0].Y.shape[1] <= MOST_RELATED:
            best += WORTH
            for attempt in attempts:
                attempt.leave_out()
            for pull in PULLS:
                reached = fmean([attempt.relate(pull) for attempt in attempts])
                if reached > best:
                    best = reached
                    for attempt in attempts:
                        attempt.keep()
    return [attempt.kept() for attempt in attempts]


class _Attempt:
    """Kernels tried on one fold: the last one, and the one to keep."""

    def __init__(self, fold: Fold, device: torch.device) -> None:
        self._points, self._truth = _compact(fold.X), fold.Y_held
        self._labels = _dense_labels(fold.Y, device)
        self._place = tie_order(np.bincount(fold.Y.indices, minlength=fold.Y.shape[1]))
        distances = _Distances(self._points, device)
        self._among = distances.squared(self._points)
        self._to_held = distances.squared(fold.X_held)
        self._relations: Tensor | None = None

    def solve(self, kernel: Kernel) -> float:
        """Quality of this kernel without relations between labels."""
        self._votes, self._kernel = _solve(self._among.clone, self._labels, kernel)
        self._scores = self._kernel.apply_(self._to_held.clone()) @ self._votes
        return self._quality(self._scores)

    def leave_out(self) -> None:
        """Get ready for relations of the kernel that was kept."""
        self._votes, self._scores, self._kernel = self.votes, self.scores, self.kernel
        factor, _ = _factorise(self._among.clone, self.kernel)
        self._left_out = _left_out(factor, self.votes, self._labels)

    def relate(self, pull: float) -> float:
        """Quality of the kept kernel with its labels related."""
        self._kernel = replace(self._kernel, pull=pull)
        self._relations = _relations(*self._left_out, pull)
        return self._quality(self._scores + self._scores @ self._relations)

    def keep(self) -> None:
        """The last kernel is the best so far."""
        self.votes, self.scores, self.kernel = self._votes, self._scores, self._kernel
        self.relations = self._relations

    def kept(self) -> KernelVote:
        """The best."""
        return _kept(self._points, self.votes, self.kernel, self.relations)

    def _quality(self, scores: Tensor) -> float:
        depth = min(5, self._truth.shape[1])
        ranking = topk_from_dense(scores.cpu().numpy(), depth, self._place)
        return mean_precision(self._truth, ranking)


def _kept(points: Rows, votes: Tensor, kernel: Kernel, related: Tensor | None) -> KernelVote:
    relations = None if related is None else related.cpu().numpy()
    return KernelVote(points, votes.cpu().numpy(), kernel, relations)


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
    points, labels, related = _compact(X), _dense_labels(Y, device), None
    with _full_precision():
        distances = _Distances(points, device)
        factor, kernel = _factorise(lambda: distances.squared(points), kernel)
        votes = _votes(factor, labels)
        if kernel.pull:
            related = _relations(*_left_out(factor, votes, labels), kernel.pull)
    return _kept(points, votes, kernel, related)


def extend_kernel(
    known: KernelVote,
    Y_known: sp.csr_matrix,
    X: Rows,
    Y: sp.csr_matrix,
    rows: npt.NDArray[np.int64],
    device: torch.device,
) -> KernelVote:
    """More points, whose votes and those of some known ones make up for what is left of the labels.

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
    fresh, n_rows = _in_form(X, sp.issparse(known.points)), len(rows)
    votes = np.zeros((known.votes.shape[0] + X.shape[0], Y.shape[1]), dtype=np.float32)
    votes[: len(known.votes), : known.votes.shape[1]] = known.votes
    block = _below(known.points[rows], fresh)
    left = _dense_labels(sp.csr_matrix(sp.vstack([Y_known[rows], Y], format="csr")), device)
    said = torch.from_numpy(known.own_scores(block, device)).to(device)
    left[:, : said.shape[1]] -= said
    left[:n_rows] -= known.kernel.ridge * torch.from_numpy(votes[rows]).to(device)
    with _full_precision():
        distances = _Distances(block, device)
        change, _ = _solve(lambda: distances.squared(block), left, known.kernel)
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
    """

    points: Rows
    votes: Floats
    kernel: Kernel
    relations: Floats | None = None
    _placed: dict[str, tuple[_Distances, Tensor]] = field(
        default_factory=dict, init=False, repr=False
    )

    def scores(self, X: Rows, device: torch.device) -> Floats:
        """Scores of all labels, (n_samples, n_labels)."""
        own = self.own_scores(X, device)
        if self.relations is None:
            return own
        n_related = len(self.relations)
        said = torch.from_numpy(own[:, :n_related]).to(device)
        with _full_precision():
            related = said @ torch.from_numpy(self.relations).to(device)
        own[:, :n_related] = (said + related).cpu().numpy()
        return own

    def own_scores(self, X: Rows, device: torch.device) -> Floats:
        """Scores of all labels by the points' votes alone."""
        distances, votes = self._on(device)
        out = np.empty((X.shape[0], votes.shape[1]), dtype=np.float32)
        with _full_precision():
            for part, rows in _blocks(X, BLOCK // len(votes)):
                values = self.kernel.apply_(distances.squared(rows))  # (rows, n_points)
                out[part] = (values @ votes).cpu().numpy()
        return out

    def _on(self, device: torch.device) -> tuple[_Distances, Tensor]:
        key = str(device)
        if key not in self._placed:
            votes = torch.from_numpy(np.ascontiguousarray(self.votes)).to(device)
            self._placed[key] = _Distances(self.points, device), votes
        return self._placed[key]


def _factorise(squared: Callable[[], Tensor], kernel: Kernel) -> tuple[Tensor, Kernel]:
    """The Cholesky factor of K + ridge·I, and the kernel with the ridge that made one possible.

    `squared` gives a fresh array of squared distances, which becomes K and then its factor.
    """
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


def _solve(squared: Callable[[], Tensor], labels: Tensor, kernel: Kernel) -> tuple[Tensor, Kernel]:
    """The votes, without leaving the factor in memory, and the kernel with the ridge it needed."""
    factor, kernel = _factorise(squared, kernel)
    return _votes(factor, labels), kernel


def _votes(factor: Tensor, labels: Tensor) -> Tensor:
    """(n, n_labels)"""
    half = torch.linalg.solve_triangular(factor, labels, upper=False)
    return torch.linalg.solve_triangular(factor.mT, half, upper=True).contiguous()


def _left_out(factor: Tensor, votes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """What the other points say of some of the points, and what they leave of their labels."""
    n = len(factor)
    rows = torch.linspace(0, n - 1, min(n, LEFT_OUT), device=factor.device).long()
    spread = torch.empty(len(rows), device=factor.device)
    for start in range(0, len(rows), 1024):  # [(K + ridge·I)⁻¹]_ii, column by column
        part = rows[start : start + 1024]
        unit = torch.zeros(n, len(part), device=factor.device)
        unit[part, torch.arange(len(part), device=factor.device)] = 1
        half = torch.linalg.solve_triangular(factor, unit, upper=False)
        spread[start : start + 1024] = half.square_().sum(dim=0)
    left = votes[rows] / spread[:, None]
    return labels[rows] - left, left


def _relations(left_out: Tensor, left: Tensor, pull: float) -> Tensor:
    """Ridge regression of what is left on what was said, (n_labels, n_labels)."""
    gram = left_out.mT @ left_out
    gram.diagonal().add_(pull)
    return torch.linalg.solve(gram, left_out.mT @ left)


class _Distances:
    """Squared distances to fixed points, on one device."""

    def __init__(self, points: Rows, device: torch.device) -> None:
        self._sparse, self._device = sp.issparse(points), device
        self._squares = torch.from_numpy(_squares(points)).to(device)
        self._products: Products
        if not self._sparse:
            self._products = _dense_products(points, device)
        elif device.type == "cpu":
            self._products = _inverted_products(points)
        else:
            self._products = _bagged_products(points, device)

    def squared(self, X: Rows) -> Tensor:
        """(n_samples, n_points); what may be rounding alone is 0."""
        X = _in_form(X, self._sparse)
        squares = torch.from_numpy(_squares(X)).to(self._device)
        out = torch.empty((X.shape[0], len(self._squares)), device=self._device)
        for part, rows in _blocks(X, BLOCK // max(out.shape[1], X.shape[1] // 8)):
            lengths = squares[part, None] + self._squares
            block = torch.sub(lengths, self._products(rows), alpha=2, out=out[part])
            block.masked_fill_(block < SAME_POINT * lengths, 0)
        return out


def _dense_products(points: Floats, device: torch.device) -> Products:
    weights = torch.from_numpy(np.ascontiguousarray(points)).to(device)
    return lambda X: torch.from_numpy(np.ascontiguousarray(X)).to(device) @ weights.T


def _inverted_products(points: sp.csr_matrix) -> Products:
    """For a CPU: a row meets only the points that share a feature with it."""
    columns = points.tocsc()

    def products(X: sp.csr_matrix) -> Tensor:
        out = np.empty((X.shape[0], points.shape[0]), dtype=np.float32)
        _invert(X.indptr, X.indices, X.data, columns.indptr, columns.indices, columns.data, out)
        return torch.from_numpy(out)

    return products


@numba.njit(cache=True, parallel=True)
def _invert(indptr, indices, data, starts, points, values, out):  # type: ignore[no-untyped-def]
    for i in numba.prange(indptr.shape[0] - 1):
        total = np.zeros(out.shape[1])
        for j in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[j])
            feature = indices[j]
            for p in range(starts[feature], starts[feature + 1]):
                total[points[p]] += value * values[p]
        out[i] = total


def _bagged_products(points: sp.csr_matrix, device: torch.device) -> Products:
    """For a GPU: each point is a weighted sum of columns of the dense block of rows."""
    features, starts, values = (
        torch.from_numpy(array).to(device) for array in (points.indices, points.indptr, points.data)
    )

    def products(X: sp.csr_matrix) -> Tensor:
        by_feature = torch.from_numpy(X.toarray()).to(device).T.contiguous()
        return torch.nn.functional.embedding_bag(
            features,
            by_feature,
            starts,
            mode="sum",
            per_sample_weights=values,
            include_last_offset=True,
        ).T

    return products


def _blocks(X: Rows, size: int) -> Iterator[tuple[slice, Rows]]:
    """X in blocks of about `size` rows, with the places they come from."""
    n, size = X.shape[0], max(size, 1)
    for start in range(0, n, size):
        part = slice(start, min(start + size, n))
        yield part, X if n <= size else X[part]


def _squares(X: Rows) -> Floats:
    """The squared length of each row."""
    if isinstance(X, np.ndarray):
        return np.square(X, dtype=np.float64).sum(axis=1).astype(np.float32)
    ends = np.concatenate([[0], np.cumsum(np.square(X.data, dtype=np.float64))])
    return np.diff(ends[X.indptr]).astype(np.float32)


def _compact(X: Rows) -> Rows:
    """CSR, or an array if over half full."""
    filled = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
    return _in_form(X, filled <= DENSE_SHARE * X.shape[0] * X.shape[1])


def _in_form(X: Rows, sparse: bool) -> Rows:
    if isinstance(X, np.ndarray):
        return sp.csr_matrix(X) if sparse else X
    return X if sparse else X.toarray()


def _dense_labels(Y: sp.csr_matrix, device: torch.device) -> Tensor:
    return torch.from_numpy(Y.astype(np.float32).toarray()).to(device)


@contextmanager
def _full_precision() -> Iterator[None]:
    """Inside, a GPU multiplies float32 as float32: distances are differences of near numbers."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32
    matmul.allow_tf32 = False
    try:
        yield
    finally:
        matmul.allow_tf32 = before
