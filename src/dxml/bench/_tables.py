"""The tables of the page: the paper's six with ours beside, and what the paper lacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from dxml.bench import _markdown as md
from dxml.bench._published import LARGE, PAPER_METHODS, SMALL, TITLES, Published
from dxml.bench._scoring import KS
from dxml.bench._summary import Row
from dxml.metrics._bands import BANDS

__all__ = [
    "bands",
    "chosen",
    "costs",
    "equipment",
    "failures",
    "fewer_splits",
    "find",
    "name_of",
    "paper_scores",
    "paper_seconds",
    "propensity",
    "side_by_side",
    "stages",
    "statistics",
    "studies",
    "title_of",
    "twin_of",
]

TWIN = "twin:"
"""What the name of generated data of a real data set's shape begins with."""
_CORES = re.compile(r", (\d+) cores, ")
_MARKS = re.compile(r"\(R\)| Processor\b")
"""What a processor's name says besides."""
_PAPER_NAMES = {name: ours for ours, names in PAPER_METHODS.items() for name in names}


def title_of(dataset: str) -> str:
    """How a data set is called on the page."""
    original, _, settings = dataset.removeprefix(TWIN).partition(",")
    if dataset.startswith(TWIN) and original in TITLES:
        size = f", {settings.replace('=', ' ')}" if settings else ""
        return f"{TITLES[original]}, twin{size}"
    return TITLES.get(dataset, f"`{dataset}`" if ":" in dataset else dataset)


def twin_of(dataset: str) -> str:
    """The generated data set of the full size of a real one."""
    return TWIN + dataset


def _has_twin(rows: Sequence[Row], dataset: str) -> bool:
    """Whether the twin is all that there is: planned, and nothing measured on the real data."""
    measured = any(row.measured for row in find(rows, dataset))
    return not measured and bool(find(rows, twin_of(dataset)))


def find(rows: Sequence[Row], dataset: str, method: str | None = None) -> list[Row]:
    """Rows on the test part that belong to no study, in the paper's order of methods."""
    order = list(PAPER_METHODS)
    found = [
        row
        for row in rows
        if row.dataset == dataset
        and row.part == "test"
        and row.study is None
        and method in (None, row.method)
    ]
    return sorted(found, key=lambda r: order.index(r.method) if r.method in order else len(order))


def _reason(rows: Sequence[Row], dataset: str, method: str, published: Published) -> str:
    """Why there is no number of ours."""
    planned = find(rows, dataset, method)
    if planned:
        return planned[0].why_not
    return published.not_measured.get(dataset, "no run of this method on this data is stored")


def name_of(row: Row) -> str:
    """The paper's name of a method at its row's plain label, else the label."""
    names = PAPER_METHODS.get(row.method)
    return names[0] if names and row.label == row.method else row.label


def fewer_splits(row: Row, rows: Sequence[Row]) -> str:
    """`` (3 splits)`` behind the name of a row that has fewer than others on the same data."""
    most = max(other.runs for other in find(rows, row.dataset))
    return f" ({row.runs} split{'' if row.runs == 1 else 's'})" if 0 < row.runs < most else ""


def _score_line(
    name: str,
    row: Row | None,
    theirs: list[float] | None,
    measure: str,
    reason: str,
    notes: md.Notes,
) -> list[str]:
    """name, then theirs, ours and the difference at 1, 3 and 5."""
    line = [name]
    for i, k in enumerate(KS):
        paper = theirs[i] if theirs else None
        ours = row.mean(f"{measure}@{k}") if row else None
        if row is None or ours is None:
            cell = notes.mark(reason)
        else:
            cell = md.with_deviation(ours, row.deviation(f"{measure}@{k}"))
        line += [md.number(paper), cell, md.change(ours, paper)]
    return line


