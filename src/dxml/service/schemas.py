"""What is sent to the service, and what it answers; the OpenAPI page is made from these."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat

__all__ = [
    "Error",
    "Health",
    "LabelPage",
    "LearnAnswer",
    "LearnRequest",
    "PredictAnswer",
    "PredictRequest",
    "ReloadAnswer",
]


def _writable(text: str) -> str:
    """JSON can hold halves of a character, which no UTF-8 file or answer can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no character.") from None
    return text


Text = Annotated[str, AfterValidator(_writable)]
Column = Annotated[int, Field(ge=0)]
Features = dict[Column, FiniteFloat] | list[tuple[Column, FiniteFloat]]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PredictRequest(_Request):
    """Texts or features, one or many."""

    text: Text | list[Text] | None = Field(None, description="A text, or a list of texts.")
    features: Features | list[Features] | None = Field(
        None,
        description="A point as {column: value} or [[column, value], …], or a list of points; "
        "for models that were trained on features.",
    )
    top: int = Field(5, ge=1, description="Labels a text, at most.")
    threshold: FiniteFloat | None = Field(
        None, description="Only labels of at least this probability."
    )
    explain: bool = Field(False, description="Also say why.")

    def points(self) -> list[Any]:
        """The texts, or the features as {column: value}; none where neither or both are given."""
        if (self.text is None) == (self.features is None):
            return []
        if self.text is not None:
            return [self.text] if isinstance(self.text, str) else self.text
        given: Any = self.features
        one = isinstance(given, dict) or all(isinstance(pair, tuple) for pair in given)
        return [dict(point) for point in ([given] if one else given)]


class Label(BaseModel):
    """A label of a text."""

    name: str
    probability: float


class Result(BaseModel):
    """What one text is given, best first."""

    labels: list[Label]
    explanations: list[dict[str, Any]] | None = Field(
        None, description="For each label: shares, words or features, neighbours; when asked for."
    )


class PredictAnswer(BaseModel):
    """A result for each text, in their order."""

    results: list[Result]


class LearnRequest(_Request):
    """Texts with the names of their labels."""

    texts: list[Text] = Field(min_length=1)
    labels: list[list[Text]] = Field(description="A list of names for each text; it may be empty.")
    ids: list[Text] | None = Field(
        None, description="A text whose id is known takes the old one's place; made up by default."
    )


class LearnAnswer(BaseModel):
    """What was learnt; it is on the disk."""

    learnt: int
    ids: list[str]
    new_labels: list[str]


class LabelCount(BaseModel):
    """A label, and how many texts carry it."""

    name: str
    points: int


class LabelPage(BaseModel):
    """Some of the labels that were asked for, most frequent first."""

    total: int
    offset: int
    labels: list[LabelCount]


class Health(BaseModel):
    """That the service is there, and with what."""

    status: str
    version: str
    takes: str = Field(description="What the model takes: text or features.")
    labels: int
    points: int
    lessons: int = Field(description="The last entry of the journal that was applied.")


class ReloadAnswer(BaseModel):
    """The model that is in place now."""

    labels: int
    points: int


class ErrorContent(BaseModel):
    """The type is for programs, the message for people."""

    type: str
    message: str


class Error(BaseModel):
    """Every error looks like this."""

    error: ErrorContent
