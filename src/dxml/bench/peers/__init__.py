"""Other libraries as rows: what each needs, and the file that drives it.

They are not dependencies. Each lives in a virtual environment of its own, which the command makes
under the results folder (`environment`); there `driver` runs one adapter file as a plain script. An
adapter knows its library and nothing of dxml:

    prepare(X, Y, folder) -> state                                    not counted as training
    parse(state, threads) -> state                                    optional: of files, by it
    train(state, folder, parameters, threads, seed) -> model
    save(model, folder)                                               optional: train has saved
    load(folder, parameters) -> model                                 optional: the same is asked
    predict(model, X, k, threads) -> (indices, scores)

with X, Y as scipy CSR and rankings as (n, k) arrays, best first, padded with -1. The library is
imported inside. `_driver.checked` refuses what is no ranking.
Each step is timed by itself. The files of a model must be in folder before it predicts.

An adapter of anybody is one file outside the package, named by its path. It may also say

    TITLE = "My method"                 in tables; the file's name by default
    PARAMETERS = {"depth": 3}           what an experiment may set, with defaults
    REQUIREMENTS = ["numpy", "mine"]    what pip installs for it; without, it runs beside dxml
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dxml._core.params import Parameter
from dxml.exceptions import ParameterError, did_you_mean
from dxml.methods import METHODS

__all__ = ["PEERS", "PREFIX", "Peer", "is_peer", "peer_of", "read_adapter"]

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
            {
                "n_trees": 3,
                "max_depth": 20,
                "cluster_k": 2,
                "cluster_balanced": True,
                "C": 1.0,
                "beam_size": 10,
            },
        ),
        Peer(
            "pecos",
            "PECOS",
            (_TORCH, (*_ARRAYS, "libpecos==1.2.8")),
            _HERE / "_pecos_adapter.py",
            {"one_vs_all": False, "n_trees": 1, "beam_size": 10, "C": 1.0},
        ),
        Peer(
            "napkinxc",
            "napkinXC",
            (_ARRAYS, ("napkinxc==0.7.2",)),
            _HERE / "_napkinxc_adapter.py",
            {"one_vs_all": False, "ensemble": 1, "C": 10.0},
        ),
        Peer(
            "libmultilabel",
            "LibMultiLabel",
            (_TORCH, ("libmultilabel==0.10.0",)),
            _HERE / "_libmultilabel_adapter.py",
            {"tree": False, "C": 1.0, "options": "-s 2"},
        ),
    )
}


def is_peer(method: str) -> bool:
    """Whether a method is another library, or an adapter of somebody's own."""
    return method.startswith(PREFIX) or method.endswith(".py")


def peer_of(method: str) -> Peer:
    """The peer that a method name such as ``peer:omikuji`` or ``mine.py`` means."""
    if method.endswith(".py"):
        return read_adapter(Path(method))
    name = method.removeprefix(PREFIX)
    if name not in PEERS:
        raise ParameterError(f"unknown peer {name!r}{did_you_mean(name, PEERS)}")
    return PEERS[name]


def read_adapter(path: Path) -> Peer:
    """The peer in a file outside the package; a mistake in it is named before anything runs."""
    if not path.is_file():
        raise ParameterError(f"{path}: no such adapter file.")
    found = path.stat()
    return _read_adapter(path.resolve(), found.st_size, found.st_mtime_ns)


@cache
def _read_adapter(path: Path, size: int, changed: int) -> Peer:
    """Once, as long as size and time of the file are the same."""
    try:
        found = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        hint = ". Import it inside the functions" if isinstance(error, ImportError) else ""
        raise ParameterError(f"{path.name}: {type(error).__name__}: {error}{hint}.") from error
    if missing := [
        name for name in ("prepare", "train", "predict") if not callable(found.get(name))
    ]:
        raise ParameterError(f"{path.name}: an adapter needs the function {missing[0]}.")
    parameters = found.get("PARAMETERS", {})
    requirements = found.get("REQUIREMENTS", ())
    if not isinstance(parameters, dict) or isinstance(requirements, str):
        raise ParameterError(
            f"{path.name}: PARAMETERS is a dict, and REQUIREMENTS a list of texts."
        )
    steps = (tuple(map(str, requirements)),) if requirements else ()
    title = str(found.get("TITLE", path.stem))
    taken = {*METHODS, *PEERS, *(peer.title for peer in PEERS.values())}
    if title.casefold() in {each.casefold() for each in taken}:
        raise ParameterError(
            f"{path.name}: the title {title!r} is that of a method of dxml. "
            "Give it another: TITLE = '…'."
        )
    return Peer(path.stem, title, steps, path, parameters)
