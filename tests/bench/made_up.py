"""A made-up summary, as `dxml bench report` reads it."""

from __future__ import annotations

from typing import Any

MACHINE = "Some CPU, 2 cores, 8 GiB"


def spread(mean: float, std: float | None = None) -> dict[str, float | None]:
    return {"mean": mean, "std": std}


def row(dataset: str, method: str, p1: float, **changes: Any) -> dict[str, Any]:
    scores = {}
    for measure in ("P", "nDCG", "PSP"):
        for k, share in ((1, 1.0), (3, 0.6), (5, 0.4)):
            scores[f"{measure}@{k}"] = spread(p1 * share, 0.5)
    band = {"labels": spread(10), "occurrences": spread(99), "found@5": spread(p1 / 2)}
    return {
        "dataset": dataset,
        "part": "test",
        "label": method,
        "method": method,
        "parameters": {},
        "study": None,
        "planned": 10,
        "runs": 10,
        "splits": list(range(1, 11)),
        "seeds": [0],
        "failed": [],
        "scores": scores,
        "bands": {"head": band, "torso": band, "tail": band},
        "seconds": {"train": spread(35.3), "predict": spread(0.21)},
        "stages": {"graph": spread(1.5), "encoder": spread(30.0)},
        "ms_per_point": spread(0.125),
        "peak_bytes": spread(2.5e8),
        "model_bytes": spread(1.5e6),
        "chosen": {},
        "machines": [MACHINE],
        "threads": [2],
        "devices": ["cpu"],
        **changes,
    }


def not_run(dataset: str, method: str, error: str | None = None, **changes: Any) -> dict[str, Any]:
    failed = [{"split": 1, "seed": 0, "error": error}] if error else []
    empty = {"scores": {}, "bands": {}, "seconds": {}, "stages": {}, "runs": 0, "failed": failed}
    nothing = dict.fromkeys(("ms_per_point", "peak_bytes", "model_bytes"))
    return row(dataset, method, 0.0, **empty, **nothing, machines=[], devices=[], **changes)


def study(
    name: str, value: Any, p1: float, dataset: str = "bibtex", **changes: Any
) -> dict[str, Any]:
    label = f"dxml ({name}={value})"
    return row(dataset, "dxml", p1, label=label, study=name, parameters={name: value}, **changes)


def summary(*rows: dict[str, Any]) -> dict[str, Any]:
    data = {"train": 4880, "test": 2515, "features": 1836, "labels": 159}
    data |= {"points_per_label": 111.7, "labels_per_point": 2.4}
    return {
        "format": 1,
        "experiment": "paper-small",
        "description": "An example.",
        "data": {"bibtex": data},
        "rows": list(rows),
        "machines": [MACHINE],
        "versions": {},
        "commits": ["abc"],
        "dates": ["2026-01-02"],
    }


def section(page: str, heading: str) -> str:
    start = page.index(heading)
    end = page.find("\n## ", start + 1)
    return page[start : end if end > 0 else None]


def timed(method: str, label: str, name: str, value: int, p1: float) -> dict[str, Any]:
    seconds = {"train": spread(float(value)), "predict": spread(0.1)}
    given = {name: value}
    return row("eurlex-4k", method, p1, label=label, study=name, parameters=given, seconds=seconds)
