"""Label vectors on Eurlex-4K's graph: ours against gensim's, in time and in P@1.

It needs gensim, which is no dependency of dxml: ``pip install 'gensim>=4.3'``.

`make bench-parts` runs this among the other parts. Both train on the same walks (40 × 40,
unweighted graph; window 10; 300-d), ours after a warm-up that compiles, gensim with two workers.
P@1 is that of a quick stand-in for the encoder: a ridge regression from the features to the mean
label vectors, then an exact 20-NN cosine vote.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from dxml._label_graph.graph import label_graph
from dxml._label_graph.skipgram import random_label_vectors, train_skipgram
from dxml._label_graph.walks import random_walks
from dxml.data import Dataset

Report = Callable[[str, str, str, float], None]
DIM, WINDOW, N_NEIGHBORS, RIDGE = 300, 10, 20, 0.5


class StandIn:
    """Ridge regression to unit mean label vectors, then a vote of the nearest training points."""

    def __init__(self, train: Dataset, test: Dataset) -> None:
        self.Y, self.truth = train.Y.astype(np.float32), test.Y
        self.X, self.X_test = (_with_bias(normalize(part.X)) for part in (train, test))
        gram = (self.X.T @ self.X).toarray().astype(np.float64)
        gram[np.diag_indices_from(gram)] += RIDGE
        self.solver = scipy.linalg.cho_factor(gram)
        self.frequency = np.asarray(self.Y.sum(axis=0)).ravel()

    def precision_at_1(self, vectors: np.ndarray) -> float:
        targets = normalize(self.Y @ vectors)  # the mean's direction is the sum's
        weights = scipy.linalg.cho_solve(self.solver, self.X.T @ targets).astype(np.float32)
        train, test = normalize(self.X @ weights), normalize(self.X_test @ weights)
        hits = 0
        for first in range(0, len(test), 1000):
            cosine = test[first : first + 1000] @ train.T
            near = np.argpartition(-cosine, N_NEIGHBORS, axis=1)[:, :N_NEIGHBORS]
            votes = sum(self.Y[near[:, i]] for i in range(N_NEIGHBORS)).toarray()
            best = (votes + 1e-6 * self.frequency).argmax(axis=1)  # ties: the more frequent label
            truth = self.truth[first : first + 1000]
            hits += int(np.asarray(truth[np.arange(len(best)), best]).sum())
        return 100 * hits / len(test)


def _with_bias(X: sp.csr_matrix) -> sp.csr_matrix:
    return sp.hstack([X, np.ones((X.shape[0], 1), np.float32)]).tocsr()


def gensim_vectors(
    walks: np.ndarray, n_labels: int, hierarchical: bool
) -> tuple[float, np.ndarray]:
    """Seconds and vectors of gensim's Word2Vec; the sentences are made outside the clock."""
    from gensim.models import Word2Vec

    shuffled = np.random.default_rng(0).permutation(walks)
    sentences = [[str(label) for label in walk] for walk in shuffled.tolist()]
    begin = time.perf_counter()
    model = Word2Vec(
        sentences,
        vector_size=DIM,
        window=WINDOW,
        min_count=0,
        sg=1,
        hs=int(hierarchical),
        negative=0 if hierarchical else 5,
        workers=2,
        epochs=1,
        seed=1,
    )
    seconds = time.perf_counter() - begin
    seen = np.unique(walks)
    trained = np.stack([model.wv[str(label)] for label in seen])
    vectors = random_label_vectors(n_labels, DIM) * np.median(np.linalg.norm(trained, axis=1))
    vectors[seen] = trained
    return seconds, vectors


def our_vectors(walks: np.ndarray, n_labels: int, hierarchical: bool) -> tuple[float, np.ndarray]:
    """Seconds and vectors of `train_skipgram`, compiled."""
    train_skipgram(walks[:200], n_labels, 8, hierarchical=hierarchical, epochs=1)
    begin = time.perf_counter()
    vectors = train_skipgram(walks, n_labels, DIM, window=WINDOW, hierarchical=hierarchical)
    return time.perf_counter() - begin, vectors


def compare(train: Dataset, test: Dataset, report: Report) -> None:
    """Both modes, ours and gensim's, on the same walks in the same run."""
    stand_in, n_labels = StandIn(train, test), train.Y.shape[1]
    graph = label_graph(train.Y)
    random_walks(graph, 1, 2, seed=0)
    begin = time.perf_counter()
    walks = random_walks(graph, 40, 40, seed=0)
    print(f"walks: {walks.size:,} labels in {time.perf_counter() - begin:.2f} s")
    for hierarchical in (False, True):
        mode = "hierarchical softmax" if hierarchical else "negative sampling"
        ours, vectors = our_vectors(walks, n_labels, hierarchical)
        theirs, their_vectors = gensim_vectors(walks, n_labels, hierarchical)
        times = theirs / ours
        what = f"label vectors, {mode}"
        report(what, f"{ours:.1f} s", f"gensim {theirs:.1f} s / 5", times / 5)
        here, there = (stand_in.precision_at_1(v) for v in (vectors, their_vectors))
        report("  their P@1 through a ridge stand-in", f"{here:.2f}", f"{there:.2f}", here / there)
    unrelated = stand_in.precision_at_1(random_label_vectors(n_labels, DIM))
    print(f"random vectors, no graph, through the same stand-in: P@1 {unrelated:.2f}")
