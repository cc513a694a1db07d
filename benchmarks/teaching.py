"""How well, and how fast, a trained model takes up points with labels it has never seen.

    python benchmarks/teaching.py             # the test points, stored as results/teaching.json
    python benchmarks/teaching.py --choose    # settings tried on points held out of the training
                                              # part, stored as results/teaching-choices.json
    python benchmarks/teaching.py --page      # docs/guide/tagging.md's table from what is stored

A tenth of the labels of PubMed-MeSH is drawn, and the training points that carry one of them are
held back, which is nearly half. A model is trained on the rest; the points held back are then
added, the model catches up, and is trained again. Its words are those of the points that were not
held back; "trained anew" has the words of all of them.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml.bench._machine import circumstances
from dxml.bench._sources import load_parts
from dxml.data import load_dataset, load_texts
from dxml.joint import Joint
from dxml.joint.parts import _linear as linear
from dxml.joint.parts import _wide as wide
from dxml.metrics import precision_at_k, recall_at_k
from dxml.text._features import TextFeatures
from dxml.topk import TopK
from stored_results import log_test, part_of, read_results, write_results

PART = part_of("docs/guide/tagging.md", "teaching", "teaching")
HELD_LABELS = 0.1
HELD_POINTS = 0.2  # of the training points, to choose by
FEW = 1000

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Points to train on, to add and to score; the labels held out are the last columns.

    Attributes
    ----------
    known, added, test : (X, Y)
    n_labels : int
        Labels that are known before anything is added.
    anew : (X of all training points, X of the test points), optional
        With features learnt from all training points.
    """

    known: tuple[sp.csr_matrix, sp.csr_matrix]
    added: tuple[sp.csr_matrix, sp.csr_matrix]
    test: tuple[sp.csr_matrix, sp.csr_matrix]
    n_labels: int
    anew: tuple[sp.csr_matrix, sp.csr_matrix] | None = None

    def few(self, most: int = FEW) -> Case:
        """With this many points to add, at most."""
        return replace(self, added=(self.added[0][:most], self.added[1][:most]))


def make_case(
    Y: sp.csr_matrix, test_Y: sp.csr_matrix, features: Callable[[Any, Any], tuple[Any, ...]]
) -> Case:
    """Hold labels and their points back.

    `features` is given the rows of the known and of the added points, and gives the features of
    these, of the test points, and `Case.anew`.
    """
    labels = np.random.default_rng(0).permutation(Y.shape[1])
    n_labels = Y.shape[1] - round(HELD_LABELS * Y.shape[1])
    columns = np.concatenate([np.sort(labels[:n_labels]), np.sort(labels[n_labels:])])
    Y, test_Y = Y[:, columns].tocsr(), test_Y[:, columns].tocsr()
    carry = np.diff(Y[:, n_labels:].tocsr().indptr) > 0
    known, added = np.flatnonzero(~carry), np.flatnonzero(carry)
    known_X, added_X, test_X, anew = features(known, added)
    first = known_X, Y[known][:, :n_labels].tocsr()
    return Case(first, (added_X, Y[added]), (test_X, test_Y), n_labels, anew)


def case_of_features(name: str) -> Case:
    """A data set of features; what is scored is held out of its training part."""
    train, test = load_parts(name, 1, "validation")
    return make_case(
        train.Y, test.Y, lambda known, added: (train.X[known], train.X[added], test.X, None)
    )


def case_of_texts(name: str, choosing: bool) -> Case:
    """A data set of texts, whose words are learnt from the known points."""
    texts, Y = np.array(load_texts(name, "train").texts, dtype=object), load_dataset(name).Y
    if choosing:
        order = np.random.default_rng(1).permutation(len(texts))
        held, kept = np.split(order, [round(HELD_POINTS * len(texts))])
        test_texts, test_Y, texts, Y = texts[held], Y[held], texts[kept], Y[kept]
    else:
        test_texts, test_Y = load_texts(name, "test").texts, load_dataset(name, "test").Y

    def features(known: Any, added: Any) -> tuple[Any, ...]:
        first, both = TextFeatures(), TextFeatures()
        known_X = first.fit_transform(texts[known].tolist())
        added_X, test_X = (first.transform(list(each)) for each in (texts[added], test_texts))
        anew = both.fit_transform([*texts[known], *texts[added]])
        return known_X, added_X, test_X, (anew, both.transform(list(test_texts)))

    return make_case(Y, test_Y, features)


