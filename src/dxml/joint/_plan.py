"""Which parts data of a shape get.

Small data (points × labels up to `EVERY_LABEL_PAIRS`) are scored for every label. Larger data are
scored for a shortlist: the labels of the nearest training points. So are sparse data of many labels
where a CPU has too many points for a kernel: a linear head over all labels would be all there is.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import scipy.sparse as sp

from dxml._core.scaling import is_dense
from dxml.joint._sizes import CPU_KERNEL_POINTS, EVERY_LABEL_PAIRS, TREE_LABELS
from dxml.joint.parts.protocol import Options, Part, Settings, Shape

__all__ = ["PARTS", "Plan", "make_plan", "outside_arrays", "shape_of"]


class _Parts(UserDict[str, type[Part]]):
    """Kinds of parts by name; one that is given as ``module:Class`` is imported when asked for."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        super().__init__()
        self.data: dict[str, Any] = dict(homes)

    def __getitem__(self, name: str) -> type[Part]:
        if isinstance(self.data[name], str):
            module, _, kind = self.data[name].partition(":")
            self.data[name] = getattr(import_module(module), kind)
        found: type[Part] = self.data[name]
        return found


PARTS = _Parts(
    {
        "kernel": "dxml.joint.parts._kernel:KernelPart",
        "wide": "dxml.joint.parts._wide:WidePart",
        "deep": "dxml.joint.parts._deep:DeepPart",
        "vectors": "dxml.joint.parts._vectors:VectorsPart",
        "frequency": "dxml.joint.parts._frequency:Frequency",
        "vote": "dxml.joint.parts._vote:Vote",
        "trees": "dxml.joint.parts._trees:TreesPart",
        "linear": "dxml.joint.parts._linear:LinearPart",
    }
)
"""Every kind of part by its name, in the order in which they are planned and fitted."""


@dataclass(frozen=True)
class Plan:
    """The parts of a model.

    Attributes
    ----------
    every_label : bool
        Whether every label of a point is scored, rather than a shortlist.
    parts : dict of dicts
        Settings of each part, by its name.
    variants : tuple of Plan
        What is fitted without the held-out points too. One of them is taken where those rank better
        by it.
    """

    every_label: bool
    parts: Mapping[str, Settings]
    variants: tuple[Plan, ...] = ()

    @property
    def space(self) -> str | None:
        """The part in whose space neighbours are searched; None: by the features."""
        embedding = [name for name in self.parts if PARTS[name].embeds]
        return embedding[0] if self.every_label and embedding else None


def shape_of(
    X: sp.csr_matrix,
    n_labels: int,
    *,
    device: str,
    memory: float,
    candidates: Literal["auto", "all", "nearest"] = "auto",
    labels_per_point: float = 0.0,
) -> Shape:
    """The shape of the data, and whether every label is scored."""
    n, d = X.shape
    dense, features = is_dense(X), X.nnz / max(n, 1)
    every = candidates == "all"
    if candidates == "auto":
        linear_alone = device == "cpu" and n > CPU_KERNEL_POINTS and not dense
        dear = linear_alone and n_labels >= TREE_LABELS[0]  # trees and shortlists rank as well
        every = n * n_labels <= EVERY_LABEL_PAIRS and not dear
    return Shape(n, d, n_labels, every, dense, device, memory, features, labels_per_point)


def outside_arrays(plan: Plan, shape: Shape, options: Options, threads: int) -> dict[str, float]:
    """Bytes that training takes which are no arrays of numpy, by what takes them.

    Each is the largest of the plan and its variants. Each thread of a compiled loop has a number
    for every point, feature or label.
    """
    loops = threads * (4.0 * shape.n_samples + 4.0 * shape.n_features + 16.0 * shape.n_labels)
    needs = {"loops": loops}
    for each in (plan, *plan.variants):
        for name, own in each.parts.items():
            needs[name] = max(needs.get(name, 0.0), PARTS[name].outside(shape, options, own))
    return {name: size for name, size in needs.items() if size}


def make_plan(shape: Shape, options: Options) -> Plan:
    """The parts for data of this shape."""
    parts: dict[str, Settings] = {}
    for name, kind in PARTS.items():
        settings = kind.plan(shape, options, parts)
        if settings is not None:
            parts[name] = settings
    variants = tuple(
        Plan(shape.every_label, {**parts, name: other})
        for name, own in parts.items()
        for other in PARTS[name].variants(shape, options, own)
    )
    return Plan(shape.every_label, parts, variants)
