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
    with open_progress() as progress, progress.stage("read", 2, "rows") as stage:
        stage.advance(2)
        stage.note("two of them")


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    read_rows()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"read: done in \d+\.\d s \(two of them\)\n", printed.err)


def test_bars_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    read_rows()
    shown = terminal.getvalue()
    assert "read" in shown and "2/2 rows" in shown and "two of them" in shown
    assert "done in" not in shown


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
