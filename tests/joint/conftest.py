"""Points that a small model knows, and planted data of which two labels come later."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp

from dxml.data import Dataset, make_planted
from dxml.joint._points import FeatureSpace, Known, tie_order_of
from dxml.joint.parts.protocol import Options

Rows = npt.NDArray[np.int64]


@pytest.fixture
def known() -> Known:
    """Thirty points with eight labels; the third label is on no point."""
    data = make_planted(30, 40, 8, 2.0, 6, random_state=0)
    Y = data.Y.toarray()
    Y[:, 2] = False
    labels = sp.csr_matrix(Y)
    space = FeatureSpace(data.X, np.ones(40, dtype=bool))
    return Known(data.X, labels, tie_order_of(labels), space)


@pytest.fixture
def options() -> Options:
    return Options(standardised=False, device="cpu", precision="float32", random_state=0)


@pytest.fixture(scope="module")
def planted() -> Dataset:
    """Twelve labels, of which the last two are new to a model that knows ten."""
    return make_planted(
        500, 120, 12, labels_per_point=1.5, features_per_point=12, noise=0.05, random_state=4
    )


@pytest.fixture(scope="module")
def halves(planted: Dataset) -> tuple[Rows, Rows, Rows]:
    """Training points without the new labels, training points with one, and test points."""
    fresh = np.asarray(planted.Y[:400, 10:].sum(axis=1)).ravel() > 0
    return np.flatnonzero(~fresh), np.flatnonzero(fresh), np.arange(400, 500)


@pytest.fixture(scope="module")
def small() -> tuple[Dataset, Dataset]:
    """300 points to learn from and 100 to rank."""
    data = make_planted(400, 150, 25, 2.0, 10, noise=0.1, random_state=2)
    data.X.data *= np.random.default_rng(0).uniform(0.7, 1.3, data.X.nnz)  # no two cosines alike
    return data.take(np.arange(300)), data.take(np.arange(300, 400))
