"""Figures in sentences are those of the rows that they name, and claims are held to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml.bench._published import Published, load_published
from dxml.bench._quotes import fill_in
from dxml.bench._summary import Row, load_rows, load_summaries
from dxml.exceptions import DataFormatError

from .made_up import row, spread, study

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
NOTHING = Published({}, {}, {}, {}, {}, {})
PRINTED = Published(
    {},
    {
        ("paper", "bibtex", "DXML"): {"P": [66.0, 40.0, 27.5]},
        ("repository", "bibtex", "Parabel"): {"P": [64.5, 38.5, 27.9]},
    },
    {("bibtex", "DXML"): {"train": 353.0}},
    {},
    {},
    {},
)


def filled(text: str, published: Published = NOTHING) -> str:
    rows = [
        row("bibtex", "joint", 60.0),  # P@3 and P@5 of a made-up row are 0.6 and 0.4 of P@1
        row("bibtex", "knn", 50.0, seconds={"train": spread(7.06), "predict": spread(0.2)}),
        row("bibtex", "joint", 61.0, label="joint (CPU)"),
        row("bibtex", "peer:x", 55.0, label="X (3 trees, beam 50)"),
        study("dim", 25, 40.0),
    ]
    return fill_in(text, [Row("made up", values) for values in rows], published)


def test_a_figure_is_that_of_the_row_that_is_named() -> None:
    assert filled("[[joint (GPU) | bibtex | P]]") == "60.0 / 36.0 / 24.0"
    assert filled("[[joint (CPU) | bibtex | P@3 | .2]] on Bibtex") == "36.60 on Bibtex"
    assert filled("[[KNN | bibtex | train]], [[KNN | bibtex | train | .2]]") == "7.1 s, 7.06 s"
    assert filled("[[X (3 trees, beam 50) | bibtex | head]]") == "27.5"
    assert filled("[[dxml (dim=25) | bibtex | P@1]] ± [[KNN | bibtex | std P@1]]") == "40.0 ± 0.5"
    assert filled("[[KNN | bibtex | runs]] splits") == "10 splits"


def test_two_rows_are_compared() -> None:
    assert filled("[[KNN | bibtex | P@1 | less joint (GPU)]]") == "10.0"
    assert filled("[[joint (GPU) | bibtex | train | over KNN]] times") == "5 times"
    assert filled("[[joint (GPU) | bibtex | P | less KNN]]") == "10.0 / 6.0 / 4.0"


def test_published_numbers_have_names_too() -> None:
    assert filled("[[published DXML | bibtex | P@5 | .2]]", PRINTED) == "27.50"
    assert filled("[[published Parabel | bibtex | P]]", PRINTED) == "64.5 / 38.5 / 27.9"
    assert filled("[[published DXML | bibtex | train]]", PRINTED) == "353 s"
    assert filled("[[KNN | bibtex | P@1 | less published DXML]]", PRINTED) == "16.0"


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ("[[kNN | bibtex | P]]", "0 stored rows are called 'kNN' on 'bibtex'"),
        ("[[KNN | delicious | P]]", "0 stored rows are called 'KNN' on 'delicious'"),
        ("[[KNN | bibtex | ECE]]", "'knn' on 'bibtex' has no ECE@1"),
        ("[[published SLEEC | bibtex | P]]", "no P of 'SLEEC' on 'bibtex' is published"),
        ("<!-- holds: KNN best | bibtex | P -->", "a claim compares by >, < or ~"),
    ],
)
def test_what_is_not_stored_is_no_figure(figure: str, said: str) -> None:
    with pytest.raises(DataFormatError, match=said):
        filled(figure, PRINTED)


def test_claims_that_hold_are_left_out_of_the_text() -> None:
    text = (
        "It is ahead.\n<!-- holds: joint (CPU) > KNN; X (3 trees, beam 50) | bibtex | P; PSP -->\n"
    )
    assert filled(text) == "It is ahead.\n"
    assert filled("<!-- holds: KNN < joint (GPU) | bibtex | P -->ok") == "ok"
    assert filled("<!-- holds: joint (GPU) ~ 1 joint (CPU) | bibtex | P -->ok") == "ok"
    assert filled("<!-- holds: joint (CPU) > all | bibtex | P -->ok") == "ok"


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("KNN > joint (GPU) | bibtex | P@1", r"KNN > joint \(GPU\) on bibtex: P@1 \[50.0\] and"),
        ("joint (GPU) < KNN | bibtex | P", "contradict"),
        ("joint (GPU) ~ 0.9 joint (CPU) | bibtex | P@1", "contradict"),
        ("KNN > all | bibtex | P", r"(?s)joint on.*X \(3 trees, beam 50\) on bibtex"),
        ("joint (GPU) > joint (GPU) | bibtex | P", "contradict"),
    ],
)
def test_a_claim_that_does_not_hold_is_refused(claim: str, said: str) -> None:
    with pytest.raises(DataFormatError, match=said):
        filled(f"<!-- holds: {claim} -->")


def test_all_others_are_measured_and_published_ones() -> None:
    for measure in ("P", "P@1", "P@3"):
        with pytest.raises(DataFormatError, match=r"joint \(CPU\) > published DXML on bibtex"):
            filled(f"<!-- holds: joint (CPU) > all | bibtex | {measure} -->", PRINTED)
        with pytest.raises(DataFormatError, match=r"joint \(GPU\) < knn on bibtex"):
            filled(f"<!-- holds: joint (GPU) < all | bibtex | {measure} -->")


def test_a_claim_that_compares_with_nothing_is_refused() -> None:
    with pytest.raises(DataFormatError, match="nothing else has train"):
        filled("<!-- holds: KNN < all | bibtex | train -->")


def test_the_notes_of_the_page_claim_what_is_stored() -> None:
    """And would not, were a stored number another one: each claim is about some row."""
    notes = (RESULTS / "notes.md").read_text("utf-8")
    rows = load_rows(load_summaries(RESULTS))
    made = fill_in(notes, rows, load_published())
    assert "[[" not in made and "holds:" not in made
    assert notes.count("<!-- holds:") >= 30
    least = {name: spread(1.0) for name in rows[0].scores}
    worse = [
        Row(each.experiment, {**each.values, "scores": least})
        if each.label == "joint" and each.dataset == "bibtex"
        else each
        for each in rows
    ]
    with pytest.raises(DataFormatError, match=r"joint \(GPU\) > .* on bibtex: P \[1.0"):
        fill_in(notes, worse, load_published())
