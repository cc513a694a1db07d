"""Draw the label map, on which labels that share points are near each other."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml._core.random import spawn
from dxml._neighbors.kmeans import kmeans, nearest_centre
from dxml.exceptions import ParameterError
from dxml.label_map import LabelMap, make_label_map
from dxml.plots._letters import fonts_for
from dxml.plots._placing import Name, Style, place_names
from dxml.plots._style import COLOURS, DPI, NothingToDrawError, heading
from dxml.progress import SILENT, Progress

__all__ = ["LabelPlot", "label_plot"]

MAX_CLUSTERS = 24
MIN_LABELS_PER_CLUSTER = 8  # on average
PALETTE = COLOURS[:6]  # without black, used for names, and yellow, hard to see on white
MAX_EXTRA_NAMES = 60  # names of frequent labels that are added where there is room

MIN_HALF_SIDE = 0.06  # of the shown square; the whole map has 1

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LabelPlot:
    """A label map with names and clusters.

    Attributes
    ----------
    title : str
    map : LabelMap
    names : sequence of str
        Of the labels.
    cluster : int32 array of shape (n_labels,)
        Number of each label's cluster on the map; -1 for labels that share no point with another.
    found : tuple of int
        The labels to mark together with their related labels.
    """

    title: str
    map: LabelMap
    names: Sequence[str]
    cluster: Ids
    found: tuple[int, ...]

    def numbers(self) -> dict[str, Any]:
        """Every label's name, position, frequency, cluster and related labels."""
        return {
            "title": self.title,
            "found": [self.names[label] for label in self.found],
            "labels": [self._numbers(label) for label in range(len(self.names))],
        }

    def _numbers(self, label: int) -> dict[str, Any]:
        x, y = (round(float(coordinate), 4) for coordinate in self.map.positions[label])
        return {
            "name": self.names[label],
            "x": x,
            "y": y,
            "frequency": int(self.map.frequency[label]),
            "cluster": int(self.cluster[label]),
            "related": {self.names[i]: round(s, 4) for i, s in self.related(label)},
        }

    def related(self, label: int) -> list[tuple[int, float]]:
        """The labels that share most points with a label, and the strength of each relation."""
        others, strengths = self.map.related[label].tolist(), self.map.strength[label].tolist()
        return [pair for pair in zip(others, strengths, strict=True) if pair[0] >= 0]

    @property
    def unwritable(self) -> list[str]:
        """Names with letters that no installed font has; such a label is drawn by its number."""
        _, missing = fonts_for(self._one_line)
        return [name for name in self._one_line if missing & set(name)]

    @cached_property
    def _one_line(self) -> list[str]:
        """The names as they are drawn."""
        return [" ".join(name.split()) for name in self.names]

    def paint(self, plt: Any) -> Any:
        """Dots by frequency and cluster, names where there is room, links from marked labels."""
        canvas, axis = plt.subplots(
            figsize=(8, 8), dpi=DPI
        )  # the layout of names depends on the size
        canvas.subplots_adjust(left=0.01, right=0.99, bottom=0.07, top=0.95)
        known = np.flatnonzero(self.map.frequency > 0)
        known = known[np.argsort(-self.map.frequency[known], kind="stable")]  # small ones on top
        sizes, colours = self._sizes(), self._colours()
        axis.scatter(
            *self.map.positions[known].T,
            s=sizes[known],
            c=[_lighter(colours[number]) for number in self.cluster[known]],
            linewidths=0.3,
            edgecolors="white",
            rasterized=True,
        )
        x, y, reach = self._window(known)
        axis.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
        axis.set(xticks=[], yticks=[])
        axis.set_xlabel("labels that share points stand near each other; colours: clusters")
        axis.grid(visible=False)
        self._mark_found(axis, sizes, colours)
        self._legend(axis)
        heading(canvas, self.title)
        shown = np.abs(self.map.positions[known] - (x, y)).max(axis=1) <= reach
        place_names(canvas, axis, self._names(sizes, known[shown]))
        return canvas

    def _window(self, known: npt.NDArray[np.int64]) -> tuple[float, float, float]:
        """Centre and half side of the shown square: all labels, or the marked and related ones."""
        if not self.found:
            return 0.0, 0.0, 1.06 * float(np.abs(self.map.positions[known]).max())
        near = [other for label in self.found for other, _ in self.related(label)]
        shown = self.map.positions[[*self.found, *near]]
        low, high = shown.min(axis=0), shown.max(axis=0)
        x, y = ((low + high) / 2).tolist()
        return x, y, max(MIN_HALF_SIDE, 0.7 * float((high - low).max()))

    def _sizes(self) -> npt.NDArray[np.float64]:
        """The area of each label's dot, proportional to the square root of its frequency."""
        return 4 + 246 * np.sqrt(self.map.frequency / max(int(self.map.frequency.max()), 1))

    def _colours(self) -> dict[int, str]:
        """Colours of the clusters, chosen so that clusters of one colour are far apart."""
        numbers = np.unique(self.cluster[self.cluster >= 0]).tolist()
        centres = {n: self.map.positions[self.cluster == n].mean(axis=0) for n in numbers}
        chosen: dict[int, str] = {}
        for number in numbers:
            room = [
                min(
                    (
                        float(np.linalg.norm(centres[number] - centres[other]))
                        for other, taken in chosen.items()
                        if taken == colour
                    ),
                    default=np.inf,
                )
                for colour in PALETTE
            ]
            chosen[number] = PALETTE[int(np.argmax(room))]
        return {**chosen, -1: "#999999"}

    def _mark_found(self, axis: Any, sizes: npt.NDArray[np.float64], colours: Any) -> None:
        places = self.map.positions
        for label in self.found:
            for other, strength in self.related(label):
                (x, y), (a, b) = places[label], places[other]
                width = 0.6 + 3 * strength
                axis.plot([x, a], [y, b], color="#333333", linewidth=width, alpha=0.6, zorder=2)
                colour = colours[int(self.cluster[other])]
                axis.scatter([a], [b], s=sizes[other], c=colour, edgecolors="#333333", zorder=3)
            axis.scatter(
                *places[label], s=sizes[label] + 40, c=COLOURS[7], edgecolors="black", zorder=4
            )

    def _legend(self, axis: Any) -> None:
        """A legend with the meaning of three dot sizes."""
        lines = import_module("matplotlib.lines")
        most = int(self.map.frequency.max())
        shown = sorted({max(1, most // 100), max(1, most // 10), most})
        handles = [
            lines.Line2D(
                [],
                [],
                linestyle="",
                marker="o",
                color="#777777",
                markersize=float(np.sqrt(4 + 246 * np.sqrt(count / most))),
                label=f"{count:,}",
            )
            for count in shown
        ]
        axis.legend(
            handles=handles,
            title="points with the label",
            loc="lower right",
            ncols=3,
            frameon=False,
            fontsize=9,
        )

    def _names(
        self, sizes: npt.NDArray[np.float64], by_frequency: npt.NDArray[np.int64]
    ) -> list[Name]:
        """Names to write: marked, related, most frequent of each cluster, other frequent ones."""
        of_cluster: dict[int, int] = {}
        for label in by_frequency.tolist():
            of_cluster.setdefault(int(self.cluster[label]), label)
        of_cluster.pop(-1, None)
        beside = [other for label in self.found for other, _ in self.related(label)]
        rest = [*of_cluster.values(), *by_frequency[:MAX_EXTRA_NAMES].tolist()]
        families, missing = fonts_for(self._one_line)
        family = ("fontfamily", families)
        small: Style = (family, ("fontsize", 7.5), ("color", "#333333"))
        plain: Style = (family, ("fontsize", 9))
        bold: Style = (family, ("fontsize", 11), ("fontweight", "bold"))
        styles = dict.fromkeys(rest, small) | dict.fromkeys(of_cluster.values(), plain)
        styles |= dict.fromkeys(beside, plain) | dict.fromkeys(self.found, bold)
        wanted = dict.fromkeys([*self.found, *beside, *rest])
        return [
            Name(
                str(label) if missing & set(self._one_line[label]) else self._one_line[label],
                tuple(self.map.positions[label].tolist()),
                2 + float(np.sqrt(sizes[label]) / 2),
                styles[label],
                needed=label in self.found,
            )
            for label in wanted
        ]


def _lighter(colour: str) -> tuple[float, ...]:
    """A colour on which names can be read, as shares of red, green and blue."""
    whole = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return tuple(round(0.75 * part + 0.25, 3) for part in whole)


def label_plot(
    Y: sp.csr_matrix,
    names: Sequence[str] | None = None,
    *,
    find: Sequence[str] = (),
    title: str = "Label map",
    progress: Progress = SILENT,
) -> LabelPlot:
    """Make the label map of Y and its clusters.

    Parameters
    ----------
    Y : csr_matrix of shape (n_samples, n_labels)
        The training labels.
    names : sequence of str, optional
        Of the labels; their ids by default.
    find : sequence of str
        Names to mark, with the labels that are related to them.
    """
    names = [str(label) for label in range(Y.shape[1])] if names is None else list(names)
    found = tuple(dict.fromkeys(_find(name, names) for name in find))
    if not Y.nnz:
        raise NothingToDrawError("no training point has a label, so there is no map to draw.")
    placed = make_label_map(Y, progress=progress)
    return LabelPlot(title, placed, names, _clusters(placed), found)


def _find(name: str, names: Sequence[str]) -> int:
    """The label by that name, in upper or lower case."""
    if name in names:
        return names.index(name)
    lower = {known.casefold(): label for label, known in enumerate(names)}
    if (label := lower.get(name.casefold())) is not None:
        return label
    part = [known for known in names if name.casefold() in known.casefold()]
    close = sorted(part, key=len)[:3] or difflib.get_close_matches(name, names, 3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
    raise ParameterError(f"there is no label {name!r}{hint}")


def _clusters(placed: LabelMap) -> Ids:
    """k-means on the map with a fixed seed."""
    cluster = np.full(len(placed.frequency), -1, dtype=np.int32)
    inside = np.flatnonzero(placed.related[:, 0] >= 0)
    count = min(MAX_CLUSTERS, len(inside) // MIN_LABELS_PER_CLUSTER)
    if len(inside):
        points = placed.positions[inside]
        centres = kmeans(points, max(count, 1), spawn(0, "clusters")["clusters"])
        cluster[inside] = nearest_centre(points, centres)[0]
    return cluster
