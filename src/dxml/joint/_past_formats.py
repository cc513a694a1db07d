"""Joint models of formats 1 to 4, as format 5 or 6 would have written them.

Formats 1 to 4 had a plan instead of settings by part, and the weights of the mixture in one array,
in the order of the parts' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dxml._core.arrays import Arrays, flag, reals, whole

__all__ = ["upgraded"]

SHARES = ("kernel", "vote")
"""Parts whose log-odds were weighed too."""


def upgraded(
    config: Mapping[str, Any], arrays: Arrays, n_samples: int, C: float
) -> tuple[Mapping[str, Any], Arrays]:
    """What a saved model holds, in the present form.

    Parameters
    ----------
    n_samples : int
        Points that the model was fitted on.
    C : float
        Of the linear head, where format 1 or 2 does not say.
    """
    if "plan" not in config:
        return config, arrays
    plan = config["plan"]
    for name in ("kernel", "linear"):
        flag(plan, name)
    n_neighbors, power, n_candidates, _ = arrays.numbers("parts.settings", 4, least=0)
    parts: dict[str, Any] = {
        "frequency": {},
        "vote": {"n_neighbors": int(n_neighbors), "power": power},
    }
    if plan["kernel"]:
        gauss, gamma, ridge, *pull = arrays.numbers("kernel.settings", None, least=0)
        kind = "gauss" if gauss else "laplace"
        pull = pull or [0.0]  # until format 1 labels were not related
        parts["kernel"] = {"kind": kind, "gamma": gamma, "ridge": ridge, "pull": pull[0]}
    if whole(plan, "width"):
        parts["wide"] = {
            "width": plan["width"],
            "learners": plan.get("learners", 1),
            "epochs": plan.get("epochs", 25),
            "history": reals(config.get("history", []), "history"),
        }
    if plan["linear"]:
        parts["linear"] = {"C": config.get("C", C)}
    present = {
        # Until format 2 every label was scored where there was no linear head.
        "every_label": plan.get("every_label", not plan["linear"]),
        "n_candidates": int(n_candidates),
        "parts": parts,
    }
    shared = config.get("frequency") == "share"
    return present, arrays.renamed(_named_weights(arrays, parts, 0 if shared else n_samples))


def _named_weights(
    arrays: Arrays, parts: Mapping[str, Any], n_samples: int
) -> dict[str, npt.NDArray[Any]]:
    """The mixture's weights by the name of the part.

    Until format 3 the frequency of a label was a number of points, of which there were
    `n_samples`, instead of a share of them: the bias makes up for it.
    """
    sizes = {name: 2 if name in SHARES else 1 for name in sorted(parts)}
    weights = arrays.floats("mixture.weights", sum(sizes.values()))
    named: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for name, size in sizes.items():
        named[f"mixture.weights.{name}"] = weights[start : start + size]
        start += size
    shift = float(named["mixture.weights.frequency"][0]) * float(np.log1p(n_samples))
    named["mixture.bias"] = np.array(arrays.numbers("mixture.bias", 1)) + shift
    return named
