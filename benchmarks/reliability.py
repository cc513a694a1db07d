"""The figures of docs/reliability.md, from the stored runs of fuzzers, faults and soaks.

make fuzz-readers fuzz faults schema      # each takes --output, a file of benchmarks/results
python benchmarks/soak.py --store         # an hour; steady.py and checkpoints.py take it too
python benchmarks/reliability.py          # then the page
"""

from __future__ import annotations

from typing import Any

from stored_results import MadePart, read_results

PART = MadePart(
    "docs/reliability.md", "<!-- figures: begin -->", "<!-- figures: end -->", apart=True
)
READERS, MODELS, FAULTS = "fuzz-readers.json", "fuzz-models.json", "faults.json"
SOAK, SCHEMA, CHECKPOINTS = "soak.json", "schema.json", "checkpoints.json"
LARGE, VERSIONS = "two-billion.json", "versions.json"


def stored(name: str) -> list[dict[str, Any]]:
    """The runs of a file, oldest first; none where there is no such file."""
    return list(read_results(name))


def _readers() -> list[str]:
    runs = stored(READERS)
    by_name: dict[str, list[int]] = {}
    for run in runs:
        for name, found in run["targets"].items():
            sums = by_name.setdefault(name, [0, 0, 0])
            sums[0] += found["executions"]
            sums[1] += found["accepted"]
            sums[2] += len(found["crashes"])
    lines = ["| reader | files tried | accepted | crashes |", "|---|---|---|---|"]
    for name, (tried, accepted, crashes) in by_name.items():
        if tried:
            lines.append(f"| {name} | {tried:,} | {accepted:,} | {crashes} |")
    totals = [sum(sums[at] for sums in by_name.values()) for at in range(3)]
    lines.append(f"| all | {totals[0]:,} | {totals[1]:,} | {totals[2]} |")
    return [*lines, "", _by(runs)]


