"""What is sent to the service, and what it answers; the page ``/docs`` is made from these."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat
from pydantic_core import PydanticCustomError

from dxml.topk import default_top

__all__ = [
    "Error",
    "Health",
    "LabelPage",
    "LearnAnswer",
    "LearnRequest",
    "Map",
    "MapUnderWay",
    "PointId",
    "PredictAnswer",
    "PredictRequest",
    "ReloadAnswer",
    "Text",
    "Texts",
    "UnlabelRequest",
]


def _writable(text: str) -> str:
    """Refuse lone surrogates, which JSON can hold and UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no character.") from None
    return text


def _number(value: object) -> object:
    """Refuse true and "5" where a number is meant; pydantic would take them for 1 and 5."""
    if isinstance(value, bool | str):
        raise PydanticCustomError("number", "a number is needed, without quotation marks.")
    return value


def _truth(value: object) -> object:
    """Refuse "yes" and 1 where true or false is meant."""
    if not isinstance(value, bool):
        raise PydanticCustomError("truth", "true or false is needed, without quotation marks.")
    return value


# What is refused comes after the bounds: before them, OpenAPI would call a bound `ge`.
Number = BeforeValidator(_number)
Real = Annotated[FiniteFloat, Number]
Text = Annotated[str, AfterValidator(_writable)]
Texts = Annotated[list[Text], Field(fail_fast=True)]  # one error is enough to refuse it
Column = Annotated[int, Field(ge=0), Number]
Key = Annotated[int, Field(ge=0)]  # a column that is a field of an object, so in quotation marks
PointId = Annotated[
    str, Path(description="The id of a text, taught or of the training data.", examples=["a"])
]
Pairs = Annotated[list[tuple[Column, Real]], Field(fail_fast=True)]
Features = dict[Key, Real] | Pairs


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _example(content: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [content]})


class PredictRequest(_Request):
    """Texts or features, one or many."""

    text: Text | Texts | None = Field(None, description="A text, or a list of texts.")
    features: Features | Annotated[list[Features], Field(fail_fast=True)] | None = Field(
        None,
        description="A point as {column: value} or [[column, value], …], or a list of points; "
        "for models that were trained on features.",
    )
    top: Annotated[int, Field(ge=1), Number] | None = Field(
        None,
        description="Labels a text, at most; 5 by default, or 50 with a threshold and no "
        "explanations.",
    )
    threshold: Annotated[FiniteFloat, Field(ge=0, le=1), Number] | None = Field(
        None, description="Only labels of at least this probability."
    )
    explain: Annotated[bool, BeforeValidator(_truth)] = Field(False, description="Also say why.")

    @property
    def depth(self) -> int:
        """Labels of a text that are ranked."""
        return self.top or default_top(None if self.explain else self.threshold)

    def points(self) -> list[Any]:
        """The texts, or the features as {column: value}; none where neither or both are given."""
        if (self.text is None) == (self.features is None):
            return []
        if self.text is not None:
            return [self.text] if isinstance(self.text, str) else self.text
        given: Any = self.features
        one = isinstance(given, dict) or all(isinstance(pair, tuple) for pair in given)
        return [dict(point) for point in ([given] if one else given)]


class _About(BaseModel):
    """What may be known of a label."""

    description: str | None = Field(None, description="Left out where there is none.")
    parents: list[str] | None = Field(None, description="Broader labels; left out likewise.")


class Label(_About):
    """A label of a text."""

    name: str = Field(description="Its name.")
    probability: float = Field(description="How likely it is right, from 0 to 1.")


class Result(BaseModel):
    """What one text is given, best first."""

    labels: list[Label] = Field(description="Its labels, best first.")
    explanations: list[dict[str, Any]] | None = Field(
        None, description="For each label: shares, words or features, neighbours; when asked for."
    )
    nothing_known: bool | None = Field(
        None, description="True where no word of a text is known: its labels are frequent ones."
    )


