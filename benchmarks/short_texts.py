"""Joint with other settings, and omikuji's presets, on tables of texts, in one run.

    python benchmarks/short_texts.py parents-train.jsonl tags-train.jsonl \\
        joint joint:vectors=wordllama joint:char_ngrams=4 omikuji:parabel omikuji:bonsai

Tables are those of `wordnet_texts.py` and `package_texts.py`, or any of JSON lines with ``text``
and ``labels``; tables and runs may stand in any order. Of each table 3,000 texts are held out, the
same for every run; with ``--test`` the table of the same name with ``test`` in place of ``train``
is ranked instead. All methods get the same features but for settings of `TextFeatures`. Seconds are
those of training with the features in memory; vectors of texts are counted, tf-idf is not. Every
row is added to benchmarks/results/short-texts.json as it comes. ``train_processors`` is the time of
all processors, which other work on the machine changes less. omikuji: pip install omikuji.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml._core.device import resolve_device
from dxml._core.params import parameters_of, parse_settings
from dxml._core.threads import n_threads
from dxml.bench._machine import circumstances
from dxml.bench.peers import _omikuji_adapter
from dxml.data import make_planted
from dxml.joint import Joint
from dxml.metrics import precision_at_k
from dxml.text import TextFeatures
from dxml.topk import TopK
from stored_results import RESULTS, log_test, read_results, write_results

STORED = RESULTS / "short-texts.json"
HELD = 3000
PRESETS: dict[str, dict[str, Any]] = {
    "parabel": {},
    "bonsai": {"cluster_k": 100, "cluster_balanced": False, "max_depth": 3},
}
Pair = tuple[list[str], sp.csr_matrix]


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    """The texts of a table, and their labels."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [row["text"] for row in rows], [row["labels"] for row in rows]


@cache
def parts(path: Path, test: bool) -> tuple[Pair, Pair]:
    """What is learnt from and what is ranked: texts, and their labels as an indicator."""
    texts, labels = read(path)
    if test:
        others, theirs = read(path.with_name(path.name.replace("train", "test")))
    else:
        order = np.random.default_rng(7).permutation(len(texts))
        held, kept = np.sort(order[:HELD]), np.sort(order[HELD:])
        others, theirs = [texts[i] for i in held], [labels[i] for i in held]
        texts, labels = [texts[i] for i in kept], [labels[i] for i in kept]
    names = {name: i for i, name in enumerate(sorted({each for row in labels for each in row}))}
    return (texts, indicator(labels, names)), (others, indicator(theirs, names))


def indicator(labels: list[list[str]], names: dict[str, int]) -> sp.csr_matrix:
    """Which text carries which label; names that are not known are left out."""
    rows = [sorted(names[each] for each in row if each in names) for row in labels]
    ends = np.cumsum([0, *(len(row) for row in rows)])
    ids = np.array([each for row in rows for each in row], dtype=np.int32)
    return sp.csr_matrix((np.ones(len(ids), bool), ids, ends), (len(rows), len(names)))


@cache
def features(path: Path, test: bool, settings: str) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Rows of both parts."""
    (learnt, _), (ranked, _) = parts(path, test)
    made = TextFeatures(**parse_settings(TextFeatures, json.loads(settings)))
    return made.fit_transform(learnt), made.transform(ranked)


def clocks() -> np.ndarray:
    """That on the wall, and the time that the processors spent for this process."""
    return np.array([time.perf_counter(), time.process_time()])


def spent(begun: np.ndarray, trained: np.ndarray, ended: np.ndarray) -> dict[str, float]:
    """Seconds of training and prediction by both clocks."""
    (train, train_cpu), (predict, predict_cpu) = trained - begun, ended - trained
    return {
        "train": float(train),
        "train_processors": float(train_cpu),
        "predict": float(predict),
        "predict_processors": float(predict_cpu),
    }


def run_joint(path: Path, test: bool, settings: dict[str, str]) -> tuple[TopK, dict[str, Any]]:
    ours = parameters_of(TextFeatures)
    of_texts = {name: value for name, value in settings.items() if name in ours}
    others = {name: value for name, value in settings.items() if name not in ours}
    X, Xt = features(path, test, json.dumps(of_texts, sort_keys=True))
    (learnt, Y), (ranked, _) = parts(path, test)
    model = Joint(**{"scaling": "rows", **parse_settings(Joint, others)})
    begun = clocks()
    model.fit(X, Y, texts=learnt)
    trained = clocks()
    found = model.predict_topk(Xt, 5, texts=ranked)
    seconds = spent(begun, trained, clocks())
    return found, {"seconds": seconds, "stages": model.seconds_, "parts": sorted(model.parts_)}


def run_omikuji(path: Path, test: bool, preset: str) -> tuple[TopK, dict[str, Any]]:
    import omikuji

    X, Xt = features(path, test, "{}")
    settings = omikuji.Model.default_hyper_param()
    for name, value in PRESETS[preset].items():
        setattr(settings, name, value)
    with TemporaryDirectory() as folder:
        prepared = _omikuji_adapter.prepare(X, parts(path, test)[0][1], Path(folder))
        begun = clocks()
        model = omikuji.Model.train_on_data(prepared, settings, n_threads=n_threads())
        trained = clocks()
    found = TopK(*_omikuji_adapter.predict((model, 10), Xt, 5, n_threads()))
    seconds = spent(begun, trained, clocks())
    return found, {"seconds": seconds}


def measure(path: Path, run: str, test: bool) -> dict[str, Any]:
    """One row of the results."""
    method, _, given = run.partition(":")
    if method == "omikuji":
        found, told = run_omikuji(path, test, given or "parabel")
    else:
        settings = dict(each.split("=", 1) for each in given.split(",") if each)
        found, told = run_joint(path, test, settings)
    truth = parts(path, test)[1][1]
    told["seconds"] = {name: round(value, 2) for name, value in told["seconds"].items()}
    if "stages" in told:
        told["stages"] = {name: round(value, 2) for name, value in told["stages"].items()}
    precision = 100 * precision_at_k(truth, found, 5)
    return {
        "table": path.stem,
        "run": run,
        "part": "test" if test else "held out",
        "learnt": parts(path, test)[0][1].shape[0],
        "ranked": truth.shape[0],
        **{f"P@{k}": round(float(precision[k - 1]), 2) for k in (1, 3, 5)},
        **told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("given", nargs="+", metavar="TABLE.jsonl|RUN")
    parser.add_argument("--test", action="store_true", help="rank the test table")
    parser.add_argument("--rounds", type=int, default=1, help="every run so many times")
    parser.add_argument("--results", type=Path, default=STORED)
    asked = parser.parse_args()
    tables = [Path(each) for each in asked.given if each.endswith(".jsonl")]
    runs = [each for each in asked.given if not each.endswith(".jsonl")]
    where = circumstances(device=resolve_device("auto"), seed=0)
    small = make_planted(3000, 300, 300, random_state=0)  # loops are compiled before time is taken
    for candidates in ("all", "nearest"):
        Joint(candidates=candidates, n_trees=1).fit(small.X, small.Y).predict_topk(small.X)
    for table in tables:
        for _ in range(asked.rounds):
            for run in runs:
                row = measure(table, run, asked.test)
                print(*(f"{value}" for value in row.values()), flush=True)
                stored = (read_results(asked.results) or {"runs": []})["runs"]
                write_results(asked.results, {"runs": [*stored, {**row, **where}]})
                if asked.test:
                    log_test(table.stem, run, where, asked.results.parent)


if __name__ == "__main__":
    main()
