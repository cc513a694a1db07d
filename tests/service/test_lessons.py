"""Lessons: shared by workers, applied at a start, and kept with the saved model."""

from __future__ import annotations

import logging
import shutil
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dxml._core.locking import folder_lock
from dxml.exceptions import ParameterError
from dxml.service import _engine as engine_module
from dxml.service._engine import Engine, Wanted
from dxml.service._limits import Limits
from dxml.service._settling import apply_journal, compact_journal, undo_lesson
from dxml.tagging._journal import JOURNAL, Journal
from dxml.tagging._tagger import AppliedLessons, TextTagger

from .conftest import PATIENCE, client_of, make_texts, names_of, wait_until

SOUP = {"texts": ["herring soup"] * 2, "labels": [["Fish soup"]] * 2, "ids": ["a", "b"]}


def first_name(engine: Engine, text: str) -> str:
    [rows] = engine.rank([Wanted([text], 1)])
    assert isinstance(rows, list)
    return rows[0][0][0]


def test_two_workers_see_each_others_lessons(model: Path) -> None:
    with client_of(model) as one, client_of(model) as two:
        assert one.post("/learn", json=SOUP).json()["new_labels"] == ["Fish soup"]
        assert names_of(two, "soup of herring") == ["Fish soup"]
        assert two.get("/labels?query=soup").json()["total"] == 1
        assert two.delete("/points/a").status_code == 204
        assert one.delete("/points/a").status_code == 404
        assert one.delete("/points/b").status_code == 204
        assert "Fish soup" not in names_of(two, "soup of herring", top=10)
        assert two.get("/health").json() == one.get("/health").json()


def test_a_worker_that_starts_later_knows_the_same(model: Path) -> None:
    first = Engine(model)
    for i in range(5):  # lessons of their own are learnt together when replayed
        first.learn(["herring soup"], [["Fish soup"]], [f"taught {i % 4}"])
    first.forget("doc/3")
    second = Engine(model)
    assert (second.applied, second.served.n_points) == (6, 83) == (6, first.served.n_points)
    assert first_name(second, "soup of herring") == "Fish soup"
    first.close()
    second.close()


