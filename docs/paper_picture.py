"""Make the picture of docs/how-it-works.md: ``make paper-picture``, or ``paper_picture.py [FILE]``.

Figure 1 of the paper, from data: a small DXML is trained on planted points, and what the picture
shows is what it computes for one of them. The solid red box is the training stage, the dashed blue
one the mapping from features to the embedding space.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dxml.data import Dataset, make_planted
from dxml.paper import DXML
from dxml.plots import save

PICTURE = Path(__file__).with_name("paper.svg")
INK, QUIET, BLUE, RED, GREEN = "#1f2933", "#5f6b76", "#0072B2", "#D55E00", "#009E73"
SHOWN = 14  # points of the label matrix
SIZE = 11.0, 5.6  # inches; positions are inches too
SETTINGS: dict[str, Any] = {"dim": 8, "hidden": 12, "epochs": 40, "n_neighbors": 5}


def planted() -> Dataset:
    """The points."""
    return make_planted(60, 24, 12, labels_per_point=1.5, features_per_point=6, random_state=1)


@dataclass(frozen=True)
class PaperPicture:
    """Labels above, features below, and the loss between them."""

    @cached_property
    def steps(self) -> dict[str, Any]:
        """What Algorithm 1 computes, and f_x of the first point, layer by layer."""
        data = planted()
        model = DXML(**SETTINGS, n_partitions=1, scaling="rows", device="cpu").fit(data.X, data.Y)
        x = model.scaler_.transform(data.X[:1])
        weights = model.encoder_
        before = x.toarray()[0] @ weights.w1 + weights.b1
        together = (data.Y.T.astype(int) @ data.Y.astype(int)).toarray()
        np.fill_diagonal(together, 0)
        own = data.Y[0].indices
        return {
            "Y": data.Y[:SHOWN].toarray(),
            "graph": together > 0,
            "V": model.label_vectors_,
            "f_y": model.label_vectors_[own].mean(axis=0),
            "x": x.toarray()[0],
            "hidden": np.maximum(before, 0),
            "f_x": weights.embed(x)[0],
        }

    def numbers(self) -> dict[str, Any]:
        """Edges of the label graph, f_x, f_y and the smooth ℓ1 distance between them."""
        gap = np.abs(self.steps["f_x"] - self.steps["f_y"])
        loss = np.where(gap < 1, gap**2 / 2, gap - 0.5).sum()
        upper = np.triu(self.steps["graph"])
        return {
            "edges": np.argwhere(upper).tolist(),
            "f_x": self.steps["f_x"].tolist(),
            "f_y": self.steps["f_y"].tolist(),
            "loss": float(loss),
        }

    def paint(self, plt: Any) -> Any:
        """Draw it with matplotlib's pyplot; returns the figure."""
        canvas = plt.figure(figsize=SIZE)
        sheet = canvas.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(0, SIZE[1]))
        sheet.axis("off")
        found = self.steps
        heat(canvas, (0.5, 3.35, 1.1, 1.45), found["Y"], "Greys", "labels Y", "points × labels")
        graph(canvas, (2.3, 3.35, 1.6, 1.45), found["graph"])
        heat(canvas, (4.75, 3.35, 1.1, 1.45), found["V"], "PuOr", "label vectors V", "labels × ℓ")
        bars(canvas, (6.9, 3.35, 1.3, 1.45), found["f_y"], BLUE, "$f_y$ = V y / nnz(y)")
        bars(canvas, (0.5, 0.75, 1.1, 1.25), found["x"], INK, "features x")
        layer(canvas, (2.5, 0.75, 1.3, 1.25), found["hidden"], "ReLU($W_1$ x)")
        bars(canvas, (4.75, 0.75, 1.3, 1.25), found["f_x"], RED, "$f_x$: $W_2$, then L2-norm")
        loss = f"$d(f_x, f_y)$ = {self.numbers()['loss']:.2f}"
        sheet.text(
            9.55, 2.75, "smooth $\\ell_1$ loss", size=11, weight="bold", ha="center", color=INK
        )
        sheet.text(9.55, 2.4, loss, size=10, ha="center", color=INK)
        words = "trains $W_1$ and $W_2$"
        sheet.text(9.55, 2.08, words, size=8.5, ha="center", color=QUIET)
        for start, end, text in (
            ((1.72, 4.05), (2.25, 4.05), "co-occur"),
            ((3.98, 4.05), (4.6, 4.05), "NRL"),
            ((5.98, 4.05), (6.75, 4.05), "mean"),
            ((8.32, 3.9), (9.1, 3.05), ""),
            ((1.72, 1.35), (2.35, 1.35), "$W_1$"),
            ((3.92, 1.35), (4.6, 1.35), "$W_2$"),
            ((6.2, 1.4), (8.75, 2.35), ""),
        ):
            arrow(sheet, start, end, text)
        box(sheet, (0.2, 0.2, 10.6, 5.1), RED, "-", "training stage")
        box(sheet, (0.35, 0.35, 6.0, 2.2), BLUE, "--", "mapping function: features → embedding")
        return canvas


