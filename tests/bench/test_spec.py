"""Experiments: grids, identities, and mistakes that are named before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml.bench._spec import Experiment, Run, find_experiment, read_experiment, shipped
from dxml.exceptions import DxmlError, ParameterError
from dxml.methods import METHODS

PLANTED = "planted:n_samples=90,n_features=40,n_labels=6"


def read(tmp_path: Path, text: str) -> Experiment:
    path = tmp_path / "e.toml"
    path.write_text(text, "utf-8")
    return read_experiment(path)


def block(rest: str, methods: str = '["knn"]', datasets: str = f'["{PLANTED}"]') -> str:
    return f'name = "e"\n[[runs]]\ndatasets = {datasets}\nmethods = {methods}\n{rest}'


def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    text = block(
        "splits = [1, 2]\nseeds = [0, 1, 2]\n[runs.parameters]\npower = [1.0, 2.0]\n"
        'n_neighbors = [3, "none"]'
    )
    runs = read(tmp_path, text).runs
    assert len(runs) == 2 * 3 * 2 * 2
    given = {run.parameters for run in runs}
    assert (("n_neighbors", 3), ("power", 1.0)) in given
    assert (("power", 2.0),) in given  # None is the default of n_neighbors
    assert {run.split for run in runs} == {1, 2} and {run.seed for run in runs} == {0, 1, 2}


def test_a_default_spelt_out_is_the_same_run(tmp_path: Path) -> None:
    text = block(
        'study = "activation"\n[runs.parameters]\nactivation = ["relu", "linear"]', '["dxml"]'
    )
    plain = read(tmp_path, block("", '["dxml"]')).runs[0]
    experiment = read(tmp_path, text)
    relu, linear = experiment.planned
    assert relu.run == plain and relu.given == (("activation", "relu"),)
    assert linear.run != plain and linear.run.id != plain.id
    assert relu.label == "dxml (activation=relu)" and relu.study == "activation"


def test_a_run_planned_twice_is_done_once(tmp_path: Path) -> None:
    text = block("time_limit = 10") + "\n" + block("time_limit = 20").partition("\n")[2]
    experiment = read(tmp_path, text)
    assert len(experiment.planned) == 2 and len(experiment.runs) == 1
    assert experiment.time_limit(experiment.runs[0]) == 20


def test_identities_are_stable_and_tell_runs_apart() -> None:
    run = Run("bibtex", 1, "dxml", (("dim", 50),), 0)
    assert run.id == "bibtex-s1-dxml-2cccdeff7cc9"  # stored results depend on it
    assert Run.from_dict(run.as_dict()) == run
    others = [
        Run("bibtex", 2, "dxml", (("dim", 50),), 0),
        Run("bibtex", 1, "dxml", (("dim", 51),), 0),
        Run("bibtex", 1, "dxml", (("dim", 50),), 1),
        Run("bibtex", 1, "dxml", (("dim", 50),), 0, "validation"),
        Run("bibtex", 1, "dxml", (("dim", 50),), 0, k=5),
    ]
    assert len({run.id, *(other.id for other in others)}) == 6


def test_all_means_every_method_and_every_split(tmp_path: Path) -> None:
    runs = read(tmp_path, block('splits = "all"', '"all"', '["bibtex", "eurlex-4k"]')).runs
    assert len(runs) == len(METHODS) * 11
    assert {run.split for run in runs if run.dataset == "bibtex"} == set(range(1, 11))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[runs]]\n", "e.toml: name is missing"),
        ('name = "e"\n', "runs is missing"),
        ('name = "e', "e.toml: no valid TOML"),
        ("names = 1\n" + block(""), "unknown key 'names' in the experiment; did you mean 'name'"),
        (block("sedes = [1]"), "unknown key 'sedes' in runs block 1; did you mean 'seeds'"),
        (block("", "[]"), "methods is missing in runs block 1"),
        (block("", '["sleek"]'), "unknown method 'sleek'; did you mean 'sleec'"),
        (block("", '["peer:omikji"]'), "unknown peer 'omikji'; did you mean 'omikuji'"),
        (block("[runs.parameters]\npowr = 1"), "unknown parameter 'powr' of knn; did you mean"),
        (
            block("[runs.parameters]\nrandom_state = 1"),
            "unknown parameter 'random_state' of knn; use",
        ),
        (block("[runs.parameters]\npower = -1"), "power of knn must be a number.*got -1"),
        (block('[runs.parameters]\npower = "x"'), "power must be .*got 'x'"),
        (block('part = "tset"'), "unknown part 'tset'; did you mean 'test'"),
        (block('seeds = ["a"]'), "must be whole numbers or 'all'"),
        (block("splits = [11]", datasets='["bibtex"]'), "splits of 'bibtex' must be in 1..10"),
        (block("", datasets='["plented:n_samples=3"]'), "unknown kind of generated data 'plented'"),
        (
            block("", datasets='["planted:n_sampels=3"]'),
            "unknown setting 'n_sampels'; did you mean",
        ),
        (block("", datasets='["planted:n_samples=3"]'), "n_features is missing"),
        (block("", datasets='["planted:n_samples=x"]'), "n_samples must be a number, got 'x'"),
        (block("", datasets='["twin:n_samples=3"]'), "must name a data set first"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        read(tmp_path, text)


def test_an_unknown_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(DxmlError, match="unknown data set 'bibtx'; did you mean 'bibtex'"):
        read(tmp_path, block("", datasets='["bibtx"]'))


def test_shipped_experiments_expand() -> None:
    sizes = {name: len(find_experiment(name).runs) for name in shipped()}
    n = len(METHODS)
    assert sizes["paper-small"] == 30 * n and sizes["paper-eurlex"] == n
    assert sizes["baselines"] == 31 * 10
    assert {run.method for run in find_experiment("smoke").runs} == set(METHODS)
    parts = {plan.study: plan.run.part for plan in find_experiment("ablation").planned}
    swept = ("n_partitions", "n_probe", "n_neighbors", "dim", "walk_length", "window")
    assert all(parts[study] == "validation" for study in swept)  # settings are not chosen on test
    for name in shipped():
        assert find_experiment(name).name == name
    with pytest.raises(ParameterError, match="unknown experiment 'smok'; did you mean 'smoke'"):
        find_experiment("smok")
    with pytest.raises(
        ParameterError, match="nothing.toml: no such experiment file. Shipped: ablation"
    ):
        find_experiment("nothing.toml")
