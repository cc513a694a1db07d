"""Labels of a tagger renamed, merged and deleted."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Self

from dxml.exceptions import (
    ParameterError,
    advise,
)
from dxml.joint import Joint
from dxml.tagging._known_texts import (
    checked_names,
)
from dxml.tagging._learning import Teachable
from dxml.tagging._thesaurus import (
    Thesaurus,
    close_name,
    label_text,
)

__all__ = ["Relabelling"]


class Relabelling(Teachable):
    """Changes its labels, in every part of its model."""

    def rename_label(self, old: str, new: str) -> Self:
        """Call a label by another name; where a vocabulary has it, the old one means it too."""
        column, new = self._column(old), self._new_name(new)
        if new == self._known.names[column]:
            raise ParameterError(f"the label is called {new!r} already. Give another name.")
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
        if not isinstance(name, str) or not name.strip():
            raise ParameterError(f"expected a label's name, got {name!r:.40}. Give some letters.")
        [[checked]] = checked_names([[name]])
        return checked
