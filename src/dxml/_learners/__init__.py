"""Trained scorers that know arrays only: linear head, kernel ridge regression, wide layer."""
