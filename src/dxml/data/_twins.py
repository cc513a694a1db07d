"""Twins: generated documents of a registered data set's shape, meant to be about as difficult."""

from __future__ import annotations

from dataclasses import replace

from dxml.data._dataset import Dataset
from dxml.data._documents import make_documents
from dxml.data._registry import lookup
from dxml.data._traits import TRAITS, Traits
from dxml.exceptions import ParameterError

__all__ = ["make_twin"]


def make_twin(
    name: str,
    n_samples: int | None = None,
    share: float = 1.0,
    *,
    head: float | None = None,
    noise: float | None = None,
    distraction: float | None = None,
    overlap: float | None = None,
    emphasis: float | None = None,
    label_noise: float | None = None,
    missing: float | None = None,
    copies: float | None = None,
    label_spread: float | None = None,
    length_spread: float | None = None,
    random_state: int | None = 0,
) -> Dataset:
    """Generated data of the shape of a registered data set, meant to be about as difficult.

    Parameters
    ----------
    name : str
        A key of `dxml.data.REGISTRY`.
    n_samples : int, optional
        Number of points; that of the data set's train part by default.
    share : float in (0, 1]
        A smaller twin: this share of the points, of the features and of the labels, so that a label
        has as many points as in the whole one.
    head, noise, distraction, overlap, emphasis, label_noise, missing, copies : float, optional
    label_spread, length_spread : float, optional
        Traits of the data, by default those that were calibrated for this data set. `Traits` says
        what they are.
    random_state : int or None
        Same number, same data. None: new data every time.
    """
    info = lookup(name)
    if not 0 < share <= 1:
        raise ParameterError(f"share must be in 0..1 and above 0, got {share!r}.")
    given = {
        "head": head,
        "noise": noise,
        "distraction": distraction,
        "overlap": overlap,
        "emphasis": emphasis,
        "label_noise": label_noise,
        "missing": missing,
        "copies": copies,
        "label_spread": label_spread,
        "length_spread": length_spread,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    traits = replace(TRAITS.get(info.name, Traits()), **changes)
    documents = make_documents(
        round(info.n_train * share) if n_samples is None else n_samples,
        max(round(info.n_features * share), 1 + int(info.features_per_point)),
        max(round(info.n_labels * share), 1 + int(2 * info.labels_per_point)),
        info.labels_per_point,
        info.features_per_point,
        traits,
        info.propensity,
        random_state,
    )
    return Dataset(documents.X, documents.Y, f"{info.name}-twin", propensity=info.propensity)