def _scores(
    rows: Sequence[Row], dataset: str, measure: str, source: str, published: Published, head: str
) -> str:
    """One data set: every published method and every one of ours, theirs beside ours."""
    notes = md.Notes()
    header = ["method"]
    for k in KS:
        header += [f"{measure}@{k} {head}", "ours", "difference"]
    lines, shown = [], set()
    for name in published.methods(source, dataset):
        theirs = published.scores[source, dataset, name].get(measure)
        method = _PAPER_NAMES.get(name)
        if method is None:
            if theirs and source == "repository":
                lines.append(
                    [name, *(c for v in theirs for c in (md.number(v), md.MISSING, md.MISSING))]
                )
            continue
        mine: list[Row | None] = [r for r in find(rows, dataset, method) if r.measured]
        for row in mine or [None]:
            reason = _reason(rows, dataset, method, published)
            title = name_of(row) + fewer_splits(row, rows) if row else name
            lines.append(_score_line(title, row, theirs, measure, reason, notes))
        shown.add(method)
    for row in find(rows, dataset):
        if row.method not in shown:
            title = name_of(row) + fewer_splits(row, rows)
            lines.append(_score_line(title, row, None, measure, row.why_not, notes))
    return "\n\n".join(filter(None, [md.table(header, lines), str(notes)]))


def paper_scores(
    rows: Sequence[Row], datasets: Sequence[str], measure: str, published: Published
) -> str:
    """Tables 2 to 5, a table for each data set; of its twins, where those are all there is."""
    blocks = []
    for name in datasets:
        if not _has_twin(rows, name):
            scores = _scores(rows, name, measure, "paper", published, "paper")
            blocks.append(f"**{title_of(name)}**\n\n{scores}")
            continue
        whole = twin_of(name)
        smaller = {row.dataset for row in rows if row.dataset.startswith(f"{whole},")}
        for twin in (whole, *sorted(smaller)):
            size = title_of(twin).removeprefix(title_of(whole))
            scores = _twin_scores(rows, name, twin, measure, published)
            blocks.append(f"**{title_of(name)}; ours: its twin{size}**\n\n{scores}")
    return "\n\n".join(blocks)


def _twin_scores(
    rows: Sequence[Row], dataset: str, twin: str, measure: str, published: Published
) -> str:
    """The paper's numbers on the real data beside ours on a twin: no difference is taken."""
    notes = md.Notes()
    header = ["method", *(w for k in KS for w in (f"{measure}@{k} paper, real", "ours, twin"))]
    lines = []
    for row in find(rows, twin):
        theirs = published.values("paper", dataset, row.method, measure)
        line = [name_of(row)]
        for i, k in enumerate(KS):
            ours = row.mean(f"{measure}@{k}")
            cell = notes.mark(row.why_not) if ours is None else md.number(ours)
            line += [md.number(theirs[i] if theirs else None), cell]
        lines.append(line)
    return "\n\n".join(filter(None, [md.table(header, lines), str(notes)]))


def against_repository(
    rows: Sequence[Row], dataset: str, measure: str, published: Published
) -> str:
    """A data set that is not in the paper, beside the repository's page."""
    return _scores(rows, dataset, measure, "repository", published, "published")


def propensity(rows: Sequence[Row], datasets: Sequence[str], published: Published) -> str:
    """PSP@k beside the repository's page; the paper has none."""
    return "\n\n".join(
        f"**{title_of(name)}**\n\n" + against_repository(rows, name, "PSP", published)
        for name in datasets
    )


def statistics(data: dict[str, dict[str, float]], published: Published) -> str:
    """Table 1: the paper's line, and under it what was counted in the data that was used."""
    columns = ("train", "test", "features", "labels", "points_per_label", "labels_per_point")
    notes = md.Notes()

    def line(name: str, values: dict[str, float]) -> list[str]:
        digits = (0, 0, 0, 0, 2, 2)
        return [name, *(md.number(values[c], d) for c, d in zip(columns, digits, strict=True))]

    lines = []
    twins = {twin_of(dataset) for dataset in LARGE}
    for dataset in [*SMALL, *LARGE, *sorted(set(data) - {*SMALL, *LARGE, *twins})]:
        if dataset in published.statistics:
            lines.append(line(f"{title_of(dataset)}, paper", published.statistics[dataset]))
        ours = twin_of(dataset) if dataset not in data and twin_of(dataset) in data else dataset
        if ours in data:
            lines.append(line(f"{title_of(ours)}, ours", data[ours]))
            if dataset in published.statistics:
                paper = published.statistics[dataset]
                cells = [
                    md.change(data[ours][c], paper[c], d)
                    for c, d in zip(columns, (0, 0, 0, 0, 2, 2), strict=True)
                ]
                lines.append(["difference", *cells])
        else:
            reason = published.not_measured.get(dataset, "no run on this data is stored")
            lines.append([f"{title_of(dataset)}, ours", *[notes.mark(reason)] * len(columns)])
    header = ["data", "train", "test", "features", "labels", "points a label", "labels a point"]
    return "\n\n".join(filter(None, [md.table(header, lines), str(notes)]))


