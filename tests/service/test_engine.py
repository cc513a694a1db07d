"""What the engine answers to requests ranked together, and what it keeps of lessons."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dxml.service.engine import Engine, Wanted
from dxml.service.errors import ServiceError
from dxml.service.limits import Limits
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


@pytest.mark.parametrize("wrong", [MemoryError, ZeroDivisionError])
def test_what_cannot_be_learnt_is_not_kept(
    model: Path, monkeypatch: pytest.MonkeyPatch, wrong: type[Exception]
) -> None:
    engine = Engine(model)
    before = engine.served
    with monkeypatch.context() as patch:
        for change in ("learnt", "forgotten", "unlabelled"):
            patch.setattr(ServedTagger, change, lambda *_: (_ for _ in ()).throw(wrong))
        expected = ServiceError if wrong is MemoryError else wrong
        with pytest.raises(expected):
            engine.learn(["herring soup"], [["Fish soup"]], ["a"])
        with pytest.raises(expected):
            engine.forget("doc/1")
        with pytest.raises(expected):
            engine.unlabel("doc/1", before.tagger.labels_of("doc/1")[0])  # type: ignore[attr-defined]
    assert (engine.served, engine.applied, engine.journal.last()) == (before, 0, 0)
    engine.learn(["herring soup"], [["Fish soup"]], ["a"])
    assert engine.applied == engine.journal.last() == 1
    engine.close()


def test_a_lesson_is_learnt_after_those_that_others_wrote_meanwhile(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Engine(model), Engine(model)
    learnt = ServedTagger.learnt

    def meanwhile(self: ServedTagger, texts: Any, labels: Any, ids: Any) -> ServedTagger:
        monkeypatch.setattr(ServedTagger, "learnt", learnt)
        two.learn(["opera net"], [["Second"]], ["b"])
        return learnt(self, texts, labels, ids)

    monkeypatch.setattr(ServedTagger, "learnt", meanwhile)
    one.learn(["herring soup"], [["First"]], ["a"])
    assert [entry.content["ids"] for entry in one.journal.after(0)] == [["b"], ["a"]]
    two.catch_up()
    for engine in (one, two):
        assert engine.applied == 2
        assert [name for name, _ in engine.labels("")][-2:] == ["First", "Second"]
        engine.close()


def test_how_much_may_be_taught(model: Path) -> None:
    limits = Limits(new_labels=3, taught_labels=5)
    engine = Engine(model, limits=limits)
    names = [f"new {i}" for i in range(9)]
    with pytest.raises(ServiceError, match=r"a request may have 3 new labels, got 4\.") as caught:
        engine.learn(["herring", "net"], [names[:2], names[2:4]])
    assert caught.value.type == "too_large"
    engine.learn(["herring"], [[*names[:3], "Fishery", "Music"]], ["a"])
    engine.learn(["net"], [names[3:5]], ["b"])
    with pytest.raises(ServiceError, match="5 new labels were taught, and 5 may be") as caught:
        engine.learn(["net"], [names[5:6]])
    assert caught.value.type == "conflict"
    engine.learn(["soup"], [[names[0], "Kitchen"]])  # known by now
    assert engine.journal.last() == 3
    engine.close()
    again = Engine(model, limits=limits)  # applied again, they still count
    with pytest.raises(ServiceError, match="dxml learn --journal"):
        again.learn(["net"], [names[5:6]])
    again.close()
    full = Engine(model, limits=Limits(journal_bytes=1000))
    with pytest.raises(ServiceError, match="the journal may have 1,000 bytes, and has"):
        full.learn(["net"], [["Fishery"]])
    assert full.journal.last() == 3
    full.close()
