"""Files of figures, and what is said where matplotlib is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dxml.exceptions import ParameterError
from dxml.plots import Plot, TrainingPlot, save
from dxml.plots._style import MissingExtraError


def test_files_are_of_their_kind_and_the_same_every_time(tmp_path: Path) -> None:
    plot: Plot = TrainingPlot("t", "epoch", "loss", (2.0, 1.0), {"walks": 1.0})
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "PNG": b"\x89PNG"}
    for kind, start in starts.items():
        first, second = (save(plot, tmp_path / name / f"p.{kind}") for name in ("a", "b"))
        assert first.read_bytes().startswith(start), kind
        assert first.read_bytes() == second.read_bytes(), kind
    assert "epoch" in (tmp_path / "a" / "p.svg").read_text("utf-8")
    with pytest.raises(ParameterError, match="written as .png, .svg or .pdf, got 'p.gif'"):
        save(plot, tmp_path / "p.gif")
    assert not (tmp_path / "p.gif").exists()


def test_without_matplotlib_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"install with: pip install 'dxml\[plot\]'\.$"):
        save(TrainingPlot("t", "epoch", "loss", (2.0, 1.0), {}), tmp_path / "p.png")