def score(model: Joint, case: Case, test_X: sp.csr_matrix | None = None) -> Row:
    """P@1, 3 and 5 of all points and of those with held-out labels; how many of these are found."""
    X, Y = case.test
    ranking = model.predict_topk(X if test_X is None else test_X, 5)
    fresh = Y[:, case.n_labels :].tocsr()
    rows = np.diff(fresh.indptr) > 0
    only = sp.csr_matrix(sp.hstack([sp.csr_matrix((Y.shape[0], case.n_labels), dtype=bool), fresh]))
    of_rows = TopK(ranking.indices[rows], ranking.scores[rows])
    return {
        "with held-out labels": _percent(precision_at_k(Y[rows], of_rows, 5)[[0, 2, 4]]),
        "all": _percent(precision_at_k(Y, ranking, 5)[[0, 2, 4]]),
        "held-out labels found": _percent(recall_at_k(only[rows], of_rows, 5)[[4]])[0],
    }


def _percent(values: Any) -> list[float]:
    return [round(100 * float(value), 2) for value in values]


def timed(what: str, teach: Callable[[], Joint], case: Case, **more: Any) -> tuple[Joint, Row]:
    start = time.perf_counter()
    model = teach()
    seconds = round(time.perf_counter() - start, 2)
    row = {"what": what, "seconds": seconds, **score(model, case, **more)}
    print(row, flush=True)
    return model, row


def measure(case: Case, model: Joint) -> list[Row]:
    """Trained, added, caught up, trained again on the same features, and on features of all."""
    first, before = timed("before adding", lambda: model.fit(*case.known), case)
    added, after = timed("added", lambda: copy.copy(first).partial_fit(*case.added), case)
    rows = [before, after]
    rows.append(timed("added, caught up", lambda: copy.copy(added).catch_up(), case)[1])
    rows.append(timed("added, trained again", lambda: copy.copy(added).refit(), case)[1])
    if case.anew is not None:
        X, test_X = case.anew
        widened = sp.csr_matrix(
            (case.known[1].data, case.known[1].indices, case.known[1].indptr),
            shape=(case.known[1].shape[0], case.added[1].shape[1]),
        )
        Y = sp.csr_matrix(sp.vstack([widened, case.added[1]]))
        anew = Joint(**model.get_params())
        rows.append(timed("trained anew", lambda: anew.fit(X, Y), case, test_X=test_X)[1])
    return rows


