"""Routes that show what the model was taught, take it back, and bring earlier models back.

All need the right to teach: lessons have the texts that people sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Response
from pydantic import BaseModel, Field

from dxml._core.locking import folder_lock
from dxml._core.versions import list_versions, restore_version
from dxml.exceptions import ParameterError
from dxml.service._answers import JSONAnswer
from dxml.service._engine import Engine
from dxml.service._errors import ServiceError
from dxml.service._openapi import REFUSED, described
from dxml.service._reviewing import PATIENCE, checked_take_back, list_lessons, show_lesson
from dxml.service._runtime import Service, runners, writers
from dxml.service._schemas import ReloadAnswer
from dxml.tagging._lessons import when

__all__ = ["add_lesson_routes"]

LARGEST = 2**62  # SQLite's numbers have 64 bits
Number = Annotated[int, Path(ge=1, le=LARGEST, description="Of the list.", examples=[1])]


class LessonLine(BaseModel):
    """A lesson in a line."""

    number: int = Field(description="Its number in the journal.")
    time: str = Field(description="When it was taught, in UTC.")
    action: str = Field(description="learn, forget, unlabel or relabel.")
    pending: bool = Field(description="Whether the model in the folder does not have it yet.")
    summary: str = Field(description="What was done.")


class LessonPage(BaseModel):
    """Some of the lessons, newest first."""

    total: int = Field(description="Lessons of the journal, here or not.")
    lessons: list[LessonLine] = Field(description="Those before the number that was asked for.")


class Lesson(LessonLine):
    """A lesson in full: the fields of its action come with it."""

    texts: list[str] | None = Field(None, description="What was learnt.")
    labels: list[list[str]] | list[str] | None = Field(
        None, description="The names that each text was given, or those that were changed."
    )
    ids: list[str] | None = Field(None, description="The texts' ids.")
    id: str | None = Field(None, description="The text that was forgotten or lost a label.")
    label: str | None = Field(None, description="The label that was taken off.")
    how: str | None = Field(None, description="rename, merge or delete.")
    into: str | None = Field(None, description="The name after a rename or a merge.")


class Undone(BaseModel):
    """What taking a lesson back did."""

    done: str = Field(description="A sentence.")


class VersionLine(BaseModel):
    """An earlier model."""

    number: int = Field(description="Its number.")
    time: str = Field(description="Until when it was the model, in UTC.")
    note: str = Field(description="What replaced it.")
    size: int = Field(description="Bytes that it alone needs.")


class Versions(BaseModel):
    """Earlier models of the folder, oldest first."""

    versions: list[VersionLine] = Field(description="Those that are kept.")


ROUTES = {
    "lessons": described("Teaching", "List the lessons", "A page of them.", *REFUSED, "invalid"),
    "lesson": described(
        "Teaching", "Show a lesson", "The lesson in full.", *REFUSED, "not_found", "invalid"
    ),
    "undo": described(
        "Teaching",
        "Take a lesson back",
        "What was done.",
        *(*REFUSED, "not_found", "conflict", "invalid", "busy", "timeout"),
    ),
    "versions": described("Running", "List earlier models", "Those that are kept.", *REFUSED),
    "restore": described(
        "Running",
        "Bring an earlier model back",
        "The model that is in place now.",
        *(*REFUSED, "not_found", "invalid", "busy", "timeout"),
    ),
}


def add_lesson_routes(app: FastAPI, service: Service) -> None:
    """Add ``/lessons`` and ``/versions``."""
    engine = service.engine
    writing = writers(service)

    async def beside(function: Callable[..., Any], *arguments: Any) -> Any:
        """In a thread beside the engine's, which goes on answering."""
        return await service.within(asyncio.to_thread(function, engine, *arguments))

    @app.get("/lessons", response_model=LessonPage, dependencies=writing, **ROUTES["lessons"])
    async def lessons(
        before: Annotated[
            int | None, Query(ge=1, le=LARGEST, description="Only those with a smaller number.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="How many to give.")] = 50,
    ) -> Response:
        """What was taught, newest first; texts in full are in `/lessons/{number}`."""
        return JSONAnswer(await beside(list_lessons, before, limit))

    @app.get(
        "/lessons/{number}",
        response_model=Lesson,
        response_model_exclude_none=True,
        dependencies=writing,
        **ROUTES["lesson"],
    )
    async def lesson(number: Number) -> Response:
        """A lesson with its texts, ids and labels."""
        return JSONAnswer(await beside(show_lesson, number))

    @app.delete("/lessons/{number}", response_model=Undone, dependencies=writing, **ROUTES["undo"])
    async def undo(number: Number) -> Response:
        """Take a lesson back.

        One that the model in the folder does not have yet is as if it had never been. One that it
        has is taken back by lessons: its texts are forgotten, or taught again as they were.
        """
        return JSONAnswer({"done": await beside(checked_take_back, number)})

    @app.get("/versions", response_model=Versions, dependencies=writing, **ROUTES["versions"])
    async def versions() -> Response:
        """Earlier models of the folder, which `dxml learn`, `labels` and `train` have replaced."""
        return JSONAnswer({"versions": await beside(_versions)})

    @app.post(
        "/versions/{number}/restore",
        response_model=ReloadAnswer,
        dependencies=runners(service),
        **ROUTES["restore"],
    )
    async def restore(number: Number) -> Response:
        """Bring an earlier model back; lessons that it does not have are applied to it.

        The model that is in the folder now is kept as a version.
        """
        await beside(_restore, number)
        served = engine.served
        return JSONAnswer({"labels": served.n_labels, "points": served.n_points})


def _versions(engine: Engine) -> list[dict[str, Any]]:
    return [asdict(each) | {"time": when(each.time)} for each in list_versions(engine.folder)]


def _restore(engine: Engine, number: int) -> None:
    try:
        with folder_lock(engine.folder, timeout=PATIENCE):
            restore_version(engine.folder, number)
    except ParameterError:
        raise ServiceError("not_found", f"there is no version {number}.") from None
    except TimeoutError:
        message = "another program is writing the model; try again later."
        raise ServiceError("busy", message) from None
    engine.reload()
