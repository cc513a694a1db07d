"""Summaries worked out by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dxml.bench import _scoring as scoring
from dxml.bench._results import Store, Stored
from dxml.bench._spec import Run
from dxml.bench._summary import (
    Row,
    _commits,
    load_rows,
    load_summaries,
    summarise,
    write_summary,
)
from dxml.bench._tables import equipment
from dxml.bench._worker import Settings, failure
from dxml.exceptions import DataFormatError
from dxml.metrics._bands import BANDS

from .conftest import PLANTED, experiment, plan
from .made_up import row


@pytest.fixture(autouse=True)
def scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """P@1 is ten times the first label of the ranking; no data is needed."""

    def compute(ranking: scoring.TopK, truth: object) -> dict[str, object]:
        share = float(10 * ranking.indices[0, 0])
        bands = {band: {"labels": 2, "found@5": share} for band in BANDS}
        return {"scores": {"P@1": share}, "bands": bands}

    monkeypatch.setattr(scoring, "compute", compute)
    monkeypatch.setattr(scoring.Truth, "load", lambda *_: None)


def runs(n: int, method: str = "knn") -> list[Run]:
    return [Run(PLANTED, split, method, (), 0) for split in range(1, n + 1)]


def test_means_and_deviations(store: Store, put: Callable[..., Stored]) -> None:
    first, second, third = runs(3)
    put(first, [[2]], seconds=1.0)
    put(second, [[3]], seconds=2.0)
    put(third, [[7]], seconds=6.0, date="2026-02-01T00:00:00+00:00", commit="def")
    summary = summarise(experiment(*map(plan, (first, second, third))), store)
    (row,) = summary["rows"]
    assert row["scores"]["P@1"] == {"mean": 40.0, "std": round(np.std([20, 30, 70], ddof=1), 4)}
    assert row["seconds"]["train"]["mean"] == 3.0
    assert row["stages"]["encoder"]["mean"] == 3.0
    assert row["bands"]["tail"]["found@5"]["mean"] == 40.0
    assert row["splits"] == [1, 2, 3] and row["runs"] == row["planned"] == 3
    assert row["chosen"] == {"n_neighbors_": [5, 5, 5]}
    assert row["peak_bytes"]["mean"] == 200_000_000 and row["devices"] == ["cpu"]
    assert summary["machines"] == ["Some CPU, 2 cores, 8 GiB"]
    assert summary["commits"] == ["abc", "def"] and summary["dates"] == ["2026-01-02", "2026-02-01"]
    assert summary["data"][PLANTED]["train"] == 72


def test_a_measure_that_a_run_lacks_has_no_mean(
    store: Store, put: Callable[..., Stored], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scores of a split were no probabilities: the mean would be that of chosen splits."""

    def compute(ranking: scoring.TopK, truth: object) -> dict[str, object]:
        first = float(ranking.indices[0, 0])
        scores = {"P@1": first} | ({} if first == 3 else {"ECE@1": 5.0})
        return {"scores": scores, "bands": {}}

    monkeypatch.setattr(scoring, "compute", compute)
    first, second = runs(2)
    put(first, [[2]])
    put(second, [[3]])
    (row,) = summarise(experiment(plan(first), plan(second)), store)["rows"]
    assert row["scores"]["P@1"]["mean"] == 2.5 and "ECE@1" not in row["scores"]
    (alone,) = summarise(experiment(plan(first)), store)["rows"]
    assert alone["scores"]["ECE@1"]["mean"] == 5.0


def test_one_run_has_no_deviation(store: Store, put: Callable[..., Stored]) -> None:
    (run,) = runs(1)
    put(run, [[2]])
    (row,) = summarise(experiment(plan(run)), store)["rows"]
    assert row["scores"]["P@1"] == {"mean": 20.0, "std": None}


def test_failed_and_missing_runs_are_told(store: Store, put: Callable[..., Stored]) -> None:
    first, second = runs(2)
    store.put(first, failure("MemoryError: too much", "", Settings()), None)
    (row,) = load_rows([summarise(experiment(plan(first), plan(second)), store)])
    assert not row.measured and row.mean("P@1") is None and row.number("ms_per_point") is None
    assert row.why_not == "MemoryError: too much"
    (missing,) = load_rows([summarise(experiment(plan(second)), store)])
    assert missing.why_not == "planned, not run yet" and missing.second("train") is None
    with pytest.raises(AttributeError, match="nothing"):
        _ = missing.nothing


