"""The board: every stored row in one table, to be filtered and sorted in a browser.

The page of the site is Markdown with the table as HTML, and reads without its script. The same
table is also a page of one file, which needs nothing beside it.
"""

from __future__ import annotations

import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from dxml.bench._summary import Row, load_rows
from dxml.bench._tables import title_of
from dxml.metrics._bands import BANDS

__all__ = ["BOARD", "SCRIPT", "STYLE", "render_board", "render_page", "write_board"]

BOARD, SCRIPT, STYLE = "board.md", "board.js", "board.css"
TITLE = "Board"
MISSING = "–"
NOTE = "<!-- Made by `dxml bench report` from benchmarks/results: do not edit by hand. -->"
ABOUT = """Every stored result of an experiment, one row for each data set, method and setting:
means over splits and seeds, in per cent where no unit is said. *head*, *torso* and *tail* are the
shares of the occurrences of frequent, middling and rare labels that are in the first five places.
Of a result that was stored twice the newer one stands here. Compare seconds only where machine,
threads and device are the same. *rankings* are the first 16 digits of the SHA-256 of the raw
rankings, one for each run; rows from before they were kept have none. *own files* are those of an
adapter and of a data set of one's own."""
JOIN = """[A method or a data set of your own](guide/board.md) joins by one file. On the site, the
table can be filtered and sorted; `dxml bench board` writes it as a page of one file."""
APART = ("machines", "files")
"""Rows of one method on one data set are two where these differ."""
WIDE = ("machine", "experiment", "own files", "rankings")
"""Columns of long texts."""


class Cell(NamedTuple):
    """What a cell shows, and the number it is sorted by, where it is one."""

    text: str
    number: float | None = None


def _number(value: float | None, digits: int) -> Cell:
    return Cell(MISSING) if value is None else Cell(f"{value:.{digits}f}", value)


def _cells(row: Row) -> dict[str, Cell]:
    """By the heading of their column."""
    bands = {name: ((row.bands.get(name) or {}).get("found@5") or {}).get("mean") for name in BANDS}
    sizes = {name: row.number(name) for name in ("peak_bytes", "model_bytes")}
    rankings, commits = row.values.get("rankings", []), row.values.get("commits", [])
    files = row.values.get("files", {}).items()
    return {
        "data": Cell(title_of(row.dataset)),
        "method": Cell(_method(row)),
        **{f"P@{k}": _number(row.mean(f"P@{k}"), 2) for k in (1, 3, 5)},
        **{f"PSP@{k}": _number(row.mean(f"PSP@{k}"), 2) for k in (1, 5)},
        **{f"{name} @5": _number(value, 1) for name, value in bands.items()},
        **{f"ECE@{k}": _number(row.mean(f"ECE@{k}"), 2) for k in (1, 5)},
        "train s": _number(row.second("train"), 1),
        "ms a point": _number(row.number("ms_per_point"), 3),
        "peak GB": _number(_scaled(sizes["peak_bytes"], 1e9), 2),
        "model MB": _number(_scaled(sizes["model_bytes"], 1e6), 1),
        "splits": Cell(str(len(row.splits)), len(row.splits)),
        "part": Cell(row.part),
        "machine": Cell("; ".join(row.machines) or MISSING),
        "threads": Cell(", ".join(map(str, row.threads)) or MISSING),
        "device": Cell(", ".join(row.devices) or MISSING),
        "experiment": Cell(row.experiment),
        "commit": Cell(", ".join(commits) or MISSING),
        "own files": Cell(" ".join(f"{name} {digest}" for name, digest in files) or MISSING),
        "rankings": Cell(" ".join(rankings) or MISSING),
    }


def _method(row: Row) -> str:
    """The label, with the parameter of a study, and with all where it has nothing in brackets."""
    unnamed = {
        name: value
        for name, value in row.parameters.items()
        if name not in row.label and ("(" not in row.label or name == row.study)
    }
    parameters = ", ".join(f"{name}={value}" for name, value in unnamed.items())
    return f"{row.label} ({parameters})" if parameters else row.label


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _table(summaries: list[dict[str, Any]]) -> str:
    """All measured rows as HTML."""
    rows = [_cells(row) for row in load_rows(summaries, APART) if row.measured]
    rows.sort(key=lambda row: (row["data"].text, -(row["P@1"].number or 0), row["method"].text))
    headings = list(rows[0]) if rows else []
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "\n".join(
        f"<tr>{''.join(_html(name, cell) for name, cell in row.items())}</tr>" for row in rows
    )
    table = f'<table class="rows">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n'
    return f'<div class="board">\n{table}</table>\n</div>'


def render_board(summaries: list[dict[str, Any]]) -> str:
    """The page of the site; the same for the same summaries."""
    return "\n\n".join((f"# {TITLE}", NOTE, f"{ABOUT}\n{JOIN}", _table(summaries))) + "\n"


def render_page(summaries: list[dict[str, Any]]) -> str:
    """The same as a page of one file, with its script and its style in it."""
    about = re.sub(r"\*(.+?)\*", r"<em>\1</em>", escape(ABOUT, quote=False))
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ margin: 1rem; }}
.about {{ max-width: 60rem; }}
{_part(STYLE)}</style>
<h1>{TITLE}</h1>
<p class="about">{about}</p>
{_table(summaries)}
<script>
{_part(SCRIPT)}</script>
</html>
"""


def write_board(summaries: list[dict[str, Any]], output: Path) -> None:
    """Write the page of the site, its script and its style into a folder."""
    (output / BOARD).write_text(render_board(summaries), "utf-8")
    for name in (SCRIPT, STYLE):
        (output / name).write_text(_part(name), "utf-8")


def _part(name: str) -> str:
    return (resources.files("dxml.bench") / name).read_text("utf-8")


def _html(name: str, cell: Cell) -> str:
    """A cell; of many words, such as the checksums of ten splits, the first is seen."""
    number = "" if cell.number is None else f' data-number="{cell.number:.6g}"'
    wide = ' class="wide"' if name in WIDE else ""
    shown = escape(cell.text)
    first, _, others = shown.partition(" ")
    if name == "rankings" and others:
        count = others.count(" ") + 2
        shown = f"<details><summary>{first} and {count - 1} more</summary>{others}</details>"
    return f"<td{number}{wide}>{shown}</td>"
