"""From scored runs to a small file that can be committed: means and deviations, no rankings."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dxml._core.files import replace_text
from dxml.bench._machine import machine_name, plain
from dxml.bench._own_files import called
from dxml.bench._results import FORMAT, Store, Stored
from dxml.bench._scoring import score_all
from dxml.bench._spec import Experiment, Planned
from dxml.exceptions import DataFormatError

__all__ = [
    "Row",
    "earlier_summary",
    "load_rows",
    "load_summaries",
    "summarise",
    "write_summary",
]

_DIGITS = 4
_ON_DEVICE = ("wide layer", "kernel", "encoder", "text encoder")
"""How the stages begin that a GPU computes where there is one; all others are the CPU's."""


def _spread(values: Iterable[float | None]) -> dict[str, float | None] | None:
    """Mean and sample deviation; None where nothing was measured."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    deviation = statistics.stdev(numbers) if len(numbers) > 1 else None
    return {
        "mean": round(statistics.fmean(numbers), _DIGITS),
        "std": None if deviation is None else round(deviation, _DIGITS),
    }


def _spreads(tables: list[dict[str, float]]) -> dict[str, Any]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: _spread(table.get(name) for table in tables) for name in names}


def _in_all(tables: list[dict[str, float]]) -> list[dict[str, float]]:
    """Without measures that some runs lack: the mean of the others would be of chosen splits."""
    return [
        {name: value for name, value in table.items() if all(name in other for other in tables)}
        for table in tables
    ]


def summarise(experiment: Experiment, store: Store) -> dict[str, Any]:
    """Everything a page needs of an experiment.

    Returns
    -------
    dict
        ``data`` (statistics of each data set), ``rows`` (one for each data set, part, label,
        parameters and study, over splits and seeds), ``machines``, ``versions``, ``commits`` and
        ``dates``.
    """
    stored_or_not = {run: store.get(run) for run in experiment.runs}
    found = {run: s if s and not s.stale else None for run, s in stored_or_not.items()}
    done = [stored for stored in found.values() if stored and stored.status == "done"]
    scores = {stored.run: values for stored, values in score_all(done)}
    groups: dict[tuple[Any, ...], list[Planned]] = {}
    for plan in experiment.planned:
        run = plan.run
        key = (run.dataset, run.part, plan.label, run.method, plan.given, plan.study)
        groups.setdefault(key, []).append(plan)
    stored = [result for result in found.values() if result]
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "description": experiment.description,
        "data": _data(done),
        "rows": [_row(plans, found, scores) for plans in groups.values()],
        "machines": sorted({machine_name(s.record["machine"]) for s in stored}),
        "versions": _versions(stored),
        "commits": sorted({s.record["commit"] for s in stored}),
        "dates": _dates(stored),
    }


def _row(plans: list[Planned], found: dict[Any, Any], scores: dict[Any, Any]) -> dict[str, Any]:
    first = plans[0].run
    results = [found[plan.run] for plan in plans if found[plan.run] is not None]
    done = [stored for stored in results if stored.status == "done"]
    records = [stored.record for stored in done]
    values = [scores[stored.run] for stored in done]
    bands = dict.fromkeys(name for value in values for name in value["bands"])
    return {
        "dataset": called(first.dataset),
        "part": first.part,
        "label": plans[0].label,
        "method": plain(first.method),
        "parameters": dict(plans[0].given),
        "study": plans[0].study,
        "planned": len(plans),
        "runs": len(done),
        "splits": sorted({stored.run.split for stored in done}),
        "seeds": sorted({stored.run.seed for stored in done}),
        "failed": [
            {"split": s.run.split, "seed": s.run.seed, "error": s.record["error"][:400]}
            for s in results
            if s.status == "failed"
        ],
        "scores": _spreads(_in_all([value["scores"] for value in values])),
        "bands": {name: _spreads([value["bands"][name] for value in values]) for name in bands},
        "seconds": _spreads([record["seconds"] for record in records]),
        "stages": _spreads([record["stages"] for record in records]),
        "ms_per_point": _spread(record["ms_per_point"] for record in records),
        "peak_bytes": _spread(record["memory"]["peak"] for record in records),
        "gpu_bytes": _spread(record["memory"].get("gpu_peak") for record in records),
        "model_bytes": _spread(record["model_bytes"] for record in records),
        "chosen": _chosen(records),
        "machines": sorted({machine_name(record["machine"]) for record in records}),
        "threads": sorted({record["settings"]["threads"] for record in records}),
        "devices": sorted({_device(record) for record in records}),
        "commits": sorted({record["commit"] for record in records}),
        "commands": sorted({record["settings"].get("command", "") for record in records} - {""}),
        "files": _files(records),
        "rankings": [scores[stored.run]["ranking"][:16] for stored in done],
    }


def _files(records: list[dict[str, Any]]) -> dict[str, str]:
    """Checksums of files of one's own, the same in all runs."""
    return {name: digest for each in records for name, digest in each.get("files", {}).items()}