def paper_seconds(rows: Sequence[Row], published: Published, machines: dict[str, str]) -> str:
    """Table 6: seconds to train and to predict the whole test part."""
    notes, lines = md.Notes(), []
    for dataset in (*SMALL, *LARGE):
        source = twin_of(dataset) if _has_twin(rows, dataset) else dataset
        for method in ("dxml", "sleec"):
            theirs = published.seconds[dataset, PAPER_METHODS[method][0]]
            mine: list[Row | None] = [r for r in find(rows, source, method) if r.measured]
            for row in mine or [None]:
                line = [title_of(source), name_of(row) if row else PAPER_METHODS[method][0]]
                if row is None:
                    mark = notes.mark(_reason(rows, source, method, published))
                    ours = (mark, mark)
                else:
                    ours = (md.number(row.second("train"), 2), _test_seconds(row))
                line += [md.number(theirs["train"], 1), ours[0]]
                line += [md.number(theirs["test"], 1), ours[1]]
                lines.append([*line, _where(row, machines) if row else md.MISSING])
    header = ["data", "method", "train s, paper", "ours", "test s, paper", "ours", "where"]
    return "\n\n".join(filter(None, [md.table(header, lines, left=2), str(notes)]))


def _test_seconds(row: Row) -> str:
    """Seconds to predict on a CPU, as in the paper; those of a GPU are marked."""
    on_cpu = row.second("predict_cpu")
    if on_cpu is not None:
        return md.number(on_cpu, 2)
    return md.number(row.second("predict"), 2) + (" (GPU)" if "cuda" in row.devices else "")


def _where(row: Row, machines: dict[str, str]) -> str:
    letters = "".join(machines[name] for name in row.machines)
    threads = "/".join(map(str, row.threads))
    return f"{letters}, {'/'.join(row.devices)}, {threads} thread{'' if threads == '1' else 's'}"


def equipment(row: Row) -> str:
    """Threads, cores, processor and GPU that a row's runs had, as stored with them."""
    cores = sorted({int(found[1]) for name in row.machines if (found := _CORES.search(name))})
    threads = "/".join(map(str, row.threads))
    words = f"{threads} thread{'' if threads == '1' else 's'} of {'/'.join(map(str, cores))} cores"
    kinds = {_CORES.split(name)[0] for name in row.machines}
    words += ", " + "/".join(sorted(_MARKS.sub("", kind) for kind in kinds))
    gpus = sorted({_CORES.split(name)[2].partition(", ")[2] for name in row.machines} - {""})
    return f"{words}, {', '.join(gpus)}" if "cuda" in row.devices else words


def costs(rows: Sequence[Row], dataset: str, machines: dict[str, str]) -> str:
    """Seconds, milliseconds, memory and size of everything that ran on a data set."""
    lines = [
        [
            name_of(row),
            md.with_deviation(row.mean("P@1"), row.deviation("P@1")),
            md.number(row.second("train")),
            md.number(row.number("ms_per_point"), 3),
            md.size(row.number("peak_bytes")),
            md.size(row.number("model_bytes")),
            str(row.runs) if row.runs == row.planned else f"{row.runs} of {row.planned}",
            _where(row, machines),
        ]
        for row in find(rows, dataset)
        if row.measured
    ]
    header = [
        "method",
        "P@1",
        "train s",
        "ms a point",
        "peak memory",
        "model on disk",
        "runs",
        "where",
    ]
    return md.table(header, lines)


_BESIDE = ("joint", "peer:omikuji", "peer:pecos", "peer:libmultilabel", "one-vs-all", "knn", "dxml")