def panel(canvas: Any, place: tuple[float, float, float, float], title: str) -> Any:
    """Axes at a place in inches, without ticks."""
    left, bottom, width, height = place
    across, up = SIZE
    axes = canvas.add_axes((left / across, bottom / up, width / across, height / up))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.set_title(title, size=9, color=INK, pad=4)
    return axes


def heat(canvas: Any, place: Any, values: Any, colours: str, title: str, below: str) -> None:
    """A matrix as colours."""
    axes = panel(canvas, place, title)
    axes.imshow(np.asarray(values, dtype=float), cmap=colours, aspect="auto")
    axes.set_xlabel(below, size=8, color=QUIET)


def graph(canvas: Any, place: Any, edges: Any) -> None:
    """Labels on a circle, joined where they share a point."""
    axes = panel(canvas, place, "label graph")
    turn = np.linspace(0, 2 * np.pi, len(edges), endpoint=False)
    x, y = np.cos(turn), np.sin(turn)
    for a, b in np.argwhere(np.triu(edges)):
        axes.plot(x[[a, b]], y[[a, b]], color=QUIET, lw=0.8, zorder=1)
    axes.scatter(x, y, s=42, color=GREEN, zorder=2)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    axes.set_xlabel("an edge: both on a point", size=8, color=QUIET)


def bars(canvas: Any, place: Any, values: Any, colour: str, title: str) -> None:
    """A vector."""
    axes = panel(canvas, place, title)
    axes.bar(np.arange(len(values)), values, color=colour)
    axes.axhline(0, color=QUIET, lw=0.6)
    axes.set_xlabel(f"{len(values)} numbers", size=8, color=QUIET)


def layer(canvas: Any, place: Any, values: Any, title: str) -> None:
    """Hidden units: those that are at work are filled."""
    axes = panel(canvas, place, title)
    strength = values / max(float(values.max()), 1e-9)
    at = np.arange(len(values))
    axes.scatter(at % 4, at // 4, s=120, c=strength, cmap="Oranges", vmin=0, vmax=1, ec=INK, lw=0.6)
    axes.set(xlim=(-0.7, 3.7), ylim=(-0.7, 2.7))
    axes.set_xlabel(
        f"{int((values > 0).sum())} of {len(values)} units at work", size=8, color=QUIET
    )


def arrow(sheet: Any, start: tuple[float, float], end: tuple[float, float], text: str) -> None:
    """From one step to the next."""
    style = {"arrowstyle": "-|>,head_width=0.25,head_length=0.45", "color": INK, "lw": 1.4}
    sheet.annotate("", end, start, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.14)
    sheet.text(*middle, text, size=8.5, ha="center", color=INK)


def box(
    sheet: Any, place: tuple[float, float, float, float], colour: str, line: str, text: str
) -> None:
    """A frame with its name at the upper edge."""
    patches: Any = import_module("matplotlib.patches")
    left, bottom, width, height = place
    frame = patches.Rectangle((left, bottom), width, height, fill=False, ec=colour, ls=line, lw=1.5)
    sheet.add_patch(frame)
    sheet.text(left + 0.1, bottom + height - 0.17, text, size=9, color=colour, va="center")


if __name__ == "__main__":
    print(save(PaperPicture(), Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE))