def _device(record: dict[str, Any]) -> str:
    """The CPU where a run took no memory of a GPU and has no stage for one, else as asked."""
    asked = record["parameters"].get("device", "cpu")
    if asked == "auto":
        asked = "cuda" if record["machine"].get("gpu") else "cpu"
    used = record["memory"].get("gpu_peak") or _may_use_gpu(record["stages"])
    return str(asked) if used else "cpu"


def _may_use_gpu(stages: Iterable[str]) -> bool:
    return any(stage.startswith(_ON_DEVICE) for stage in stages)


def _chosen(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record["chosen"])
    return {name: [record["chosen"].get(name) for record in records] for name in names}


def _data(done: list[Stored]) -> dict[str, Any]:
    """Statistics of each data set, from its first run on the test part."""
    found: dict[str, Any] = {}
    for stored in sorted(done, key=lambda s: (s.run.dataset, s.run.part, s.run.split)):
        if stored.run.part == "test":
            found.setdefault(called(stored.run.dataset), stored.record["data"])
    return found


def _versions(results: list[Stored]) -> dict[str, list[str]]:
    names = dict.fromkeys(name for result in results for name in result.record["versions"])
    return {
        name: sorted({result.record["versions"].get(name, "absent") for result in results})
        for name in names
    }


def _dates(results: list[Stored]) -> list[str]:
    """First and last day."""
    days = sorted(result.record["date"][:10] for result in results)
    return sorted({days[0], days[-1]}) if days else []


def earlier_summary(experiment: Experiment, store: Store) -> dict[str, Any] | None:
    """What a command before has written; a file of another kind under this name is refused."""
    path = store.root / f"{experiment.name}.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise DataFormatError(f"{path}: no valid JSON ({error}). Move it away.") from error
    if not isinstance(found, dict) or found.get("experiment") != experiment.name:
        raise DataFormatError(
            f"{path}: this file is not the summary of {experiment.name}, and would be replaced. "
            "Say another --name or --results."
        )
    return found


def write_summary(experiment: Experiment, store: Store) -> Path:
    """Write ``RESULTS/NAME.json`` and return its path."""
    store.root.mkdir(parents=True, exist_ok=True)
    path = store.root / f"{experiment.name}.json"
    before = earlier_summary(experiment, store)
    summary = summarise(experiment, store)
    if before is not None:
        summary = _with_kept(summary, before, grows=experiment.grows)
    lines = [f" {json.dumps(key)}: {_lines(value)}" for key, value in summary.items()]
    replace_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
    return path


_KEY = ("dataset", "part", "label", "method", "parameters", "study")


def _with_kept(summary: dict[str, Any], before: dict[str, Any], grows: bool) -> dict[str, Any]:
    """Rows of the summary before stay where their runs are not all stored here.

    Raw rankings are large and stay on the machine that made them, so a summary has rows of
    several machines. A row is replaced as a whole, by one of as many runs or of all. One that
    `grows` also keeps rows that are not planned now, and those of another machine beside new ones.
    """
    if before.get("format") != FORMAT:
        return summary
    known: dict[str, list[dict[str, Any]]] = {}
    for row in before["rows"]:
        known.setdefault(json.dumps([row[key] for key in _KEY]), []).append(row)
    rows, kept = [], 0
    for row in summary["rows"]:
        olds = known.pop(json.dumps([row[key] for key in _KEY]), [])
        beside = [old for old in olds if grows and _elsewhere(old, row)]
        more = [old for old in olds if old not in beside and _knows_more(old, row)]
        rows += [{**old, "planned": row["planned"]} for old in more] or [row]
        rows += beside
        kept += len(more) + len(beside)
    if grows:
        others = [row for olds in known.values() for row in olds]
        rows += others
        kept += len(others)
    if not kept:
        return summary
    names = {**before["versions"], **summary["versions"]}
    versions = {
        name: sorted({*before["versions"].get(name, ()), *summary["versions"].get(name, ())})
        for name in names
    }
    dates = sorted({*before["dates"], *summary["dates"]})
    return summary | {
        "data": {**before["data"], **summary["data"]},
        "rows": rows,
        "machines": sorted({each for row in rows for each in row["machines"]}),
        "versions": versions,
        "commits": _commits(rows, before),
        "dates": sorted({dates[0], dates[-1]}) if dates else [],
    }


