"""Labels of points without a known feature: by hand, in every form that points are held in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from dxml import TextTagger
from dxml._core.holes import NO_HOLES
from dxml.joint import _wordless as module
from dxml.joint._points import FeatureSpace, Known
from dxml.joint._stored_points import StoredPoints
from dxml.topk import tie_order

# Features 0 and 1 are shared. Points 2 and 4 have features of their own alone, and 5 has none.
NONE = [0] * 5
ROWS = [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1], NONE]
CARRIED = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]]


def held(rows: list[list[int]], labels: list[list[int]], *, stored: bool = False) -> Known:
    X = sp.csr_matrix(np.array(rows, np.float32))
    Y = sp.csr_matrix(np.array(labels, bool))
    searched = np.ones(X.shape[1], bool)
    order = tie_order(np.bincount(Y.indices, minlength=Y.shape[1]))
    points = StoredPoints.of(X, searched, "float16") if stored else X
    return Known(points, Y, order, FeatureSpace(points, searched))


@pytest.mark.parametrize("stored", [False, True])
def test_points_that_share_no_feature_are_those_that_others_would_not_know(stored: bool) -> None:
    known = held(ROWS, CARRIED, stored=stored)
    assert module.unlike_others(known).tolist() == [False, False, True, False, True, True]


@pytest.mark.parametrize("stored", [False, True])
def test_a_dropped_point_shares_nothing_and_is_not_counted(stored: bool) -> None:
    known = replace(held(ROWS, CARRIED, stored=stored), holes=NO_HOLES.add(np.array([0, 5])))
    assert module.unlike_others(known).tolist() == [False, True, True, True, True, False]


def test_words_of_few_texts_may_have_been_left_out() -> None:
    """Every feature has two points: without one of them it would have been none."""
    known = held([[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1], [0, 0, 1]], [[1]] * 5)
    assert module.unlike_others(known).tolist() == [True, True, False, False, False]


def test_features_of_many_points_are_always_known() -> None:
    rows = [[1, 0]] * 11 + [[0, 1]] * 12
    assert not module.unlike_others(held(rows, [[1]] * 23)).any()


def test_shares_are_held_near_those_of_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three such points two carry label 1 and two label 2; of all six 3, 2 and 2 carry each."""
    monkeypatch.setattr(module, "WORTH", 3.0)
    labels, shares = module.wordless_ranking(held(ROWS, CARRIED))
    assert labels.tolist() == [1, 2, 0]  # the first two are as frequent as each other
    np.testing.assert_allclose(shares, [(2 + 1) / 6, (2 + 1) / 6, 1.5 / 6], rtol=1e-6)


def test_a_text_without_a_known_word_gets_the_labels_of_such_texts() -> None:
    """Animals have one name each, and texts on music share their words."""
    music = [f"song {word} piano chord" for word in ("slow", "quick", "loud", "old") for _ in "123"]
    animals = [f"animal{i}" for i in range(8)]
    tagger = TextTagger(min_df=1).fit(
        [*music, *animals], [["music"]] * len(music) + [["animal"]] * len(animals)
    )
    [tags] = tagger.tag(["okapi"], top=2)
    assert tags[0].name == "animal"
    assert tags[0].probability == pytest.approx((8 + module.WORTH * 8 / 20) / (8 + module.WORTH))
