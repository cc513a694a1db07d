"""A hyper-parameter is declared once, in the signature of ``__init__``.

::

    def __init__(self, *, dim: Annotated[int | None, Range(1), "size of a label vector"] = None)

From that line come the check in `fit`, the table of ``dxml methods``, and the parsing of
``--set dim=100``.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from dxml.exceptions import ParameterError, did_you_mean

__all__ = [
    "Parameter",
    "Range",
    "Seed",
    "accept_former_names",
    "check_params",
    "parameters_of",
    "parse_settings",
    "present_names",
]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; `open_low` leaves `low` itself out."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        return above and value <= self.high

    def __str__(self) -> str:
        low = "" if math.isinf(self.low) else f"{self.low:g}"
        high = "" if math.isinf(self.high) else f"{self.high:g}"
        if low and high:
            return f"{'above ' if self.open_low else ''}{low} to {high}"
        if low:
            return f"above {low}" if self.open_low else f"{low} or more"
        return f"{high} or less" if high else "any"


Seed = Annotated[int | None, Range(0), "seed; None: differs every time"]
"""The parameter ``random_state`` of every method."""


@dataclass(frozen=True)
class Parameter:
    """What the signature says of one hyper-parameter."""

    name: str
    default: Any
    kinds: tuple[Any, ...]
    choices: tuple[Any, ...]
    range: Range | None
    help: str

    @property
    def optional(self) -> bool:
        return type(None) in self.kinds

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if object in self.kinds:
            return "anything"
        words = []
        if self.choices:
            words.append("one of " + ", ".join(map(repr, self.choices)))
        names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        kinds = [names[kind] for kind in self.kinds if kind in names]
        if kinds and not (self.kinds == (float,) and self.choices):
            suffix = f", {self.range}" if self.range and str(self.range) != "any" else ""
            words.append(" or ".join(kinds) + suffix)
        if self.optional:
            words.append("None")
        return " or ".join(words)

    def accepts(self, value: Any) -> bool:
        if object in self.kinds:
            return True
        if value is None:
            return self.optional
        if isinstance(value, bool):
            return bool in self.kinds or value in [c for c in self.choices if isinstance(c, bool)]
        if isinstance(value, str):
            return value in self.choices or str in self.kinds
        if hasattr(value, "__index__"):
            numeric = int in self.kinds or float in self.kinds
        else:
            numeric = float in self.kinds and isinstance(value, float) and math.isfinite(value)
        return numeric and (self.range is None or value in self.range)

    def parse(self, text: str) -> Any:
        """A value from the text after ``name=``; raises ParameterError."""
        value: Any = text
        lowered = text.strip().lower()
        if lowered in ("none", "null") and self.optional:
            value = None
        elif bool in self.kinds and lowered in (
            "true",
            "yes",
            "on",
            "1",
            "false",
            "no",
            "off",
            "0",
        ):
            value = lowered in ("true", "yes", "on", "1")
        elif int in self.kinds or float in self.kinds:
            for convert in (int, float):
                try:
                    value = convert(text)
                    break
                except ValueError:
                    continue
        if isinstance(value, float) and float not in self.kinds and value.is_integer():
            value = int(value)
        if not self.accepts(value):
            raise ParameterError(f"{self.name} must be {self.allowed}, got {text!r}")
        return value


def parameters_of(estimator: type) -> dict[str, Parameter]:
    """The hyper-parameters of an estimator class, in the order of its signature.

    A subclass with a constructor of its own need not say again what is said above: a parameter
    without a type is that of the class it derives from, and ``**settings`` stands for all of them.
    """
    constructor: Any = inspect.unwrap(estimator.__init__)  # type: ignore[misc]
    hints = _hints(constructor)
    found: dict[str, Parameter] = {}
    for name, argument in inspect.signature(constructor).parameters.items():
        if name == "self" or argument.kind is argument.VAR_POSITIONAL:
            continue
        if argument.kind is argument.VAR_KEYWORD:
            found = {**_inherited(estimator, constructor), **found}
            continue
        if name not in hints:
            above = _inherited(estimator, constructor).get(name, _anything(name))
            found[name] = replace(above, default=argument.default)
            continue
        annotated = hints[name]
        extras: tuple[Any, ...] = getattr(annotated, "__metadata__", ())
        base = annotated.__origin__ if extras else annotated
        union = get_origin(base) in (Union, types.UnionType)
        kinds: list[Any] = []
        choices: list[Any] = []
        for part in get_args(base) if union else (base,):
            if get_origin(part) is Literal:
                choices.extend(get_args(part))
            else:
                kinds.append(part)
        found[name] = Parameter(
            name=name,
            default=argument.default,
            kinds=tuple(kinds),
            choices=tuple(choices),
            range=next((extra for extra in extras if isinstance(extra, Range)), None),
            help=next((extra for extra in extras if isinstance(extra, str)), ""),
        )
    return found


def _hints(constructor: Any) -> dict[str, Any]:
    try:
        return get_type_hints(constructor, include_extras=True)
    except NameError:  # types that only a type checker sees
        return {}


def _inherited(estimator: type, constructor: Any) -> dict[str, Parameter]:
    """The parameters of the next class above that has another constructor."""
    for above in estimator.__mro__[1:-1]:
        if inspect.unwrap(above.__init__) is not constructor:  # type: ignore[misc]
            return parameters_of(above)
    return {}


def _anything(name: str) -> Parameter:
    return Parameter(name, None, (object,), (), None, "")


def present_names(estimator: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names that parameters have now; `former_names` of the class has the old."""
    former: Mapping[str, str] = getattr(estimator, "former_names", {})
    return {former.get(name, name): value for name, value in settings.items()}


def accept_former_names(estimator: type) -> None:
    """Let a class with `former_names` be made with those too, with a warning."""
    constructor: Any = vars(estimator)["__init__"]

    @functools.wraps(constructor)
    def made(self: Any, **settings: Any) -> None:
        present = present_names(estimator, settings)
        for name in settings.keys() - present.keys():
            now = present_names(estimator, {name: None})
            warnings.warn(
                f"{name} of {estimator.__name__} is called {next(iter(now))} now.",
                FutureWarning,
                stacklevel=2,
            )
        constructor(self, **present)

    estimator.__init__ = made  # type: ignore[misc]


def check_params(estimator: Any) -> None:
    """Raise ParameterError on the first illegal hyper-parameter of an estimator."""
    for name, parameter in parameters_of(type(estimator)).items():
        value = getattr(estimator, name)
        if not parameter.accepts(value):
            raise ParameterError(
                f"{name} of {type(estimator).__name__} must be {parameter.allowed}, got {value!r}"
            )


def parse_settings(estimator: type, settings: Mapping[str, str]) -> dict[str, Any]:
    """Values for the constructor from ``name=value`` texts; unknown names get a suggestion."""
    known, settings = parameters_of(estimator), present_names(estimator, settings)
    for name in settings:
        if name not in known:
            raise ParameterError(f"unknown option {name!r}{did_you_mean(name, known)}")
    return {name: known[name].parse(text) for name, text in settings.items()}
