"""What the engine answers to requests that are ranked together."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dxml.service.engine import Engine, Wanted
from dxml.service.errors import ServiceError
from dxml.service.served import ServedTagger


def test_a_number_that_is_too_large_fails_alone(trained_joint: Path, tmp_path: Path) -> None:
    engine = Engine(shutil.copytree(trained_joint, tmp_path / "m"))
    good = [Wanted([{1: 1.0, 3: 2.0}], 2), Wanted([{5: 0.5}, {7: 1e30}], 3)]
    alone = [engine.rank([wanted])[0] for wanted in good]
    assert all(isinstance(rows, list) for rows in alone)
    for value in (1e300, -3.5e38):
        first, bad, second = engine.rank([good[0], Wanted([{3: value}], 1), good[1]])
        assert [first, second] == alone
        assert isinstance(bad, ServiceError) and bad.type == "invalid"
        assert bad.message == f"values go up to 3.4e+38, got {value:g} for feature 3."
    [largest] = engine.rank([Wanted([{3: 3.4e38}], 1)])
    assert isinstance(largest, list)
    engine.close()


def test_a_request_that_cannot_be_ranked_fails_alone(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = ServedTagger.rank

    def fragile(self: ServedTagger, points: Any, top: int) -> Any:
        if "poison" in points:
            raise ZeroDivisionError
        return rank(self, points, top)

    monkeypatch.setattr(ServedTagger, "rank", fragile)
    engine = Engine(model)
    wanted = [Wanted([text], 1) for text in ("herring net", "poison", "opera violin")]
    first, bad, second = engine.rank(wanted)
    assert isinstance(bad, ZeroDivisionError)
    assert isinstance(first, list) and isinstance(second, list)
    assert [first[0][0][0], second[0][0][0]] == ["Fishery", "Music"]
    engine.close()
