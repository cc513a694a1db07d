"""Write docs/results.md and the README's table from the stored summaries.

``python benchmarks/readme.py``, or ``make docs`` for all pages that are made from results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dxml.bench._published import load_published
from dxml.bench._summary import Row, load_rows
from dxml.bench._tables import equipment, find, name_of, title_of
from stored_results import page_file, part_of, read_results

PART = part_of("README.md", "results", "readme")
EXPERIMENTS = ("deep", "deep-dxml", "joint", "peers", "paper-small", "paper-eurlex", "ablation")
KS = (1, 3, 5)
SMALL = ("bibtex", "delicious", "mediamill", "eurlex-4k")
BESIDE = ("eurlex-4k", "pubmed-mesh", "tibkat-gnd")
EVERY = ("bibtex", "delicious", "mediamill", *BESIDE)
OURS = {
    "joint with an encoder": "encoder",
    "joint (GPU)": "GPU",
    "joint (CPU)": "CPU",
    "joint (CPU, kernel)": "CPU with a kernel",
}
"""Our lines, and what they are called in brackets."""
ON_CPU = ("joint (CPU)", "joint (CPU, kernel)")
GPU_ROWS = {"peers": "", "joint": "joint (GPU)", "deep": "joint with an encoder"}
"""By experiment: what the rows of a GPU in it are called. First all others."""
NO_GPU_PART = "¹"
"""Marks a run on a GPU's machine whose model has no part that a GPU computes."""

HEADER = """\
<!-- made by benchmarks/readme.py -->

# Results

What the stored runs gave, in four tables. [Benchmarks](benchmarks.md) has the paper's tables
and figures beside ours."""
BESIDE_OTHERS = """\
Beside other libraries, on the same features: P@1 / P@3 / P@5 in per cent and seconds of training,
as stored; compare seconds only between rows of one *where*. napkinXC's include saving. A dash: not
measured. "joint with an encoder" reads the texts as well, by a 22-million-weight encoder
(MiniLM-L6) that is fine-tuned with the labels; Eurlex-4K has no texts."""
USED = "benchmarks.md#the-joint-method-what-it-reaches-and-what-it-does-not"
NOT_ALIKE = """\
How far to trust the comparison: {runs} omikuji has no seed. The other libraries keep
their default regularisation, unless a row says others. So does one-vs-all: its C is 1 from 3,000
labels on, and 0.3 below. joint chooses its C on held-out points.
Some of joint's settings were [compared on these test points]({used}) before they were kept.
On one clock are {alike}: on one machine with the same threads, reading, training, saving and
predicting timed apart, and models {opened} before they predict.{older} {commits}{features}
Repeat it with `dxml bench run peers`, `paper-eurlex` (one-vs-all), `joint` and `deep`."""
CALIBRATION = """\
Scores of joint are meant as probabilities. ECE@1 / ECE@5 is how far they are off on average, in
points, for the first label and for the first five; 0 is best. Beside it the method with the
lowest ECE@1 and that with the lowest ECE@5 among all others whose scores lie between 0 and 1, but
for the studies of one parameter. Rows of `dxml` and `sleec` of before 2026-11-19 may lack splits,
in which a vote was rounded to a little over 1."""
INTRODUCTION = """\
P@1 / P@3 / P@5 in per cent, every method at its defaults: the mean of ten random splits, and
Eurlex-4K's official split. In brackets the P@1 that the paper, or for Eurlex-4K the Extreme
Classification Repository, gives the method. A dash: not measured. `dxml` is the paper's pipeline
with label vectors changed by us (`center`, `spectrum`) and defaults of ours where the paper is
silent."""
REPEAT = """\
Repeat it with `dxml bench run paper-small` and `dxml bench run paper-eurlex`, the row of joint with
`dxml bench run joint`.
[benchmarks.md](benchmarks.md) has the paper's tables and figures beside ours, standard
deviations, times, sizes, and where DXML falls short of the paper's numbers."""

PARTS = """\
No measured number may cross its bound. Label vectors have a fifth of gensim's time for theirs. A
ridge regression from the features to them, in place of the encoder, must rank as well by ours as
by gensim's."""


