"""The label map as it is drawn, on labels whose neighbours are known."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml.exceptions import ParameterError
from dxml.label_map import LabelMap
from dxml.plots import LabelPlot, NothingToDrawError, label_plot
from dxml.plots._labels import PALETTE
from dxml.plots._placing import Name, place_names

NAMES = [f"{'sea' if i < 20 else 'land'} {i}" for i in range(40)]


def two_worlds() -> sp.csr_matrix:
    """Labels 0..19 and 20..39 share points among themselves only; label i is rarer than i - 1."""
    rng = np.random.default_rng(0)
    chance = np.linspace(0.5, 0.1, 20)
    Y = np.zeros((400, 40), dtype=bool)
    Y[:200, :20] = rng.random((200, 20)) < chance
    Y[200:, 20:] = rng.random((200, 20)) < chance
    return sp.csr_matrix(Y)


@pytest.fixture(scope="module")
def drawn() -> LabelPlot:
    return label_plot(two_worlds(), NAMES, find=["SEA 3", "land 25"])


def placed(found: tuple[int, ...] = ()) -> LabelPlot:
    """Five labels: 1 goes with 0 and 2, 3 with nothing, and no point carries 4."""
    positions = np.float32([[0.0, 0.0], [0.1, 0.0], [0.0, 0.2], [0.9, 0.0], [0.0, 0.95]])
    related = np.int32([[1, -1], [0, 2], [1, -1], [-1, -1], [-1, -1]])
    strength = np.float32([[0.5, 0], [0.5, 0.25], [0.25, 0], [0, 0], [0, 0]])
    frequency = np.array([100, 50, 25, 1, 0])
    cluster = np.int32([0, 0, 1, -1, -1])
    names = ["zero", "one", "two", "alone", "nowhere"]
    return LabelPlot(
        "Map", LabelMap(positions, frequency, related, strength), names, cluster, found
    )


def test_names_are_written_in_a_font_that_has_their_letters(plt: Any) -> None:
    unassigned = "\u0378"  # Unicode has not given it away
    stix = "\ue000"  # for private use; only another font that comes with matplotlib has it
    names = [f"soup {unassigned}", f"sea {stix}", "two\tand\nmore", "alone", "nowhere"]
    drawn = replace(placed(found=(1,)), names=names)
    assert drawn.unwritable == [f"soup {unassigned}"]
    [axis] = drawn.paint(plt).axes
    written = {text.get_text(): text.get_fontfamily() for text in axis.texts}
    assert written.keys() == {"0", f"sea {stix}", "two and more"}
    assert len(written[f"sea {stix}"]) > 1
    assert placed().unwritable == []


def test_two_worlds_are_apart(drawn: LabelPlot) -> None:
    assert drawn.found == (3, 25)
    assert len(set(drawn.cluster.tolist())) == 5  # 40 labels, 8 a cluster
    assert not set(drawn.cluster[:20]) & set(drawn.cluster[20:])
    assert {other < 20 for other, _ in drawn.related(3)} == {True}
    numbers = drawn.numbers()
    assert numbers["found"] == ["sea 3", "land 25"] and len(numbers["labels"]) == 40
    third = numbers["labels"][3]
    assert third["frequency"] == two_worlds()[:, 3].sum()
    assert all(name.startswith("sea") for name in third["related"]) and third["related"]
    again = label_plot(two_worlds(), NAMES)
    assert np.array_equal(again.cluster, drawn.cluster)


def test_dots_are_sized_by_frequency_and_coloured_by_cluster(plt: Any) -> None:
    canvas = placed().paint(plt)
    (axis,) = canvas.axes
    dots = axis.collections[0]
    assert dots.get_offsets().tolist() == pytest.approx(
        np.array([[0, 0], [0.1, 0], [0, 0.2], [0.9, 0]])
    )  # the most frequent first, the label without a point not at all
    assert dots.get_sizes().tolist() == pytest.approx([250, 177.9, 127, 28.6], abs=0.1)
    colours = dots.get_facecolors()[:, :3].tolist()
    assert colours[0] == colours[1] != colours[2] and colours[3][0] == colours[3][1] == 0.7
    assert {text.get_text() for text in axis.texts} == {"zero", "one", "two", "alone"}
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["1", "10", "100"]
    assert canvas.get_suptitle() == "Map" and "near each other" in axis.get_xlabel()


def test_what_was_found_is_marked_and_linked(plt: Any) -> None:
    (axis,) = placed((1,)).paint(plt).axes
    links = [np.column_stack(line.get_data()).tolist() for line in axis.lines]
    assert links == pytest.approx(np.array([[[0.1, 0], [0, 0]], [[0.1, 0], [0, 0.2]]]))
    assert axis.lines[0].get_linewidth() > axis.lines[1].get_linewidth()
    bold = [text.get_text() for text in axis.texts if text.get_fontweight() == "bold"]
    assert bold == ["one"]
    assert axis.get_xlim()[1] < 0.9, "what is shown is the part with the label and its related ones"


def test_close_clusters_differ_in_colour(drawn: LabelPlot) -> None:
    colours = drawn._colours()
    assert colours.pop(-1) == "#999999"
    assert len(colours) == 5 == len(set(colours.values())) and set(colours.values()) <= set(PALETTE)


def test_no_name_lies_on_another(drawn: LabelPlot, plt: Any) -> None:
    for plot in (drawn, label_plot(two_worlds(), NAMES)):
        canvas = plot.paint(plt)
        canvas.canvas.draw()
        (axis,) = canvas.axes
        boxes = [text.get_window_extent() for text in axis.texts]
        assert len(boxes) >= 5
        assert not [1 for a, b in combinations(boxes, 2) if a.overlaps(b)]


def test_names_that_fit_nowhere_are_left_out_unless_needed(plt: Any) -> None:
    canvas, axis = plt.subplots(figsize=(2, 2))
    crowd = [Name("a name of some length", (0.5, 0.5)) for _ in range(30)]
    written = place_names(canvas, axis, [*crowd, Name("x" * 60, (0.5, 0.5), needed=True)])
    assert len(written) < 10
    assert written[-1].get_text() == "x" * 33 + "…"
    assert (
        place_names(canvas, axis, [Name("$5 and $6", (0.5, 0.1))])[0].get_text() == r"\$5 and \$6"
    )


def test_labels_are_found_by_name_or_number(drawn: LabelPlot) -> None:
    Y = two_worlds()
    assert label_plot(Y, find=["7"]).names[7] == "7"
    with pytest.raises(ParameterError) as stop:
        label_plot(Y, NAMES, find=["sea33"])
    assert str(stop.value).startswith("there is no label 'sea33'; did you mean 'sea 3' or ")
    with pytest.raises(ParameterError) as stop:
        label_plot(Y, NAMES, find=["qqqqqqq"])
    assert str(stop.value) == "there is no label 'qqqqqqq'."
    with pytest.raises(NothingToDrawError, match="no training point has a label"):
        label_plot(sp.csr_matrix((3, 2), dtype=bool))
