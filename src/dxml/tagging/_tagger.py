"""Texts in, label names out.

`TextTagger` is `dxml.text.TextFeatures` and `dxml.joint.Joint` in one, with the labels' names, and
with the id and the first line of every training text, so that a prediction can be explained by the
texts it rests on. It learns from more texts without being trained anew (`dxml.joint._teaching`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.arrays import Arrays, listed_texts, reading, whole
from dxml._core.estimator import unfitted
from dxml._core.listed import Listed
from dxml._core.params import Parameter, parameters_of, present_names
from dxml._core.storage import read_folder, write_folder
from dxml._core.targets import Target
from dxml.exceptions import (
    DataFormatError,
    ModelFormatError,
    ParameterError,
    advise,
    did_you_mean,
    not_fitted,
)
from dxml.joint import Joint
from dxml.joint._explaining import strongest
from dxml.joint.parts._deep import DeepPart
from dxml.joint.parts._vectors import VectorsPart
from dxml.methods import TAGGER
from dxml.progress import SILENT, Progress, StageTimer
from dxml.tagging._classifying import Classifying
from dxml.tagging._known_texts import (
    KnownTexts,
    checked_ids,
    checked_names,
    checked_pair,
    first_line,
    indicator_of,
    label_rows,
)
from dxml.tagging._tags import Explanation, Neighbour, Tag, Tags
from dxml.tagging._thesaurus import (
    LabelInfo,
    Thesaurus,
    close_name,
    label_text,
)
from dxml.tagging._vocabulary import read_thesaurus
from dxml.text._features import TextFeatures
from dxml.topk import TopK

__all__ = ["AppliedLessons", "Columns", "TextTagger"]

LONG_TITLE = 30  # characters, from which on two texts with the same title are taken for one
FEW = 5  # texts of a label, from which on its description is not needed
MOST_WORDS = 50  # left out one by one for an explanation: the heaviest
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


class TextTagger(Classifying):
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

    @property
    def labels_(self) -> tuple[str, ...]:
        """The labels' names, in the order of the model's columns."""
        return tuple(self._known.names)

    @property
    def ids_(self) -> tuple[str, ...]:
        """The ids of the training texts, row by row."""
        return tuple(self._known.ids)

    def name_of(self, column: int) -> str:
        """The name of one label."""
        return self._known.names[column]

    def column_of(self, name: str) -> int | None:
        """The column of the label of this name; None where there is none."""
        return self._known.names.place(name)

    def knows(self, id: str) -> bool:
        """Whether there is a training text of this id."""
        return id in self._known.ids

    def fit(
        self,
        texts: Sequence[str],
        labels: Iterable[Iterable[str]] | Any,
        *,
        ids: Sequence[str] | None = None,
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

    @overload
    def tag(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self,
        texts: str,
        top: int = 5,
        threshold: float | None = None,
        *,
        with_parents: bool = False,
    ) -> Tags: ...
    @overload
    def tag(
        self,
        texts: Sequence[str],
        top: int = 5,
        threshold: float | None = None,
        *,
        with_parents: bool = False,
    ) -> list[Tags]: ...
    def tag(
        self,
        texts: str | Sequence[str],
        top: int = 5,
        threshold: float | None = None,
        *,
        with_parents: bool = False,
    ) -> Tags | list[Tags]:
        """The most probable labels, best first: a list for one text, a list of lists for several.

        Where nothing of a text is known its labels are only the most frequent ones; its list says
        so by ``nothing_known``.

        Parameters
        ----------
        top : int
            Labels a text, at most.
        threshold : float, optional
            Only labels of at least this probability; it may be none.
        with_parents : bool
            Whether all broader labels of those are added, each as probable as the most probable
            that it stands above.
        """
        several = [texts] if isinstance(texts, str) else list(texts)
        named = self.named(self.rank(several, top), threshold, with_parents=with_parents)
        mute = set(self.nothing_known(several))
        tags = [Tags(row, nothing_known=place in mute) for place, row in enumerate(named)]
        return tags[0] if isinstance(texts, str) else tags

    def named(
        self, ranking: TopK, threshold: float | None = None, *, with_parents: bool = False
    ) -> list[list[Tag]]:
        """The names of what `rank` gave, as `tag` gives them."""
        names, least = self._known.names, -1.0 if threshold is None else threshold
        tags = [[Tag(names[i], p) for i, p in row if p >= least] for row in ranking.rows()]
        return [self._raised(row) for row in tags] if with_parents else tags

    def _raised(self, tags: list[Tag]) -> list[Tag]:
        """With the broader labels; a label before what is broader and no more probable."""
        if self.thesaurus is None:
            raise ParameterError(
                "this tagger knows no parents of labels. Give label_info when it is trained."
            )
        best: dict[str, float] = {}
        for name, probability in tags:  # most probable first
            for each in (name, *self.thesaurus.ancestors(name)):
                best.setdefault(each, probability)
        return [Tag(name, probability) for name, probability in best.items()]

    def describe(self, name: str) -> LabelInfo:
        """What is known of a label: other names, description, parents, the way to it, children."""
        thesaurus = self.thesaurus or Thesaurus({}, {})
        name = name if name in self._known.names else thesaurus.resolve(name) or name
        if name not in self._known.names and name not in thesaurus:
            close = close_name(name, [*self._known.names, *thesaurus])
            raise ParameterError(f"there is no label {name!r}{close}.")
        return thesaurus.info(name)

    def rank(self, texts: Sequence[str], top: int = 5, *, progress: Progress = SILENT) -> TopK:
        """As `tag`, with the labels by their columns; see `labels_`."""
        known, frequency = self._known, self.model.label_frequency_
        if isinstance(top, bool) or not hasattr(top, "__index__") or top < 1:
            raise DataFormatError(f"top must be a whole number, 1 or more, got {top!r}.")
        # Labels whose last text was forgotten, where a name alone is not enough.
        lost = 0 if self.model.names_suffice else int((frequency == 0).sum())
        depth = min(top + lost, len(known.names))
        rows = self.features.transform(texts)
        ranking = self.model.predict_topk(rows, depth, texts=texts, progress=progress)
        if lost:
            ranking = _without(ranking, frequency == 0)
        return ranking.head(min(top, len(known.names)))

    def explain(
        self, text: str, top: int = 5, *, n_words: int = 8, n_neighbours: int = 5
    ) -> list[Explanation]:
        """Why the `top` labels of a text are what they are.

        Parameters
        ----------
        n_words, n_neighbours : int
            Words and neighbours named for each label, at most.

        Notes
        -----
        A word matters by how much lower the label's score is without it, the other words weighing
        what they weighed: other neighbours, other votes, another score of the head. The 50 heaviest
        words are tried, one by one.
        """
        names = self._known.names
        X = self.features.transform([text])
        best = [(label, p) for label, p in self.rank([text], top).row(0)]
        labels = [label for label, _ in best]
        words, effects = self._word_effects(text, X, labels)
        found = {each.label: each for each in self.model.explain_labels(X, labels, texts=[text])}
        return [
            Explanation(
                names[label],
                probability,
                found[label].from_head,
                found[label].from_neighbours,
                strongest(words, effects[:, i], n_words),
                tuple(self._neighbour(voter) for voter in found[label].voters[:n_neighbours]),
            )
            for i, (label, probability) in enumerate(best)
        ]

    def _word_effects(
        self, text: str, X: sp.csr_matrix, labels: list[int]
    ) -> tuple[list[str], npt.NDArray[np.float32]]:
        """The heaviest words of a text, and their effect on each label, (n_words, n_labels)."""
        weights = self.features.words(text)
        reads = {DeepPart.name, VectorsPart.name} & set(self.model.parts_)
        if self.features.only_words and not reads:  # others have no effect then
            weights = {word: weight for word, weight in weights.items() if weight}
        words = sorted(weights, key=lambda word: -weights[word])[:MOST_WORDS]
        shorter = [self.features.without_word(text, word) for word in words]
        without = self.features.transform(shorter)
        return words, self.model.effects(X, without, labels, texts=[text, *shorter])

    def _neighbour(self, voter: Any) -> Neighbour:
        known = self._known
        return Neighbour(
            known.ids[voter.point],
            known.titles[voter.point],
            voter.similarity,
            voter.weight,
            tuple(self._names_of(voter.point)),
        )

    def _names_of(self, row: int) -> list[str]:
        names = self._known.names
        return [names[label] for label in self.model.point_labels(row).tolist()]

    def learn(
        self,
        texts: Sequence[str],
        labels: Iterable[Iterable[str]],
        *,
        ids: Sequence[str] | None = None,
    ) -> Self:
        """Learn from more texts at once; labels may be new.

        The texts vote from now on, and the labels they carry are predicted. A text whose id is
        known takes the place of the old one. Words that were unknown are known from now on. Parts
        of the model that only `refit` changes stay what they are; see `dxml.joint._teaching`.

        Parameters
        ----------
        texts, labels, ids
            As in `fit`; ids go on from the number of texts by default.
        """
        texts, rows, *_ = checked_pair(texts, labels)
        ids = checked_ids(ids, len(texts), self._known.ids)
        features, X = self.features.grow_transform(texts)
        self._learn(features, X, texts, self._by_name(rows), ids)
        return self

    def _learn(
        self,
        features: TextFeatures,
        X: sp.csr_matrix,
        texts: Sequence[str],
        rows: list[list[str]],
        ids: Sequence[str],
    ) -> None:
        known, model = self._known, copy(self.model)  # nothing changes by halves
        new = sorted(name for name in set().union(*rows) if name not in known.names)
        Y = indicator_of(rows, known.names, new)
        replaced = [row for id in ids if (row := known.ids.place(id)) is not None]
        new_texts = [label_text(name, self.thesaurus) for name in new]
        model.widen(X.shape[1]).partial_fit(X, Y, texts=texts, label_texts=new_texts)
        self.features, self.model = features, model
        self._points = known.add(new, ids, [first_line(text) for text in texts])
        if replaced:
            self._drop(replaced)

    def without_known_words(self, texts: Sequence[str]) -> list[int]:
        """The places of texts of which no word is known."""
        return self.features.empty_rows(texts)

    def nothing_known(self, texts: Sequence[str]) -> list[int]:
        """The places of texts of which no word is known, where no encoder reads them either."""
        return [] if self._reads_texts else self.features.empty_rows(texts)

    def wordless(self, ids: Iterable[str]) -> list[str]:
        """Those of these known texts that have no word at all: no prediction changes by them."""
        return [id for id in ids if not self._reads_texts and self.model.is_empty(self._row(id))]

    def without_words(self, texts: Sequence[str]) -> list[int]:
        """The places of texts that have no word at all: learnt, they would change nothing."""
        return [] if self._reads_texts else self.features.without_terms(texts)

    @property
    def _reads_texts(self) -> bool:
        _ = self._known
        return DeepPart.name in self.model.parts_

    def forget(self, id: str) -> Self:
        """Take a text out of the vote; a label that no other text carries is predicted no more."""
        self._drop([self._row(id)])
        return self

    def labels_of(self, id: str) -> list[str]:
        """The names of the labels that a known text carries."""
        return self._names_of(self._row(id))

    def remove_label(self, id: str, name: str) -> Self:
        """Take a wrong label off a text that was learnt."""
        row, own = self._row(id), self.labels_of(id)
        if name not in own:
            raise ParameterError(
                f"the text {id!r} does not carry the label {name!r}{did_you_mean(name, own)}"
            )
        label = self._known.names.place(name)
        assert label is not None
        self.model.remove_label(row, label)
        return self

    def rename_label(self, old: str, new: str) -> Self:
        """Call a label by another name; where a vocabulary has it, the old one means it too."""
        column, new = self._column(old), self._new_name(new)
        if new in self._known.names:
            remedy = advise("Use merge_labels", "Use dxml labels merge")
            raise ParameterError(f"there is a label {new!r} already. {remedy} to make one of both.")
        names = list(self._known.names)
        names[column] = new
        thesaurus = self.thesaurus and self.thesaurus.renamed(old, new)
        model = copy(self.model).rename_label(column, label_text(new, thesaurus))
        return self._relabelled(model, names, thesaurus)

    def merge_labels(self, labels: Iterable[str], into: str) -> Self:
        """Make one label of several, called `into`; the texts of each carry it.

        Parameters
        ----------
        labels : iterable of str
            Their names.
        into : str
            One of them, another label that is then merged too, or a new name.
        """
        labels, into = list(dict.fromkeys(labels)), self._new_name(into)
        merged = [*labels, into] if into in self._known.names and into not in labels else labels
        if len(merged) == 1:
            raise ParameterError(
                f"{merged[0]!r} is one label. Name several, or rename it with "
                f"{advise('rename_label', 'dxml labels rename')}."
            )
        columns = [self._column(name) for name in merged]
        thesaurus = self.thesaurus and self.thesaurus.merged(merged, into)
        kept = max(columns, key=lambda c: (self.model.label_frequency_[c], -c))
        model = copy(self.model)
        model.merge_labels(columns, label_text=label_text(into, thesaurus))
        gone = set(columns) - {kept}
        names = [into if c == kept else name for c, name in enumerate(self._known.names)]
        names = [name for c, name in enumerate(names) if c not in gone]
        return self._relabelled(model, names, thesaurus)

    def delete_label(self, name: str) -> Self:
        """Take a label off all texts; it is predicted no more."""
        column = self._column(name)
        model = copy(self.model).delete_labels([column])
        names = [known for known in self._known.names if known != name]
        return self._relabelled(model, names, self.thesaurus and self.thesaurus.without(name))

    def _relabelled(self, model: Joint, names: list[str], thesaurus: Thesaurus | None) -> Self:
        """All at once: nothing changes by halves."""
        points = self._known.renamed(names)
        self.model, self._points, self.thesaurus = model, points, thesaurus
        return self

    def _column(self, name: str) -> int:
        column = self._known.names.place(name)
        if column is None:
            raise ParameterError(
                f"there is no label {name!r}{close_name(name, self._known.names)}."
            )
        return column

    def _new_name(self, name: str) -> str:
        [[checked]] = checked_names([[name]])
        return checked

    def catch_up(self, *, progress: Progress = SILENT) -> Self:
        """Train the parts on from where they are, with all the texts that are known.

        A good deal quicker than `refit`, and about as good; see `Joint.catch_up`.
        """
        _ = self._known
        self.model.catch_up(progress=progress)
        return self

    def refit(self, *, progress: Progress = SILENT) -> Self:
        """Train all parts of the model again, on the rows of all the texts that are known.

        The words stay those of `fit` and of what was learnt since: texts are not kept.
        """
        names = [label_text(name, self.thesaurus) for name in self._known.names]
        model = copy(self.model)  # nothing changes by halves
        self.model = model.refit(label_texts=names, progress=progress)
        return self

    def _drop(self, rows: list[int]) -> None:
        self.model.forget(rows)
        self._points = self._known.drop(rows)

    def _row(self, id: str) -> int:
        row = self._known.ids.place(id)
        if row is None:
            raise ParameterError(f"there is no text with the id {id!r}.")
        return row

    def label_names(self, labels: Iterable[Iterable[str]] | Any) -> list[list[str]]:
        """Labels by their names, where a vocabulary calls them otherwise too."""
        return self._by_name(label_rows(labels)[0])

    def _by_name(self, rows: list[list[str]]) -> list[list[str]]:
        return rows if self.thesaurus is None else self.thesaurus.resolved(rows)

    def unknown_labels(self, labels: Iterable[Iterable[str]]) -> tuple[list[str], sp.csr_matrix]:
        """The names that no label has, and a 0/1 indicator of them, a column a name."""
        rows = [[n for n in row if n not in self._known.names] for row in self.label_names(labels)]
        names = sorted(set().union(*rows))
        return names, indicator_of(rows, Listed(names))

    def known_again(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> list[int]:
        """The places of texts that were trained on or learnt, as far as id and title tell.

        Without ids a title counts only where it is long: short ones come by chance.
        """
        known = self._known
        titles = set(known.titles)
        found = []
        for place, text in enumerate(texts):
            title = first_line(text)
            row = None if ids is None else known.ids.place(str(ids[place]))
            same = row is not None and known.titles[row] == title
            if same or (len(title) >= LONG_TITLE and title in titles):
                found.append(place)
        return found

    def save(self, folder: str | Path) -> Path:
        """Write the tagger as a folder of JSON and safetensors, in one step."""
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
        return write_folder(folder, config, arrays | self.features.arrays() | known.arrays())

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

    @property
    def _known(self) -> KnownTexts:
        if self._points is None:
            raise not_fitted(
                "this TextTagger has not been fitted. Call fit(texts, labels) or load(folder)."
            )
        return self._points


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


def _without(ranking: TopK, dropped: npt.NDArray[np.bool_]) -> TopK:
    """The ranking less the dropped labels, the others moved up."""
    gone = (ranking.indices < 0) | dropped[ranking.indices]
    order = np.argsort(gone, axis=1, kind="stable")
    indices = np.take_along_axis(np.where(gone, -1, ranking.indices), order, axis=1)
    scores = np.take_along_axis(np.where(gone, 0, ranking.scores), order, axis=1)
    return TopK(indices.astype(np.int32), scores.astype(np.float32))
