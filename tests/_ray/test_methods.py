"""Every method is ranked on a cluster as it is here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dxml._core.blocks import running_on
from dxml._core.cluster import RayCluster
from dxml.base import Classifier
from dxml.data import make_planted
from dxml.methods import method_class
from dxml.tagging import TextTagger
from dxml.topk import TopK

from .._deep.planting import FILLER, WORDS
from ..test_contract import CHEAP

pytestmark = pytest.mark.ray

CLOSE = 0.002  # of scores where threads are counted: docs/what-holds.md


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Classifier, "batch_rows", 50)


def check_close(found: TopK, expected: TopK) -> None:
    np.testing.assert_allclose(found.scores, expected.scores, rtol=CLOSE, atol=CLOSE)
    assert (found.indices == expected.indices).mean() > 0.99


@pytest.mark.parametrize("name", CHEAP)
def test_rankings(name: str, cluster: RayCluster) -> None:
    data = make_planted(200, 60, 12, 2, 12, random_state=1)
    model = method_class(name.partition("/")[0])(**CHEAP[name]).fit(data.X, data.Y)
    expected, before = model.predict_topk(data.X, 3), cluster.traffic.blocks
    with running_on(cluster):
        found = model.predict_topk(data.X, 3)
    assert cluster.traffic.blocks == before + 4
    check_close(found, expected)


def test_a_tagger_with_an_encoder(cluster: RayCluster, encoder_folder: Path) -> None:
    rng = np.random.default_rng(0)
    words = [sorted(set(rng.choice(WORDS, 2))) for _ in range(120)]
    texts = [" ".join([*own, *rng.choice(FILLER, 4)]) for own in words]
    tagger = TextTagger(encoder=str(encoder_folder), encoder_epochs=1).fit(texts, words)
    assert "deep" in tagger.model.parts_
    expected, before = tagger.rank(texts, 3), cluster.traffic.blocks
    with running_on(cluster):
        found = tagger.rank(texts, 3)
    assert cluster.traffic.blocks > before
    check_close(found, expected)