def side_by_side(rows: Sequence[Row], dataset: str, machines: dict[str, str]) -> str:
    """The joint method beside the strongest of the others: everything that one would ask."""
    found = [row for row in find(rows, dataset) if row.measured and row.method in _BESIDE]
    found.sort(key=lambda row: _BESIDE.index(row.method))
    lines = []
    for row in found:
        scores = [md.number(row.mean(f"{m}@{k}")) for m in ("P", "PSP") for k in KS]
        costs = [
            md.number(row.mean("ECE@1")),
            md.number(row.mean("ECE@5")),
            md.number(row.second("train")),
            md.number(row.number("ms_per_point"), 3),
            md.size(row.number("model_bytes")),
            _where(row, machines),
        ]
        lines.append([name_of(row), *scores, *costs])
    header = ["method", *(f"{m}@{k}" for m in ("P", "PSP") for k in KS)]
    header += ["ECE@1", "ECE@5", "train s", "ms a point", "model", "where"]
    return md.table(header, list(dict.fromkeys(map(tuple, lines))))


def stages(rows: Sequence[Row], method: str = "dxml") -> str:
    """Where the seconds of a method go, by data set."""
    mine = [row for row in rows if row.method == method and row.part == "test" and row.measured]
    mine = [row for row in mine if row.study is None]
    names = list(dict.fromkeys(name for row in mine for name in row.stages))
    lines = []
    for row in mine:
        spent = (row.stages.get(name) for name in names)
        cells = [md.number(spread["mean"] if spread else None) for spread in spent]
        lines.append([title_of(row.dataset), name_of(row), *cells])
    return md.table(["data", "method", *(f"{name} s" for name in names)], lines, left=2)


def chosen(rows: Sequence[Row]) -> str:
    """What `fit` decided on by itself, and how often over the runs."""
    lines = []
    for row in rows:
        if row.measured and row.part == "test" and row.study is None:
            for name, values in row.chosen.items():
                counts = sorted(Counter(values).items(), key=lambda item: (-item[1], str(item[0])))
                words = ", ".join(f"{_short(value)} ({times}×)" for value, times in counts)
                lines.append([title_of(row.dataset), name_of(row), f"`{name}`", words])
    return md.table(["data", "method", "value", "chosen"], lines, left=4) if lines else ""


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def bands(rows: Sequence[Row], dataset: str) -> str:
    """Share of head, torso and tail occurrences found in the first five places."""
    measured = [row for row in find(rows, dataset) if row.measured]
    lines = [
        [
            name_of(row),
            *(md.number((row.bands[band].get("found@5") or {}).get("mean")) for band in BANDS),
        ]
        for row in measured
    ]
    counts = [
        f"{band}, {md.number(measured[0].bands[band]['labels']['mean'], 0)} labels"
        for band in BANDS
    ]
    return md.table(["method", *counts], lines)


def studies(rows: Sequence[Row], study: str) -> str:
    """The effect of one parameter: a line for each value on each data set, and for each method."""
    lines = []
    mine = [row for row in rows if row.study == study]
    several = len({row.method for row in mine}) > 1
    for row in mine:
        cells = [
            md.with_deviation(row.mean(f"P@{k}"), row.deviation(f"P@{k}"))
            if row.measured
            else f"{md.MISSING} ({row.why_not})"
            for k in KS
        ]
        method = f", {name_of(row).partition(' (')[0]}" if several else ""
        lines.append(
            [
                title_of(row.dataset) + method,
                row.part,
                f"`{row.parameters.get(study, 'default')}`",
                *cells,
                str(row.runs) if row.measured else md.MISSING,
                md.number(row.second("train")),
                equipment(row) if row.measured else md.MISSING,
            ]
        )
    header = ["data", "scored on", study, *(f"P@{k}" for k in KS), "runs", "train s", "where"]
    return md.table(header, lines, left=3)


def failures(rows: Sequence[Row]) -> str:
    """Runs that did not end well, and what they said."""
    lines = []
    for row in rows:
        for failed in row.failed:
            words = " ".join(failed["error"].split())
            lines.append([title_of(row.dataset), str(failed["split"]), name_of(row), words])
    unique = list(dict.fromkeys(map(tuple, lines)))
    return md.table(["data", "split", "method", "error"], unique, left=4) if unique else ""
