"""Make the picture of docs/joint.md: ``make joint-picture``, or ``joint_picture.py [FILE]``.

One text on its way to a ranking. The scores and weights are made up; what follows from them is
computed: the mixed scores, the probabilities and the order of the labels.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dxml.plots import save

PICTURE = Path(__file__).with_name("joint.svg")
INK, QUIET, LINE, CARD = "#1f2933", "#5f6b76", "#c3cad1", "#f6f8fa"
BLUE, RED, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
PARTS = {"frequency": QUIET, "vote": GREEN, "linear": BLUE, "kernel": RED, "wide": PINK}
WORDS = {"insulin": 0.72, "diabetes": 0.55, "glucose": 0.39, "children": 0.16}
LABELS = ("Humans", "Insulin", "Mice", "Blood Glucose", "Child", "Diabetes Mellitus")
SCORES = np.array(
    [  # frequency, vote, linear, kernel, wide: from 0 to 1, as large as the circles
        [1.00, 0.95, 0.55, 0.80, 0.85],
        [0.35, 0.85, 0.95, 0.90, 0.80],
        [0.75, 0.15, 0.08, 0.12, 0.10],
        [0.35, 0.40, 0.60, 0.50, 0.55],
        [0.60, 0.30, 0.38, 0.20, 0.30],
        [0.30, 0.75, 0.85, 0.70, 0.90],
    ]
)
WEIGHTS = np.array([0.5, 2.2, 3.2, 1.5, 2.0])
BIAS = -4.6
KNOTS = np.linspace(-4.4, 4.4, 9)
SHARES = np.array([0.02, 0.04, 0.12, 0.22, 0.53, 0.75, 0.89, 0.95, 0.98])
NEIGHBOURS = 6
SIZE = 10.0, 5.7  # inches; positions below are inches too


@dataclass(frozen=True)
class JointPicture:
    """From a text to its ranked labels, in seven steps."""

    def numbers(self) -> dict[str, Any]:
        """The mixed score and the probability of each label."""
        mixed = SCORES @ WEIGHTS + BIAS
        chances = probability(mixed)
        return {
            name: {"score": float(score), "probability": float(chance)}
            for name, score, chance in zip(LABELS, mixed, chances, strict=True)
        }

    def paint(self, plt: Any) -> Any:
        """Draw it with matplotlib's pyplot; returns the figure."""
        canvas = plt.figure(figsize=SIZE)
        sheet = canvas.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(0, SIZE[1]))
        sheet.axis("off")
        draw_point(sheet)
        draw_neighbours(sheet)
        draw_parts(sheet, list(self.numbers().values()))
        draw_calibration(sheet, canvas)
        draw_ranking(sheet, self.numbers())
        for start, end in (
            ((1.25, 3.92), (1.25, 3.62)),
            ((2.5, 2.9), (2.78, 2.9)),
            ((7.27, 2.9), (7.55, 2.9)),
            ((8.77, 2.95), (8.77, 2.65)),
        ):
            arrow(sheet, start, end)
        return canvas


def probability(mixed: Any) -> Any:
    """The line through the shares of right labels."""
    return np.interp(mixed, KNOTS, SHARES)


def card(sheet: Any, place: tuple[float, float, float, float], step: str, text: str) -> None:
    """A light box (left, bottom, width, height) with the number of a step and its title."""
    patches: Any = import_module("matplotlib.patches")
    left, bottom, width, height = place
    style = "round,pad=0,rounding_size=0.1"
    sheet.add_patch(
        patches.FancyBboxPatch(
            (left, bottom), width, height, boxstyle=style, fc=CARD, ec=LINE, lw=0.8
        )
    )
    title(sheet, left + 0.14, bottom + height - 0.24, step, text)


def title(sheet: Any, x: float, y: float, step: str, text: str) -> None:
    """The number of a step, and what happens in it."""
    sheet.text(x, y, step, color=BLUE, weight="bold", va="center", size=11)
    sheet.text(x + 0.18, y, text, color=INK, weight="bold", va="center", size=10)


