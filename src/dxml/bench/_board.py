"""The board: every stored row in one table, to be filtered and sorted in a browser.

The page is Markdown with the table as HTML, and reads without its script.
"""

from __future__ import annotations

from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from dxml.bench._summary import Row, load_rows
from dxml.bench._tables import title_of
from dxml.metrics._bands import BANDS

__all__ = ["BOARD", "SCRIPT", "render_board", "write_board"]

BOARD, SCRIPT = "board.md", "board.js"
MISSING = "–"
NOTE = "<!-- Made by `dxml bench report` from benchmarks/results: do not edit by hand. -->"
ABOUT = """Every stored result of an experiment, one row for each data set, method and setting:
means over splits and seeds, in per cent where no unit is said. *head*, *torso* and *tail* are the
shares of the occurrences of frequent, middling and rare labels that are in the first five places.
Compare seconds only where machine, threads and device are the same. *rankings* are the first 16
digits of the SHA-256 of the raw rankings, one for each run; rows from before they were kept have
none.
[A method or a data set of your own](guide/board.md) joins by one file. On the site, the table can
be filtered and sorted."""


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
    parameters = ", ".join(f"{name}={value}" for name, value in row.parameters.items())
    return {
        "data": Cell(title_of(row.dataset)),
        "method": Cell(
            row.label if not parameters or "(" in row.label else f"{row.label} ({parameters})"
        ),
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
        "rankings": Cell(" ".join(rankings) or MISSING),
    }


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def render_board(summaries: list[dict[str, Any]]) -> str:
    """The page; the same for the same summaries."""
    rows = [_cells(row) for row in load_rows(summaries) if row.measured]
    rows.sort(key=lambda row: (row["data"].text, -(row["P@1"].number or 0), row["method"].text))
    headings = list(rows[0]) if rows else []
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    body = "\n".join(f"<tr>{''.join(map(_html, row.values()))}</tr>" for row in rows)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    board = f'<div id="board">\n{table}\n</div>'
    return "\n\n".join(("# Board", NOTE, ABOUT, board)) + "\n"


def write_board(summaries: list[dict[str, Any]], output: Path) -> None:
    """Write the page and its script into a folder."""
    (output / BOARD).write_text(render_board(summaries), "utf-8")
    script = (resources.files("dxml.bench") / SCRIPT).read_text("utf-8")
    (output / SCRIPT).write_text(script, "utf-8")


def _html(cell: Cell) -> str:
    number = "" if cell.number is None else f' data-number="{cell.number:.6g}"'
    return f"<td{number}>{escape(cell.text)}</td>"