def test_a_lesson_that_cannot_be_applied_is_left_out(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(model)
    engine.journal.append("learn", {"texts": ["x"], "labels": [[""]], "ids": ["bad"]})
    engine.journal.append("learn", SOUP)
    engine.journal.append("forget", {"id": "never there"})
    with caplog.at_level(logging.ERROR):
        assert first_name(engine, "soup of herring") == "Fish soup"
    assert "entry 1 of the journal was left out" in caplog.text
    assert engine.applied == 3
    engine.close()


def test_a_reload_reaches_the_other_workers(model: Path) -> None:
    one, two = Engine(model), Engine(model)
    before = two.served
    one.reload()
    two.apply_pending()
    wait_until(lambda: two.served is not before)
    after = one.served
    assert one.apply_pending() is after  # its own wish is not one for itself
    with two._loading:
        pass
    one.close()
    two.close()


def lesson(*ids: str, label: str = "Fish soup") -> dict[str, list[Any]]:
    return {"texts": ["herring soup"] * len(ids), "labels": [[label]] * len(ids), "ids": list(ids)}


def test_entries_that_are_dropped_while_they_are_looked_up(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker teaches a text again and compacts, between asking for the last and for all."""
    engine, other = Engine(model), Journal(model / JOURNAL)
    other.append("learn", lesson("a", label="Old"))
    last = engine.journal.last

    def meanwhile() -> int:
        found = last()
        other.append("learn", lesson("a", label="New"))
        assert other.compact() == 1
        monkeypatch.setattr(engine.journal, "last", last)
        return found

    monkeypatch.setattr(engine.journal, "last", meanwhile)
    engine.apply_pending()
    assert [name for name, _ in engine.labels("New")] == ["New"] and not engine.labels("Old")


def state(engine: Engine) -> tuple[Any, ...]:
    """What a model knows: its texts with their labels."""
    tagger = engine.served.tagger  # type: ignore[attr-defined]
    return tuple(sorted((id, *sorted(tagger.labels_of(id))) for id in tagger.ids_))


def teach(model: Path) -> tuple[Any, ...]:
    """Four lessons, one of them void; what the model then knows."""
    engine = Engine(model)
    engine.learn(["herring soup"], [["Soup", "Fish soup"]], ["a"])
    engine.learn(["herring soup"] * 2, [["Fish soup", "Opera"], ["Fish soup"]], ["a", "b"])
    engine.unlabel("a", "Opera")
    engine.forget("doc/3")
    known = state(engine)
    engine.close()
    return known


def test_applied_lessons_are_not_applied_again(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = teach(model)
    assert ("a", "Fish soup") in known and not any(text[0] == "doc/3" for text in known)
    tagger = apply_journal(model)
    tagger.save(model)
    assert compact_journal(model) == 1
    journal = Journal(model / JOURNAL)
    assert tagger.applied_lessons == AppliedLessons(journal.identity, 4)
    journal.append("learn", lesson("c"))

    applied: list[int] = []
    before = engine_module.apply

    def noting(served: Any, step: Any) -> Any:
        applied.extend(entry.number for entry in step)
        return before(served, step)

    monkeypatch.setattr(engine_module, "apply", noting)
    engine = Engine(model)
    assert applied == [5, 6]  # the reload that compacting asks for, and what came later
    assert state(engine) == tuple(sorted([*known, ("c", "Fish soup")]))
    assert engine.applied == 6
    engine.close()
    journal.close()


def test_whatever_is_killed_while_lessons_are_applied_nothing_is_lost(model: Path) -> None:
    known = teach(model)
    apply_journal(model)  # killed before the model was saved
    for _ in range(2):
        engine = Engine(model)
        assert state(engine) == known
        engine.close()
    apply_journal(model).save(model)  # killed before the journal was told
    engine = Engine(model)
    assert (state(engine), engine.applied) == (known, 4)
    engine.close()
    apply_journal(model).save(model)  # and once more, whole
    compact_journal(model)
    engine = Engine(model)
    assert (state(engine), first_name(engine, "soup of herring")) == (known, "Fish soup")
    engine.close()


def test_another_model_learns_lessons_that_an_older_one_had_applied(
    model: Path, trained: Path
) -> None:
    known = teach(model)
    apply_journal(model).save(model)
    compact_journal(model)
    TextTagger.load(trained).save(model)  # trained anew: it knows of no lessons
    engine = Engine(model)
    assert state(engine) == known
    engine.close()
    with pytest.raises(ParameterError, match=f"has no {JOURNAL}; no service was taught anything"):
        apply_journal(trained)


def test_the_mark_is_of_one_journal(model: Path) -> None:
    teach(model)
    apply_journal(model).save(model)
    for path in model.glob(f"{JOURNAL}*"):
        path.unlink()
    journal = Journal(model / JOURNAL)
    journal.append("learn", lesson("new"))
    journal.close()
    engine = Engine(model)
    assert engine.applied == 1 and ("new", "Fish soup") in state(engine)
    engine.close()


def test_a_running_service_goes_on_with_the_model_that_has_applied_its_lessons(model: Path) -> None:
    with client_of(model) as client:
        client.post("/learn", json=SOUP)
        apply_journal(model).save(model)
        compact_journal(model)
        before = client.app.state.service.engine.served  # type: ignore[attr-defined]
        assert client.post("/learn", json=lesson("c")).status_code == 200
        engine = client.app.state.service.engine  # type: ignore[attr-defined]
        wait_until(lambda: engine.served.tagger.applied_lessons is not None)
        assert engine.served is not before and engine.served.tagger.applied_lessons.number == 1
        assert names_of(client, "soup of herring") == ["Fish soup"]
        assert client.get("/health").json()["points"] == 83


def test_a_model_of_features_applies_nothing(trained_joint: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(trained_joint, tmp_path / "m"))
    Journal(model / JOURNAL).close()
    with pytest.raises(ParameterError, match="holds a model of features, which learns no lessons"):
        apply_journal(model)


def test_a_lesson_that_is_just_taken_into_the_model_is_taken_back_after_that(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken out of the journal meanwhile, it would stay in the model for good."""
    monkeypatch.setattr("dxml.service._reviewing.PATIENCE", PATIENCE)
    engine = Engine(model)
    engine.learn(**lesson("a"))
    engine.close()
    with folder_lock(model):
        tagger = apply_journal(model)
        undoing = threading.Thread(target=undo_lesson, args=(model, 1))
        undoing.start()
        undoing.join(1)
        tagger.save(model)
        compact_journal(model)
    undoing.join(PATIENCE)
    assert not undoing.is_alive()
    engine = Engine(model)
    assert not engine.served.knows("a")  # type: ignore[attr-defined]
    engine.close()


@pytest.mark.parametrize(("part", "candidates"), [("linear", "nearest"), ("kernel", "auto")])
def test_memory_grows_no_faster_than_the_lesson(part: str, candidates: str, tmp_path: Path) -> None:
    """Four times as many new labels take four times the memory, and not sixteen times."""
    texts, labels = make_texts(40)
    tagger = TextTagger(device="cpu", width=0, candidates=candidates).fit(texts, labels)
    assert part in tagger.model.parts_
    limits, most = Limits(new_labels=10**6, taught_labels=10**6), dict[int, int]()
    for n in (500, 2000):
        engine = Engine(tagger.save(tmp_path / str(n)), limits=limits)
        engine.learn(["herring"], [["Fishery"]])
        tracemalloc.start()
        engine.learn(["herring"], [[f"new {i}" for i in range(n)]])
        most[n] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        engine.close()
    assert most[2000] < 6 * most[500]
