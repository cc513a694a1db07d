"""A baseline whose training breaks off in the middle of a step goes on to the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import scipy.linalg

from dxml._core import stages
from dxml._core.stages import open_stages
from dxml._core.threads import n_threads
from dxml.baselines import (
    _gram,
    cplst,
    fastxml,
    leml,
    lpsr,
    ml_cssp,
    one_vs_all,
    sleec,
    wsabie,
)
from dxml.data import Dataset, make_planted
from dxml.methods import method_class

from .test_resuming import DATA, BrokenOff, content

OTHER = make_planted(150, 40, 8, labels_per_point=2, features_per_point=8, random_state=5)


@dataclass(frozen=True)
class Kind:
    """A training, and the function whose calls are its work."""

    method: str
    where: Any
    function: str
    settings: dict[str, Any] = field(default_factory=dict)
    together: int = 1  # calls whose results are stored as one
    again: int = 0  # calls that go on from a state, also from the last one
    direct: int = 0  # features, points or labels up to which a square matrix is stored


KINDS = {
    "fastxml": Kind("fastxml", fastxml, "grow", {"n_trees": 7, "leaf_size": 4}),
    "one-vs-all": Kind("one-vs-all", one_vs_all, "train_labels"),
    "logistic": Kind("one-vs-all", one_vs_all, "logistic", {"loss": "logistic"}, together=2),
    "lpsr": Kind("lpsr", lpsr, "two_means", {"leaf_size": 12}),
    "lpsr, base": Kind("lpsr", one_vs_all, "train_labels"),
    "naive Bayes": Kind("lpsr", lpsr, "two_means", {"leaf_size": 12, "base": "naive_bayes"}),
    "leml": Kind("leml", leml, "_turn", {"tol": 0.0, "max_iter": 6}),
    "wsabie": Kind("wsabie", wsabie, "_descend", {"dim": 4, "epochs": 3}),
    "sleec": Kind(
        "sleec", sleec, "singular_value_projection", {"dim": 4, "n_learners": 2, "n_clusters": 3}
    ),
    "cplst": Kind("cplst", _gram, "conjugate_gradient", {"dim": 3}, again=1),
    "cplst, directly": Kind("cplst", scipy.linalg, "eigh", {"dim": 3}, direct=100),
    "regression": Kind("cs", _gram.Gram, "__matmul__", {"dim": 6}),
    "ml-cssp": Kind("ml-cssp", _gram.Gram, "__matmul__", {"dim": 6}),
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much is stored, and little is tried."""
    monkeypatch.setattr(stages, "LEAST", 0.0)
    monkeypatch.setattr("os.fsync", lambda file: None)
    monkeypatch.setattr(fastxml, "COSTS", (1.0, 2.0))
    monkeypatch.setattr(fastxml, "N_TRIAL_TREES", 2)
    monkeypatch.setattr(one_vs_all, "WORK", 1)
    monkeypatch.setattr(one_vs_all, "MIN_LABELS", 2)
    monkeypatch.setattr(one_vs_all, "n_threads", lambda: 2)
    monkeypatch.setattr(wsabie, "POINTS", 40)


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[dict[str, Any], int]]:
    """Train a kind, which breaks off at a call of its work; the model, and the calls."""

    def run(
        kind: Kind, data: Dataset = DATA, at: int = 0, **changes: Any
    ) -> tuple[dict[str, Any], int]:
        real, calls = getattr(kind.where, kind.function), 0

        def counted(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise BrokenOff
            return real(*arguments, **named)

        with monkeypatch.context() as patch:
            for function in (
                _gram.Gram.__init__,
                cplst.conditional_directions,
                ml_cssp.leverage_scores,
            ):
                patch.setattr(function, "__defaults__", (kind.direct,))
            patch.setattr(kind.where, kind.function, counted)
            estimator = method_class(kind.method)(**kind.settings, **changes)
            return content(estimator.fit(data.X, data.Y)), calls

    return run


@pytest.mark.parametrize("name", KINDS)
def test_to_the_same_bits(
    name: str, tmp_path: Path, train: Callable[..., tuple[dict[str, Any], int]]
) -> None:
    kind = KINDS[name]
    expected, whole = train(kind)
    for at in sorted({(whole + 1) // 2, whole}):
        folder = tmp_path / str(at)
        with pytest.raises(BrokenOff), open_stages(folder):
            train(kind, at=at)
        with open_stages(folder, resume=True):
            found, calls = train(kind)
            assert found == expected
            assert whole - calls >= (at - 1) - (at - 1) % kind.together - n_threads() + 1
            assert train(kind) == (expected, kind.again)


@pytest.mark.parametrize("name", KINDS)
def test_others_take_up_nothing(
    name: str, tmp_path: Path, train: Callable[..., tuple[dict[str, Any], int]]
) -> None:
    """What decides nothing of a step may be another: the nodes of LPSR know no labels."""
    kind = KINDS[name]
    seeded = train(kind, random_state=1)
    others = [OTHER, replace(DATA, X=OTHER.X), replace(DATA, Y=OTHER.Y)]
    expected = [train(kind, data) for data in others]
    with open_stages(tmp_path):
        whole = train(kind)
        for data, undisturbed in zip(others, expected, strict=True):
            found, calls = train(kind, data)
            assert found == undisturbed[0]
            assert calls == undisturbed[1] or name in ("lpsr", "naive Bayes")
        found, calls = train(kind, random_state=1)
        assert found == seeded[0]
        assert calls == seeded[1] or found == whole[0]
