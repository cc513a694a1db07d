"""The parts of a joint model trained on from where they are, with all the points they know.

`dxml.joint.teaching` takes new points up at once and changes as little as it can; `Joint.refit`
forgets all weights and learns them again, twice, to weigh the parts anew. In between:

========  ==========================================================================================
part      what it does
========  ==========================================================================================
vote      nothing: new points vote already
linear    all labels go on from their weights w₀, against new shortlists of all points:
          min_w ½ ‖w − w₀‖² + C' Σ loss, with a C' so small that they stay near
kernel    is solved for all points, with the kernel that was chosen, if a model of so many points
          would have one
wide      goes on from the weights there are, for two fifths of the epochs
========  ==========================================================================================

How the parts are weighed stays. The constants were chosen on held-out points, after 1,000 and
10,000 points were added to 9,000: benchmarks/results/teaching-choices.json.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from dxml.joint.parts import Parts, without_self
from dxml.joint.teaching import Lessons
from dxml.learners.kernel_ridge import fit_kernel
from dxml.learners.linear_head import fit_linear, label_tasks
from dxml.learners.wide_layer import WideSettings
from dxml.progress import SILENT, Progress

__all__ = ["catch_up", "warm_settings"]

NEARBY = 0.25  # of C: the weight of the loss beside the way that the linear weights go
PASSES = 1  # of the linear head over a label's points
EPOCHS = 0.4  # of the wide layer's epochs
RATE = 1.0  # of its learning rate; at a lower one less of what is new is learnt


def catch_up(
    parts: Parts, how: Lessons, *, solve: bool = True, progress: Progress = SILENT
) -> Parts:
    """The parts with linear head and kernel trained on; the wide layer is trained by itself.

    Parameters
    ----------
    solve : bool
        Whether the kernel may be solved for so many points; it stays as it is otherwise.
    """
    grown = replace(parts)
    if parts.kernel is not None and solve:
        with progress.stage("kernel votes"):
            grown.kernel = fit_kernel(
                parts.points, parts.labels, parts.kernel.kernel, torch.device(how.device)
            )
    if parts.linear is not None:
        with progress.stage("neighbours"):
            near = without_self(*parts.search(parts.points, how.n_negatives + 1, how.device))
        grown.linear = fit_linear(
            parts.points,
            label_tasks(parts.labels, parts.shortlist(*near, how.n_negatives)),
            C=NEARBY * how.C,
            passes=PASSES,
            prune=how.prune,
            start=parts.linear.weights,
            seed=how.seed,
            progress=progress,
        )
    return grown


def warm_settings(cold: WideSettings) -> WideSettings:
    """How a wide layer is trained on."""
    epochs = max(1, round(EPOCHS * cold.epochs))
    return replace(cold, epochs=epochs, learning_rate=RATE * cold.learning_rate)
