"""Stored results: all there or not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dxml.bench._results import Store, Stored, write_json
from dxml.bench._spec import Run
from dxml.exceptions import DataFormatError
from dxml.topk import TopK

RUN = Run("bibtex", 1, "knn", (("power", 2.0),), 0)


def test_what_is_stored_comes_back(store: Store, put: Callable[..., Stored]) -> None:
    assert store.get(RUN) is None
    put(RUN, [[3, 1, -1]])
    stored = store.get(RUN)
    assert stored is not None and stored.run == RUN and stored.status == "done"
    assert stored.ranking().indices.tolist() == [[3, 1, -1]]
    assert (
        stored.ranking().indices.dtype == np.int32 and stored.ranking().scores.dtype == np.float32
    )
    assert [s.run for s in store] == [RUN]


def test_a_new_result_replaces_the_old(store: Store, put: Callable[..., Stored]) -> None:
    first = put(RUN, [[1]])
    write_json(first.folder / "scores.json", {"old": True})
    second = put(RUN, [[2]])
    assert second.folder == first.folder
    assert second.ranking().indices.tolist() == [[2]]
    assert not (second.folder / "scores.json").exists()


def test_an_interrupted_write_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dxml.bench._results.write_json", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.put(RUN, {}, TopK(np.zeros((1, 1), np.int32), np.zeros((1, 1), np.float32)))
    assert store.get(RUN) is None and list(store) == []
    assert store.partial(RUN).exists()
    store.discard_partial(RUN)
    assert list(store.raw.iterdir()) == []


def test_a_changed_default_makes_a_result_stale(store: Store, put: Callable[..., Stored]) -> None:
    assert not put(RUN, [[1]], parameters={"power": 2.0, "scaling": "auto"}).stale
    assert put(RUN, [[1]], parameters={"power": 2.0, "scaling": "unheard of"}).stale
    assert not put(RUN, [[1]], parameters={"power": 2.0, "removed since": 1}).stale
    assert not put(RUN, [[1]], parameters={"power": 2.0, "random_state": 7}).stale


def test_an_unknown_format_is_named(store: Store, put: Callable[..., Stored]) -> None:
    path: Path = put(RUN, [[1]]).folder / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(
        DataFormatError, match="format 99 is not 1. Remove the folder and run again"
    ):
        store.get(RUN)


def test_it_is_written_down_when_test_points_are_scored(
    store: Store, put: Callable[..., Stored]
) -> None:
    run, held_out = RUN, replace(RUN, part="validation")
    assert store.scored_on_test([run], "1") == 0
    put(run, [[2]], versions={"dxml": "1"}, settings={"threads": 2, "command": "dxml bench run x"})
    put(held_out, [[2]], versions={"dxml": "1"})
    (line,) = map(json.loads, store.test_log.read_text("utf-8").splitlines())
    assert (line["run"], line["command"]) == (str(run), "dxml bench run x")
    assert store.scored_on_test([run, held_out], "1") == 1
    assert store.scored_on_test([run], "2") == 0  # a new version may score once more
