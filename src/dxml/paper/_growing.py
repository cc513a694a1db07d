"""A vector for labels that a fitted DXML did not know: from the label graph, or from their points.

In the graph of new points a new label has edges to the labels that it shares a point with. Its
vector is the mean of the known ones among these. A label that shares no point with a known one gets
the mean of its embedded points: what the network says of them is a mean of label vectors too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._label_graph.graph import label_graph

__all__ = ["new_label_vectors"]

Floats = npt.NDArray[np.float32]


def new_label_vectors(V: Floats, Y: sp.csr_matrix, embedded: Floats) -> Floats:
    """Vectors of the labels after the known ones, as long as those are in the median.

    Parameters
    ----------
    V : float32 array of shape (n_known, dim)
    Y : csr_matrix of shape (n_new_points, n_labels), bool
        Labels of the new points, of which the first n_known are known.
    embedded : float32 array of shape (n_new_points, dim)

    Returns
    -------
    float32 array of shape (n_labels - n_known, dim)
        A label that no new point carries has a vector of zeros.
    """
    n_known = len(V)
    edges = sp.csr_matrix(label_graph(Y).adjacency[n_known:, :n_known])
    carried = sp.csr_matrix(Y[:, n_known:].T.astype(np.float32))
    alone = np.diff(edges.indptr) == 0
    found = np.where(alone[:, None], carried @ embedded, edges @ V)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    usual = np.median(np.linalg.norm(V, axis=1))
    return np.asarray(usual * found / np.maximum(lengths, 1e-12), dtype=np.float32)