def render_page() -> str:
    """All tables: docs/results.md."""
    rows = stored_rows()
    sections = {
        "Beside other libraries": [*_beside(_by_label(rows)), _not_alike(rows)],
        "Probabilities": _calibration(rows),
        "The methods of the paper": _paper(rows),
        "Speed and memory of the parts": _parts(),
    }
    texts = ["\n".join([f"## {title}", "", *lines]) for title, lines in sections.items()]
    return "\n\n".join([HEADER, *texts]) + "\n"


def render_readme() -> str:
    """The first table, and where joint is not the best; of each library its best settings."""
    lines = _beside(_strongest(_by_label(stored_rows())))
    lines[0] += " Of each library those\nsettings are shown that are its best at some k."
    return "\n".join(lines)


def _commits() -> str:
    """Which versions the rows of a GPU are of."""
    found: dict[str, list[str]] = {}
    for row in stored_rows():
        if row.dataset in BESIDE and label_of(row) in ("joint (GPU)", "joint with an encoder"):
            what = f"{label_of(row)} on {title_of(row.dataset)}"
            found.setdefault("/".join(each[:7] for each in row.commits), []).append(what)
    said = [f"{_listed(rows)} of commit {commit}" for commit, rows in found.items()]
    return f"Rows of a GPU are older versions: {'; '.join(said)}."


def _features() -> str:
    """Where rows were made when the data had another number of features."""
    said = []
    for dataset in BESIDE:
        counts: dict[int, list[str]] = {}
        for name, what in GPU_ROWS.items():
            if dataset in (data := _load(name)["data"]):
                counts.setdefault(data[dataset]["features"], []).append(what)
        own, *others = counts.items()
        for count, rows in others:
            said.append(
                f" On {title_of(dataset)} {_listed(rows)} had {count:,} features, all others "
                f"{own[0]:,}."
            )
    return "".join(said)


def stored_rows() -> list[Row]:
    return load_rows([_load(name) for name in EXPERIMENTS])


def label_of(row: Row) -> str:
    """How a row is called; the joint method by its device."""
    return "joint (GPU)" if (row.method, row.label) == ("joint", "joint") else row.label


