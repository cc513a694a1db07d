"""The sizes that decide which parts data of a shape get, and how large they are."""

from __future__ import annotations

__all__ = [
    "CPU_DENSE_OPERATIONS",
    "CPU_KERNEL_POINTS",
    "CPU_WIDE_OPERATIONS",
    "DENSE_EPOCHS",
    "DENSE_WIDTH",
    "EVERY_LABEL_PAIRS",
    "FEW_POINTS",
    "KERNEL_ALONE_POINTS",
    "KERNEL_PAIRS",
    "LINEAR_PAIR_BYTES",
    "LONG_TEXTS",
    "MANY_TEXTS",
    "NEGATIVES",
    "N_TREES",
    "PROPOSED",
    "SHORT_TEXTS",
    "TREE_FEATURES",
    "TREE_LABELS",
    "TREE_NEGATIVES",
    "TREE_WORK",
    "VOTERS",
    "WELL_COMPARED",
    "WIDE_LEARNERS",
    "WIDE_WEIGHTS",
    "kernel_bytes",
]

EVERY_LABEL_PAIRS = 1 << 24
"""Points × labels up to which every label of a point is scored, rather than a shortlist."""
CPU_KERNEL_POINTS = 14_000
"""Points up to which a CPU solves for the kernel's votes."""
KERNEL_ALONE_POINTS = 10_000
"""Points below which a kernel ranks better without a wide layer beside it."""
KERNEL_PAIRS = 1 << 26
"""Points × labels up to which long texts that are scored for a shortlist have a kernel too, on a
CPU: fewer than `KERNEL_ALONE_POINTS` points. Its votes take 2 bytes each in a folder."""
LINEAR_PAIR_BYTES = 9
"""Bytes that training a linear head over every label takes for each point and label."""
FEW_POINTS = 20_000
"""Points below which a wide layer is trained in small batches, as it is for dense features."""
MANY_TEXTS = 50_000
"""Texts above which an encoder is trained in larger batches."""
LONG_TEXTS = 200_000
"""Texts up to which an encoder reads 256 tokens of each, else 128."""
WIDE_WEIGHTS = 100_000_000
"""Weights of the wide layer and its head together, at most."""
WIDE_LEARNERS = 4
"""Wide layers side by side on a GPU, for small data of sparse features."""
CPU_WIDE_OPERATIONS = 1.5e12
"""Operations that a CPU may spend on training the wide layer."""
DENSE_WIDTH = 256
"""Least width of the wide layer for small data of dense features on a CPU."""
DENSE_EPOCHS = 80
"""Epochs of the wide layer for dense features on a CPU, at most: longer training sharpens the space
in which neighbours vote."""
CPU_DENSE_OPERATIONS = 3.5e12
"""Operations up to which a CPU trains the wide layer for more epochs where features are dense."""
NEGATIVES = 200
"""Hard negatives a point."""
TREE_NEGATIVES = 50
"""Hard negatives a point beside label trees, which tell labels that are no neighbours'."""
N_TREES = 3
"""Trees over the labels."""
SHORT_TEXTS = 25
"""Most features of a point, on average, for which static word vectors are used by default."""
TREE_FEATURES = 100
"""Most features of a point, on average, for which trees are grown by default: up to abstracts. With
more features a point, nodes take longer than the linear head and gain little."""
TREE_WORK = 250
"""Features × labels of a point up to which there are `N_TREES` trees by default, else one. A point
trains the nodes on the ways down to all of its labels."""
TREE_LABELS = (256, 100_000)
"""Fewest and most labels for which trees are grown. With fewer they share little, and are grown
only where there are too many points to score every label."""
PROPOSED = 9
"""Labels that trees or a wide layer add to a shortlist."""
VOTERS = 8192
"""Points whose votes teach the space in which neighbours are searched, at a time, on a GPU."""
WELL_COMPARED = 0.85
"""Share of a point, by squared weight, that its neighbours are found by, from which on neither adds
anything to its shortlist. Of abstracts it is nearly always more."""


def kernel_bytes(n: int, n_labels: int) -> int:
    """What solving for a kernel's votes takes, about: pairs of points three times, votes five.

    All held-out points' scores of all labels are kept when that is done. With the votes of every
    trial they take no more than the five.
    """
    return 4 * n * (3 * n + 5 * n_labels)