@contextmanager
def setting(module: Any, **values: float) -> Iterator[None]:
    """Inside, constants of a module have other values."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


def choose() -> list[Row]:
    """What is tried for the constants of the linear and the wide part."""
    rows = []

    def keep(data: str, case: Case, how: str, teach: Callable[[], Joint], **more: Any) -> None:
        row = timed(how, teach, case)[1]
        del row["seconds"]  # what else the machine had to do is not known here
        rows.append({"data": data, "added": case.added[0].shape[0], **more, **row})

    def tried(data: str, case: Case, teach: Callable[[], Joint], module: Any, **more: Any) -> None:
        values = {name: value for name, value in more.items() if name.isupper()}
        how = ", ".join(f"{name} {value:g}" for name, value in values.items())
        others = {name: value for name, value in more.items() if name not in values}
        with setting(module, **values):
            keep(data, case, how, teach, **others)

    whole = case_of_texts("pubmed-mesh", choosing=True)
    first = Joint(device="cpu").fit(*whole.known)
    for name, case in (("pubmed-mesh", whole), ("eurlex-4k", case_of_features("eurlex-4k"))):
        known = first if case is whole else Joint(device="cpu").fit(*case.known)
        n = case.added[0].shape[0]
        for some, lesson in ((case.few(150), 1), (case.few(), 20), (case.few(), FEW), (case, n)):
            for news in (0.0, 0.1, 0.2, 0.4, 1.0):
                teach = partial(in_lessons, known, some, lesson)
                tried(name, some, teach, linear, NEW_SHARE=news, lessons_of=lesson)
    for case in (whole.few(), whole):
        added = copy.copy(first).partial_fit(*case.added)
        for passes, nearby in product((1, 2, 3), (0.05, 0.1, 0.25, 1.0)):
            teach = copy.copy(added).catch_up
            tried("pubmed-mesh", case, teach, linear, TRAIN_ON_C=nearby, TRAIN_ON_ITER=passes)
        keep("pubmed-mesh", case, "trained again", copy.copy(added).refit)
    case = case_of_features("delicious")
    model = Joint(device="cpu", candidates="nearest", width=512)
    added = model.fit(*case.known).partial_fit(*case.added)
    keep("delicious", case, "added", lambda: added)
    for epochs in (0.1, 0.2, 0.4):
        teach = copy.copy(added).catch_up
        tried("delicious", case, teach, wide, TRAIN_ON_EPOCHS=epochs)
    keep("delicious", case, "trained again", copy.copy(added).refit)
    return rows


def in_lessons(known: Joint, case: Case, size: int) -> Joint:
    """A model that was taught the points to add, some at a time."""
    model, (X, Y) = copy.copy(known), case.added
    for start in range(0, X.shape[0], size):
        model.partial_fit(X[start : start + size], Y[start : start + size])
    return model


def store(name: str, rows: list[Row], **more: Any) -> None:
    record = {
        **more,
        **circumstances(device="cpu", seed=0),
        "rows": rows,
    }
    write_results(f"{name}.json", record)
    if name == "teaching":
        log_test("pubmed-mesh", "joint", record)


def render() -> str:
    """The table of the page."""
    stored = read_results("teaching.json")
    lines = [
        "| | P@1 / 3 / 5, texts with a held-out label | held-out labels in the top 5 "
        "| P@1 / 3 / 5, all texts | seconds |",
        "|---|---|---|---|---|",
    ]
    for row in stored["rows"]:
        fresh, every = (
            " / ".join(f"{value:.1f}" for value in row[which])
            for which in ("with held-out labels", "all")
        )
        found = f"{row['held-out labels found']:.1f} %"
        lines.append(f"| {row['what']} | {fresh} | {found} | {every} | {row['seconds']:.1f} |")
    points, scored, labels = stored["points"], stored["scored"], stored["labels"]
    return "\n".join(
        [
            *lines,
            "",
            f"PubMed-MeSH: {points['known']:,} texts without the {labels['held out']:,} labels "
            f"that were held out, {points['added']:,} texts with one of them added later, "
            f"{scored['all']:,} test texts, {scored['with held-out labels']:,} of them with one. "
            "Seconds are those of the last step alone; words are those of the texts that were not "
            'held out, but for "trained anew", which learns them from all texts. '
            f"Adding {FEW:,} texts took {stored['few']['seconds']:.2f} s. "
            f"`{stored['command']}` on {stored['machine']}, {stored['date']}.",
        ]
    )


def write_page() -> None:
    PART.write(render())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--choose", action="store_true", help="try settings on held-out points")
    parser.add_argument("--page", action="store_true", help="only write the page's table")
    options = parser.parse_args()
    if options.page:
        write_page()
    elif options.choose:
        store("teaching-choices", choose())
    else:
        case = case_of_texts("pubmed-mesh", choosing=False)
        model = Joint(device="cpu")
        rows = measure(case, model)
        few = case.few()
        copy.copy(model).partial_fit(few.added[0][:10], few.added[1][:10])  # compiled by now
        _, row = timed(f"{FEW} added", lambda: copy.copy(model).partial_fit(*few.added), few)
        fresh = np.diff(case.test[1][:, case.n_labels :].tocsr().indptr) > 0
        store(
            "teaching",
            rows,
            few=row,
            points={"known": case.known[0].shape[0], "added": case.added[0].shape[0]},
            scored={"all": len(fresh), "with held-out labels": int(fresh.sum())},
            labels={"known": case.n_labels, "held out": case.test[1].shape[1] - case.n_labels},
        )
        write_page()


if __name__ == "__main__":
    main()