class PredictAnswer(BaseModel):
    """A result for each text, in their order."""

    model_config = _example({"results": [{"labels": [{"name": "ocean", "probability": 0.93}]}]})

    results: list[Result] = Field(description="One for each text.")


class LearnRequest(_Request):
    """Texts with the names of their labels."""

    model_config = _example(
        {"texts": ["Fish soup"], "labels": [["fish soup", "ocean"]], "ids": ["a"]}
    )

    texts: Texts = Field(min_length=1, description="What is to be learnt.")
    labels: list[Texts] = Field(
        fail_fast=True, description="A list of names for each text; it may be empty."
    )
    ids: Texts | None = Field(
        None, description="A text whose id is known takes the old one's place; made up by default."
    )


class LearnAnswer(BaseModel):
    """What was learnt; it is on the disk."""

    model_config = _example(
        {
            "learnt": 1,
            "ids": ["a"],
            "new_labels": ["fish soup"],
            "without_known_words": [],
            "outside_vocabulary": [],
        }
    )

    learnt: int = Field(description="How many texts.")
    ids: list[str] = Field(description="Their ids, given or made up.")
    new_labels: list[str] = Field(description="Labels that no text carried before.")
    without_known_words: list[str] = Field(
        description="Ids of texts that have no word at all: they change nothing."
    )
    outside_vocabulary: list[str] = Field(
        description="Labels that the model's vocabulary lacks, where it has one; they are learnt."
    )


class UnlabelRequest(_Request):
    """A text, and a label that it carries wrongly."""

    model_config = _example({"id": "a", "label": "ocean"})

    id: Text = Field(description="Which text.")
    label: Text = Field(description="The label's name.")


class LabelCount(_About):
    """A label, and how many texts carry it."""

    name: str = Field(description="Its name.")
    points: int = Field(description="Texts that carry it.")


class LabelPage(BaseModel):
    """Some of the labels that were asked for, most frequent first."""

    model_config = _example({"total": 1, "offset": 0, "labels": [{"name": "fish", "points": 12}]})

    total: int = Field(description="Labels that were found, here or not.")
    offset: int = Field(description="How many were passed over.")
    labels: list[LabelCount] = Field(description="Those after them.")


class Map(BaseModel):
    """The labels in two dimensions: lists with an entry for each label, most frequent first."""

    total: int = Field(description="Labels in use; only the 20,000 most frequent are on the map.")
    names: list[str] = Field(description="The labels' names.")
    points: list[int] = Field(description="Texts that carry each label.")
    x: list[int] = Field(description="Places from left to right, from -10000 to 10000.")
    y: list[int] = Field(description="Places from bottom to top, likewise.")
    related: list[list[int]] = Field(
        description="Labels, by their place in these lists, that share most texts; best first."
    )
    strength: list[list[float]] = Field(description="How much each of them does, from 0 to 1.")


class MapUnderWay(BaseModel):
    """That the map is not there yet."""

    message: str = Field(description="When to ask again.")


class Health(BaseModel):
    """That the service is there, and with what."""

    status: str = Field(description="Always ok.")
    version: str = Field(description="Of dxml.")
    takes: str = Field(description="What the model takes: text or features.")
    labels: int = Field(description="Labels of the model.")
    points: int = Field(description="Texts or points that it knows.")
    lessons: int = Field(description="The last entry of the journal that was applied.")


class ReloadAnswer(BaseModel):
    """The model that is in place now."""

    labels: int = Field(description="Its labels.")
    points: int = Field(description="Texts or points that it knows.")


class ErrorContent(BaseModel):
    """The type is for programs, the message for people."""

    type: str = Field(description="What kind of error; each has one status.")
    message: str = Field(description="A sentence that says what to do.")


class Error(BaseModel):
    """Every error looks like this."""

    model_config = _example(
        {"error": {"type": "too_large", "message": "at most 1,000 in a request, got 1,200."}}
    )

    error: ErrorContent = Field(description="What went wrong.")