def _models() -> list[str]:
    lines = [
        "| run | checksums | trials | refused | same | different | wrong kind | hang | signal |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    runs = stored(MODELS)
    for number, run in enumerate(runs, start=1):
        for name in ("checksums as they were", "written again"):
            kinds = ("refused", "same", "different", "wrong kind", "hang", "signal")
            cells = [f"{run[name][kind]:,}" for kind in kinds]
            said = "as they were" if "were" in name else "right again"
            trials = sum(run[name].values())
            lines.append(f"| {number} | {said} | {trials:,} | {' | '.join(cells)} |")
    notes = [f"Run {n}: {run['note']}" for n, run in enumerate(runs, start=1) if "note" in run]
    return [*lines, "", " ".join([*notes, _by(runs)])]


def _faults() -> list[str]:
    lines = ["| what is disturbed | calls | at every call | at random |", "|---|---|---|---|"]
    runs = stored(FAULTS)
    names = list(dict.fromkeys(name for run in runs for name in run["scenarios"]))
    for name in names:
        found = [run["scenarios"][name] for run in runs if name in run["scenarios"]]
        every, at_random = (sum(each[key] for each in found) for key in ("at every call", "random"))
        lines.append(f"| {name} | {found[-1]['calls']} | {every:,} | {at_random:,} |")
    kinds = list(dict.fromkeys(kind for run in runs for kind in run["tried"]))
    tried = {kind: sum(run["tried"].get(kind, 0) for run in runs) for kind in kinds}
    said = ", ".join(f"{number:,} of {kind}" for kind, number in tried.items())
    problems = sum(run["problems"] for run in runs)
    wrong = f"Went wrong: {problems}." if problems else "Lost, half-written or left over: 0."
    notes = [run["note"] for run in runs if run["problems"] and "note" in run]
    told = f"In all {sum(tried.values()):,} faults: {said}. {wrong}"
    return [*lines, "", " ".join([told, *notes, _by(runs)])]


def _service() -> list[str]:
    lines = [
        "| run | minutes | workers | requests answered | kills and restarts | reloads, swaps and "
        "settlings | texts lost or wrong | errors that no kill explains | memory, last quarter "
        "against second |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    runs = [run for run in stored(SOAK) if run["what"] == "soak"]
    for number, run in enumerate(runs, start=1):
        rough = sum(
            n
            for kind, n in run["upheavals"].items()
            if kind.startswith(("kill", "re")) and kind != "reload"
        )
        wrong = f"{len(run['wrong_texts'])} of {run['texts']}"
        cells = [
            f"{run['minutes']:g}",
            str(run["workers"]),
            f"{sum(run['answered'].values()):,}",
            str(rough),
            str(sum(run["upheavals"].values()) - rough),
            wrong,
            str(len(run["unexplained"])),
            f"{run['megabytes']['ratio']:.2f}",
        ]
        lines.append(f"| {number} | {' | '.join(cells)} |")
    notes = [f"Run {n}: {run['note']}" for n, run in enumerate(runs, start=1) if "note" in run]
    return [*lines, "", " ".join([*notes, _by(runs)])]


def _steady() -> list[str]:
    lines = [
        "| workers | minutes | requests | answered otherwise than with 200 | p50, ms | p99, ms | "
        "memory, last quarter against second |",
        "|---|---|---|---|---|---|---|",
    ]
    runs = [run for run in stored(SOAK) if run["what"] == "steady"]
    for run in runs:
        others = run["requests"] - run["statuses"].get("200", 0)
        cells = [
            str(run["workers"]),
            f"{run['minutes']:g}",
            f"{run['requests']:,}",
            str(others),
            f"{run['p50_ms']:g}",
            f"{run['p99_ms']:g}",
            f"{run['megabytes']['ratio']:.2f}" if run["megabytes"] else "too short",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", _by(runs)] if runs else []


def _schema() -> list[str]:
    lines = ["| service of | requests | as described |", "|---|---|---|"]
    runs = stored(SCHEMA)
    names = {"tagger": "a tagger", "features": "a model of features"}
    for run in runs[-1:]:
        for name, found in run["models"].items():
            said = "all" if found["right"] else "not all"
            lines.append(f"| {names[name]} | {found['requests']:,} | {said} |")
    return [*lines, "", _by(runs)] if runs else []


def _checkpoints() -> list[str]:
    lines = [
        "| training | core seconds | checkpoints | core seconds of storing them | share |",
        "|---|---|---|---|---|",
    ]
    runs = stored(CHECKPOINTS)
    last = {found["training"]: (found, run) for run in runs for found in run["trainings"]}
    for found, _ in last.values():
        every = f", one in {found['every']:g} s" if "every" in found else ""
        cells = [
            found["training"],
            f"{found['seconds']:,}",
            f"{found['stored']}",
            f"{found['storing']:g}",
            f"{100 * found['share']:.2f} %{every}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    shown = [run for run in runs if any(run is each for _, each in last.values())]
    return [*lines, "", " ".join(_by([run]) for run in shown)] if runs else []


def _large() -> list[str]:
    lines = [
        "| method | stored values | points | right, before the 2³¹st value | right, behind it | "
        "`--memory` | memory at most | core seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    runs = stored(LARGE)
    for run in runs:
        cells = [
            f"`{run['method']}`",
            f"{run['stored']:,}",
            f"{run['points']:,}",
            run["right before"],
            run["right behind"],
            run["memory"] or "",
            f"{run['peak'] / 1e6:,.0f} MB",
            f"{run['cpu']:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    notes = list(dict.fromkeys(run["note"] for run in runs if "note" in run))
    return [*lines, "", " ".join([*notes, _by(runs)])] if runs else []


def _versions() -> list[str]:
    lines = ["| run | passed | failed | skipped | with |", "|---|---|---|---|---|"]
    runs = stored(VERSIONS)
    for run in runs:
        told = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
        numbers = [f"{run[kind]:,}" for kind in ("passed", "failed", "skipped")]
        lines.append(
            f"| `{run['command']}`, {run['ended'][:10]} | {' | '.join(numbers)} | {told} |"
        )
    notes = [run["note"] for run in runs if "note" in run]
    return [*lines, *(["", " ".join(notes)] if notes else [])] if runs else []


def _by(runs: list[dict[str, Any]]) -> str:
    last = runs[-1]
    day = (last.get("began") or last["ended"])[:10]
    return f"`{last['command']}` on {last['machine']}, {day}."


def render() -> str:
    """A table for each kind of run that is stored."""
    parts = {
        "### Readers": _readers(),
        "### Model folders": _models(),
        "### Faults": _faults(),
        "### Checkpoints": _checkpoints(),
        "### More than 2³¹ values": _large(),
        "### The service, killed and swapped": _service(),
        "### The service, asked 10,000 times a minute": _steady(),
        "### The service, asked what its description allows": _schema(),
        "### Oldest and newest packages": _versions(),
    }
    parts = {title: lines for title, lines in parts.items() if lines}
    return "\n\n".join(f"{title}\n\n" + "\n".join(lines) for title, lines in parts.items())


def write_page() -> None:
    PART.write(render())


if __name__ == "__main__":
    write_page()
