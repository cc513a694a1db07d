"""The label graph: which labels belong together.

The paper builds it from the training labels: an edge where two labels share a point (section 3.1,
"label graph"). A hierarchy or graph known beforehand can take its place (`read_graph`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csr_matrix

from dxml._core.compiled import compiled, prange
from dxml._core.sparse import plain_csr
from dxml._core.threads import n_threads
from dxml.exceptions import DataFormatError, did_you_mean

__all__ = ["LabelGraph", "label_graph", "read_graph"]

FULL = 16  # a row with more than one label in so many is read off, a shorter one is sorted


@dataclass(frozen=True)
class LabelGraph:
    """An undirected graph over the labels.

    Parameters
    ----------
    adjacency : csr_matrix of shape (n_labels, n_labels), float32 or bool
        Symmetric, zero diagonal, no stored zeros, sorted indices; an entry is the edge's weight.
        Of bool, all edges weigh the same.
    isolated : int32 array
        The labels without an edge, ascending. No walk reaches them.
    """

    adjacency: csr_matrix
    isolated: npt.NDArray[np.int32]

    @property
    def n_labels(self) -> int:
        """Nodes of the graph, isolated ones included."""
        return int(self.adjacency.shape[0])

    @property
    def n_edges(self) -> int:
        """Undirected edges."""
        return int(self.adjacency.nnz) // 2

    @classmethod
    def from_adjacency(cls, adjacency: csr_matrix) -> LabelGraph:
        """Drop self-loops and zeros from a symmetric matrix and note the isolated labels."""
        pairs = adjacency.tocoo()
        keep = (pairs.row != pairs.col) & (pairs.data != 0)
        entries = (pairs.data[keep].astype(np.float32), (pairs.row[keep], pairs.col[keep]))
        clean = csr_matrix(entries, shape=adjacency.shape)
        clean.sort_indices()
        isolated = np.flatnonzero(np.diff(clean.indptr) == 0).astype(np.int32)
        return cls(clean, isolated)


def label_graph(Y: csr_matrix, weighted: bool = False) -> LabelGraph:
    """Connect the labels that share a point.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels), bool
    weighted : bool
        False: every edge weighs 1, as in the paper. True: an edge weighs the number of points
        that carry both labels.

    Notes
    -----
    The graph can have as many edges as there are pairs of labels within points, of 5 bytes each
    way. Where that is too much, `dxml._label_graph.walks.random_walks_on_points` walks the weighted
    graph without building it.

    Examples
    --------
    >>> Y = csr_matrix(np.array([[1, 1, 0, 0], [1, 1, 1, 0]], dtype=bool))
    >>> label_graph(Y, weighted=True).adjacency.toarray().astype(int).tolist()
    [[0, 2, 1, 0], [2, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    >>> label_graph(Y).isolated.tolist()
    [3]
    """
    if weighted:
        counts = Y.astype(np.int32)
        return LabelGraph.from_adjacency(csr_matrix(counts.T @ counts))
    adjacency = _sharing(Y)
    isolated = np.flatnonzero(np.diff(adjacency.indptr) == 0).astype(np.int32)
    return LabelGraph(adjacency, isolated)


def _sharing(Y: csr_matrix) -> csr_matrix:
    """Which labels share a point, bool: the pattern of YᵀY without its diagonal.

    Delicious-200K has two billion such pairs out of eight billion products, so rows are made by all
    cores, and nothing is stored of an edge but where it ends.
    """
    by_label, n_labels = Y.T.tocsr(), Y.shape[1]
    given = (
        by_label.indptr.astype(np.int64),
        by_label.indices.astype(np.int32, copy=False),
        Y.indptr.astype(np.int64),
        Y.indices.astype(np.int32, copy=False),
    )
    n_chunks = max(1, min(n_labels, n_threads()))
    degrees = np.zeros(n_labels, dtype=np.int64)
    _count_neighbours(*given, n_chunks, degrees)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    _list_neighbours(*given, n_chunks, indptr, indices)
    return plain_csr(np.ones(len(indices), dtype=bool), indices, indptr, (n_labels, n_labels))


@compiled(parallel=True)
def _count_neighbours(label_starts, points, point_starts, labels, n_chunks, degrees):  # type: ignore[no-untyped-def]
    """How many other labels each label shares a point with."""
    n_labels = len(degrees)
    for chunk in prange(n_chunks):
        met = np.full(n_labels, -1, dtype=np.int32)
        for label in range(chunk, n_labels, n_chunks):
            met[label] = label
            for place in range(label_starts[label], label_starts[label + 1]):
                point = points[place]
                for other in labels[point_starts[point] : point_starts[point + 1]]:
                    if met[other] != label:
                        met[other] = label
                        degrees[label] += 1


@compiled(parallel=True)
def _list_neighbours(label_starts, points, point_starts, labels, n_chunks, indptr, indices):  # type: ignore[no-untyped-def]
    """These labels in rising order, in ``indices[indptr[label] : indptr[label + 1]]``."""
    n_labels = len(indptr) - 1
    for chunk in prange(n_chunks):
        met = np.full(n_labels, -1, dtype=np.int32)
        for label in range(chunk, n_labels, n_chunks):
            row = indices[indptr[label] : indptr[label + 1]]
            full = len(row) * FULL > n_labels
            met[label] = label
            found = 0
            for place in range(label_starts[label], label_starts[label + 1]):
                point = points[place]
                for other in labels[point_starts[point] : point_starts[point + 1]]:
                    if met[other] != label:
                        met[other] = label
                        if not full:
                            row[found] = other
                            found += 1
            if full:
                for other in range(n_labels):
                    if met[other] == label and other != label:
                        row[found] = other
                        found += 1
            else:
                row.sort()


def read_graph(
    path: str | Path, n_labels: int, label_names: Sequence[str] | None = None
) -> LabelGraph:
    """Read a label hierarchy or graph from an edge list.

    One edge a line, ``parent<TAB>child`` or ``parent<TAB>child<TAB>weight``; the direction is
    forgotten. Empty lines and lines that start with ``#`` are passed over; an edge given twice
    (either way round) weighs the sum.

    Parameters
    ----------
    path : path of a UTF-8 text file
    n_labels : int
    label_names : sequence of n_labels str, optional
        When given, an end of an edge may be a label's name; a name wins over an id. Without it
        every end is an id, 0 to n_labels - 1.

    Raises
    ------
    DataFormatError
        A malformed line, an unknown label, a weight that is not a positive number, text that is
        not UTF-8, or a file without an edge.
    """
    path = Path(path)
    ids = None if label_names is None else {name: i for i, name in enumerate(label_names)}
    rows, cols, weights = [], [], []
    for where, line in _numbered_lines(path):
        fields = line.split("\t")
        if len(fields) not in (2, 3):
            raise DataFormatError(
                f"{where}: expected parent<TAB>child with an optional third column, the weight, "
                f"got {len(fields)} column{'s' * (len(fields) != 1)}: {line[:60]!r}. "
                "Separate the columns by single tabs."
            )
        rows.append(_label_id(fields[0].strip(), n_labels, ids, where))
        cols.append(_label_id(fields[1].strip(), n_labels, ids, where))
        weights.append(_weight(fields[2].strip(), where) if len(fields) == 3 else 1.0)
    edges = coo_matrix((weights, (rows, cols)), shape=(n_labels, n_labels)).tocsr()
    graph = LabelGraph.from_adjacency(csr_matrix(edges + edges.T))
    if graph.n_edges == 0:
        raise DataFormatError(
            f"{path}: expected at least one line parent<TAB>child between two different labels, "
            "found none. Leave the graph out to build one from the training labels."
        )
    return graph


def _numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """('file line 3', text) for every line that holds something."""
    for number, raw in enumerate(path.read_bytes().splitlines(), start=1):
        where = f"{path} line {number}"
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataFormatError(
                f"{where}: expected UTF-8 text, got byte 0x{raw[error.start]:02x} at column "
                f"{error.start + 1}. Save the file as UTF-8."
            ) from None
        if line.strip() and not line.startswith("#"):
            yield where, line


def _label_id(word: str, n_labels: int, ids: dict[str, int] | None, where: str) -> int:
    if ids is not None and word in ids:
        return ids[word]
    if word.isascii() and word.removeprefix("-").isdecimal():
        label = int(word)
        if 0 <= label < n_labels:
            return label
        raise DataFormatError(
            f"{where}: label id {word} is outside 0..{n_labels - 1}. "
            "Count the labels from 0, or give the label names."
        )
    if ids is None:
        raise DataFormatError(
            f"{where}: expected a label id from 0 to {n_labels - 1}, got {word!r}. "
            "Give the label names to use names here."
        )
    hint = did_you_mean(word, ids) if len(ids) <= 20 else _nearest(word, ids)
    raise DataFormatError(f"{where}: unknown label {word!r}{hint}")


def _nearest(word: str, names: dict[str, int]) -> str:
    """`did_you_mean` without its list of every known name, which here may be a million long."""
    hint = did_you_mean(word, names)
    return hint if hint.startswith("; did") else ". Use a name as it stands in the label names."


def _weight(word: str, where: str) -> float:
    try:
        weight = float(word)
    except ValueError:
        weight = math.nan
    if not (0 < weight < math.inf):
        raise DataFormatError(
            f"{where}: expected a positive weight in the third column, got {word!r}. "
            "Write a number such as 1 or 0.5, or leave the column out."
        )
    return weight