def _elsewhere(old: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether both were measured, and not on the same machine."""
    return bool(old["machines"] and row["machines"]) and old["machines"] != row["machines"]


def _knows_more(old: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether a row before has more runs, or a failure where nothing is stored here."""
    if row["runs"] < min(old["runs"], row["planned"]):
        return True
    return bool(old["failed"]) and not row["runs"] and not row["failed"]


def _commits(rows: list[dict[str, Any]], before: dict[str, Any]) -> list[str]:
    """Those of the rows; where rows of an older summary name none, those that no row named too."""
    named, known = (
        {each for row in some for each in row.get("commits", ())} for some in (rows, before["rows"])
    )
    if not all("commits" in row for row in rows):
        named |= set(before["commits"]) - known
    return sorted(named)


def _lines(value: Any) -> str:
    """JSON with each row on a line of its own: small, and a change shows as one line."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join("  " + json.dumps(v, ensure_ascii=False) for v in value) + "\n ]"


@dataclass(frozen=True)
class Row:
    """One row of a summary, as tables and plots read it."""

    experiment: str
    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.values:
            raise AttributeError(name)
        return self.values[name]

    @property
    def devices(self) -> list[str]:
        """What computed; a GPU that was there but had nothing to do does not count."""
        found: list[str] = self.values["devices"]
        used = self.values.get("gpu_bytes") or _may_use_gpu(self.values["stages"])
        return found if used else ["cpu"][: len(found)]

    @property
    def measured(self) -> bool:
        """At least one run ended well."""
        return bool(self.values["scores"])

    def mean(self, measure: str) -> float | None:
        """Mean of a measure such as ``P@1`` over splits and seeds."""
        spread = self.values["scores"].get(measure)
        return None if spread is None else spread["mean"]

    def deviation(self, measure: str) -> float | None:
        """Standard deviation over splits and seeds; None for a single run."""
        spread = self.values["scores"].get(measure)
        return None if spread is None else spread["std"]

    def interval(self, measure: str) -> float | None:
        """Half of the 95 % confidence interval of the mean, by Student's t; None for a single run.

        Splits of one data set share points, so that it is narrower than it should be.
        """
        deviation, n = self.deviation(measure), self.values["runs"]
        if deviation is None or n < 2:
            return None
        from scipy.special import stdtrit

        return float(stdtrit(n - 1, 0.975)) * deviation / math.sqrt(n)

    def number(self, name: str) -> float | None:
        """Mean of ``ms_per_point``, ``peak_bytes`` or ``model_bytes``."""
        spread = self.values[name]
        return None if spread is None else spread["mean"]

    def second(self, what: str) -> float | None:
        """Mean seconds to ``train`` or ``predict``."""
        spread = self.values["seconds"].get(what)
        return None if spread is None else spread["mean"]

    @property
    def why_not(self) -> str:
        """Why there is no number."""
        failed = self.values["failed"]
        return failed[0]["error"] if failed else "planned, not run yet"


def load_summaries(root: Path, only: str | None = None) -> list[dict[str, Any]]:
    """The summaries in a folder, by name; JSON of another kind is left alone."""
    found = []
    for path in sorted(root.glob("*.json")):
        if only is not None and path.stem != only:
            continue
        summary = json.loads(path.read_text("utf-8"))
        if not isinstance(summary, dict) or "experiment" not in summary:
            continue
        if summary.get("format") != FORMAT:
            raise DataFormatError(
                f"{path}: no summary of format {FORMAT}. Write it again: dxml bench score NAME"
            )
        found.append(summary)
    if only is not None and not found:
        raise DataFormatError(f"{root}: holds no {only}.json. Run it first: dxml bench run {only}")
    return found


def load_rows(summaries: list[dict[str, Any]], apart: Iterable[str] = ()) -> list[Row]:
    """All rows; where two experiments share one, that with more splits, then the newest.

    Rows that differ in one of the values that `apart` names are not one.
    """
    apart = tuple(apart)
    best: dict[str, Row] = {}
    known: dict[str, tuple[int, str]] = {}
    for summary in summaries:
        newest = max(summary["dates"], default="")
        for values in summary["rows"]:
            row = Row(summary["experiment"], values)
            identity = [row.dataset, row.part, row.label, row.method, row.parameters, row.study]
            identity += [values.get(name) or None for name in apart]  # older rows lack empty ones
            key = json.dumps(identity, sort_keys=True)
            if key not in best or (len(row.splits), newest) > known[key]:
                best[key], known[key] = row, (len(row.splits), newest)
    return list(best.values())
