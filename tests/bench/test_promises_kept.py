"""benchmarks/promises.py: what is counted of a promise, and the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.exceptions import ParameterError
from dxml.topk import TopK

from .scripts import load_script

promises = load_script("promises")
Points = load_script("calibration").Points


class Said:
    """A model of two labels whose rankings and thresholds are given."""

    n_labels_ = 2

    def threshold_for(self, **promise: float) -> float:
        if promise == {"precision": 0.9}:
            raise ParameterError("no")
        return 0.5

    def predict_topk(self, X: Any, k: int) -> TopK:
        scores = np.array([[0.9, 0.6], [0.8, 0.1], [0.4, 0.3]], dtype=np.float32)
        return TopK(np.array([[0, 1], [1, 0], [0, 1]], dtype=np.int32), scores)


def test_precision_and_recall_by_hand() -> None:
    """Three labels have 0.5 or more: two of them are right, of five true ones."""
    truth = sp.csr_matrix(np.array([[1, 0], [1, 1], [1, 1]], dtype=bool))
    asked = Points(sp.csr_matrix((3, 4)), truth)
    assert promises.reached(Said(), asked, "precision", 0.7) == pytest.approx(2 / 3)
    assert promises.reached(Said(), asked, "recall", 0.3) == pytest.approx(2 / 5)
    assert promises.reached(Said(), asked, "precision", 0.9) is None


def test_the_table_has_the_newest_record_of_each_data_set() -> None:
    row = {
        "what": "precision",
        "promised": 0.8,
        "made": 4,
        "kept": 3,
        "reached": 81.0,
        "least": 79.0,
    }
    refused = row | {"promised": 0.9, "made": 0, "kept": 0, "reached": None, "least": None}
    about = {"learnt": 2000, "draws": 5, "machine": "A", "commit": "abcdef123", "command": "c"}
    old = {"data": "bibtex", "rows": [row | {"kept": 0}], **about}
    new = {"data": "bibtex", "rows": [row, refused], **about}
    made = promises.table([old, new])
    assert "| Bibtex | precision 80 % | 4 of 5 | 3 | 81.0 % | 79.0 % |" in made
    assert "| Bibtex | precision 90 % | 0 of 5 | 0 | – | – |" in made
    assert "3 of 4 promises were kept. `c` on A, commit abcdef1." in made
