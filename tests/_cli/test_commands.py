"""The commands end to end on small planted files, in this process and in a real one."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dxml._core import stages
from dxml.data import make_planted, write
from dxml.methods import load_model
from dxml.metrics import evaluate, inverse_propensity
from dxml.paper import _training as paper_training

from .asking import fails, run

SMALL = ["--set", "epochs=15", "--set", "dim=16", "--set", "hidden=32", "--set", "n_neighbors=5"]
QUICK = ["--method", "dxml", *SMALL]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.txt, test.txt and a trained model m."""
    folder = tmp_path_factory.mktemp("cli")
    data = make_planted(360, 120, 12, labels_per_point=2, features_per_point=15, random_state=3)
    write(data.take(np.arange(300)), folder / "train.txt")
    write(data.take(np.arange(300, 360)), folder / "test.txt.gz")
    done = run("train", folder / "train.txt", "--model", folder / "m", *QUICK)
    assert done.exit_code == 0, done.output
    return folder


def test_train_says_what_it_did(files: Path) -> None:
    (files / "other").mkdir()
    for name in (".lock", "arrays-0123456789ab.safetensors.0123456789ab.partial"):
        (files / "other" / name).touch()  # as a save leaves them that was killed
    done = run("train", files / "train.txt", "--model", files / "other", *QUICK, "--seed", 1)
    assert "trained dxml on 300 points, 120 features, 12 labels" in done.output
    assert "next: dxml predict NEW --model" in done.output, "not: evaluate what was trained on"
    stages = re.search(r"^([\d.]+) seconds:\n((?:  .+\n)+)saved to ", done.output, re.MULTILINE)
    assert stages is not None
    spent = [float(line.split()[-1]) for line in stages[2].splitlines()]
    assert abs(sum(spent) - float(stages[1])) < 0.06 * len(spent) + 0.06
    assert load_model(files / "other").get_params()["random_state"] == 1
    assert not list((files / "other").glob("*.partial"))
    done = run("train", files / "train.txt", "--model", files / "default")
    assert "trained joint on 300 points" in done.output


def test_a_training_that_broke_off_is_resumed(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "LEAST", 0.0)
    made: list[str] = []
    real = paper_training._fit

    def fit(*arguments: Any) -> Any:
        made.append(arguments[-2])
        if made == ["encoder (validation)", "encoder"]:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(paper_training, "_fit", fit)
    command = ["train", files / "train.txt", "--model", tmp_path / "m", *QUICK]
    done = run(*command)
    assert done.exit_code == 130
    assert f"the state is in {tmp_path / 'm.partial'}: go on with --resume" in done.output
    done = run(*command, "--resume")
    assert done.exit_code == 0, done.output
    assert made[2:] == ["encoder"], "the other was done before"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    ours, theirs = (load_model(path / "m")._packed()[1] for path in (tmp_path, files))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_evaluate_equals_the_library(files: Path) -> None:
    done = run("evaluate", files / "test.txt.gz", "--model", files / "m", "--json")
    scores = json.loads(done.stdout)
    model = load_model(files / "m")
    from dxml.data import read

    test = read(files / "test.txt.gz")
    weights = inverse_propensity(model.label_frequency_, 300)
    expected = evaluate(test.Y, model.predict_topk(test.X, 5), inverse_propensity=weights)
    assert scores["points"] == 60 and scores["seconds"] > 0
    assert scores["P@1"] > 60
    for measure in ("P", "nDCG", "PSP", "PSnDCG"):
        for k in (1, 3, 5):
            assert scores[f"{measure}@{k}"] == pytest.approx(expected[f"{measure}@{k}"], abs=1e-3)
    table = run("evaluate", files / "test.txt.gz", "--model", files / "m").output
    assert "PSnDCG" in table and f"{scores['P@1']:.2f}" in table and "ms a point" in table


def test_predictions_agree_in_every_format(files: Path, tmp_path: Path) -> None:
    ask = ["predict", files / "test.txt.gz", "--model", files / "m", "--top", 3]
    lines = run(*ask, "--quiet").stdout.splitlines()
    assert lines[0].split("\t") == ["point", "rank", "label", "score"]
    table = [line.split("\t") for line in lines[1:]]
    run(*ask, "--format", "jsonl", "--output", tmp_path / "p.jsonl")
    objects = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    flat = [
        [str(entry["point"]), str(rank), str(label["label"])]
        for entry in objects
        for rank, label in enumerate(entry["labels"], start=1)
    ]
    assert flat == [row[:3] for row in table]
    run(*ask, "--format", "npz", "--output", tmp_path / "p.npz")
    scores = sp.load_npz(tmp_path / "p.npz")
    assert scores.shape == (60, 12) and scores.nnz == len(table)
    assert all(
        scores[int(p), int(label)] == pytest.approx(float(s), abs=1e-5) for p, _, label, s in table
    )
    assert not list(tmp_path.glob(".*"))


