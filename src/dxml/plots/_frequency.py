"""Precision and recall by label frequency: are rare labels found as well as frequent ones?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dxml.metrics._bands import BANDS, LabelGroup, judge_groups, label_bands
from dxml.plots._style import COLOURS, MARKERS, NothingToDrawError, bars, heading
from dxml.topk import TopK

__all__ = ["FrequencyPlot", "frequency_plot"]

KS = (1, 3, 5)


@dataclass(frozen=True)
class FrequencyPlot:
    """How well labels are found, by how many training points they have.

    Attributes
    ----------
    title : str
    ks : tuple of int
        The depths.
    bands : dict of str to LabelGroup
        Head, torso and tail: a third of all label occurrences in the training data each.
    steps : dict of str to LabelGroup
        By the number of training points: "0", "1", "2–3", "4–7" and so on.
    """

    title: str
    ks: tuple[int, ...]
    bands: dict[str, LabelGroup]
    steps: dict[str, LabelGroup]

    def numbers(self) -> dict[str, Any]:
        """Every group's size, precision and recall at the depths, in per cent."""
        found: dict[str, Any] = {"title": self.title}
        for what, groups in (("bands", self.bands), ("training_points", self.steps)):
            found[what] = {name: self._numbers(group) for name, group in groups.items()}
        return found

    def _numbers(self, group: LabelGroup) -> dict[str, Any]:
        sizes = {"labels": group.labels, "occurrences": group.occurrences, "points": group.points}
        scores = {f"P@{k}": round(group.precision(k), 4) for k in self.ks}
        return sizes | scores | {f"R@{k}": round(group.recall(k), 4) for k in self.ks}

    def paint(self, plt: Any) -> Any:
        """Bars for the three bands above, curves by training points below."""
        canvas, axes = plt.subplot_mosaic(
            [["found", "right"], ["steps", "steps"]], figsize=(9, 7.4), layout="constrained"
        )
        ticks = [
            f"{name}\n{group.labels:,} labels\non {group.points:,} points"
            for name, group in self.bands.items()
        ]
        for name, score, words in (
            ("found", LabelGroup.recall, "occurrences that are found (%)"),
            ("right", LabelGroup.precision, "predictions that are right (%)"),
        ):
            series = {
                f"first {k}" if k > 1 else "first place": [
                    (score(group, k), 0.0) for group in self.bands.values()
                ]
                for k in self.ks
            }
            bars(axes[name], ticks, series)
            axes[name].set_ylabel(words)
            axes[name].set_xlabel("labels; each band has a third of the training occurrences")
            axes[name].set_ylim(0, 100)
        axes["found"].set_title("recall of head, torso and tail", fontsize=10)
        axes["right"].set_title("precision of head, torso and tail", fontsize=10)
        axes["found"].legend(title="labels looked at", fontsize=9)
        self._paint_steps(axes["steps"])
        heading(canvas, self.title)
        return canvas

    def _paint_steps(self, axis: Any) -> None:
        k = max(self.ks)
        places = np.arange(len(self.steps))
        groups = self.steps.values()
        recall = [group.recall(k) if group.occurrences else np.nan for group in groups]
        precision = [group.precision(k) if group.predicted[k - 1] else np.nan for group in groups]
        for i, (name, values) in enumerate((("recall", recall), ("precision", precision))):
            words = f"{name} in the first {k}"
            axis.plot(places, values, color=COLOURS[i], marker=MARKERS[i], label=words)
        starts = [name.partition("–")[0] for name in self.steps]
        ticks = [f"{n}\n({g.labels:,})" for n, g in zip(starts, self.steps.values(), strict=True)]
        axis.set_xticks(places, ticks, fontsize=9)
        axis.set_xlabel(
            "training points of a label, from one number up to the next (in brackets: labels)"
        )
        axis.set_ylabel("per cent")
        axis.set_ylim(0, 100)
        axis.set_title("by the number of training points", fontsize=10)
        axis.legend(fontsize=9)


def frequency_plot(
    Y: sp.csr_matrix,
    ranking: TopK,
    label_frequency: npt.NDArray[np.int64],
    *,
    title: str = "Accuracy by label frequency",
) -> FrequencyPlot:
    """Precision and recall of a ranking by label frequency.

    Parameters
    ----------
    Y : sparse matrix of shape (n_samples, n_labels)
        The truth.
    ranking : TopK
    label_frequency : int array of shape (n_labels,)
        Training points of each label.
    """
    if not Y.nnz:
        raise NothingToDrawError("no point has a label, so there is no accuracy to draw.")
    ks = tuple(k for k in KS if k <= ranking.k)
    judged = judge_groups(Y, ranking, max(ks), label_bands(label_frequency), len(BANDS))
    power = np.frexp(label_frequency)[1]  # 0 for 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7, …
    present = np.unique(power)
    stepwise = judge_groups(Y, ranking, max(ks), np.searchsorted(present, power), len(present))
    return FrequencyPlot(
        title,
        ks,
        dict(zip(BANDS, judged, strict=True)),
        dict(zip(map(_step_name, present.tolist()), stepwise, strict=True)),
    )


def _step_name(power: int) -> str:
    """The numbers of training points that make up a step.

    >>> [_step_name(power) for power in (0, 1, 2, 11)]
    ['0', '1', '2–3', '1,024–2,047']
    """
    if power < 2:
        return str(power)
    return f"{2 ** (power - 1):,}–{2**power - 1:,}"
