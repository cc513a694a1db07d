"""Training curves: the loss of each epoch, and the seconds of each stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dxml.base import Classifier
from dxml.plots._style import COLOURS, NothingToDrawError, heading, make_room, panels

__all__ = ["TrainingPlot", "training_plot"]


@dataclass(frozen=True)
class TrainingPlot:
    """The loss curve and the seconds of each stage.

    Attributes
    ----------
    title : str
    step, value : str
        The names of its x axis and y axis.
    history : tuple of float
        The values of the curve; empty where the method has no epochs.
    seconds : dict of str to float
        Seconds of each stage, in order.
    """

    title: str
    step: str
    value: str
    history: tuple[float, ...]
    seconds: dict[str, float]

    def numbers(self) -> dict[str, Any]:
        """The curve and the seconds."""
        curve = {"step": self.step, "value": self.value, "history": list(self.history)}
        shown = curve if self.history else None
        return {"title": self.title, "curve": shown, "seconds": self.seconds}

    def paint(self, plt: Any) -> Any:
        """The curve at the left, seconds by stage at the right, as far as they are known."""
        drawn = [self._curve] * bool(self.history) + [self._stages] * bool(self.seconds)
        canvas, axes = panels(plt, len(drawn), width=5.0, height=1.8 + self._height())
        for draw, axis in zip(drawn, axes, strict=True):
            draw(axis)
        heading(canvas, self.title)
        if self.seconds:
            make_room(canvas, axes[-1])
        return canvas

    def _height(self) -> float:
        return max(1.8 if self.history else 0.0, 0.32 * len(self.seconds))

    def _curve(self, axis: Any) -> None:
        marker = "o" if len(self.history) <= 40 else ""
        steps = range(1, len(self.history) + 1)
        axis.plot(steps, self.history, color=COLOURS[0], marker=marker, markersize=4)
        axis.set_xlabel(self.step)
        axis.set_ylabel(self.value)
        axis.set_title(f"{self.value}, by {self.step}", fontsize=10)
        axis.xaxis.get_major_locator().set_params(integer=True)
        low, high = min(self.history), max(self.history)
        if low > 0 and high / low >= 20:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0 if low >= 0 else None)

    def _stages(self, axis: Any) -> None:
        names, spent = list(self.seconds), list(self.seconds.values())
        shown = axis.barh(names, spent, 0.7, color=COLOURS[2])
        axis.bar_label(shown, [f"{time:.1f} s" for time in spent], padding=3)
        axis.invert_yaxis()
        axis.set_xlabel("time (s)")
        axis.set_title(f"time by stage, {sum(spent):.1f} s in all", fontsize=10)
        axis.grid(axis="y", visible=False)


def training_plot(model: Classifier) -> TrainingPlot:
    """The training of a fitted or loaded model.

    Examples
    --------
    >>> from dxml import DXML, make_planted
    >>> data = make_planted(100, 50, 5, random_state=0)
    >>> model = DXML(epochs=3, n_partitions=1, n_neighbors=5).fit(data.X, data.Y)
    >>> len(training_plot(model).history)
    3
    """
    history = tuple(getattr(model, "history_", ())) if model.curve else ()
    seconds = model.seconds_
    if not history and not seconds:
        raise NothingToDrawError(
            "the model's folder has neither the losses nor the seconds of its training, since an "
            "older dxml wrote it. Train it again to draw them."
        )
    step, value = model.curve or ("", "")
    title = f"Training of {model.method}: {model.n_samples_:,} points, {model.n_labels_:,} labels"
    return TrainingPlot(title, step, value, history, seconds)
