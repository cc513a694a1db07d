"""1-vs-All: a linear classifier for each label by itself.

R. Rifkin, A. Klautau: In Defense of One-Vs-All Classification. JMLR 5, 2004. The squared
hinge is solved by coordinate descent on the dual (`_dual_descent`), the logistic loss by liblinear
(R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang, C.-J. Lin: LIBLINEAR, a Library for Large Linear
Classification. JMLR 9, 2008). For each label l, with signs t_il = 2 y_il − 1,

    min_{w, b} ½ (‖w‖² + b²) + C Σ_i max(0, 1 − t_il (xᵢᵀ w + b))²

or the logistic loss log(1 + exp(−t (xᵀ w + b))) in place of the squared hinge. Labels are ranked
by xᵀ w_l + b_l.

Where we differ: weights smaller than `prune` in magnitude are dropped, as DiSMEC does (R. Babbar,
B. Schölkopf, WSDM 2017), for a smaller model; `prune=0` keeps them all.
A label on every training point gets a constant score, a label on none is never ranked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, real
from dxml._core.params import Range, Seed
from dxml._core.random import spawn_seed
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.stages import Pieces
from dxml._core.storage import pack_csr
from dxml._core.threads import n_threads
from dxml.base import Classifier
from dxml.baselines._dual_descent import train_labels
from dxml.baselines._linear import Loss, label_offset, logistic, rank_sparse
from dxml.progress import Progress, Stage
from dxml.topk import TopK

__all__ = ["OneVsAll"]

BLOCK = 16_000_000  # weights trained at a time, at most
WORK = 2_000_000_000  # values of X times labels, of the labels trained at a time
MIN_LABELS = 64  # trained at a time, unless there are more than BLOCK weights
MIN_LABELS_LARGE = 3_000  # labels from which most are rare, and a weaker penalty is better
Kept = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], float]
Piece = Mapping[str, npt.NDArray[Any]]


class OneVsAll(Classifier):
    """One linear support vector machine, or logistic regression, for each label.

    Attributes
    ----------
    C_ : float
        The C in use.
    weights_ : csr_matrix of shape (n_features, n_labels), float32
    offset_ : float32 array of shape (n_labels,)
        The biases; −∞ for labels without a training point.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = OneVsAll().fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "one-vs-all"
    summary: ClassVar[str] = "a linear classifier for each label by itself"

    def __init__(
        self,
        *,
        loss: Annotated[Loss, "loss of a label's classifier"] = "squared_hinge",
        C: Annotated[
            float | None,
            Range(0, open_low=True),
            "weight of the loss relative to ‖w‖²/2; None: 0.3, or 1 from 3,000 labels on",
        ] = None,
        prune: Annotated[float, Range(0), "weights smaller than this are dropped"] = 0.01,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.prune = prune
        self.scaling = scaling
        self.random_state = random_state

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self.scaler_ = fit_scaler(X, self.scaling)
        scaled = self.scaler_.transform(X)
        self.C_ = self.C or (1.0 if self.n_labels_ >= MIN_LABELS_LARGE else 0.3)
        seed = spawn_seed(self.random_state, "liblinear") % 2**31

        with progress.stage("labels", self.n_labels_, "labels") as stage:
            kept = self._train_all(scaled, Y, seed, stage)
        self.weights_, biases = _gather(kept, X.shape[1])
        self.offset_ = label_offset(biases, self.label_frequency_)

    def _train_all(
        self, X: sp.csr_matrix, Y: sp.csr_matrix, seed: int, stage: Stage
    ) -> list[Piece]:
        """The weights that are not pruned, of some labels at a time."""
        work = max(WORK // max(X.nnz, 1), MIN_LABELS)
        step = max(n_threads(), min(BLOCK // (X.shape[1] + 1), work))
        columns = Y.tocsc()
        doubles = X.astype(np.float64) if self.loss == "logistic" else X
        inputs = {"X": X, "Y": Y, "loss": self.loss, "C": self.C_, "prune": self.prune}
        found = []
        with Pieces("labels", {**inputs, "seed": seed, "step": step}) as pieces:
            for start in range(0, self.n_labels_, step):
                labels = np.arange(start, min(start + step, self.n_labels_))
                if (piece := pieces.take()) is not None:
                    stage.advance(len(labels))
                else:
                    kept = []
                    for one in self._train(doubles, columns, labels, seed):
                        kept.append(one)
                        stage.advance()
                    piece = _joined(kept)
                    pieces.add(piece)
                found.append(piece)
        return found

    def _train(
        self, X: sp.csr_matrix, columns: sp.csc_matrix, labels: npt.NDArray[np.int64], seed: int
    ) -> Iterator[Kept]:
        """The weights of each label that are not pruned, label by label."""
        if self.loss == "squared_hinge":
            weights = train_labels(X, columns, labels, self.C_, seed=seed)
            for label, row in zip(labels, weights, strict=True):
                yield self._keep(row[:-1], float(row[-1]), self.label_frequency_[label])
            return

        def train(label: int) -> Kept:
            frequency = int(self.label_frequency_[label])
            if frequency in (0, self.n_samples_) or X.nnz == 0:
                return self._keep(np.empty(0, np.float32), 0.0, frequency)
            y = np.zeros(self.n_samples_, dtype=bool)
            y[columns.indices[columns.indptr[label] : columns.indptr[label + 1]]] = True
            return self._keep(*logistic(X, y, self.C_), frequency)

        with ThreadPoolExecutor(n_threads()) as pool:
            yield from pool.map(train, labels)

    def _keep(self, weights: npt.NDArray[Any], bias: float, frequency: int) -> Kept:
        """Features and values of the weights that are not pruned, and the bias."""
        if frequency in (0, self.n_samples_):
            share = frequency / self.n_samples_
            return np.empty(0, np.int32), np.empty(0, np.float32), 2 * share - 1
        features = np.flatnonzero(np.abs(weights) > self.prune)
        return features.astype(np.int32), weights[features].astype(np.float32), bias

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        scaled = self.scaler_.transform(X)
        return rank_sparse(scaled, self.weights_, self.offset_, k, self._tie_place)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        arrays = {
            **self.scaler_.arrays(),
            **pack_csr("weights", self.weights_),
            "offset": self.offset_,
        }
        return {"C": self.C_}, arrays

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.C_ = real(config, "C")
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.weights_ = arrays.csr("weights", self.n_features_in_, self.n_labels_)
        self.offset_ = arrays.floats("offset", self.n_labels_, never=True)


def _joined(kept: list[Kept]) -> Piece:
    """What is kept of some labels, in a row."""
    features, values, biases = zip(*kept, strict=True)
    return {
        "sizes": np.array([len(each) for each in features]),
        "features": np.concatenate(features),
        "values": np.concatenate(values),
        "biases": np.array(biases),
    }


def _gather(pieces: list[Piece], n_features: int) -> tuple[sp.csr_matrix, npt.NDArray[np.float64]]:
    """Weights of shape (n_features, n_labels) and biases from those of some labels each."""
    sizes, features, values, biases = (
        np.concatenate([piece[name] for piece in pieces])
        for name in ("sizes", "features", "values", "biases")
    )
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    by_label = sp.csc_matrix((values, features, indptr), shape=(n_features, len(sizes)))
    return by_label.tocsr(), biases
