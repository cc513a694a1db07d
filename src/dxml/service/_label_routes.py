"""Routes that rename, merge and delete labels."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fastapi import Depends, FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from dxml.exceptions import DxmlError
from dxml.service._answers import JSONAnswer
from dxml.service._engine import Engine
from dxml.service._errors import ServiceError
from dxml.service._openapi import REFUSED, body_of, described
from dxml.service._runtime import Service, writers
from dxml.service._schemas import Text, Texts
from dxml.service._served import Change
from dxml.service._teach_routes import json_only
from dxml.tagging._thesaurus import close_name

__all__ = ["add_label_routes"]


class RenameRequest(BaseModel):
    """A label, and the name that it is to have."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"old": "Music", "new": "Concerts"}]}
    )

    old: Text = Field(description="The label's name.")
    new: Text = Field(description="A name that no label has.")


class MergeRequest(BaseModel):
    """Labels that become one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"labels": ["Roads", "Kitchen"], "into": "Works"}]},
    )

    labels: Texts = Field(min_length=1, description="Their names.")
    into: Text = Field(description="One of them, another label that is merged too, or a new name.")


class DeleteRequest(BaseModel):
    """Labels that are to go."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"labels": ["Fishery"]}]}
    )

    labels: Texts = Field(min_length=1, description="Their names.")


class LabelsNow(BaseModel):
    """How many labels there are now."""

    labels: int = Field(description="Labels that some text carries.")


_ERRORS = (*REFUSED, "not_found", "conflict", "too_large", "unsupported_type", "invalid", "timeout")
ROUTES = {
    "rename": described("Teaching", "Rename a label", "Labels now.", *_ERRORS),
    "merge": described("Teaching", "Make one label of several", "Labels now.", *_ERRORS),
    "delete": described("Teaching", "Delete labels", "Labels now.", *_ERRORS),
}


def add_label_routes(app: FastAPI, service: Service) -> None:
    """Add ``/labels/rename``, ``/labels/merge`` and ``/labels/delete``."""
    engine, limits = service.engine, service.limits
    writing = [*writers(service), Depends(json_only)]

    async def change(how: Change, labels: list[str], into: str | None, by: str | None) -> Response:
        limits.check_labels([labels])
        if into is not None:
            limits.check_names("a label", [into])
        limits.check_room(0, 0, 0, engine.journal.size())
        await service.within(asyncio.to_thread(_change, engine, how, labels, into, by))
        return JSONAnswer({"labels": engine.served.n_labels})

    @app.post(
        "/labels/rename",
        response_model=LabelsNow,
        dependencies=writing,
        openapi_extra=body_of(RenameRequest),
        **ROUTES["rename"],
    )
    async def rename(sent: Request) -> Response:
        """Call a label by another name, on all texts."""
        request = await service.parsed(RenameRequest, sent)
        return await change("rename", [request.old], request.new, service.taught_by(sent))

    @app.post(
        "/labels/merge",
        response_model=LabelsNow,
        dependencies=writing,
        openapi_extra=body_of(MergeRequest),
        **ROUTES["merge"],
    )
    async def merge(sent: Request) -> Response:
        """Make one label of several; the texts of each carry it."""
        request = await service.parsed(MergeRequest, sent)
        return await change("merge", request.labels, request.into, service.taught_by(sent))

    @app.post(
        "/labels/delete",
        response_model=LabelsNow,
        dependencies=writing,
        openapi_extra=body_of(DeleteRequest),
        **ROUTES["delete"],
    )
    async def delete(sent: Request) -> Response:
        """Take labels off all texts; the texts stay."""
        request = await service.parsed(DeleteRequest, sent)
        return await change("delete", request.labels, None, service.taught_by(sent))


def _change(
    engine: Engine, how: Change, labels: Sequence[str], into: str | None, by: str | None
) -> None:
    known = set(engine.apply_pending().names)
    for name in labels:
        if name not in known:
            message = f"there is no label {name!r}{close_name(name, known)}."
            raise ServiceError("not_found", message)
    if how == "rename" and into in known and into not in labels:
        message = f"there is a label {into!r} already. Use /labels/merge to make one of both."
        raise ServiceError("conflict", message)
    if how == "merge" and len({*labels, *({into} & known)}) == 1:
        message = f"{labels[0]!r} is one label. Name several, or use /labels/rename."
        raise ServiceError("conflict", message)
    try:
        engine.relabel(how, list(dict.fromkeys(labels)), into, by)
    except DxmlError as error:
        raise ServiceError("conflict", str(error)) from None
