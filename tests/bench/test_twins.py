"""benchmarks/twins.py: its tables, and the page that has them."""

from __future__ import annotations

import json
from pathlib import Path

from dxml.data import make_planted

from .scripts import load_script

ROOT = Path(__file__).parents[2]
SCRIPT = load_script("twins")


def test_real_and_twin_stand_side_by_side() -> None:
    def entry(first: float) -> dict[str, float]:
        return {"P@1": first, "P@3": 5.0, "P@5": 2.0, "train": 1234}

    measured = {
        "tibkat-gnd real knn": entry(78.31),
        "tibkat-gnd twin knn": entry(79.0),
        "tibkat-gnd twin dxml": entry(80.0),
        "amazon-670k twin knn": entry(40.0),
    }
    lines = SCRIPT.table({"measured": measured}).splitlines()
    assert "| TIBKAT-GND | k-NN | 78.3 / 5.0 / 2.0 | 79.0 / 5.0 / 2.0 |" in lines
    assert "| TIBKAT-GND | DXML, 5 epochs | – | 80.0 / 5.0 / 2.0 |" in lines
    peers = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text("utf-8"))["rows"]
    (row,) = (r for r in peers if (r["dataset"], r["label"]) == ("tibkat-gnd", "omikuji (Parabel)"))
    scores = " / ".join(f"{row['scores'][f'P@{k}']['mean']:.1f}" for k in (1, 3, 5))
    assert f"| TIBKAT-GND | omikuji | {scores} | – |" in lines  # of the benchmark's summary
    amazon = next(line for line in lines if line.startswith("| Amazon-670K"))
    assert "k-NN 40.0 / 5.0 / 2.0" in amazon
    assert "SLEEC 35.0 / 31.2 / 28.6" in amazon or "SLEEC 35.1 / 31.2 / 28.6" in amazon


def test_points_are_drawn_once_for_all_methods() -> None:
    data = make_planted(100, 40, 6)
    few = SCRIPT.some(data, 30)
    assert few.n_samples == 30 and (few.X != SCRIPT.some(data, 30).X).nnz == 0
    assert SCRIPT.some(data, 200) is data
