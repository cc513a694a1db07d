"""What the engine answers to requests ranked together, and what it keeps of lessons."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dxml._core.compiled import compiled
from dxml.exceptions import ModelFormatError
from dxml.service import _engine
from dxml.service._engine import Engine, Wanted
from dxml.service._errors import ServiceError
from dxml.service._limits import Limits
from dxml.service._served import Served, ServedTagger, open_served
from dxml.tagging._journal import JOURNAL, Journal, Share
from dxml.tagging._tagger import TextTagger
from dxml.text._tokens import WordIds

from .conftest import PATIENCE, wait_until


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


def test_a_lesson_is_cut_once_and_lists_nothing(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A work count: the words of its texts, and not the names and ids of all others."""
    engine = Engine(model)
    cut: list[str] = []
    ids = WordIds.ids

    def counted(self: WordIds, text: str) -> Any:
        cut.append(text)
        return ids(self, text)

    monkeypatch.setattr(WordIds, "ids", counted)
    for listing in ("labels_", "ids_"):
        monkeypatch.setattr(TextTagger, listing, property(lambda self: pytest.fail("listed")))
    done = engine.learn(["herring quay", "?!"], [["Harbour", "Fishery"], []], ["a", "b"])
    assert cut == ["herring quay", "?!"]
    assert (done.new_labels, done.without_known_words) == (["Harbour"], ["b"])
    engine.learn(["a net"], [["Fishery"]], ["a"])
    engine.unlabel("a", "Fishery")
    engine.forget("a")
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
    two.apply_pending()
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


def test_how_many_texts_may_be_taught(model: Path) -> None:
    engine = Engine(model, limits=Limits(taught_points=3))
    learn(engine, "a", "b", "c")
    learn(engine, "a", "b", "c")  # they take the others' place
    with pytest.raises(ServiceError, match="3 texts may be taught. Take them up") as caught:
        learn(engine, "c", "d")
    assert caught.value.type == "conflict" and engine.journal.last() == 2
    engine.forget("a")
    learn(engine, "d")
    engine.close()


def test_each_has_a_share_that_lasts(model: Path) -> None:
    limits = Limits(share_points=4, share_labels=2, share_bytes=600)
    engine = Engine(model, limits=limits)

    def refused(by: str, *lesson: list[Any]) -> str:
        with pytest.raises(ServiceError) as caught:
            engine.learn(*lesson, by=by)
        assert caught.value.type == "conflict"
        return caught.value.message

    engine.learn(["herring", "net"], [["new 1"], ["new 2"]], ["a", "b"], by="desk")
    assert engine.journal.share("desk") == Share("desk", 2, 2, engine.journal.share("desk").bytes)
    assert 50 < engine.journal.share("desk").bytes < 300
    until = "until the lessons are taken up into the model with 'dxml learn --journal'."
    said = refused("desk", ["soup"], [["new 3"]])
    assert said == f"the token 'desk' may teach 2 new labels {until}"
    assert "may teach 4 texts" in refused("desk", ["a", "b", "c"], [["Music"]] * 3)
    assert "may teach 600 bytes" in refused("desk", ["salt " * 120], [["Music"]])
    assert engine.journal.last() == 1  # nothing was kept
    engine.learn(["salt", "spoon"], [["new 1"]] * 2, ["a", "c"], by="desk")  # known by now
    engine.learn(["opera"], [["new 4"]], ["d"], by="other")
    engine.learn(["opera"], [["new 5"]], ["e"])  # who has no limit
    engine.close()
    engine = Engine(model, limits=limits)  # after a restart, in another process
    assert "may teach 4 texts" in refused("desk", ["soup"], [["Music"]])
    assert engine.journal.share("other").points == 1
    engine.journal.compact()
    assert engine.journal.share("desk") == Share("desk")
    engine.learn(["soup"], [["Music"]], by="desk")
    engine.close()


def move_away(model: Path) -> None:
    shutil.move(model, model.with_name("old"))


Away = pytest.mark.parametrize("away", [move_away, shutil.rmtree])


def taught(engine: Engine) -> list[str]:
    return sorted(id for id in engine.served.tagger.ids_ if len(id) == 1)  # type: ignore[attr-defined]


def learn(engine: Engine, *ids: str) -> None:
    engine.learn(["herring soup"] * len(ids), [["Fish soup"]] * len(ids), ids)


@Away
def test_lessons_follow_where_the_folder_was_replaced(
    model: Path, trained: Path, away: Callable[[Path], None]
) -> None:
    engine = Engine(model)
    learn(engine, "a", "b")
    engine.forget("b")
    away(model)
    shutil.copytree(trained, model)
    engine.reload()
    assert taught(engine) == ["a"]
    learn(engine, "c")
    engine.close()
    again = Engine(model)
    assert taught(again) == ["a", "c"]
    actions = [entry.action for entry in again.journal.after(0)]
    assert actions == ["learn", "forget", "reload", "learn"]
    again.close()


@Away
def test_a_lesson_after_the_folder_was_replaced_goes_into_the_new_one(
    model: Path, trained: Path, away: Callable[[Path], None]
) -> None:
    engine = Engine(model)
    learn(engine, "a")
    away(model)
    with pytest.raises(ModelFormatError, match="no model here"):
        learn(engine, "b")
    assert not model.exists() and taught(engine) == ["a"]
    shutil.copytree(trained, model)
    learn(engine, "c")  # nobody has asked for a reload
    engine.close()
    again = Engine(model)
    assert taught(again) == ["a", "c"]
    again.close()


