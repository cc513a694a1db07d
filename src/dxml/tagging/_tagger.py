"""Texts in, label names out.

`TextTagger` is `dxml.text.TextFeatures` and `dxml.joint.Joint` in one, with the labels' names, and
with the id and the first line of every training text, so that a prediction can be explained by the
texts it rests on. It learns from more texts without being trained anew (`dxml.joint._teaching`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from dxml._core.arrays import Arrays, listed_texts, reading, whole
from dxml._core.card import write_card
from dxml._core.estimator import unfitted
from dxml._core.params import Parameter, parameters_of, present_names
from dxml._core.storage import read_folder, write_folder
from dxml._core.targets import Target
from dxml.exceptions import (
    DataFormatError,
    ModelFormatError,
    ParameterError,
    advise,
    did_you_mean,
)
from dxml.joint import Joint
from dxml.methods import TAGGER
from dxml.progress import SILENT, Progress, StageTimer
from dxml.tagging._card import tagger_card
from dxml.tagging._known_texts import (
    KnownTexts,
    checked_ids,
    checked_pair,
    first_line,
    indicator_of,
)
from dxml.tagging._relabelling import Relabelling
from dxml.tagging._thesaurus import (
    Thesaurus,
    close_name,
    label_text,
)
from dxml.tagging._vocabulary import read_thesaurus
from dxml.text._features import TextFeatures

__all__ = ["AppliedLessons", "Columns", "TextTagger"]

FEW = 5  # texts of a label, from which on its description is not needed
_FIXED: dict[str, Any] = {"scaling": "rows"}  # rows of tf-idf have length 1 already


@dataclass(frozen=True)
class Columns:
    """Where a table has its texts, labels and ids; kept with a model for the next table."""

    text: tuple[str, ...]
    labels: str | None = None
    id: str | None = None
    label_separator: str | None = None


@dataclass(frozen=True)
class AppliedLessons:
    """The lessons that were applied to a saved model: those of a journal up to an entry."""

    journal: str
    number: int


class TextTagger(Relabelling):
    """Tags texts with the labels that texts like them carry.

    Parameters
    ----------
    **settings
        Parameters of `TextFeatures` (``char_ngrams=5``) and of `Joint` (``precision="int8"``), by
        their names; ``scaling`` is not among them.

    Attributes
    ----------
    features : TextFeatures
    model : Joint
    columns : Columns or None
        Where the table of the training texts had them; the command line keeps it here.
    thesaurus : Thesaurus or None
        Descriptions and parents of labels; see `describe`.
    classes_ : array of shape (n_labels,)
        The labels, in the order of the columns of `predict_proba`.
    target : Target
        The form of the labels that `fit` was given, which `predict` gives too.
    applied_lessons : AppliedLessons or None
        The lessons of a service that need not be applied to it again; see `dxml.tagging._journal`.

    Examples
    --------
    >>> texts = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]
    >>> tagger = TextTagger().fit(texts, [["ocean"], ["ocean"], ["food"], ["food"]])
    >>> tagger.tag("fish of the sea", top=1)[0].name
    'ocean'
    """

    def __init__(self, **settings: Any) -> None:
        known, settings = self.parameters(), present_names(Joint, settings)
        for name in settings:
            if name not in known:
                raise ParameterError(f"unknown option {name!r}{did_you_mean(name, known)}")
        ours = parameters_of(TextFeatures)
        self.features = TextFeatures(**{k: v for k, v in settings.items() if k in ours})
        self.model = Joint(**{k: v for k, v in settings.items() if k not in ours}, **_FIXED)
        self.columns: Columns | None = None
        self.thesaurus: Thesaurus | None = None
        self.applied_lessons: AppliedLessons | None = None
        self.target = Target("lists", "str")
        self._points: KnownTexts | None = None

    @staticmethod
    def parameters() -> dict[str, Parameter]:
        """What may be set: the features' parameters and the model's."""
        both = {**parameters_of(TextFeatures), **parameters_of(Joint)}
        return {name: parameter for name, parameter in both.items() if name not in _FIXED}

    def __repr__(self) -> str:
        known = {name: parameter.default for name, parameter in self.parameters().items()}
        given = {
            name: value
            for name, value in self.get_params().items()
            if name not in known or value != known[name]
        }
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__name__}({shown})"

    def fit(
        self,
        texts: Sequence[str],
        labels: Iterable[Iterable[str]] | Any,
        *,
        ids: Sequence[str] | None = None,
        groups: Sequence[Any] | None = None,
        label_info: Any = None,
        learn_descriptions: bool = False,
        strict: bool = False,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Progress = SILENT,
    ) -> Self:
        """Learn from texts and the names of their labels.

        Parameters
        ----------
        texts : sequence of str
        labels : a list of names for each text; it may be empty
            One name or number for each text will do too, and a 0/1 matrix of shape
            (n_texts, n_labels); the names of a frame's columns are those of the labels.
        ids : sequence of str, optional
            What to call the texts in explanations, each by another name; "0", "1", … by default.
        groups : sequence of values, optional
            What each text belongs to, such as its source; see `Joint.fit`.
        label_info : path, frame, dict of lists or Thesaurus, optional
            Other names, descriptions and parents of labels, as `dxml.tagging.read_thesaurus` reads
            them. Labels that are given by another name, a URI or a notation get their name. A
            model with an encoder can also predict its labels that no text carries, by their names.
        learn_descriptions : bool
            Whether the descriptions of labels that fewer than 5 texts carry, or none, are learnt as
            texts that carry them; their ids are "label:" and the name.
        strict : bool
            Whether labels that `label_info` does not have are an error.
        checkpoint, resume
            A folder for the state of the encoder's training, and whether to go on from it; see
            `Joint.fit`.
        progress : Progress
            Hears of the long steps.
        """
        texts, rows, columns, target = checked_pair(texts, labels)
        ids = checked_ids(ids, len(texts), ())
        thesaurus = None if label_info is None else read_thesaurus(label_info)
        if learn_descriptions and thesaurus is None:
            raise ParameterError("learn_descriptions needs label_info, a table with descriptions.")
        rows = _in_vocabulary(rows, thesaurus, strict)
        if thesaurus is not None:
            [columns] = thesaurus.resolved([columns])
        described = thesaurus.as_texts(rows, FEW) if thesaurus and learn_descriptions else {}
        more = [f"label:{name}" for name in described]
        checked_ids([*ids, *more], len(ids) + len(more), ())
        named = set().union(*rows, _named_only(thesaurus, self.model))
        names = [*columns, *sorted(named.difference(columns))]
        features, model = unfitted(self.features), unfitted(self.model)  # nothing changes by halves
        timer = StageTimer(progress)
        X = features.fit_transform([*texts, *described.values()], progress=timer)
        points = KnownTexts(names, ids, [first_line(text) for text in texts])
        model.fit(
            X[: len(texts)],
            indicator_of(rows, points.names),
            groups=groups,
            texts=texts,
            label_texts=[label_text(name, thesaurus) for name in names],
            checkpoint=checkpoint,
            resume=resume,
            progress=progress,
        )
        model.seconds_ = timer.seconds | model.seconds_
        self.features, self.model, self._points = features, model, points
        self.thesaurus, self.applied_lessons, self.target = thesaurus, None, target
        if described:  # after the fit: probabilities are those of real texts
            own = [[name] for name in described]
            self._learn(features, X[len(texts) :], list(described.values()), own, more)
        return self

    def save(self, folder: str | Path) -> Path:
        """Write the tagger as a folder of JSON and safetensors, in one step, with a model card."""
        known = self._known
        config, arrays = self.model._packed()
        config = {
            "method": TAGGER,
            "text": self.features.saved_params(),
            "target": self.target.state(),
            "columns": None if self.columns is None else asdict(self.columns),
            "lessons": None if self.applied_lessons is None else asdict(self.applied_lessons),
            "model": config,
        }
        if self.thesaurus is not None:
            arrays |= self.thesaurus.arrays()
        name = Path(folder).resolve().name
        write_folder(folder, config, arrays | self.features.arrays() | known.arrays())
        write_card(Path(folder), tagger_card(self, config["model"], name))
        return Path(folder)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a saved tagger."""
        config, arrays = read_folder(folder)
        if config.get("method") != TAGGER:
            raise ModelFormatError(
                f"{folder}: holds a model of method {config.get('method')!r}, which takes "
                "features, not texts. Open it with dxml.load_model."
            )
        tagger = cls._from_folder(folder, config, arrays)
        arrays.accept()
        return tagger

    @classmethod
    def _from_folder(cls, folder: str | Path, config: Mapping[str, Any], arrays: Arrays) -> Self:
        """The inverse of what `save` writes."""
        tagger = cls()
        with reading(folder):
            tagger.model = model = Joint._unpacked(folder, config["model"], arrays)
            tagger.features = TextFeatures.from_arrays(config["text"], arrays)
            if tagger.features.n_columns != model.n_features_in_:
                raise ValueError("the words must be as many as the model's features")
            tagger._points = KnownTexts.from_arrays(arrays, model.n_labels_, model.n_samples_)
            tagger.thesaurus = Thesaurus.from_arrays(arrays)
            if (target := config.get("target")) is not None:
                tagger.target = Target.from_state(target, has_names=True)
            if (columns := config["columns"]) is not None:
                tagger.columns = _checked_columns(columns)
            if (lessons := config.get("lessons")) is not None:
                [journal] = listed_texts([lessons["journal"]], "journal")
                tagger.applied_lessons = AppliedLessons(journal, whole(lessons, "number"))
        return tagger


