"""Annif's REST interface, for programs that speak it: https://annif.org.

The model is one project, whose name is that of its folder. A subject's URI is that of the
vocabulary, or the label's name where there is none. Errors have Annif's shape too, that of RFC
9457. Of its interface, what is not there: /vocabs and /detect-language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from fastapi import Request, Response
from fastapi.routing import APIRoute, APIRouter

from dxml import __version__
from dxml.exceptions import DxmlError
from dxml.service._access import check_json
from dxml.service._answers import JSONAnswer
from dxml.service._engine import Labels, Wanted
from dxml.service._errors import ServiceError
from dxml.service._served import ServedTagger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from dxml.service._runtime import Service

__all__ = ["annif_routes"]

LIMIT = 10  # subjects of a text, where none is asked for
FIELDS = 100  # of a form, at most
CHARACTER = 12  # bytes of a form, at most: four of UTF-8, each as %XX
OTHERS = 4096  # bytes of a form beside its text
UNKNOWN_LANGUAGE = "und"


class _AnnifRoute(APIRoute):
    """A route whose errors are Annif's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except ServiceError as error:
                return _problem(error.status, error.message)
            except DxmlError as error:
                return _problem(HTTPStatus.BAD_REQUEST, str(error))

        return answer


def _problem(status: int, detail: str) -> Response:
    title = HTTPStatus(status).phrase
    content = {"type": "about:blank", "title": title, "detail": detail, "status": status}
    return JSONAnswer(content, status, {"Content-Type": "application/problem+json"})


def annif_routes(service: Service) -> APIRouter:
    """The routes under /v1."""
    router = APIRouter(prefix="/v1", route_class=_AnnifRoute, include_in_schema=False)
    limits = service.limits

    @router.get("/")
    async def info() -> Response:
        """What this is."""
        return JSONAnswer({"title": "Annif REST API, by dxml", "version": __version__})

    @router.get("/projects")
    async def projects() -> Response:
        """The one project."""
        return JSONAnswer({"projects": [_project(service)]})

    @router.get("/projects/{project}")
    async def show(project: str) -> Response:
        """What is known of the project."""
        _check(service, project)
        return JSONAnswer(_project(service))

    @router.post("/projects/{project}/suggest")
    async def suggest(project: str, request: Request) -> Response:
        """Subjects of one text, which comes as a form."""
        _check(service, project)
        body = await request.body()
        if len(body) > CHARACTER * limits.text_chars + OTHERS:
            raise ServiceError("too_large", f"a text may have {limits.text_chars:,} characters.")
        sent = await service.read(_form, body)
        if "text" not in sent:
            raise ServiceError("bad_request", "the field 'text' is missing.")
        [found] = await _suggested(service, [sent["text"]], sent)
        return JSONAnswer({"results": found})

    @router.post("/projects/{project}/suggest-batch")
    async def suggest_batch(project: str, request: Request) -> Response:
        """Subjects of several texts."""
        _check(service, project)
        sent = await service.read(_json, await request.body())
        documents = _documents(sent.get("documents") if isinstance(sent, dict) else None)
        limits.check_batch(len(documents))
        texts = [document["text"] for document in documents]
        found = await _suggested(service, texts, request.query_params)
        answers = [
            {"results": results, "document_id": document.get("document_id")}
            for results, document in zip(found, documents, strict=True)
        ]
        return JSONAnswer(answers)

    @router.post("/projects/{project}/learn")
    async def learn(project: str, request: Request) -> Response:
        """Learn from indexed texts."""
        service.may_write(request)
        check_json(request.headers)
        _check(service, project)
        documents = _documents(await service.read(_json, await request.body()))
        texts = [document["text"] for document in documents]
        labels = [_subjects(document) for document in documents]
        limits.check_texts(texts)
        limits.check_labels(labels)
        if texts:
            by = service.taught_by(request)
            await service.call(service.engine.learn, texts, labels, None, by)
        return Response(status_code=204)

    return router


