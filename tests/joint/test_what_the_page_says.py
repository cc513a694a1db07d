"""The limits that docs/joint.md names are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml._learners import kernel_choice, tree_shape
from dxml.joint import _calibration, _ensemble, _fitting, _held_out, _rounds, _sizes
from dxml.joint._plan import PARTS, Plan
from dxml.joint.parts import _kernel, _wide
from dxml.joint.parts.protocol import Options, Shape

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "joint.md").read_text("utf-8").split())
A_POINT = {0.01: "a point"}
IN_WORDS = {3: "three", 4: "four", 5: "five", 9: "nine", 10: "ten", 20: "twenty"}


def epochs(device: str, *, dense: bool) -> int:
    return _wide._epochs(Shape(20_000, 100, 100, True, dense, device, 1e9, 50.0, 2.0))


def least_width(*, every_label: bool) -> int:
    """The fewest units that a wide layer has by default, of more and more points on a CPU."""
    options = Options(standardised=False, device="cpu", precision="float16", random_state=0)
    planned = (
        _wide.WidePart.plan(Shape(n, 100, 100, every_label, False, "cpu", 1e12), options, {})
        for n in range(10_000, 300_000, 5_000)
    )
    return min(int(settings["width"]) for settings in planned if settings)


def ranks() -> str:
    """The groups of ranks that are calibrated by themselves, in words."""
    starts = [1, *(last + 1 for last in _calibration.RANKS)]
    *first, last = (
        str(start) if start == stop else f"{start} to {stop}"
        for start, stop in zip(starts, _calibration.RANKS, strict=False)
    )
    return f"{', '.join(first)} and {last}"


LINEAR = PARTS["linear"]
FIRST = [LINEAR.ladder[step]["C"] for step in LINEAR.first_steps]
CANDIDATES = [_fitting.n_candidates_for(Plan(False, {name: {}})) for name in ("linear", "wide")]
SAID = [
    f"the {CANDIDATES[0]} or {CANDIDATES[1]} labels that the neighbours carry most",
    f"if {least_width(every_label=True)} units can be afforded; shortlists if "
    f"{least_width(every_label=False):,} can",
    f"{FIRST[0]:g} and {FIRST[1]:g} are tried first",
    f"goes on while a step gains {A_POINT[_fitting.FURTHER]} of precision",
    f"the ranks {ranks()} are calibrated",
    f"With fewer than {_held_out.LEAST_POINTS} points nothing is held out",
    f"Up to {_sizes.EVERY_LABEL_PAIRS / 1e6:.1f} million points × labels",
    f"{_sizes.TREE_LABELS[0]} labels or more and over {_sizes.CPU_KERNEL_POINTS:,} points on a CPU",
    f"an encoder or a kernel {_ensemble.N_PROPOSED} labels, trees or a wide layer "
    f"{IN_WORDS[_sizes.PROPOSED]} where common features hold over "
    f"{100 * (1 - _sizes.WELL_COMPARED):.0f} %",
    f"From {2 * _calibration.LEAST_RANKED:,} held-out points on a weight",
    f"up to {_sizes.TREE_FEATURES} features a point and {_sizes.TREE_LABELS[0]} to "
    f"{_sizes.TREE_LABELS[1]:,} labels",
    f"on a CPU up to {_sizes.CPU_KERNEL_POINTS:,} points",
    f"more than {_sizes.TREE_FEATURES} features a point, fewer than "
    f"{_sizes.KERNEL_ALONE_POINTS:,} points, and up to "
    f"{IN_WORDS[_sizes.KERNEL_PAIRS // _sizes.EVERY_LABEL_PAIRS]} times as many",
    f"every label from {_sizes.KERNEL_ALONE_POINTS:,} points on",
    f"up to {_sizes.NEGATIVES} of them, and {_sizes.TREE_NEGATIVES} beside label trees",
    f"until a leaf has fewer than {IN_WORDS[tree_shape.LEAF]}",
    f"{IN_WORDS[_sizes.N_TREES]}, or one where points have many features",
    f"On a CPU these train for {epochs('cpu', dense=True)} epochs, for up to "
    f"{_sizes.DENSE_EPOCHS} on",
    f"On a GPU they train for {epochs('cuda', dense=False)}, on dense features for "
    f"{epochs('cuda', dense=True)}",
    f"gain {100 * _fitting.EARNED:.1f} points of precision by it",
    f"get {IN_WORDS[_sizes.WIDE_LEARNERS]} layers of a quarter",
    f"With up to {kernel_choice.MOST_RELATED:,} labels that are all candidates",
    f"from {_kernel.SECOND_HELD:,} held-out points on, up to {_kernel.SECOND_POINTS:,} points, "
    "a second kernel",
    f"a fifth of the points, at most {_held_out.MOST_HELD:,}",
    f"up to {IN_WORDS[_held_out.MOST_FOLDS]} such folds",
    f"only if it adds {100 * _fitting.EARNED:.1f} points",
    f"the {IN_WORDS[_rounds.SHOWN]} best candidates of every held-out point",
    f"in {IN_WORDS[_rounds.ROUNDS]} rounds",
    f"the {IN_WORDS[_rounds.GATHERED]} best of every round",
    f"up to {_calibration.BINS} bins",
    f"From {_calibration.LEAST_RANKED} held-out points on, the ranks",
    f"With fewer than {_calibration.LEAST_RANKED} held-out points no weight",
]


@pytest.mark.parametrize("words", SAID)
def test_a_limit_on_the_page_is_that_of_the_code(words: str) -> None:
    assert words in PAGE
