"""The board in a real browser: filters, order and cards, on the site and as a page of one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml.bench._board import SCRIPT, STYLE, render_board, render_page, write_board

from ..bench.made_up import row
from .driver import Browser

pytestmark = pytest.mark.browser

BOTH = "Some CPU, 2 cores, 8 GiB"
ROWS = [
    row("bibtex", "first", 40.0),
    row("bibtex", "second", 50.0, machines=["Other CPU, 4 cores, 8 GiB", BOTH]),
    row("delicious", "third", 45.0, machines=["Other CPU, 4 cores, 8 GiB"]),
]
SUMMARY = {"experiment": "e", "rows": ROWS, "data": {}, "machines": [], "dates": []}
SHOWN = "[...document.querySelectorAll('.board tbody tr')].filter((row) => !row.hidden)"


@pytest.fixture(params=["site", "one file"])
def board(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Browser:
    """On the site the heading has the id `board`, and the script found no rows in it."""
    path = tmp_path / "board.html"
    path.write_text(render_page([SUMMARY]), "utf-8")
    if request.param == "site":
        write_board([SUMMARY], tmp_path)
        table = render_board([SUMMARY]).partition("<div")[2]
        meta = '<meta name="viewport" content="width=device-width, initial-scale=1">'
        page = f'{meta}<link rel="stylesheet" href="{STYLE}"><h1 id="board">Board</h1><div{table}'
        path.write_text(f'<!doctype html>{page}<script src="{SCRIPT}"></script>', "utf-8")
    browser.size(1400, 900)
    browser.console()
    browser.open(path.as_uri())
    return browser


def shown(board: Browser) -> list[str]:
    """The methods of the rows that are seen, from above."""
    found: list[str] = board.run(f"return {SHOWN}.map((row) => row.cells[1].textContent)")
    return found


def choose(board: Browser, name: str, value: str) -> None:
    board.run(
        "const list = document.querySelector(arguments[0]); list.value = arguments[1];"
        "list.dispatchEvent(new Event('change'))",
        f"select[aria-label={name}]",
        value,
    )


def test_rows_are_filtered_by_data_and_machine(board: Browser) -> None:
    assert shown(board) == ["second", "first", "third"]
    choose(board, "data", "Bibtex")
    assert shown(board) == ["second", "first"]
    choose(board, "machine", "Other CPU, 4 cores, 8 GiB")
    assert shown(board) == ["second"] and board.text(".board-controls span") == "1 of 3 rows"
    choose(board, "data", "")
    choose(board, "machine", BOTH)  # measured on both
    assert shown(board) == ["second", "first"]
    board.type("input[type=search]", "FIRST")
    assert shown(board) == ["first"] and board.console() == []


def test_rows_are_sorted_by_a_column(board: Browser) -> None:
    board.click("th:nth-child(3) button")
    assert shown(board) == ["second", "third", "first"]
    board.click("th:nth-child(3) button")
    assert shown(board) == ["first", "third", "second"]
    choose(board, "sort", "1")
    assert shown(board) == ["first", "second", "third"] and board.console() == []


def test_a_row_is_a_card_on_a_phone(board: Browser) -> None:
    """Nothing is wider than the screen, and each number has the name of its column."""
    board.size(390, 800, phone=True)
    assert board.run("return document.documentElement.scrollWidth") <= 390
    wide = f"{SHOWN}.flatMap((row) => [...row.cells]).filter((one) => one.scrollWidth > innerWidth)"
    assert board.run(f"return {wide}.length") == 0
    said = "return getComputedStyle(document.querySelector('td:nth-child(3)'), '::before').content"
    assert board.run(said) == '"P@1"'