def _project(service: Service) -> dict[str, Any]:
    """The model as Annif shows a project."""
    folder, served = service.engine.folder, service.engine.served
    language, vocab_language = (each or UNKNOWN_LANGUAGE for each in served.languages)
    name = folder.resolve().name
    changed = datetime.fromtimestamp((folder / "config.json").stat().st_mtime, UTC)
    return {
        "project_id": name,
        "name": name,
        "language": language,
        "backend": {"backend_id": "dxml"},
        "vocab": {
            "vocab_id": name,
            "languages": [vocab_language],
            "size": len(served.names),
            "loaded": True,
        },
        "vocab_language": vocab_language,
        "is_trained": True,
        "modification_time": changed.isoformat(),
    }


def _check(service: Service, project: str) -> None:
    """Refuse another project, and a model that takes no texts."""
    if project != service.engine.folder.resolve().name:
        raise ServiceError("not_found", f"Project '{project}' not found")
    if not isinstance(service.engine.served, ServedTagger):
        raise ServiceError("conflict", "this model takes features, not texts.")


async def _suggested(
    service: Service, texts: Sequence[str], asked: Mapping[str, str]
) -> list[list[dict[str, Any]]]:
    limit = _number(asked, "limit", LIMIT, service.limits.top)
    threshold = _number(asked, "threshold", 0.0, 1.0)
    service.limits.check_texts(list(texts))
    if not texts or limit < 1:
        return [[] for _ in texts]
    wanted = Wanted(list(texts), int(limit))
    found = await service.within(service.batcher.submit(wanted))
    return [_results(service, row, threshold) for row in found]


def _results(service: Service, row: Labels, threshold: float) -> list[dict[str, Any]]:
    served = service.engine.served
    known = served.tagger.thesaurus if isinstance(served, ServedTagger) else None
    uris = {} if known is None else known.uris
    notations = {} if known is None else known.notations
    return [
        {
            "uri": uris.get(name, name),
            "label": name,
            "notation": notations.get(name),
            "score": score,
        }
        for name, score in row
        if score >= threshold
    ]


def _number(asked: Mapping[str, str], name: str, default: float, most: float) -> float:
    try:
        value = float(asked.get(name, default))
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise ServiceError("bad_request", f"{name} must be a number from 0 to {most:g}.")
    return value


def _form(body: bytes) -> dict[str, str]:
    """The fields of a form; of one that stands twice the last counts."""
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=FIELDS)
    except ValueError:
        raise ServiceError("bad_request", "the form cannot be read.") from None
    return {name: values[-1] for name, values in fields.items()}


def _json(body: bytes) -> Any:
    """What a body holds; what no answer could hold is refused: half a character, no number."""
    try:
        sent = json.loads(body.decode("utf-8-sig"))  # in other encodings values are not counted
        json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        message = "the body is no JSON in UTF-8, or has a number that is not finite."
        raise ServiceError("bad_request", message) from None
    return sent


def _documents(sent: Any) -> list[dict[str, Any]]:
    """A list of objects with a text each."""
    good = isinstance(sent, list) and all(
        isinstance(document, dict) and isinstance(document.get("text"), str) for document in sent
    )
    if not good:
        raise ServiceError("bad_request", "expected a list of documents, each with a 'text'.")
    return list(sent)


def _subjects(document: Mapping[str, Any]) -> list[str]:
    """The subjects of an indexed document: their URIs, or labels where there are none."""
    subjects = document.get("subjects")
    if not isinstance(subjects, list) or not all(isinstance(each, dict) for each in subjects):
        raise ServiceError("bad_request", "expected a list of 'subjects' with each document.")
    named = [each.get("uri") or each.get("label") for each in subjects]
    if not all(isinstance(name, str) and name for name in named):
        raise ServiceError("bad_request", "expected a 'uri' or a 'label' of each subject.")
    return list(dict.fromkeys(named))