def test_methods_shows_every_parameter() -> None:
    done = run("methods", "dxml")
    for word in ("n_partitions", "smooth_l1", "random_state", "parameter", "default", "meaning"):
        assert word in done.output


def test_data_list_info_convert(files: Path, tmp_path: Path) -> None:
    assert "eurlex-4k" in run("data", "list").output
    described = run("data", "info", files / "train.txt").output
    assert "300" in described and "labels a point" in described
    target = tmp_path / "train.svm"
    assert "300 points" in run("data", "convert", files / "train.txt", target).output
    again = run("data", "info", target).output
    assert "300" in again
    missing = run("evaluate", target, "--model", files / "m", "--json")
    assert json.loads(missing.stdout)["points"] == 300


def test_mistakes_are_one_sentence(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, model = files / "train.txt", tmp_path / "new"
    cases = {
        ("train", train, "--model", model, "--set", "prun=5"): "did you mean 'prune'?",
        ("train", train, "--model", model, "--set", "epochs"): "--set takes name=value, got",
        ("train", train, "--model", model, "--set", "epochs=0"): "epochs must be a whole number",
        ("train", train, "--model", model, "--method", "dxlm"): "did you mean 'dxml'?",
        ("train", train, "--model", model, "--device", "tpu"): "device must be one of 'auto'",
        (
            "train",
            train,
            "--model",
            model,
            "--method",
            "dxml",
            "--set",
            "n_partitions=999",
        ): "got 999. Ask for fewer",
        ("train", "bibtx", "--model", model): "did you mean 'bibtex'?",
        ("train", tmp_path / "no.txt", "--model", model): "no.txt",
        ("train", train, "--model", tmp_path): "holds no dxml model, so nothing is written",
        ("predict", train, "--model", tmp_path): "no model here (config.json is missing)",
        ("predict", train, "--model", files / "m", "--top", 13): "number of labels, 12, got 13",
        ("predict", train, "--model", files / "m", "--format", "npz"): "npz needs --output FILE",
        ("evaluate", train, "--model", files / "m", "--split", 2): "is a file, which has no split",
        ("methods", "dxlm"): "unknown method 'dxlm'; did you mean 'dxml'?",
    }
    (tmp_path / "mine.txt").write_text("keep me")
    for arguments, sentence in cases.items():
        said = fails(capsys, *arguments)
        assert sentence in said, said
        assert "Traceback" not in said
    assert not model.exists(), "something half-written was left"


def test_unknown_options_get_a_suggestion(files: Path) -> None:
    done = run("train", files / "train.txt", "--model", files / "x", "--sed", 1)
    assert done.exit_code == 2 and "--seed" in done.output


def test_other_widths_are_refused(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = make_planted(10, 50, 12, features_per_point=5, random_state=0)
    write(narrow, tmp_path / "narrow.txt")
    said = fails(capsys, "evaluate", tmp_path / "narrow.txt", "--model", files / "m")
    assert "X has 50 features, but DXML is expecting 120 features as input" in said


@pytest.mark.parametrize("quiet", [True, False])
def test_a_real_process_prints_plain_lines_or_nothing(files: Path, quiet: bool) -> None:
    command = [sys.executable, "-m", "dxml", "predict", str(files / "test.txt.gz"), "--model"]
    command += [str(files / "m"), *(["--quiet"] if quiet else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("point\trank\tlabel\tscore\n")
    assert done.stderr == "" if quiet else done.stderr.startswith("predict: done in")


def test_ctrl_c_is_one_word(files: Path) -> None:
    command = [sys.executable, "-m", "dxml", "train", str(files / "train.txt"), "--method", "dxml"]
    command += ["--set", "epochs=100000", "--model", str(files / "never")]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("read: done")  # at work
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130 and said.endswith("interrupted\n"), said
    assert "Traceback" not in said
    assert not (files / "never").exists()


def test_help_does_not_import_the_heavy_parts() -> None:
    code = (
        "import sys, dxml._cli; print([m for m in ('torch', 'numba', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_a_cluster_needs_ray(
    command: str, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    said = fails(capsys, command, files / "train.txt", "--model", files / "m", "--ray", "local")
    assert said == "error: Ray is not installed. Install it: pip install 'dxml[ray]'.\n"
