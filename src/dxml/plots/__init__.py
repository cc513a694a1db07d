"""Plots of a trained model and its predictions.

Each plot is a dataclass with its numbers (`numbers`) and a method that draws them (`paint`).
`save` writes it as PNG, SVG or PDF. matplotlib (``dxml[plot]``) is imported when one is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from dxml.plots._frequency import FrequencyPlot, frequency_plot
from dxml.plots._labels import LabelPlot, label_plot
from dxml.plots._reliability import ReliabilityPlot, reliability_plot
from dxml.plots._style import NothingToDrawError, check_target, pyplot, write
from dxml.plots._table import TablePlot, table_plot
from dxml.plots._training import TrainingPlot, training_plot

__all__ = [
    "FrequencyPlot",
    "LabelPlot",
    "NothingToDrawError",
    "Plot",
    "ReliabilityPlot",
    "TablePlot",
    "TrainingPlot",
    "frequency_plot",
    "label_plot",
    "reliability_plot",
    "save",
    "table_plot",
    "training_plot",
]

PALETTE = 64
"""Number of colours of a PNG: enough for flat areas and the edges of letters."""


class Plot(Protocol):
    """A picture that can be drawn."""

    def numbers(self) -> dict[str, Any]:
        """The plotted numbers, ready for JSON."""

    def paint(self, plt: Any) -> Any:
        """Draw it with matplotlib's pyplot; returns the figure."""


def save(plot: Plot, path: str | Path) -> Path:
    """Draw a plot into a file; its suffix is .png, .svg or .pdf."""
    target = check_target(Path(path))
    with pyplot() as plt:
        canvas = plot.paint(plt)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            return write(canvas, target, PALETTE)
        finally:
            plt.close(canvas)
