"""What the methods with low-rank scores share: they rank by a code of the point and a decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays
from dxml._core.scaling import FeatureScaler
from dxml.base import Classifier
from dxml.baselines._linear import LowRankScores
from dxml.topk import TopK

__all__ = ["LowRankClassifier"]


class LowRankClassifier(Classifier):
    """Scales features and ranks by `LowRankScores`; a method says how both are fitted."""

    scaler_: FeatureScaler
    scores_: LowRankScores

    def _rank(self, X: sp.csr_matrix, k: int) -> TopK:
        return self.scores_.rank(self.scaler_.transform(X), k, self._tie_place)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        return {}, {**self.scaler_.arrays(), **self.scores_.arrays()}

    def _restore(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        self.scaler_ = FeatureScaler.from_arrays(arrays, self.n_features_in_)
        self.scores_ = LowRankScores.from_arrays(arrays, self.n_features_in_, self.n_labels_)
