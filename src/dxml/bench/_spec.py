"""An experiment is a TOML file; it expands to runs.

::

    name = "example"
    description = "one line for `dxml bench list`"

    [[runs]]
    datasets = ["bibtex"]
    splits = "all"                 # or [1, 2]; 1 by default
    methods = ["dxml", "knn"]      # or "all"
    seeds = [0]
    [runs.parameters]              # a list is an axis of a grid
    n_neighbors = [5, 10]

Keys above the blocks (`splits`, `seeds`, `part`, `k`, `time_limit`) are defaults for all of them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from dxml._core.params import Parameter, parameters_of
from dxml.bench._own_data import is_own_data
from dxml.bench._own_files import check_names
from dxml.bench._sources import Part, check_source, n_splits
from dxml.bench._toml import Kinds, check_kinds, read_toml, texts
from dxml.bench.peers import PEERS, PREFIX, is_peer, peer_of
from dxml.exceptions import ParameterError, did_you_mean
from dxml.methods import METHODS, method_class

__all__ = [
    "Experiment",
    "Planned",
    "Run",
    "find_experiment",
    "known_parameters",
    "measuring",
    "own_experiment",
    "read_experiment",
    "shipped",
]

_SHARED: Kinds = {
    "splits": (int, list, str),
    "seeds": (int, list),
    "part": (str,),
    "k": (int,),
    "time_limit": (int, float),
}
_TOP: Kinds = {
    **dict.fromkeys(("name", "description"), (str,)),
    "runs": (list,),
    **dict.fromkeys(("warm_up", "processes"), (bool,)),
    **_SHARED,
}
_BLOCK: Kinds = {
    "datasets": (list,),
    "methods": (list, str),
    "parameters": (dict,),
    **dict.fromkeys(("label", "study"), (str,)),
    **_SHARED,
}


@dataclass(frozen=True)
class Run:
    """One fit and one prediction.

    Attributes
    ----------
    parameters : tuple of (name, value)
        Those that differ from the method's defaults, sorted by name.
    part : {"test", "validation"}
        What is predicted: the test part, or a held-out share of the training part.
    k : int
        Labels stored a point.
    """

    dataset: str
    split: int
    method: str
    parameters: tuple[tuple[str, Any], ...]
    seed: int
    part: Part = "test"
    k: int = 10

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "dataset": self.dataset,
            "split": self.split,
            "method": self.method,
            "parameters": dict(self.parameters),
            "seed": self.seed,
            "part": self.part,
            "k": self.k,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Run:
        """The inverse of `as_dict`."""
        parameters = tuple(sorted(values["parameters"].items()))
        return cls(**{**values, "parameters": parameters})

    @property
    def id(self) -> str:
        """Readable start, then a hash of everything: the same on every machine."""
        text = json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        words = (self.dataset.partition(",")[0].partition("=")[0], f"s{self.split}", self.method)
        return re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower()) + f"-{digest}"

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.parameters)
        part = "" if self.part == "test" else f" {self.part}"
        return f"{self.dataset} split {self.split}{part} {self.method}" + (
            f" ({given})" if given else ""
        )


@dataclass(frozen=True)
class Planned:
    """A run and what it is for.

    Attributes
    ----------
    given : tuple of (name, value)
        Parameters as the experiment names them, defaults included.
    label : str
        Name of its row in tables.
    study : str or None
        The parameter whose effect it belongs to.
    time_limit : float or None
        Seconds after which it counts as failed.
    """

    run: Run
    given: tuple[tuple[str, Any], ...]
    label: str
    study: str | None
    time_limit: float | None


@dataclass(frozen=True)
class Experiment:
    """A named list of planned runs; a run may be planned for several purposes.

    Attributes
    ----------
    warm_up : bool
        Each process first fits tiny data, so that compiling is not timed.
    processes : bool
        Each run has a process of its own. Without, all share one: quicker to start, but peak memory
        means nothing and a crash ends everything. For trying out.
    grows : bool
        Rows of its summary stay when they are not planned any more: methods or data of one's own,
        given by several commands.
    """

    name: str
    description: str
    planned: tuple[Planned, ...]
    warm_up: bool = True
    processes: bool = True
    grows: bool = False

    @property
    def runs(self) -> list[Run]:
        """Each run once, in the order of the file."""
        return list(dict.fromkeys(plan.run for plan in self.planned))

    @property
    def names(self) -> dict[Run, str]:
        """Each run with the labels that pages call it by."""
        found = {run: str(run) for run in self.runs}
        for plan in self.planned:
            if plan.label not in found[plan.run]:
                found[plan.run] += f", {plan.label}"
        return found

    def time_limit(self, run: Run) -> float | None:
        """The longest that any purpose allows; None is no limit."""
        limits = [plan.time_limit for plan in self.planned if plan.run == run]
        return None if None in limits else max(limit for limit in limits if limit is not None)


def shipped() -> dict[str, Path]:
    """The experiments that come with the package, by name."""
    folder = Path(str(resources.files("dxml.bench"))) / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_experiment(file_or_name: str | Path, others: Iterable[str] = ()) -> Experiment:
    """A TOML file by its path, or a shipped experiment by its name.

    `others` are names that are none, but may have been meant.
    """
    path = Path(file_or_name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ParameterError(
                f"{path}: no such experiment file. Shipped: {', '.join(shipped())}"
            )
        return read_experiment(path)
    known = shipped()
    if str(file_or_name) not in known:
        hint = did_you_mean(str(file_or_name), [*known, *others])
        raise ParameterError(f"unknown experiment {str(file_or_name)!r}{hint}")
    return read_experiment(known[str(file_or_name)])


def measuring() -> list[Experiment]:
    """Every shipped experiment whose results a page has: all but that of tiny planted data."""
    return [read_experiment(path) for name, path in shipped().items() if name != "smoke"]


def read_experiment(path: Path) -> Experiment:
    """Read and expand an experiment; every mistake in it is named before anything runs."""
    table = read_toml(path)
    try:
        return _experiment(table)
    except ParameterError as error:
        raise ParameterError(f"{path.name}: {error}") from error


def own_experiment(name: str, methods: Sequence[str], data: Sequence[str]) -> Experiment:
    """Every method on every data set, by names and by files of one's own."""
    block = {"methods": list(methods), "datasets": list(data), "splits": "all"}
    table = {"name": name, "description": "methods or data of one's own", "runs": [block]}
    return replace(_experiment(table), grows=True)


