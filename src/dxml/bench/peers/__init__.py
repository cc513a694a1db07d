"""Other libraries as rows: what each needs, and the file that drives it.

They are not dependencies. Each lives in a virtual environment of its own, which the command makes
under the results folder (`environment`); there `driver` runs one adapter file as a plain script. An
adapter knows its library and nothing of dxml:

    prepare(X, Y, folder) -> state                                    not counted as training
    train(state, folder, parameters, threads, seed) -> model          must leave its files in folder
    predict(model, X, k, threads) -> (indices, scores)

with X, Y as scipy CSR and rankings as (n, k) arrays padded with -1. The library is imported inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dxml._core.params import Parameter
from dxml.exceptions import ParameterError, did_you_mean

__all__ = ["PEERS", "PREFIX", "Peer", "peer_of"]

PREFIX = "peer:"
"""What the method name of a peer starts with in an experiment."""
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """One library.

    Attributes
    ----------
    steps : tuple of tuple of str
        What pip installs, step by step: a later step finds the earlier ones in place.
    adapter : Path
        The file with `prepare`, `train` and `predict`.
    parameters : mapping
        Name → default of what an experiment may set.
    """

    name: str
    title: str
    steps: tuple[tuple[str, ...], ...]
    adapter: Path
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def known_parameters(self) -> dict[str, Parameter]:
        """As for a method of ours: name → what is allowed."""
        return {
            name: Parameter(name, default, (type(default),), (), None, "")
            for name, default in self.parameters.items()
        }


_ARRAYS = ("numpy==1.26.4", "scipy==1.13.1")
_TORCH = ("torch==2.13.0",)  # first, or the resolver may choose a build of several gigabytes

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "omikuji",
            "omikuji",
            (_ARRAYS, ("omikuji==0.5.2",)),
            _HERE / "_omikuji_adapter.py",
            {"n_trees": 3, "max_depth": 20},
        ),
        Peer(
            "pecos",
            "PECOS",
            (_TORCH, (*_ARRAYS, "libpecos==1.2.8")),
            _HERE / "_pecos_adapter.py",
            {"one_vs_all": False},
        ),
        Peer(
            "napkinxc",
            "napkinXC",
            (_ARRAYS, ("napkinxc==0.7.2",)),
            _HERE / "_napkinxc_adapter.py",
            {"one_vs_all": False, "ensemble": 1},
        ),
        Peer(
            "libmultilabel",
            "LibMultiLabel",
            (_TORCH, ("libmultilabel==0.10.0",)),
            _HERE / "_libmultilabel_adapter.py",
            {"tree": False},
        ),
    )
}


def peer_of(method: str) -> Peer:
    """The peer that a method name such as ``peer:omikuji`` means."""
    name = method.removeprefix(PREFIX)
    if name not in PEERS:
        raise ParameterError(f"unknown peer {name!r}{did_you_mean(name, PEERS)}")
    return PEERS[name]