def _by_label(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Every stored peer, and ours, on the data sets that peers ran on."""
    methods = {row.method for row in rows if row.method.startswith("peer:")} | {
        "joint",
        "one-vs-all",
    }
    shown = [r for d in BESIDE for r in find(rows, d) if r.measured and r.method in methods]
    shown = [row for row in shown if not (row.method == "joint" and "precision" in row.parameters)]
    table: dict[str, dict[str, Row]] = {}
    for row in shown:
        table.setdefault(label_of(row), {})[row.dataset] = row
    return table


def _strongest(table: dict[str, dict[str, Row]]) -> dict[str, dict[str, Row]]:
    """Ours, and of each other library the lines that are its best at some k on some data."""
    best: dict[tuple[str, str, int], float] = {}
    cells = [
        (label, (row.method, dataset, k), _at(row, f"P@{k}"))
        for label, by_data in table.items()
        for dataset, row in by_data.items()
        for k in KS
    ]
    for _, cell, value in cells:
        best[cell] = max(value, best.get(cell, 0.0))
    kept = {label for label, cell, value in cells if value == best[cell] or cell[0] == "joint"}
    return {label: by_data for label, by_data in table.items() if label in kept}


def _beside(table: dict[str, dict[str, Row]]) -> list[str]:
    """The table of the peers, best at Eurlex-4K first."""
    order = sorted(table, key=lambda label: -_first(table[label]))
    lines = [
        "| method | " + " | ".join(map(title_of, BESIDE)) + " | where |",
        "|---|" + "---|" * (len(BESIDE) + 1),
    ]
    for label in order:
        cells = [_with_seconds(table[label].get(dataset)) for dataset in BESIDE]
        lines.append(f"| {label} | {' | '.join(cells)} | {_where(table[label].values())} |")
    note = f"{NO_GPU_PART} This model has no part that a GPU computes: the cores alone made it."
    marked = any(NO_GPU_PART in line for line in lines)
    return [
        *(BESIDE_OTHERS, "", *lines, ""),
        *((note, "") if marked else ()),
        _who_is_ahead(table),
        _head_labels(table),
    ]


def _where(rows: Iterable[Row]) -> str:
    """All that a line's runs were made on; that a model used no GPU is marked beside its scores."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = (*row.machines, *map(str, row.threads))
        if key not in found or "cuda" in row.devices:
            found[key] = row
    return "; ".join(map(equipment, found.values()))


def _not_alike(rows: Sequence[Row]) -> str:
    """What the seconds of the table's lines have in common, from what is stored with them."""
    table = _by_label(rows)
    ours = {_where([row]) for row in table["joint (CPU)"].values()}
    timed = [name for name in table if name not in GPU_ROWS.values()]
    here = [name for name in timed if all({_where([r])} == ours for r in table[name].values())]
    alike = [name for name in here if all("save" in r.stages for r in table[name].values())]
    saving = [name for name in here if name not in alike]
    older = [name for name in timed if name not in here]
    kept = [name for name in alike if any("load" not in r.stages for r in table[name].values())]
    all_but = f", all but those of {_listed(kept)}," if kept else ""
    rest = ""
    if saving:
        rest += f" The seconds of {_listed(saving)} include saving the model,\nwhich it does as it "
        rest += "trains."
    if older:
        rest += f" {_listed(older)} are older\nruns of another machine."
    return NOT_ALIKE.format(
        runs=_runs(table),
        alike=_listed(alike),
        older=rest,
        opened=f"saved and{all_but} opened again",
        commits=_commits(),
        features=_features(),
        used=USED,
    )


def _runs(table: dict[str, dict[str, Row]]) -> str:
    """Which cells are means of several runs, and how far these lie apart."""
    counts = {name: {row.runs for row in rows.values()} for name, rows in table.items()}
    repeated = [name for name, found in counts.items() if min(found) > 1]
    if not repeated:
        return "each cell is one run, and"
    (count,) = set().union(*(counts[name] for name in repeated))
    apart = max(row.deviation("P@1") or 0 for name in repeated for row in table[name].values())
    return (
        f"cells of {_listed(repeated)} are means of {count} runs, whose P@1 has a standard\n"
        f"deviation of {apart:.1f} at most. Every other cell is one run. Runs differ by their seed;"
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _first(by_data: dict[str, Row]) -> float:
    """P@1 on Eurlex-4K; what reads texts, of which that has none, stands first."""
    return _at(by_data[BESIDE[0]], "P@1") if BESIDE[0] in by_data else 100.0


def _with_seconds(row: Row | None) -> str:
    if row is None:
        return "–"
    mark = NO_GPU_PART if label_of(row) == "joint (GPU)" and row.devices == ["cpu"] else ""
    return f"{_scores(row)}, {row.second('train'):.0f} s{mark}"


def _who_is_ahead(table: dict[str, dict[str, Row]]) -> str:
    """Where joint is not the best, with and without a GPU."""
    said = []
    for ours in ("joint (GPU)", *ON_CPU):
        for dataset in (each for each in BESIDE if each in table.get(ours, {})):
            better = []
            for label, by_data in table.items():
                if label.startswith("joint") or dataset not in by_data:
                    continue
                at = [
                    f"P@{k}"
                    for k in KS
                    if _at(by_data[dataset], f"P@{k}") > _at(table[ours][dataset], f"P@{k}")
                ]
                if at:
                    better.append(f"{label} ({', '.join(at)})")
            if better:
                said.append(f"{title_of(dataset)}, {ours}: ahead of it are {'; '.join(better)}.")
    return "Where joint is not the best of this table: " + (" ".join(said) or "nowhere.")


def _head_labels(table: dict[str, dict[str, Row]]) -> str:
    """Of the frequent labels, others find more."""
    said = []
    for dataset in BESIDE:
        found = {label: by_data[dataset] for label, by_data in table.items() if dataset in by_data}
        others = [label for label in found if label not in OURS]
        best = max(others, key=lambda label: _head(found[label]))
        behind = [
            f"{_head(found[name]):.1f} ({short})"
            for name, short in OURS.items()
            if name in found and _head(found[name]) < _head(found[best])
        ]
        if behind:
            said.append(
                f"{title_of(dataset)} {_listed(behind)} against {_head(found[best]):.1f} of {best}"
            )
    return (
        "Of the most frequent labels, which make up a third of all occurrences, joint finds fewer "
        "in the first five places than the best other of this table, in per cent: "
        + "; ".join(said)
        + "."
    )


def _head(row: Row) -> float:
    return float(row.bands["head"]["found@5"]["mean"])


def _calibration(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| data | joint (GPU) | joint (CPU) | lowest ECE@1 of the others | lowest ECE@5 |",
        "|---|---|---|---|---|",
    ]
    for dataset in EVERY:
        found = [row for row in find(rows, dataset) if row.mean("ECE@1") is not None]
        ours = {label_of(row): row for row in found if row.method == "joint"}
        others = [row for row in found if row.method != "joint"]
        cells = [
            _errors(ours[name]) if name in ours else "–" for name in ("joint (GPU)", "joint (CPU)")
        ]
        for measure in ("ECE@1", "ECE@5"):
            best = min(others, key=lambda row: _at(row, measure))
            few = "" if best.runs == found[0].runs else f" ({best.runs} splits)"
            cells.append(f"{_at(best, measure):.1f}, {best.label}{few}")
        lines.append(f"| {title_of(dataset)} | {' | '.join(cells)} |")
    return [CALIBRATION, "", *lines]


def _errors(row: Row) -> str:
    few = f" ({row.runs} of {row.planned} splits)" if row.runs < row.planned else ""
    return f"{_at(row, 'ECE@1'):.1f} / {_at(row, 'ECE@5'):.1f}{few}"


def _paper(rows: Sequence[Row]) -> list[str]:
    ours = [row for d in SMALL for row in find(rows, d) if row.label == row.method]
    lines = [
        "| method | " + " | ".join(map(title_of, SMALL)) + " | where |",
        "|---|" + "---|" * (len(SMALL) + 1),
    ]
    methods = dict.fromkeys(row.method for row in rows if row in ours)
    for method in methods:
        mine = [row for row in ours if row.method == method]
        cells = [_cell([row for row in mine if row.dataset == d], method, d) for d in SMALL]
        where = dict.fromkeys(equipment(row) for row in mine)
        lines.append(f"| {method} | {' | '.join(cells)} | {'; '.join(where)} |")
    return [INTRODUCTION, "", *lines, "", REPEAT]


def _cell(found: list[Row], method: str, dataset: str) -> str:
    if not found or not found[0].measured:
        return "–"
    (row,) = found
    ours = _scores(row)
    if row.runs < row.planned:
        ours += f" ({row.runs} of {row.planned} splits)"
    theirs = _published(method, dataset)
    return f"{ours} [{theirs:.1f}]" if theirs is not None else ours


def _scores(row: Row) -> str:
    return " / ".join(f"{_at(row, f'P@{k}'):.1f}" for k in KS)


def _at(row: Row, measure: str) -> float:
    value = row.mean(measure)
    assert value is not None, f"{name_of(row)} on {row.dataset} has no {measure}"
    return value


def _parts() -> list[str]:
    parts = _load("parts")
    lines = ["| part | measured | bound |", "|---|---|---|"]
    for what, measured, bound, _ in parts["rows"]:
        lines.append(f"| {what.strip()} | {measured} | {bound} |")
    where = f"{parts['data']}, {parts['machine']}, {parts['date']}"
    version = f"commit {parts['commit']}" if "commit" in parts else "its commit was not stored"
    return [PARTS, "", *lines, "", f"`{parts['command']}` on {where}; {version}."]


def _load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = read_results(f"{name}.json")
    return loaded


def _published(method: str, dataset: str) -> float | None:
    published = load_published()
    for source in ("paper", "repository"):
        if values := published.values(source, dataset, method, "P"):
            return values[0]
    return None


def write_page() -> None:
    PART.write(render_readme())
    page_file("docs/results.md").write_text(render_page(), "utf-8")


if __name__ == "__main__":
    write_page()
