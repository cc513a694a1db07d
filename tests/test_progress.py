"""Progress on standard error: bars on a terminal, lines elsewhere, nothing when quiet."""

from __future__ import annotations

import io
import re
import sys

import pytest

from dxml.progress import SILENT, StageTimer, open_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def read_rows() -> None:
    with open_progress() as progress:
        with progress.stage("read", 2, "rows") as stage:
            stage.advance(2)
            stage.note("two of them")
        with progress.stage("count", 3, "words") as stage:
            stage.advance(3)


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    read_rows()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(
        r"read: done in [\d.]+ s \(two of them\)\ncount: done in [\d.]+ s\n", printed.err
    )


def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    read_rows()
    shown = terminal.getvalue()
    assert "read" in shown and "3/3 words" in shown and "two of them" in shown
    assert "done in" not in shown


def test_stages_are_whole_lines_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    with open_progress() as progress:
        with progress.stage("kernel", 5, "kernels") as stage:
            stage.advance(5)
            stage.note("gauss, mean precision 0.8621")
        with progress.stage("linear head, C = 0.3 (validation)", 90_000, "labels") as stage:
            stage.advance(90_000)
        with progress.stage("save"):
            pass
    last = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", terminal.getvalue()).splitlines()[-3:]
    assert [line[0] for line in last] == ["✓"] * 3, "a stage has one line"
    assert all(len(line) <= 80 and "…" not in line for line in last)
    assert "100% gauss, mean precision 0.8621" in last[0]
    assert "linear head, C = 0.3 (validation) 100% 90.0k/90.0k labels" in last[1]
    assert "steps" not in last[2]


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with open_progress(quiet=True) as progress:
        assert progress is SILENT
    assert capsys.readouterr().err == ""


def test_a_timer_adds_up_the_seconds_of_a_stage_and_passes_it_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with open_progress() as progress:
        timer = StageTimer(progress)
        for _ in range(2):
            with timer.stage("walk", 1):
                pass
    assert list(timer.seconds) == ["walk"] and timer.seconds["walk"] >= 0
    assert capsys.readouterr().err.count("walk: done in") == 2
