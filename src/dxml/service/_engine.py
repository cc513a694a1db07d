"""The model and its journal together: ranks, explains, learns, and loads another model.

Before each answer the lessons that any process has added to the journal are applied. A lock lets
one thread compute at a time: numba's threads must not be started from two threads at once. Loading
a model holds the lock only for each step, so requests are answered meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from dxml._core.compiled import Stopped, is_loaded, rehearsal
from dxml.service._copied_journal import CopiedJournal, open_journal
from dxml.service._errors import ServiceError
from dxml.service._lessons import apply, changed, steps
from dxml.service._limits import Limits
from dxml.service._served import (
    Change,
    Point,
    Served,
    ServedTagger,
    check_method,
    open_served,
)
from dxml.service._shared_journal import SharedJournal
from dxml.tagging._journal import JOURNAL, Action, Entry, Journal, Share

__all__ = ["Engine", "Labels", "Learnt", "Ranked", "Wanted"]

AnyJournal = Journal | SharedJournal
Labels = list[tuple[str, float]]
"""Names and probabilities, best first."""
Ranked = list[Labels] | Exception
"""What a request is answered: labels for each point, or why there are none."""

BUSY = 1_000  # points, after which a service ranks by compiled loops

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """Points of one request, and how many labels each is to get."""

    points: Sequence[Point]
    top: int


@dataclass(frozen=True)
class Learnt:
    """The result of a lesson: the ids of its texts, and the labels that were new.

    `without_known_words` lists ids of texts without a word. They are kept, but no prediction
    changes by them. `outside_vocabulary` lists labels that the model's vocabulary lacks; they are
    learnt all the same.
    """

    ids: list[str]
    new_labels: list[str]
    without_known_words: list[str]
    outside_vocabulary: list[str]


class Size(NamedTuple):
    """Of a model."""

    labels: int
    points: int


class Engine:
    """A served model that learns.

    Parameters
    ----------
    folder : str or Path
        A saved `TextTagger` or `Joint`.
    journal : str, Path or SharedJournal, optional
        Where lessons are kept; in the model's folder by default.
    limits : Limits, optional
        How much may be taught.

    Attributes
    ----------
    served : Served
        The model as it is now; it is replaced, never changed.
    applied : int
        Number of the last journal entry that is applied to it.
    loads : int
        How often a model was opened.
    """

    def __init__(
        self,
        folder: str | Path,
        journal: str | Path | SharedJournal | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.limits = limits or Limits()
        check_method(self.folder)  # no journal is made in a folder without a model
        self.journal = _opened(self.folder / JOURNAL if journal is None else journal)
        self._computing = threading.RLock()
        self._loading = threading.Lock()
        self._name = secrets.token_hex(8)
        self._closed = False
        self._rehearsed: threading.Thread | None = None
        self._stop = threading.Event()
        self._n_ranked = 0
        self.loads = 1
        self.served, self.applied, self._saved = self._load(self.journal)
        self.apply_pending()

    def rank(self, wanted: Sequence[Wanted]) -> list[Ranked]:
        """Rank the points of several requests in one go; a request that is wrong gets its error."""
        with self._computing:
            served = self.apply_pending()
            answers: list[Ranked] = [[] for _ in wanted]
            good = []
            for i, request in enumerate(wanted):
                try:
                    served.check(request.points)
                    good.append(i)
                except ServiceError as error:
                    answers[i] = error
            right = [wanted[i] for i in good]
            for i, found in zip(good, _ranked(served, right), strict=True):
                answers[i] = found
            self._n_ranked += sum(len(request.points) for request in right)
            if self._n_ranked >= BUSY and self._rehearsed is None and not is_loaded():
                work = (served, right)
                self._rehearsed = threading.Thread(target=self._rehearse, args=work, daemon=True)
                self._rehearsed.start()
            return answers

    def _rehearse(self, served: Served, wanted: Sequence[Wanted]) -> None:
        """Rank some points again by compiled loops, which others do from then on.

        Few points are ranked without numba at first: it takes half a second and 150 MB to load,
        and where nothing is compiled yet, a minute to compile.
        """
        with contextlib.suppress(Stopped), rehearsal(self._stop):
            _ranked(served, wanted)

    def explain(self, point: Point, top: int) -> list[dict[str, Any]]:
        """Why a point gets its labels."""
        with self._computing:
            served = self.apply_pending()
            served.check([point])
            return served.explain(point, top)

    def labels(self, query: str) -> list[tuple[str, int]]:
        """Labels whose names hold the query, most frequent first, with their points."""
        with self._computing:
            return self.apply_pending().labels(query)

    def learn(
        self,
        texts: Sequence[str],
        labels: Sequence[Sequence[str]],
        ids: Sequence[str] | None = None,
        by: str | None = None,
    ) -> Learnt:
        """Learn a lesson and keep it; it is on the disk when this returns.

        One that cannot be learnt is not kept: it would be in the way at every start. `by` is who
        teaches it, where there is a limit to what one may teach.
        """
        self._follow()
        with self._computing:
            served = self._teachable()
            labels = served.tagger.label_names(labels)
            taught = {name for row in labels for name in row}
            carried = {name: served.texts_of(name) for name in taught}
            unknown = sum(n is None for n in carried.values())
            named = [f"taught-{secrets.token_hex(8)}" for _ in texts] if ids is None else list(ids)
            replaced = [served.knows(id) for id in named]
            more = len(texts) - sum(replaced)
            self.limits.check_room(
                unknown,
                served.joint.n_labels_ - self._saved.labels,
                max(0, served.n_points - self._saved.points) + more,
                self.journal.size(),
            )
            share = None
            if by is not None:
                share = Share(by, len(texts), unknown, sum(map(len, texts)))
                self.limits.check_share(self.journal.share(by) + share)
            new = sorted(name for name, n in carried.items() if not n)
            content = {
                "texts": list(texts),
                "labels": [list(row) for row in labels],
                "ids": named,
                "replaced": replaced,
            }
            after = self._keep(served, "learn", content, share=share)
            return Learnt(named, new, after.tagger.wordless(named), served.outside(labels))

    def forget(self, id: str) -> None:
        """Forget a text, and keep that it was forgotten."""
        self._follow()
        with self._computing:
            served = self._teachable()
            if not served.knows(id):
                raise ServiceError("not_found", f"there is no text with the id {id!r}.")
            if served.n_points == 1:
                raise ServiceError("conflict", "the last text cannot be forgotten.")
            self._keep(served, "forget", {"id": id})

    def unlabel(self, id: str, name: str) -> None:
        """Take a label off a text, and keep that it was taken off."""
        self._follow()
        with self._computing:
            served = self._teachable()
            if not served.knows(id):
                raise ServiceError("not_found", f"there is no text with the id {id!r}.")
            if name not in served.labels_of(id):
                message = f"the text {id!r} does not carry the label {name!r}."
                raise ServiceError("not_found", message)
            self._keep(served, "unlabel", {"id": id, "label": name})

    def relabel(
        self, how: Change, labels: Sequence[str], into: str | None = None, by: str | None = None
    ) -> None:
        """Rename, merge or delete labels, and keep that; `by` as in `learn`."""
        self._follow()
        with self._computing:
            served = self._teachable()
            share = None
            if by is not None:
                share = Share(by, bytes=sum(map(len, [*labels, into or ""])))
                self.limits.check_share(self.journal.share(by) + share)
            after = served.relabelled(how, labels, into)
            content = {"how": how, "labels": list(labels), "into": into}
            self._keep(served, "relabel", content, after, share)

    def _keep(
        self,
        served: ServedTagger,
        action: Action,
        content: Mapping[str, Any],
        after: ServedTagger | None = None,
        share: Share | None = None,
    ) -> ServedTagger:
        """Apply a lesson, then commit it to the journal; what fails leaves both as they were.

        Returns the model with this lesson; `after` is that model, where it was applied already.
        """
        try:
            after = after or changed(served, [Entry(0, action, content)])
        except MemoryError:
            message = "there is not enough memory to learn this; nothing was kept. Send less."
            raise ServiceError("too_large", message) from None
        number = self.journal.append(action, content, share)
        if number == self.applied + 1:
            self.served, self.applied = after, number
        else:  # another process has added entries, which are applied first
            self.apply_pending()
        return after

    def apply_pending(self) -> Served:
        """Apply the journal's entries that are not applied yet; returns the model."""
        with self._computing:
            if (last := self.journal.last()) != self.applied:
                self.served, wished = self._taught(self.journal, self.served, self.applied, last)
                self.applied = last
                if wished:
                    threading.Thread(target=self._reload_quietly, daemon=True).start()
            return self.served

    def reload(self, *, announce: bool = True) -> Served:
        """Load the model's folder again, then replace the old model.

        Parameters
        ----------
        announce : bool
            Tell the other processes that share the journal to do so too.
        """
        with self._loading:
            if self._closed:
                return self.served
            old, new = self.journal, self._journal_in_place()
            try:
                served, applied, saved = self._load(new)
            except BaseException:
                if new is not old:
                    new.close()
                raise
            with self._computing:
                self._take_over(new, served)  # lessons taught while loading
                self.journal, self.served, self.applied = new, served, applied
                self._saved = saved
                self.loads += 1
                self.apply_pending()
            if announce:
                new.append("reload", {"by": self._name})
            if announce and new is not old:  # for processes that still have the old journal open
                with contextlib.suppress(sqlite3.Error):
                    old.append("reload", {"by": self._name})
            if new is not old:
                old.close()
            return self.served

    def _journal_in_place(self) -> AnyJournal:
        """The open journal, or that of the new folder where the model's folder was replaced."""
        if self.journal.in_place():
            return self.journal
        check_method(self.folder)  # no journal is made in a folder without a model
        return Journal(self.journal.path)

    def _take_over(self, journal: AnyJournal, served: Served) -> None:
        """Copy the lessons of the current journal into that of the folder that replaced it."""
        if (
            isinstance(journal, Journal)
            and isinstance(self.journal, Journal)
            and (journal is not self.journal)
        ):
            known = served.applied_from(self.journal.identity)
            if n := journal.take_over(self.journal, known):
                _log.warning("%s was replaced; it took over %d lessons", journal.path, n)

    def _follow(self) -> None:
        """Reload where the model's folder was replaced.

        A lesson committed to the old folder's journal would be lost at the next start.
        """
        if not self.journal.in_place():
            self.reload()

    def close(self) -> None:
        """Close the journal, when no model is being loaded."""
        self._stop.set()
        if self._rehearsed is not None:
            self._rehearsed.join()
        with self._loading:
            self._closed = True
            self.journal.close()

    def _teachable(self) -> ServedTagger:
        served = self.apply_pending()
        if isinstance(self.journal, CopiedJournal):
            message = "the model's folder cannot be written to, so it cannot be taught."
            raise ServiceError("conflict", message)
        if not isinstance(served, ServedTagger):
            message = "this model takes features, so it cannot be taught texts."
            raise ServiceError("conflict", message)
        return served

    def _load(self, journal: AnyJournal) -> tuple[Served, int, Size]:
        """Load the folder's model and apply the journal's lessons.

        Returns the model, the number of the last entry applied, and the saved model's size without
        lessons.
        """
        last = journal.last()
        served = open_served(self.folder)
        if journal is not self.journal:
            self._take_over(journal, served)
            last = journal.last()
        saved = Size(served.joint.n_labels_, served.n_points)
        known = served.applied_from(journal.identity)
        served, _ = self._taught(journal, served, known, last)
        with self._computing:  # compiles before the first request: ranks one point
            one = sp.csr_matrix((1, served.joint.n_features_in_), dtype=np.float32)
            served.joint.predict_topk(one, 1, texts=[""])
        return served, max(last, known), saved

    def _taught(
        self, journal: AnyJournal, served: Served, applied: int, last: int
    ) -> tuple[Served, bool]:
        """Apply entries up to `last`; also returns whether another process asked for a reload."""
        wished = False
        while applied < last:
            entries = [entry for entry in journal.after(applied) if entry.number <= last]
            if not entries:  # another process has just compacted the journal
                break
            for step in steps(entries):
                with self._computing:
                    served = apply(served, step)
                first = step[0]
                wished |= first.action == "reload" and first.content["by"] != self._name
            applied = entries[-1].number
        return served, wished

    def _reload_quietly(self) -> None:
        try:
            self.reload(announce=False)
        except Exception:  # an exception in a thread would go unnoticed
            _log.exception("the model was not loaded again; the old one stays")


def _opened(journal: str | Path | SharedJournal) -> AnyJournal:
    return journal if isinstance(journal, SharedJournal) else open_journal(journal)


def _ranked(served: Served, wanted: Sequence[Wanted]) -> list[Ranked]:
    """Rank all requests together; if that fails one by one, so that only faulty ones fail."""
    if not wanted:
        return []
    try:
        points = [point for request in wanted for point in request.points]
        rows = served.rank(points, max(request.top for request in wanted)).rows()
        return [
            [
                [(served.name(label), p) for label, p in next(rows)[: request.top]]
                for _ in request.points
            ]
            for request in wanted
        ]
    except Exception as error:  # one faulty request must not fail the others
        if len(wanted) > 1:
            return [found for request in wanted for found in _ranked(served, [request])]
        return [error]