def test_a_gpu_counts_only_for_methods_that_can_use_it(
    store: Store, put: Callable[..., Stored]
) -> None:
    with_gpu = {"cpu": "C", "cores": 1, "memory_gib": 1, "gpu": "G"}
    plain, deep = Run(PLANTED, 1, "knn", (), 0), Run(PLANTED, 1, "dxml", (), 0)
    put(plain, [[2]], machine=with_gpu)
    put(deep, [[2]], machine=with_gpu, parameters={"device": "auto"})
    rows = summarise(experiment(plan(plain), plan(deep)), store)["rows"]
    assert [row["devices"] for row in rows] == [["cpu"], ["cuda"]]


def test_a_gpu_without_work_does_not_count(store: Store, put: Callable[..., Stored]) -> None:
    with_gpu = {"cpu": "C", "cores": 16, "memory_gib": 1, "gpu": "G"}
    of = {"machine": with_gpu, "parameters": {"device": "auto"}}
    wide, linear = Run(PLANTED, 1, "joint", (), 0), Run(PLANTED, 2, "joint", (), 0)
    put(wide, [[2]], stages={"neighbours": 1.0, "wide layer": 2.0}, **of)
    put(linear, [[2]], stages={"neighbours": 1.0, "linear head": 2.0}, **of)
    [one], [other] = (summarise(experiment(plan(run)), store)["rows"] for run in (wide, linear))
    assert one["devices"] == ["cuda"] and other["devices"] == ["cpu"]
    stored_before = other | {"devices": ["cuda"]}  # summaries that were written without a look
    assert Row("x", stored_before).devices == ["cpu"] and Row("x", one).devices == ["cuda"]
    searched = Run(PLANTED, 3, "joint", (), 0)
    took = {"peak": 2, "before_fit": 1, "gpu_peak": 8_000_000}
    put(searched, [[2]], stages={"neighbours": 1.0}, memory=took, **of)
    [row] = summarise(experiment(plan(searched)), store)["rows"]
    assert row["devices"] == ["cuda"] and row["gpu_bytes"]["mean"] == 8_000_000
    assert Row("x", row).devices == ["cuda"]
    assert equipment(Row("x", one)) == "2 threads of 16 cores, C, G"
    assert equipment(Row("x", stored_before)) == "2 threads of 16 cores, C"


def test_summaries_are_written_and_read(store: Store, put: Callable[..., Stored]) -> None:
    first, second = runs(2)
    put(first, [[2]])
    small = experiment(plan(first), name="small")
    path = write_summary(small, store)
    assert json.loads(path.read_text("utf-8")) == summarise(small, store)
    put(second, [[4]])
    write_summary(experiment(plan(first), plan(second), name="zlarge"), store)
    both = load_summaries(store.root)
    assert [summary["experiment"] for summary in both] == ["small", "zlarge"]
    (row,) = load_rows(both)  # the same row: that with more splits
    assert row.splits == [1, 2] and row.experiment == "zlarge"
    older, newer = ({**both[0], "experiment": day, "dates": [day]} for day in ("a", "b"))
    for order in ([older, newer], [newer, older]):  # as many splits: the newest
        assert [row.experiment for row in load_rows(order)] == ["b"]
    assert load_summaries(store.root, "small") == both[:1]
    with pytest.raises(
        DataFormatError, match="holds no nothing.json. Run it first: dxml bench run"
    ):
        load_summaries(store.root, "nothing")
    (store.root / "other.json").write_text('{"of": "another kind"}')
    assert len(load_summaries(store.root)) == 2
    path.write_text('{"experiment": "small", "format": 0}')
    with pytest.raises(DataFormatError, match="small.json: no summary of format 1"):
        load_summaries(store.root)


def test_the_interval_of_a_mean_by_hand() -> None:
    """Student's t with nine degrees of freedom: 2.262 of a deviation of 0.5 over ten splits."""
    many = Row("e", row("bibtex", "dxml", 60.0))
    assert many.interval("P@1") == pytest.approx(2.2622 * 0.5 / 10**0.5, abs=1e-4)
    assert Row("e", row("bibtex", "dxml", 60.0, runs=1)).interval("P@1") is None
    assert many.interval("absent") is None


