"""benchmarks/calibration.py: the other calibrations, and a run on a table that is made up."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from .scripts import load_script

calibration, page_script = load_script("calibration"), load_script("calibration_page")
others = load_script("other_calibrations")


@pytest.mark.parametrize("name", list(others.OTHERS))
def test_each_calibration_mends_scores_that_are_too_sure(name: str) -> None:
    """Logits that are twice what they should be."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, 6000)
    right = rng.random(6000) < 1 / (1 + np.exp(-z))
    said = 1 / (1 + np.exp(-2 * z))
    mend = others.OTHERS[name](said[:3000], right[:3000])
    assert calibration._gap(said[3000:], right[3000:]) > 0.07
    assert calibration._gap(mend(said[3000:]), right[3000:]) < 0.04


def test_venn_abers_by_hand() -> None:
    """Of one score two are right and one is wrong: 2/4 with the point wrong, 3/4 with it right."""
    found = others.venn_abers(np.full(3, 0.5), np.array([True, False, True]))
    assert found(np.array([0.5]))[0] == pytest.approx(0.75 / (1 - 0.5 + 0.75), abs=1e-6)


def test_other_sources_are_whole_clusters() -> None:
    """Sixty clusters far from one another: none is on both sides."""
    rng = np.random.default_rng(0)
    which = np.repeat(np.arange(60), 20)
    X = sp.csr_matrix((np.eye(60)[which] + rng.normal(0, 1e-3, (1200, 60))).astype(np.float32))
    chosen = calibration.other_sources(calibration.clusters(X, rng), 300, rng)
    assert 100 < len(chosen) <= 360
    both = set(which[chosen]) & set(np.delete(which, chosen))
    assert len(both) <= 2


