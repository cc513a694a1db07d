"""DXML, the paper's method, composed from the modules of its steps.

W. Zhang, J. Yan, X. Wang, H. Zha: Deep Extreme Multi-label Learning. ICMR 2018.
`_fit` reads like Algorithm 1, `_rank` like Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, reals, whole
from dxml._core.device import resolve_device
from dxml._core.params import Range, Seed
from dxml._core.random import spawn, spawn_seed
from dxml._core.scaling import FeatureScaler, ScalingChoice, fit_scaler
from dxml._core.stages import remembered
from dxml._core.storage import pack_csr
from dxml._core.targets import grown_labels
from dxml._label_graph.graph import label_graph, read_graph
from dxml._label_graph.walks import random_walks, random_walks_on_points
from dxml._neighbors.index import PartitionedIndex, check_partitions
from dxml._neighbors.voting import Vote, vote
from dxml.base import Classifier
from dxml.exceptions import DataFormatError
from dxml.metrics import mean_precision
from dxml.paper._choosing import (
    Choice,
    best_choice,
    hold_out,
    neighbor_counts,
    partition_counts,
)
from dxml.paper._encoder import Activation, FeatureEncoder
from dxml.paper._growing import new_label_vectors
from dxml.paper._losses import LossName
from dxml.paper._text_encoder import (
    TextPointEncoder,
    TextRows,
    fit_text_encoder,
    read_texts,
)
from dxml.progress import SILENT, Progress
from dxml.topk import TopK, tie_order

__all__ = ["DXML", "mean_label_vectors"]

MIN_LABELS_LARGE = 3_000  # labels from which the paper's sizes for large data are used
BATCHES = ((400_000, 1024), (100_000, 512), (0, 64))  # from so many points on, points in a step
LEARNING_RATE = 0.015  # for the smallest of them; it grows with the root of the usual batch

Floats = npt.NDArray[np.float32]


def mean_label_vectors(Y: sp.csr_matrix, V: Floats) -> Floats:
    """f_y = V y / nnz(y), Algorithm 1 line 3: the mean of a point's label vectors.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels), every row with a label
    V : float32 array of shape (n_labels, dim)
    """
    counts = np.diff(Y.indptr)[:, None]
    return np.asarray((Y.astype(np.float32) @ V) / counts, dtype=np.float32)


class DXML(Classifier):
    """Deep extreme multi-label learning, as the paper describes it.

    A graph of labels that share a point → DeepWalk → a vector per label; a point's target is the
    mean of its labels' vectors; a two-layer network with unit-norm output is trained to it; the
    embedded training points are partitioned by k-means; a new point's nearest neighbours in the
    nearest partition vote.

    Points without labels are left out: they have no target, and as neighbours they have no vote.
    Labels without an edge get a random vector of median length (`isolated_labels_`).

    Attributes
    ----------
    label_vectors_ : float32 array of shape (n_labels, dim)
        The paper's V, transposed.
    isolated_labels_ : int32 array
        Labels that no walk reached.
    encoder_ : FeatureEncoder or TextPointEncoder
    index_ : PartitionedIndex
    n_neighbors_, n_partitions_ : int
        The values in use: given, or chosen on the validation split.
    history_ : list of float
        Training loss of each epoch.

    Examples
    --------
    >>> from dxml.data import make_planted
    >>> data = make_planted(300, 200, 10, random_state=0)
    >>> model = DXML(epochs=5, n_partitions=1, n_neighbors=5).fit(data.X, data.Y)
    >>> model.predict_topk(data.X[:2], k=3).indices.shape
    (2, 3)
    """

    method: ClassVar[str] = "dxml"
    summary: ClassVar[str] = (
        "the paper's method: DeepWalk on the label graph, a two-layer encoder, a k-NN vote"
    )
    former_names: ClassVar[Mapping[str, str]] = {"negatives": "n_negatives"}
    curve: ClassVar[tuple[str, str] | None] = ("epoch", "mean training loss of the encoder")

    label_vectors_: Floats
    train_labels_: sp.csr_matrix
    index_: PartitionedIndex

    def __init__(
        self,
        *,
        dim: Annotated[
            int | None, Range(1), "size ℓ of a label vector; None: 100, or 300 from 3,000 labels on"
        ] = None,
        hidden: Annotated[
            int | None,
            Range(1),
            "width of the hidden layer; None: 256, or 512 from 3,000 labels on",
        ] = None,
        label_vectors: Annotated[
            Literal["deepwalk", "random"], "how label vectors are made; random: no graph at all"
        ] = "deepwalk",
        label_graph: Annotated[
            str | None, "file with a prior label graph, parent<TAB>child a line; replaces Y's"
        ] = None,
        weighted: Annotated[
            bool,
            "weight edges by how often labels share a point; false: equal weights, as in the paper",
        ] = False,
        walks_per_label: Annotated[int, Range(1), "random walks from each label"] = 80,
        walk_length: Annotated[int, Range(2), "labels in a walk"] = 40,
        window: Annotated[int, Range(1), "largest distance of a skip-gram pair in a walk"] = 10,
        softmax: Annotated[
            Literal["negative", "hierarchical"], "negative sampling, or hierarchical softmax"
        ] = "negative",
        n_negatives: Annotated[int, Range(1), "negatives for each pair"] = 20,
        exponent: Annotated[
            float,
            Range(-5, 5),
            "negatives are drawn with probability ∝ label frequency to this power",
        ] = 0.75,
        spectrum: Annotated[
            float, Range(0, 1), "power of the singular values in label vectors; 0.5 as in word2vec"
        ] = 0.25,
        center: Annotated[bool, "subtract the mean label vector and scale each to length 1"] = True,
        encoder: Annotated[
            str,
            "text encoder in place of the two layers, fine-tuned where texts are given: folder, "
            "package or Hugging Face name; none: the paper's",
        ] = "none",
        activation: Annotated[
            Activation, "activation of the hidden layer; linear: the paper's ablation"
        ] = "relu",
        dropout: Annotated[float, Range(0, 0.99), "share of the last layer dropped"] = 0.1,
        loss: Annotated[LossName, "distance between embedding and target"] = "smooth_l1",
        margin: Annotated[float, Range(0), "margin of the contrastive and triplet losses"] = 0.5,
        epochs: Annotated[int, Range(1), "passes over the training points"] = 60,
        batch_size: Annotated[
            int | None,
            Range(1),
            "points in a step of SGD; None: 64; 512 from 100,000 points on, 1,024 from 400,000",
        ] = None,
        learning_rate: Annotated[
            float | None,
            Range(0, open_low=True),
            "of SGD; None: 0.015, from 100,000 points on more, whatever batch_size is",
        ] = None,
        momentum: Annotated[float, Range(0, 0.999), "of SGD"] = 0.9,
        weight_decay: Annotated[float, Range(0), "of SGD"] = 5e-4,
        init_scale: Annotated[
            float, Range(0, open_low=True), "standard deviation of the initial pre-activations"
        ] = 0.01,
        n_partitions: Annotated[
            int | None, Range(1), "cells m of the index; None: chosen on the validation split"
        ] = None,
        n_probe: Annotated[int, Range(1), "cells searched for a point; 1 is the paper's"] = 1,
        n_neighbors: Annotated[
            int | None, Range(1), "neighbours k that vote; None: chosen on the validation split"
        ] = None,
        vote: Annotated[Vote, "score of a label: share or number of neighbours with it"] = "mean",
        validation_fraction: Annotated[
            float, Range(0.01, 0.9), "share of the points held out to choose k and m"
        ] = 0.1,
        scaling: ScalingChoice = "auto",
        random_state: Seed = 0,
        device: Annotated[
            Literal["auto", "cpu", "cuda"], "where to train and search; auto: a GPU if present"
        ] = "auto",
    ) -> None:
        self.dim = dim
        self.hidden = hidden
        self.label_vectors = label_vectors
        self.label_graph = label_graph
        self.weighted = weighted
        self.walks_per_label = walks_per_label
        self.walk_length = walk_length
        self.window = window
        self.softmax = softmax
        self.n_negatives = n_negatives
        self.exponent = exponent
        self.spectrum = spectrum
        self.center = center
        self.encoder = encoder
        self.activation = activation
        self.dropout = dropout
        self.loss = loss
        self.margin = margin
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.init_scale = init_scale
        self.n_partitions = n_partitions
        self.n_probe = n_probe
        self.n_neighbors = n_neighbors
        self.vote = vote
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        texts: Sequence[str] | None = None,
        progress: Progress = SILENT,
    ) -> Self:
        """Learn to rank labels.

        Parameters
        ----------
        X : scipy sparse matrix, array or frame of shape (n_samples, n_features)
        Y : sparse or dense 0/1 indicator of shape (n_samples, n_labels), or a list of label lists
        texts : sequence of str, optional
            The points' texts, for the parameter `encoder`.
        progress : Progress
            Hears of the long steps.
        """

        def fit(X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
            self._fit_points(X, Y, texts, progress)

        return self._fit_by(fit, X, Y, progress)

    def partial_fit(
        self, X: Any, Y: Any, *, classes: Any = None, texts: Sequence[str] | None = None
    ) -> Self:
        """Learn from more points without training anew, as section 4.2 of the paper has it.

        The trained network embeds them and they vote from the nearest partition. New labels are
        predicted at once. The network, the partitions and k stay what they are.

        Parameters
        ----------
        X : scipy sparse matrix or array of shape (n_new, n_features)
        Y : 0/1 indicator of shape (n_new, n_labels or more), or a list of label lists
            Columns, ids or names that the model does not know are new labels.
        classes : ignored
            scikit-learn's tools give it; labels may be new at any time.
        texts : sequence of str, optional
            The new points' texts, for a model with a text encoder.
        """
        if not hasattr(self, "n_labels_"):
            return self.fit(X, Y, texts=texts)
        features = self._checked(X)
        labels, names = grown_labels(Y, features.shape[0], self.n_labels_, self.label_names_)
        labelled = np.diff(labels.indptr) > 0
        embedded = self._embed(features, texts)[labelled]
        Y = labels[labelled]
        more = new_label_vectors(self.label_vectors_, Y, embedded)
        known = self.train_labels_.copy()
        known.resize(known.shape[0], labels.shape[1])
        self.index_ = self.index_.with_points(embedded)
        self.train_labels_ = sp.csr_matrix(sp.vstack([known, Y], format="csr"))
        self.label_vectors_ = np.concatenate([self.label_vectors_, more])
        self.n_samples_, self.n_labels_ = self.n_samples_ + features.shape[0], labels.shape[1]
        self.label_names_ = names
        self.label_frequency_ = np.bincount(
            self.train_labels_.indices, minlength=self.n_labels_
        ).astype(np.int64)
        self._tie_place = tie_order(self.label_frequency_)
        return self

    def predict_topk(
        self,
        X: Any,
        k: int | None = None,
        *,
        texts: Sequence[str] | None = None,
        progress: Progress = SILENT,
    ) -> TopK:
        """The k best labels of each point, best first; see `dxml.topk.TopK`.

        k defaults to 5, or to the number of labels if there are fewer. A model with a text encoder
        needs the points' texts.
        """
        return self._in_batches(self._checked(X), k, texts, progress)

    def _fit(self, X: sp.csr_matrix, Y: sp.csr_matrix, progress: Progress) -> None:
        self._fit_points(X, Y, None, progress)

    def _fit_points(
        self,
        X: sp.csr_matrix,
        Y: sp.csr_matrix,
        texts: Sequence[str] | None,
        progress: Progress,
    ) -> None:
        labelled = np.diff(Y.indptr) > 0
        check_partitions(self.n_partitions or 1, int(labelled.sum()))
        self.scaler_ = fit_scaler(X[labelled], self.scaling)
        if self.encoder == "none":
            points: sp.csr_matrix | TextRows = self.scaler_.transform(X[labelled])
        else:
            points = read_texts(self.encoder, _checked(texts, X), progress)[labelled]
        Y = Y[labelled]
        self.label_vectors_ = self._embed_labels(Y, progress)
        targets = mean_label_vectors(Y, self.label_vectors_)
        chosen = self._choose(points, Y, targets, progress)
        self.n_partitions_, self.n_neighbors_ = chosen.n_partitions, chosen.n_neighbors
        self.encoder_, self.history_ = self._train(points, targets, "encoder", progress)
        with progress.stage("partitions"):
            embedded = self.encoder_.embed(points, resolve_device(self.device))
            self.index_ = self._partition(embedded, self.n_partitions_)
        self.train_labels_ = Y

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        return self._rank_texts(X, k, None)

    def _rank_texts(self, X: sp.csr_matrix, k: int, texts: Sequence[str] | None) -> TopK:
        points = self._embed(X, texts)
        device = resolve_device(self.device)
        neighbours, _ = self.index_.search(points, self.n_neighbors_, self.n_probe, device)
        return self._vote(neighbours, self.train_labels_, k)

    def _embed(self, X: sp.csr_matrix, texts: Sequence[str] | None) -> Floats:
        """f_x of checked rows."""
        device, f_x = resolve_device(self.device), self.encoder_
        if isinstance(f_x, TextPointEncoder):
            return f_x.embed(f_x.read(_checked(texts, X)), device)
        return f_x.embed(self.scaler_.transform(X), device)

    def _embed_labels(self, Y: sp.csr_matrix, progress: Progress) -> Floats:
        """V: Algorithm 1, lines 1 and 2."""
        from dxml._label_graph.skipgram import (
            center_and_scale,
            random_label_vectors,
            train_skipgram,
        )

        dim = self.dim or (300 if self.n_labels_ >= MIN_LABELS_LARGE else 100)
        alone = self.target_.form == "values" and self.label_graph is None  # no two share a point
        if self.label_vectors == "random" or alone:
            self.isolated_labels_ = np.empty(0, dtype=np.int32)
            seed = spawn_seed(self.random_state, "vectors")
            return random_label_vectors(self.n_labels_, dim, seed)
        walks = self._walk(Y, progress)
        seen = np.bincount(walks[:, 0], minlength=self.n_labels_) > 0  # all that are reached start
        self.isolated_labels_ = np.flatnonzero(~seen).astype(np.int32)
        settings: dict[str, Any] = {
            "n_labels": self.n_labels_,
            "dim": dim,
            "window": self.window,
            "negative": self.n_negatives,
            "exponent": self.exponent,
            "hierarchical": self.softmax == "hierarchical",
            "spectrum": self.spectrum,
            "seed": spawn_seed(self.random_state, "skipgram"),
            "device": resolve_device(self.device),
        }
        vectors = remembered(
            "label-vectors",
            {"walks": walks, **settings},
            lambda: {"vectors": train_skipgram(walks, **settings, progress=progress)},
        )["vectors"]
        return center_and_scale(vectors) if self.center else vectors

    def _walk(self, Y: sp.csr_matrix, progress: Progress) -> npt.NDArray[np.int32]:
        seed = spawn_seed(self.random_state, "walks")
        if self.weighted and self.label_graph is None:
            return random_walks_on_points(Y, self.walks_per_label, self.walk_length, seed, progress)
        with progress.stage("graph"):
            if self.label_graph is None:
                graph = label_graph(Y)
            else:
                names = None if self.label_names_ is None else self.label_names_.tolist()
                graph = read_graph(self.label_graph, self.n_labels_, names)
        return random_walks(graph, self.walks_per_label, self.walk_length, seed, progress)

    def _train(
        self, X: sp.csr_matrix | TextRows, targets: Floats, stage: str, progress: Progress
    ) -> tuple[Any, list[float]]:
        """f_x: Algorithm 1, line 4."""
        from dxml.paper._training import EncoderSettings, fit_encoder

        hidden = self.hidden or (512 if self.n_labels_ >= MIN_LABELS_LARGE else 256)
        device = resolve_device(self.device)
        if isinstance(X, TextRows):
            return fit_text_encoder(
                X,
                targets,
                hidden=hidden,
                loss=self.loss,
                margin=self.margin,
                dropout=self.dropout,
                seed=spawn_seed(self.random_state, "encoder"),
                device=device,
                stage=stage,
                progress=progress,
            )
        usual = next(size for least, size in BATCHES if X.shape[0] >= least)
        batch_size = self.batch_size or usual
        rate = self.learning_rate or LEARNING_RATE * (usual / BATCHES[-1][1]) ** 0.5
        settings = EncoderSettings(
            hidden=hidden,
            activation=self.activation,
            dropout=self.dropout,
            loss=self.loss,
            margin=self.margin,
            epochs=self.epochs,
            batch_size=batch_size,
            learning_rate=rate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            init_scale=self.init_scale,
        )
        rng = spawn(self.random_state, "encoder")["encoder"]
        return fit_encoder(
            X, targets, settings, rng=rng, device=device, stage=stage, progress=progress
        )

    def _partition(self, points: Floats, n_partitions: int) -> PartitionedIndex:
        """Z¹ … Zᵐ: Algorithm 1, line 5."""
        rng = spawn(self.random_state, "index")["index"]
        return PartitionedIndex.build(points, n_partitions, rng)

    def _vote(self, neighbours: npt.NDArray[np.int32], Y: sp.csr_matrix, k: int) -> TopK:
        """Algorithm 2, lines 4 and 5."""
        weights = np.ones(neighbours.shape, dtype=np.float32)
        if self.vote == "mean":
            weights /= np.maximum((neighbours >= 0).sum(axis=1, keepdims=True), 1)
        return vote(neighbours, weights, Y, k, self._tie_place)

    def _choose(
        self, X: sp.csr_matrix | TextRows, Y: sp.csr_matrix, targets: Floats, progress: Progress
    ) -> Choice:
        """k and m by the mean of P@1, P@3 and P@5 on held-out points, where not given."""
        if self.n_partitions is not None and self.n_neighbors is not None:
            return Choice(self.n_partitions, self.n_neighbors, float("nan"))
        rng = spawn(self.random_state, "validation")["validation"]
        held, kept = hold_out(X.shape[0], self.validation_fraction, rng)
        X_kept, Y_kept, Y_held = X[kept], Y[kept], Y[held]
        encoder, _ = self._train(X_kept, targets[kept], "encoder (validation)", progress)
        device = resolve_device(self.device)
        points, queries = encoder.embed(X_kept, device), encoder.embed(X[held], device)
        sizes = neighbor_counts(self.n_neighbors, len(kept))
        tried = []
        with progress.stage("validation") as stage:
            for n_partitions in partition_counts(self.n_partitions, len(kept)):
                index = self._partition(points, n_partitions)
                near, _ = index.search(queries, max(sizes), self.n_probe, device)
                for size in sizes:
                    score = self._score_votes(near[:, :size], Y_kept, Y_held)
                    tried.append(Choice(n_partitions, size, score))
                stage.advance()
        best = best_choice(tried)
        return best if self.n_partitions is None else replace(best, n_partitions=self.n_partitions)

    def _score_votes(
        self, neighbours: npt.NDArray[np.int32], Y: sp.csr_matrix, truth: sp.csr_matrix
    ) -> float:
        depth = min(5, self.n_labels_)
        return mean_precision(truth, self._vote(neighbours, Y, depth))

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        config = {
            "n_neighbors": self.n_neighbors_,
            "n_partitions": self.n_partitions_,
            "history": self.history_,
        }
        arrays = {
            "label_vectors": self.label_vectors_,
            "isolated_labels": self.isolated_labels_,
            **self.scaler_.arrays(),
            **self.encoder_.arrays(),
            **self.index_.arrays(),
            **pack_csr("train_labels", self.train_labels_),
        }
        return config, arrays

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.n_neighbors_ = whole(config, "n_neighbors", 1, self.n_samples_)
        self.n_partitions_ = whole(config, "n_partitions", 1)
        self.history_ = reals(config["history"], "history")
        d, n_labels = self.n_features_in_, self.n_labels_
        self.scaler_ = FeatureScaler.from_arrays(arrays, d)
        if self.encoder == "none":
            self.encoder_ = FeatureEncoder.from_arrays(arrays, d, self.activation)
        else:
            self.encoder_ = TextPointEncoder.from_arrays(arrays)
        dim = self.encoder_.dim
        self.label_vectors_ = arrays.floats("label_vectors", n_labels, dim)
        self.isolated_labels_ = arrays.ids("isolated_labels", None, below=n_labels)
        self.train_labels_ = arrays.csr("train_labels", None, n_labels, truth=True)
        self.index_ = PartitionedIndex.from_arrays(arrays, dim, self.train_labels_.shape[0])


def _checked(texts: Sequence[str] | None, X: sp.csr_matrix) -> Sequence[str]:
    if texts is None:
        raise DataFormatError("this model reads texts beside features. Give texts=….")
    if len(texts) != X.shape[0]:
        raise DataFormatError(f"expected a text for each of {X.shape[0]} points, got {len(texts)}.")
    return texts