def test_failures_of_another_machine_stay(store: Store, put: Callable[..., Stored]) -> None:
    """They say why a cell is empty, until the run is stored here."""
    (knn,), (leml,) = runs(1), runs(1, "leml")
    both = experiment(plan(knn), plan(leml))
    put(knn, [[2]])
    store.put(leml, failure("took longer than 2 s", "", Settings()), None)
    path = write_summary(both, store)
    shutil.rmtree(store.raw)
    put(knn, [[2]])
    write_summary(both, store)
    told = {row.method: row for row in load_rows([json.loads(path.read_text("utf-8"))])}
    assert told["leml"].why_not == "took longer than 2 s" and told["knn"].measured
    put(leml, [[2]])
    write_summary(both, store)
    told = {row.method: row for row in load_rows([json.loads(path.read_text("utf-8"))])}
    assert told["leml"].measured


def test_results_of_ones_own_from_two_machines_stand_beside_one_another(
    store: Store, put: Callable[..., Stored]
) -> None:
    """The second machine's took the place of the first's, and a board of both showed one."""
    [knn] = runs(1)
    own = replace(experiment(plan(knn), name="own"), grows=True)
    machine = {"cpu": "Other CPU", "cores": 4, "memory_gib": 8, "gpu": None}
    put(knn, [[2]])
    path = write_summary(own, store)
    for _ in range(2):
        put(knn, [[3]], machine=machine)
        write_summary(own, store)
        summary = json.loads(path.read_text("utf-8"))
        found = {row["machines"][0]: row["scores"]["P@1"]["mean"] for row in summary["rows"]}
        assert found == {"Other CPU, 4 cores, 8 GiB": 30, "Some CPU, 2 cores, 8 GiB": 20}
        assert len(summary["machines"]) == len(summary["rows"]) == 2
    assert len(load_rows([summary])) == 1 and len(load_rows([summary], ["machines"])) == 2
    shutil.rmtree(store.raw)
    write_summary(own, store)
    assert json.loads(path.read_text("utf-8"))["rows"] == summary["rows"]


def test_rows_of_another_machine_stay(store: Store, put: Callable[..., Stored]) -> None:
    """Raw rankings of a summary may be gone; what is not run again keeps its row."""
    knn, leml = runs(2), runs(1, "leml")
    both = experiment(*map(plan, [*knn, *leml]))
    for run in (*knn, *leml):
        put(run, [[2]], commit="old", versions={"dxml": "1"})
    path = write_summary(both, store)
    before = {row["method"]: row for row in json.loads(path.read_text("utf-8"))["rows"]}
    shutil.rmtree(store.raw)
    put(leml[0], [[7]], commit="new", versions={"dxml": "2"}, date="2026-03-04T00:00:00+00:00")
    put(knn[0], [[9]])  # one of two splits is no row of two
    write_summary(both, store)
    after = json.loads(path.read_text("utf-8"))
    rows = {row["method"]: row for row in after["rows"]}
    assert rows["knn"] == before["knn"] and rows["leml"]["scores"]["P@1"]["mean"] == 70
    assert after["commits"] == ["new", "old"] and {"1", "2"} <= set(after["versions"]["dxml"])
    assert after["dates"] == ["2026-01-02", "2026-03-04"]
    put(knn[1], [[9]])
    write_summary(both, store)
    rows = {row["method"]: row for row in json.loads(path.read_text("utf-8"))["rows"]}
    assert rows["knn"]["scores"]["P@1"]["mean"] == 90
    older = json.loads(path.read_text("utf-8"))
    for each in older["rows"]:
        del each["commits"]  # as summaries were once
    path.write_text(json.dumps(older), "utf-8")
    shutil.rmtree(store.raw)
    write_summary(both, store)
    assert json.loads(path.read_text("utf-8"))["commits"] == older["commits"]
    put(leml[0], [[7]])
    write_summary(experiment(plan(leml[0])), store)  # no longer planned
    assert [row["method"] for row in json.loads(path.read_text("utf-8"))["rows"]] == ["leml"]


def test_commits_that_only_replaced_rows_had_are_gone() -> None:
    """A row of an older summary names none: it may be of a commit that no row named."""
    before = {"commits": ["a", "b", "c"], "rows": [{"commits": ["b"]}, {}]}
    assert _commits([{"commits": ["d"]}, {}], before) == ["a", "c", "d"]
    assert _commits([{"commits": ["d"]}, {"commits": ["b"]}], before) == ["b", "d"]
