"""A promised precision or recall, for commands that rank: ``--precision`` and ``--recall``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dxml.exceptions import ParameterError

__all__ = ["Promise"]


@dataclass(frozen=True)
class Promise:
    """What was asked for."""

    precision: float | None = None
    recall: float | None = None

    @property
    def asked(self) -> bool:
        """Whether anything was."""
        return self.precision is not None or self.recall is not None

    def check(self, top: int | None, threshold: float | None) -> None:
        """Refuse what contradicts it."""
        if self.asked and threshold is not None:
            raise ParameterError("give one of --threshold, --precision and --recall.")
        if self.recall is not None and top is not None:
            raise ParameterError("--recall needs every label above its threshold: drop --top.")

    def threshold(self, model: Any) -> float:
        """The one at which a model keeps it."""
        if not hasattr(model, "threshold_for"):
            raise ParameterError(
                f"a model of method {model.method!r} can promise no precision and no recall, only "
                "joint and taggers can: take --top."
            )
        found: float = model.threshold_for(precision=self.precision, recall=self.recall)
        return found