def test_sources_of_a_table_are_held_out_whole() -> None:
    """Of a hundred, those that are ranked were neither learnt from nor calibrated by."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.random((600, 40)).astype(np.float32))
    Y = sp.csr_matrix(rng.random((600, 5)) < 0.3)
    points = calibration.Points(X, Y, np.repeat(np.arange(100), 6))
    found = calibration.large_cases(points, 0)
    for name in ("sources", "told"):
        case = found[name]
        ranked, near = set(case.ranked.sources), {*case.learnt.sources, *case.calibrated.sources}
        assert 20 <= len(ranked) <= 25 and len(near) == 100 - len(ranked)
        assert not ranked & near and len(case.ranked.sources) == 6 * len(ranked)
    assert found["sources"].groups is None
    assert found["told"].groups.tolist() == found["told"].learnt.sources.tolist()
    alone = points._replace(sources=None)
    assert set(calibration.large_cases(alone, 0)) == {"chance", "source", "groups"}
    assert [case.name for [case] in calibration.cases(alone, 0, {"told", "sources"})] == []


def test_a_source_that_is_larger_than_what_is_ranked_is_not_held_out() -> None:
    """Of the others, whole ones are, until the next would be too many."""
    rank = np.repeat(np.arange(5), [2, 7, 2, 3, 2])
    assert set(rank[calibration.whole_sources(rank, 6)]) == {0, 2}
    assert set(rank[calibration.whole_sources(rank, 7)]) == {0}, "as large as what is ranked"
    assert set(rank[calibration.whole_sources(rank, 20)]) == set(range(5))


def test_texts_that_are_each_a_source_have_none() -> None:
    rows = [{"source": str(i)} for i in range(4)]
    assert calibration._sources(rows) is None and calibration._sources([{}, {}]) is None
    assert calibration._sources([*rows, {"source": "2"}]).tolist() == [0, 1, 2, 3, 2]
    untold = [{}, *rows, {"source": ""}, {"source": "2"}]
    assert calibration._sources(untold).tolist() == [4, 0, 1, 2, 3, 5, 2]


def test_rows_are_stored_with_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    words = rng.integers(0, 6, (240, 3))
    rows = [{"text": " ".join(f"word{i}x" for i in row), "labels": [f"l{row[0]}"]} for row in words]
    table, out = tmp_path / "a-train.jsonl", tmp_path / "out.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    monkeypatch.setattr(calibration, "FEW", (20,))
    monkeypatch.setattr(calibration, "DRAWS", 2)
    monkeypatch.setattr(calibration, "SMALL_DRAWS", 2)
    told = ["x", str(table), "--cases", "chance,groups,20", "--results", str(out)]
    monkeypatch.setattr(sys, "argv", told)
    calibration.main()
    stored = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    names = ["joint", "none", *others.OTHERS]
    assert [row["calibration"] for row in stored] == [*names, *names, "joint"]
    assert [row["case"] for row in stored[::5]] == ["chance", "groups", "20"]
    first, last = stored[0], stored[-1]
    assert all(0 <= row["by known@1"] <= 100 for row in stored)
    assert first["ranked"] == 60 and 0 < first["noise@1"] < 20 and 0 <= first["ECE@5"] <= 100
    assert sum(row[0] for row in first["curve"]) == 2 * 5 * 60 and first["draws"] == 2
    assert last["case"] == "20" and last["draws"] == 2 and last["learnt"] == 20
    assert all({"machine", "threads", "commit", "command"} <= row.keys() for row in stored)


def test_errors_by_hand() -> None:
    """Always 0.6, and half of them right: 10 points off, of which chance has little."""
    found = calibration.Judged(np.full((1000, 1), 0.6), np.arange(1000)[:, None] % 2 == 0)
    told = calibration.errors(found, 100)
    assert told["ECE@1"] == 10 and told["debiased@1"] == pytest.approx(10, abs=1)
    assert told["noise@1"] == pytest.approx(100 * np.sqrt(2 * 0.24 / np.pi / 1000), abs=0.6)
    assert told["counted@1"] == pytest.approx(100 * np.sqrt(2 * 0.25 / np.pi / 100), abs=0.3)


def test_the_gap_by_known_features_by_hand() -> None:
    """Always 0.5; right are none of the points with few known features, and all with many.

    The same number of features is in one part, and chance does not divide it.
    """
    learnt = sp.csr_matrix(np.float32([[1, 1, 1, 0]]))
    few, many = np.float32([0, 1, 0, 1]), np.float32([1, 1, 1, 0])
    n_known = calibration.known_features(sp.csr_matrix([few] * 50 + [many] * 50), learnt)
    assert n_known.tolist() == [1] * 50 + [3] * 50
    said, right = np.full(100, 0.5), np.arange(100) >= 50
    assert calibration.by_known(said, right, n_known) == 0.5
    assert calibration.by_known(said, np.arange(100) % 2 == 0, n_known) == 0
    assert calibration.by_known(said, right, np.ones(100, int)) == 0


def test_what_chance_adds_is_taken_off() -> None:
    """Few points of probabilities that are a tenth too high, and of some without error."""
    told = {}
    for off in (0.0, 0.1):
        draws = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            true = 0.1 + 0.7 * rng.random((150, 1))
            found = calibration.Judged(true + off, rng.random((150, 1)) < true)
            about = {"learnt": 20, **calibration.errors(found)}
            draws.append(calibration.Measured(about, found))
        told[off] = calibration.pooled(draws)
    assert told[0.0]["ECE@1"] == pytest.approx(told[0.0]["noise@1"], abs=0.8)
    assert told[0.0]["ECE@1"] > 7 and told[0.0]["debiased@1"] < 3.5
    assert told[0.1]["ECE@1"] > 11.5 and told[0.1]["debiased@1"] == pytest.approx(10, abs=1.5)


def test_a_band_of_no_label_has_no_error_and_counts_in_no_mean() -> None:
    """Labels of 4, 2 and 2 points are head, torso and tail; one draw gives the first alone."""
    frequency, one = np.array([4, 2, 2]), np.ones(2, int)
    rows = []
    for labels in ([[0], [0]], [[0], [1]]):
        ranking = calibration.TopK(np.array(labels, np.int32), np.full((2, 1), 0.75, np.float32))
        found = calibration.Judged(np.full((2, 1), 0.75), np.array([[True], [True]]))
        row = calibration.judged(found, ranking, frequency, one)
        rows.append(calibration.Measured({"learnt": 8, **row}, found))
    bands = page_script.BAND_ERRORS
    assert [rows[0].row[name] for name in bands] == [25.0, None, None]
    assert [rows[1].row[name] for name in bands] == [25.0, 25.0, None]
    told = calibration.pooled(rows)
    assert [told[name] for name in bands] == [25.0, 25.0, None]


def test_draws_that_err_to_both_sides_are_right_together() -> None:
    row = {"case": "20", "learnt": 20, "ranked": 100, "calibration": "joint"}
    half = np.arange(100)[:, None] % 2 == 0
    draws = []
    for right in (half, half | True):
        found = calibration.Judged(np.full((100, 1), 0.75), right)
        draws.append(calibration.Measured({**row, **calibration.errors(found)}, found))
    told = calibration.pooled(draws)
    assert told["ECE@1"] == 25 and told["together@1"] == 0
    assert told["draws"] == 2 and told["learnt"] == 20
    assert told["curve"] == [[200, 0.75, 0.75]]


def test_stored_rows_name_nobodys_folders() -> None:
    stored = calibration.STORED.read_text("utf-8")
    assert not re.search(r"/(home|root|tmp|work)/", stored)


def test_the_newest_row_counts() -> None:
    row = {"data": "bibtex", "case": "chance", "learnt": 5, "P@1": 50.0, "calibration": "joint"}
    row |= {"noise@1": 1.0, "noise@5": 0.5, "ECE@5": 2.0}
    rows = [{**row, "ECE@1": 9.0}, {**row, "ECE@1": 3.0}]
    few = {**rows[1], "case": "20", "learnt": 20, "together@1": 2.5, "together@5": 1.5}
    rows += [{**rows[0], "calibration": "isotonic"}, few]
    rows[1] = {**rows[1], "by known@1": 1.24}
    found = page_script.newest(rows)
    many = "| Bibtex | by chance | 5 | 50.0 | 3.0 / 2.0 | 1.0 / 0.5 | – | 1.2 | – | 9.0 / 2.0 | – |"
    assert page_script.table_of_many(found).splitlines()[2:] == [many]
    line = "| Bibtex | 20 | 50.0 | 3.0 / 2.0 | 1.0 / 0.5 | – | 2.5 / 1.5 | – | – |"
    assert page_script.table_of_few(found).splitlines()[2:] == [line]


def test_the_error_by_label_frequency_is_shown_with_where_it_comes_from() -> None:
    about = {"calibration": "joint", "ECE@1": 3.0, "ECE@5": 2.0, "commit": "0123456789ab+"}
    bands = {"ECE@5 head": 1.25, "ECE@5 torso": 2.5, "ECE@5 tail": 0.0}
    few = {**about, **bands, "data": "bibtex", "case": "20", "learnt": 20, "draws": 10}
    few["ECE@5 tail"] = None
    many = {**about, **bands, "data": "mediamill", "case": "source", "learnt": 8000}
    found = page_script.newest([few, many])
    assert page_script.table_by_frequency(found).splitlines()[2:] == [
        "| Mediamill | whole clusters | 8,000 | 2.0 | 1.2 | 2.5 | – | 1 | 0123456+ |",
        "| Bibtex | by chance | 20 | 2.0 | 1.2 | 2.5 | – | 10 | 0123456+ |",
    ]


def test_every_row_that_is_shown_has_its_errors_by_frequency_and_its_curve() -> None:
    """No data set is without them, unless it was measured before there were any."""
    found = page_script.newest(page_script.read_results("calibration.jsonl"))
    assert all(name in each["joint"] for each in found.values() for name in page_script.BAND_ERRORS)
    drawn = sum(len(curves) for curves in page_script.Curves(found).numbers().values())
    assert drawn == len(found)


def test_the_picture_shows_what_is_stored() -> None:
    """Each line has the digest of its numbers for its id; `test_made_pages` compares the tables."""
    root = calibration.STORED.parents[2]
    assert "](pictures/calibration.svg)" in (root / page_script.PAGE).read_text("utf-8")
    told = re.findall(r'id="(curve-\w+)"', (root / page_script.PICTURE).read_text("utf-8"))
    found = page_script.newest(page_script.read_results("calibration.jsonl"))
    assert told == [
        page_script.digest(title, name, curve)
        for title, curves in page_script.Curves(found).numbers().items()
        for name, curve in curves.items()
    ], "run: make docs"


def test_bins_of_few_labels_are_not_drawn() -> None:
    row = {"data": "bibtex", "case": "chance", "learnt": 5, "calibration": "joint"}
    row["curve"] = [[49, 0.1, 0.0], [50, 0.5, 0.4], [500, 0.9, 0.9]]
    curves = page_script.Curves(page_script.newest([row])).numbers()
    assert curves == {"Bibtex": {"by chance": [[50, 0.5, 0.4], [500, 0.9, 0.9]]}}


def test_groups_help_about_as_often_as_they_harm() -> None:
    """On clusters of each data set; the page says so."""
    root = calibration.STORED.parents[2]
    page = " ".join((root / page_script.PAGE).read_text("utf-8").split())
    assert "was truer by it on about half of the data, and further off on the rest" in page
    assert "on the thirty clusters of each data set" in page and calibration.CELLS == 30
    found = page_script.newest(page_script.read_results("calibration.jsonl"))
    told = {(data, case): each["joint"]["ECE@1"] for (data, case, _), each in found.items()}
    both = [data for data, case in told if case == "groups" and (data, "source") in told]
    truer = sum(told[data, "groups"] < told[data, "source"] for data in both)
    assert len(both) >= 8 and 0.35 <= truer / len(both) <= 0.65