def arrow(sheet: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From one box to the next."""
    style = {"arrowstyle": "-|>,head_width=0.28,head_length=0.5", "color": INK, "lw": 1.6}
    sheet.annotate("", end, start, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})


def note(sheet: Any, x: float, y: float, text: str, **more: Any) -> None:
    """Small print."""
    sheet.text(x, y, text, **{"color": QUIET, "size": 8.5, "va": "center", **more})


def draw_point(sheet: Any) -> None:
    """The features of the text: a word and its weight."""
    card(sheet, (0.05, 3.95, 2.4, 1.7), "1", "A point")
    for i, (word, weight) in enumerate(WORDS.items()):
        y = 5.12 - 0.24 * i
        sheet.text(1.0, y, word, ha="right", va="center", color=INK, size=9)
        sheet.barh(y, weight * 1.6, 0.13, left=1.1, color=BLUE)
    note(sheet, 0.19, 4.13, "its features, here tf-idf")


def draw_neighbours(sheet: Any) -> None:
    """Training points, and the nearest of them."""
    card(sheet, (0.05, 0.05, 2.4, 3.55), "2", "Its neighbours")
    rng = np.random.default_rng(5)
    middle = np.array([1.28, 1.85])
    points = np.stack([rng.uniform(0.25, 2.3, 46), rng.uniform(0.72, 3.05, 46)], axis=1)
    far = np.linalg.norm(points - middle, axis=1)
    order = np.argsort(far)
    near = points[order[:NEIGHBOURS]]
    for x, y in near:
        sheet.plot([middle[0], x], [middle[1], y], color=GREEN, lw=1.2, zorder=2)
    sheet.scatter(*points[order[NEIGHBOURS:]].T, s=22, color=LINE, zorder=3)
    sheet.scatter(*near.T, s=40, color=GREEN, edgecolor="white", zorder=4)
    sheet.scatter(*middle, s=170, marker="*", color=BLUE, edgecolor="white", zorder=5)
    note(sheet, 0.19, 0.46, "training points, by cosine;")
    note(sheet, 0.19, 0.27, "their labels are candidates")


def draw_parts(sheet: Any, results: list[dict[str, float]]) -> None:
    """A line for each candidate label, a column for each part, and the weights below."""
    card(sheet, (2.82, 0.05, 4.4, 5.6), "3", "Candidate labels")
    title(sheet, 4.78, 5.41, "4", "Scores of the parts")
    note(sheet, 4.96, 5.19, "a larger circle: a higher score")
    lines = [4.52 - 0.43 * i for i in range(len(LABELS))]
    columns = (4.43, 5.02, 5.5, 5.99, 6.46)
    for y, label in zip(lines, LABELS, strict=True):
        sheet.plot([2.96, 7.08], [y + 0.215] * 2, color=LINE, lw=0.6)
        sheet.text(2.96, y, label, va="center", color=INK, size=9)
    for j, (x, (part, colour)) in enumerate(zip(columns, PARTS.items(), strict=True)):
        sheet.text(x, 4.87, part, ha="center", va="center", color=colour, size=8.5, weight="bold")
        sheet.scatter([x] * len(lines), lines, s=10 + 190 * SCORES[:, j], color=colour, lw=0)
        height = 0.5 * WEIGHTS[j] / WEIGHTS.max()
        sheet.bar(x, height, 0.24, bottom=1.3, color=colour)
        note(sheet, x, 1.18, f"× {WEIGHTS[j]:.1f}", ha="center")
    title(sheet, 2.96, 1.7, "5", "Mixture")
    note(sheet, 2.96, 1.47, "a weight for each")
    note(sheet, 2.96, 1.29, "part, then the sum")
    sheet.text(7.06, 4.87, "sum", ha="right", va="center", color=INK, size=8.5, weight="bold")
    note(sheet, 7.06, 1.18, f"− {-BIAS:.1f}", ha="right")
    for y, result in zip(lines, results, strict=True):
        text = f"{result['score']:.1f}".replace("-", "−")
        sheet.text(7.06, y, text, ha="right", va="center", color=INK, size=9)
    box = {"boxstyle": "round,pad=0.7", "fc": "white", "ec": BLUE, "lw": 1, "ls": "--"}
    text = (
        "weights and calibration are learnt on held-out points,\n"
        "which the parts did not see in training"
    )
    sheet.text(5.02, 0.52, text, ha="center", va="center", size=8.5, color=INK, bbox=box)


def draw_calibration(sheet: Any, canvas: Any) -> None:
    """The share of right labels among held-out pairs of a score."""
    card(sheet, (7.59, 2.98, 2.36, 2.67), "6", "Calibration")
    place = (8.07 / SIZE[0], 3.5 / SIZE[1], 1.74 / SIZE[0], 1.62 / SIZE[1])
    axis = canvas.add_axes(place, xlim=(-5, 5), ylim=(0, 1.04), facecolor="white")
    axis.plot(KNOTS, SHARES, color=BLUE, lw=1.8, marker="o", ms=4)
    axis.set_xticks([-4, 0, 4], ["−4", "0", "4"])
    axis.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    axis.tick_params(labelsize=8, colors=QUIET, length=0)
    for side in axis.spines.values():
        side.set_color(LINE)
    note(sheet, 8.94, 3.16, "sum", ha="center")
    note(sheet, 7.75, 4.31, "share of right labels", rotation=90, ha="center")


def draw_ranking(sheet: Any, results: dict[str, dict[str, float]]) -> None:
    """The labels by their probabilities."""
    card(sheet, (7.59, 0.05, 2.36, 2.57), "7", "Ranking")
    ranked = sorted(results.items(), key=lambda item: -item[1]["probability"])
    for i, (label, result) in enumerate(ranked):
        y, chance = 2.05 - 0.31 * i, result["probability"]
        sheet.text(7.73, y, label, va="center", color=INK, size=9)
        sheet.barh(y - 0.125, 2.08 * chance, 0.05, left=7.73, color=BLUE, lw=0)
        sheet.text(9.81, y, f"{100 * chance:.0f} %", ha="right", va="center", color=INK, size=9)


if __name__ == "__main__":
    print(save(JointPicture(), Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE))