def _experiment(table: dict[str, Any]) -> Experiment:
    check_kinds(table, _TOP, "the experiment")
    for key in ("name", "runs"):
        if key not in table:
            raise ParameterError(f"{key} is missing")
    shared = {key: table[key] for key in _SHARED if key in table}
    planned: list[Planned] = []
    for number, block in enumerate(table["runs"], start=1):
        check_kinds(block, _BLOCK, f"runs block {number}")
        planned.extend(_expand({**shared, **block}, number))
    unique = tuple(dict.fromkeys(planned))
    runs = [plan.run for plan in unique]
    check_names((run.method for run in runs), (run.dataset for run in runs))
    return Experiment(
        table["name"],
        table.get("description", ""),
        unique,
        warm_up=bool(table.get("warm_up", True)),
        processes=bool(table.get("processes", True)),
    )


def _expand(block: dict[str, Any], number: int) -> Iterator[Planned]:
    for key in ("datasets", "methods"):
        if not block.get(key):
            raise ParameterError(f"{key} is missing in runs block {number}")
    part = block.get("part", "test")
    if part not in get_args(Part):
        raise ParameterError(f"unknown part {part!r}{did_you_mean(part, get_args(Part))}")
    where = f"runs block {number}"
    named, datasets = texts(block, "methods", where), texts(block, "datasets", where)
    methods = list(METHODS) if named == ["all"] else named
    limit = block.get("time_limit")
    for method, dataset in itertools.product(methods, datasets):
        check_source(dataset)
        known = known_parameters(method)
        for given in _grid(method, block.get("parameters", {})):
            label = block.get("label") or _label(method, given)
            parameters = tuple(p for p in given if p[1] != known[p[0]].default)
            for split, seed in itertools.product(
                _splits(block.get("splits", [1]), dataset), _numbers(block.get("seeds", [0]))
            ):
                run = Run(dataset, split, method, parameters, seed, part, int(block.get("k", 10)))
                yield Planned(run, given, label, block.get("study"), limit)


def _splits(given: Any, dataset: str) -> list[int]:
    count = n_splits(dataset)
    if given == "all":
        return list(range(1, count + 1))
    splits = _numbers(given)
    named = ":" not in dataset and not is_own_data(dataset)
    if named and any(not 1 <= split <= count for split in splits):
        raise ParameterError(f"splits of {dataset!r} must be in 1..{count}, got {splits}")
    return splits


def _numbers(given: Any) -> list[int]:
    numbers = given if isinstance(given, list) else [given]
    if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        raise ParameterError(f"splits and seeds must be whole numbers or 'all', got {given!r}")
    return numbers


def known_parameters(method: str) -> dict[str, Parameter]:
    """What a method or a peer lets one set."""
    if is_peer(method):
        return peer_of(method).known_parameters()
    if method not in METHODS:
        hint = did_you_mean(method, [*METHODS, *(PREFIX + name for name in PEERS)])
        raise ParameterError(f"unknown method {method!r}{hint}")
    return parameters_of(method_class(method))


def _grid(method: str, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Every combination of the listed values, each checked against the method's signature."""
    known = known_parameters(method)
    axes = []
    for name in sorted(given):
        if name not in known or name == "random_state":
            hint = "; use seeds" if name == "random_state" else did_you_mean(name, known)
            raise ParameterError(f"unknown parameter {name!r} of {method}{hint}")
        values = given[name] if isinstance(given[name], list) else [given[name]]
        axes.append([(name, _value(known[name], value, method)) for value in values])
    yield from itertools.product(*axes)


def _value(parameter: Parameter, value: Any, method: str) -> Any:
    """TOML has no null: "none" means None where the parameter allows it."""
    if isinstance(value, str) and value not in parameter.choices:
        return parameter.parse(value)
    if not parameter.accepts(value):
        raise ParameterError(
            f"{parameter.name} of {method} must be {parameter.allowed}, got {value!r}"
        )
    return value


def _label(method: str, parameters: Iterable[tuple[str, Any]]) -> str:
    given = ", ".join(f"{name}={value}" for name, value in parameters)
    name = peer_of(method).title if is_peer(method) else method
    return f"{name} ({given})" if given else name
