"""The route that says how precision and recall depend on the threshold."""

from __future__ import annotations

from fastapi import FastAPI, Response
from pydantic import BaseModel, Field

from dxml.service._answers import JSONAnswer
from dxml.service._errors import ServiceError
from dxml.service._openapi import described
from dxml.service._runtime import Service

__all__ = ["add_threshold_routes"]


class Threshold(BaseModel):
    """What holds where labels of at least a probability are given."""

    threshold: float = Field(description="The probability.")
    precision: float = Field(description="Share of the labels given that are right.")
    recall: float = Field(description="Share of the right labels that are given.")
    f1: float = Field(description="Their harmonic mean.")
    labels: float = Field(description="Labels that a text is given, on average.")


class Thresholds(BaseModel):
    """How held-out training points fare with each threshold."""

    points: int = Field(description="Points that were held out.")
    best: Threshold = Field(description="The threshold with the highest F1.")
    thresholds: list[Threshold] = Field(description="From 0 to 1, in steps of 0.01.")


ROUTE = described(
    "Asking", "See what thresholds do", "Precision, recall and F1 of each.", "not_found"
)


def add_threshold_routes(app: FastAPI, service: Service) -> None:
    """Add ``/thresholds``."""

    @app.get("/thresholds", response_model=Thresholds, **ROUTE)
    async def thresholds() -> Response:
        """Precision, recall and F1 by threshold, of training points that were held out.

        They are from the time of training; what was taught since is not in them.
        """
        held_out = service.engine.served.joint.held_out_
        if held_out is None or held_out.curve is None:
            raise ServiceError(
                "not_found",
                "this model has no curve: it was trained on very few points, or by an older dxml. "
                "Train it again.",
            )
        curve, n = held_out.curve, held_out.points
        rows = [
            {**curve.at(step)._asdict(), "labels": given / n}
            for step, given in enumerate(curve.given)
        ]
        best = rows[round(curve.best().threshold * (len(rows) - 1))]
        return JSONAnswer({"points": n, "best": best, "thresholds": rows})