def test_a_copy_that_has_its_own_journal_takes_over_what_it_has_not(model: Path) -> None:
    engine = Engine(model)
    learn(engine, "a", "b")
    engine.forget("b")
    copy = shutil.copytree(model, model.with_name("copy"))
    journal = Journal(copy / JOURNAL)  # taught, then tidied up, before it takes its place
    journal.append("learn", {"texts": ["net"], "labels": [["Fishery"]], "ids": ["x"]})
    journal.compact()
    journal.close()
    learn(engine, "c")
    shutil.move(model, model.with_name("old"))
    shutil.move(copy, model)
    engine.reload()
    assert taught(engine) == ["a", "c", "x"]
    engine.reload()
    learnt = [e.content["ids"] for e in engine.journal.after(0) if e.action == "learn"]
    assert learnt == [["a"], ["x"], ["c"]]
    engine.close()


def test_every_worker_follows_and_nothing_comes_twice(model: Path, trained: Path) -> None:
    one, two = Engine(model), Engine(model)
    learn(one, "a")
    learn(two, "b")
    shutil.rmtree(model)
    shutil.copytree(trained, model)
    one.reload()
    learn(two, "c")
    learn(one, "d")

    def caught_up() -> bool:
        two.apply_pending()
        return taught(two) == list("abcd")

    wait_until(caught_up)
    for engine in (one, two):
        engine.apply_pending()
        assert taught(engine) == list("abcd")
    learnt = [e.content["ids"] for e in one.journal.after(0) if e.action == "learn"]
    assert sorted(learnt) == [["a"], ["b"], ["c"], ["d"]]
    for engine in (one, two):
        engine.close()


def test_labels_change_between_lessons(model: Path) -> None:
    """What was taught before a change has the old name, what is taught later a new label."""
    engine = Engine(model)
    other = Engine(model)
    engine.learn(["trawler at sea"], [["Fishery"]], ids=["before"])
    engine.relabel("rename", ["Fishery"], "Fishing")
    other.learn(["net of gold"], [["Fishery"]], ids=["after"])
    engine.relabel("merge", ["Roads", "Music"], "Noise")
    engine.relabel("delete", ["Kitchen"])
    for each in (engine, other, Engine(model)):
        served = each.apply_pending()
        assert isinstance(served, ServedTagger)
        assert sorted(served.names) == ["Fishery", "Fishing", "Noise"]
        assert served.labels_of("before") == ["Fishing"]
        assert served.labels_of("after") == ["Fishery"]
        each.close()


def test_another_model_may_have_other_labels(model: Path, tmp_path: Path) -> None:
    served = Engine(model).served
    assert isinstance(served, ServedTagger)
    assert served.relabelled_again("rename", ["Gone"], "New") is served
    assert served.relabelled_again("delete", list(served.names), None) is served
    merged = served.relabelled_again("rename", ["Roads"], "Music")
    assert "Roads" not in merged.names and "Music" in merged.names
    renamed = served.relabelled_again("merge", ["Roads", "Gone"], "Way")
    assert "Way" in renamed.names and "Roads" not in renamed.names


def test_an_engine_is_closed_when_no_model_is_being_loaded(
    model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A short command has the journal open while others ask it to load the model again."""
    engine, other = Engine(model), Engine(model)
    go_on, loading = threading.Event(), threading.Event()

    def slow_open(folder: Path) -> Served:
        loading.set()
        assert go_on.wait(PATIENCE)
        return open_served(folder)

    other.reload()
    monkeypatch.setattr("dxml.service._engine.open_served", slow_open)
    engine.apply_pending()
    assert loading.wait(PATIENCE)
    closing = threading.Thread(target=engine.close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive() and engine.journal.last() == 1
    go_on.set()
    closing.join(PATIENCE)
    assert not closing.is_alive() and engine.loads == 2
    engine.reload()
    assert engine.loads == 2  # it is closed
    other.close()
    assert [record.message for record in caplog.records] == []


BUSY_SERVICE = """
import sys
from dxml.service import _engine
from dxml.service._engine import Engine, Wanted

_engine.BUSY = 40
engine = Engine(sys.argv[1])
asked = [Wanted(["apple banana", "cherry"], 2), Wanted(["durian"], 1)]
first = engine.rank(asked)
assert "numba" not in sys.modules
for _ in range(20):
    engine.rank(asked)
engine._rehearsed.join()
assert "numba" in sys.modules and _engine.is_loaded()
compiled = engine.rank(asked)
names = [[[name for name, _ in labels] for labels in request] for request in (first + compiled)]
assert names[:2] == names[2:], names
engine.close()
"""


def test_a_busy_service_comes_to_rank_by_compiled_loops(model: Path) -> None:
    """The first answers need no numba; it is loaded beside later ones."""
    words = [sys.executable, "-c", BUSY_SERVICE, str(model)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_closing_stops_a_rehearsal(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that is being compiled ends; no other one is begun."""
    monkeypatch.setattr(_engine, "BUSY", 1)
    monkeypatch.setattr(_engine, "is_loaded", lambda: False)
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def ranked(served: object, wanted: object) -> list[Any]:
        if threading.current_thread() is threading.main_thread():
            return [[]]
        begun.set()
        go_on.wait(PATIENCE)
        _loop()
        ended.append("no loop was begun")
        return [[]]

    engine = Engine(model)
    monkeypatch.setattr(_engine, "_ranked", ranked)
    engine.rank([Wanted(["apple"], 1)])
    assert begun.wait(PATIENCE)
    engine._stop.set()
    go_on.set()
    engine.close()
    assert engine._rehearsed is not None and not engine._rehearsed.is_alive() and not ended


@compiled()
def _loop():  # type: ignore[no-untyped-def]
    return 1
