"""Ranking quality: P@k, nDCG@k and their propensity-scored kin, calibration, label bands."""

from dxml.metrics.ranking import (
    BINS,
    are_probabilities,
    calibration_error,
    coverage_at_k,
    evaluate,
    inverse_propensity,
    judged_scores,
    macro_f1_at_k,
    macro_precision_at_k,
    macro_recall_at_k,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
    score_bins,
)

__all__ = [
    "BINS",
    "are_probabilities",
    "calibration_error",
    "coverage_at_k",
    "evaluate",
    "inverse_propensity",
    "judged_scores",
    "macro_f1_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "score_bins",
]
