"""benchmarks/deep_speed.py on a tiny encoder."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from .scripts import load_script


def test_milliseconds_of_short_and_long_texts_by_arithmetic(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script("deep_speed")
    monkeypatch.setattr(script, "LABELS", 50)
    monkeypatch.setattr(script, "LENGTHS", (4, 12))
    told = ["x", "--encoder", str(encoder_folder), "--threads", "1", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", told)
    script.main()
    first, *rows = capsys.readouterr().out.splitlines()
    assert first.startswith("1 threads; chosen here: ")
    found = [
        re.match(r" *(\d+) tokens  (\w+) .* ms .*same first label (\d+) %", row) for row in rows
    ]
    kinds = [(match[1], match[2]) for match in found if match]
    arithmetic = ("float32", "bfloat16", "int8")
    assert kinds == [(length, each) for length in ("4", "12") for each in arithmetic]
    assert [match[3] for match in found if match and match[2] == "float32"] == ["100", "100"]
