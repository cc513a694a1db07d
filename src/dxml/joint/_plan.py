"""Which parts data of a shape get.

Small data (points × labels up to `EVERY_LABEL_PAIRS`) are scored for every label. Larger data are
scored for a shortlist: the labels of the nearest training points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import scipy.sparse as sp

from dxml._core.scaling import is_dense
from dxml.joint._sizes import EVERY_LABEL_PAIRS
from dxml.joint.parts._deep import DeepPart
from dxml.joint.parts._frequency import Frequency
from dxml.joint.parts._kernel import KernelPart
from dxml.joint.parts._linear import LinearPart
from dxml.joint.parts._trees import TreesPart
from dxml.joint.parts._vote import Vote
from dxml.joint.parts._wide import WidePart
from dxml.joint.parts.protocol import Options, Part, Settings, Shape

__all__ = ["PARTS", "Plan", "make_plan", "shape_of"]

PARTS: dict[str, type[Part]] = {
    part.name: part
    for part in (KernelPart, WidePart, DeepPart, Frequency, Vote, TreesPart, LinearPart)
}
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
    """

    every_label: bool
    parts: Mapping[str, Settings]

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
) -> Shape:
    """The shape of the data, and whether every label is scored."""
    n, d = X.shape
    every = n * n_labels <= EVERY_LABEL_PAIRS if candidates == "auto" else candidates == "all"
    return Shape(n, d, n_labels, every, is_dense(X), device, memory)


def make_plan(shape: Shape, options: Options) -> Plan:
    """The parts for data of this shape."""
    parts: dict[str, Settings] = {}
    for name, kind in PARTS.items():
        settings = kind.plan(shape, options, parts)
        if settings is not None:
            parts[name] = settings
    return Plan(shape.every_label, parts)