def _in_vocabulary(
    rows: list[list[str]], thesaurus: Thesaurus | None, strict: bool
) -> list[list[str]]:
    """Labels by their names; those that the vocabulary lacks stay, unless `strict`."""
    if thesaurus is None:
        if strict:
            needed = advise("label_info", "--label-info FILE")
            said = advise("strict", "--strict")
            raise ParameterError(f"{said} needs {needed}, the vocabulary that labels must be of.")
        return rows
    if strict and (strange := thesaurus.outside(rows)):
        [(first, n), *others] = strange.items()
        more = f" and {len(others):,} other{'s' * (len(others) > 1)} are" if others else " is"
        known = close_name(first, thesaurus)
        raise DataFormatError(
            f"the label {first!r} of {n:,} text{'s' * (n > 1)}{known}{more} not in the vocabulary. "
            f"Correct them, add them to it, or leave {advise('strict', '--strict')} out."
        )
    return thesaurus.resolved(rows)


def _named_only(thesaurus: Thesaurus | None, model: Joint) -> Iterable[str]:
    """Labels that have a name and may have no example: a model that reads texts can tell them."""
    return thesaurus if thesaurus is not None and model.reads_texts else ()


def _checked_columns(saved: Mapping[str, Any]) -> Columns:
    """The columns of a saved tagger: names, or None where there is no such column."""
    columns = Columns(**{**saved, "text": tuple(listed_texts(saved["text"], "text"))})
    others = (columns.labels, columns.id, columns.label_separator)
    listed_texts([other for other in others if other is not None], "columns")
    return columns
