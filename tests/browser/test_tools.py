"""What the page has beside one text: files, copies, two texts, the curve, lessons.

Texts, labels and titles that are markup must show as they are.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import httpx
import pytest

from ..service.test_server import serving
from .conftest import ODD, open_page
from .driver import Browser
from .test_page import FISH, SOUP, change, names, write

pytestmark = pytest.mark.browser

EVIL = "<script>alert('x')</script>"


def unharmed(page: Browser) -> bool:
    """Whether no markup came out of a text, a label or a title."""
    return page.run("return [document.scripts.length, document.images.length]") == [1, 0]


def choose_files(page: Browser, folder: Path, **contents: str) -> None:
    paths = []
    for name, text in contents.items():
        path = folder / name.replace("__", ".")
        path.write_text(text, "utf-8", newline="")
        paths.append(str(path))
    page.run("document.querySelector('#files-choose').value = ''")
    page.type("#files-choose", "\n".join(paths))


def test_files_are_labelled_and_downloaded(page: Browser, tmp_path: Path) -> None:
    page.devtools(
        "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "got")
    )
    page.click("#files summary")
    rows = [{"id": "j1", "text": "violin, herring, opera, net"}, {"id": "j2", "text": None}]
    choose_files(
        page,
        tmp_path,
        a__txt=f"{EVIL} herring in the net",
        b__csv=f'id;title;year\r\n"{EVIL}";"soup; ""salt""\r\nspoon";1999\r\n7;gravel bridge;2\r\n',
        c__jsonl="\n".join(map(json.dumps, rows)),
    )
    page.wait_text("#files-start", "Label 5 texts")
    ticked = "[...document.querySelectorAll('#files-names input')].map((e) => [e.value, e.checked])"
    assert page.run(f"return {ticked}") == [
        ["id", False],
        ["title", True],
        ["year", False],
        ["text", True],
    ]
    assert page.run("return document.querySelector('#files-naming').value") == "id"
    change(page, "#least", 30)
    page.click("#files-start")
    page.wait_text("#files-state", "5 of 5 texts labelled")
    shown = page.all("#files-rows li")
    assert shown[0].startswith(f"a.txt\n{EVIL}") and "Fishery" in shown[0]
    assert shown[1].startswith(EVIL) and "Kitchen" in shown[1] and unharmed(page)
    assert shown[4] == "j2\n\nThere is no text."

    page.click("#files-save")
    saved = tmp_path / "got" / "labels.csv"
    page.wait("new Promise((done) => setTimeout(() => done(true), 500))")
    text = saved.read_bytes().decode("utf-8-sig")
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["point"] for row in table] == ["a.txt", EVIL, "7", "j1", "j2"]
    assert [row["labels"].split(";")[0] for row in table[:3]] == ["Fishery", "Kitchen", "Roads"]
    both = table[3]["labels"].split(";"), table[3]["probabilities"].split(";")
    assert {"Fishery", "Music"} <= set(both[0]) and len(both[0]) == len(both[1])
    assert all(0.3 <= float(share) <= 1 for share in both[1]) and table[4]["labels"] == ""


def test_rows_of_files_go_by_a_column_that_one_chooses(page: Browser, tmp_path: Path) -> None:
    page.click("#files summary")
    chosen = "return document.querySelector('#files-naming').value"
    named = "#files-rows li b"
    choose_files(page, tmp_path, a__csv="year,Number,title\n1999,n1,herring net\n1999,n2,opera\n")
    page.wait_text("#files-start", "Label 2 texts")
    assert page.run(chosen) == "Number", "it is called so, and another in each row"
    page.click("#files-start")
    page.wait_text("#files-state", "2 of 2 texts labelled")
    assert page.all(named) == ["n1", "n2"]
    change(page, "#files-naming", "title")
    assert page.all(named) == ["herring net", "opera"], "those that are labelled too"
    change(page, "#files-naming", "")
    assert page.all(named) == ["a.csv:1", "a.csv:2"]
    choose_files(page, tmp_path, b__csv="number,title\n1,herring net\n1,opera\n")
    page.wait_text("#files-start", "Label 2 texts")
    assert page.run(chosen) == "", "a number that stands twice names no row"


def test_files_that_cannot_be_read_are_named(page: Browser, tmp_path: Path) -> None:
    page.click("#files summary")
    (tmp_path / "a.txt").write_bytes(b"na\xefve")
    page.type("#files-choose", str(tmp_path / "a.txt"))
    page.wait_text("#files-problem", "a.txt is not in UTF-8. Save it as UTF-8")
    choose_files(page, tmp_path, b__json="{nonsense")
    page.wait_text("#files-problem", "b.json is not JSON")
    choose_files(page, tmp_path, c__csv="text\n")
    page.wait_text("#files-problem", "c.csv has no rows.")
    assert page.all("#files-start") == []
    choose_files(page, tmp_path, c__csv="text\n", d__txt="herring")
    page.wait_text("#files-start", "Label 1 text")
    assert page.text("#files-problem") == "c.csv has no rows."


def test_a_text_that_the_service_refuses_fails_alone(page: Browser, tmp_path: Path) -> None:
    page.click("#files summary")
    choose_files(page, tmp_path, a__txt="herring net", b__txt="a" * 100_001)
    page.click("#files-start")
    page.wait_text("#files-state", "2 of 2 texts labelled")
    first, second = page.all("#files-rows li")
    assert "Fishery" in first and "A text may have 100,000 characters" in second
    assert all("413" in said for said in page.console())


def test_tables_of_many_kinds(page: Browser) -> None:
    """Read by the page's own module: separators, quotes, line ends, arrays, wide characters."""
    labels = [{"name": "x;y", "probability": 0.123456789}, {"name": "z", "probability": 1}]
    found = page.run(
        "return import('./page/tables.js').then(async ({ readFile, asCsv }) => ["
        " await readFile(new File([arguments[0]], 'a.csv')),"
        " await readFile(new File([arguments[1]], 'b.tsv')),"
        " await readFile(new File([arguments[2]], 'c.json')),"
        " await readFile(new File([new Uint8Array([0xff, 0xfe, 0x41, 0, 0x42, 0])], 'd.txt')),"
        " asCsv(arguments[3])])",
        '\ufeffa,b\n1,"two\nlines, ""q"""\n\n3,\n',
        'a\tb\r\n1\t"x"\r\n',
        '[{"id": 5, "t": "x"}, "plain"]',
        [{"id": 'a"b', "labels": labels}, {"id": "none"}],
    )
    table, tabbed, array, wide, written = found
    assert table["columns"] == ["a", "b"]
    assert table["rows"] == [
        {"place": "a.csv:1", "cells": {"a": "1", "b": 'two\nlines, "q"'}},
        {"place": "a.csv:2", "cells": {"a": "3", "b": ""}},
    ]
    assert tabbed["rows"] == [{"place": "b.tsv:1", "cells": {"a": "1", "b": "x"}}]
    assert array["rows"] == [
        {"place": "c.json:1", "cells": {"id": 5, "t": "x"}},
        {"place": "c.json:2", "cells": {"text": "plain"}},
    ]
    assert wide["rows"] == [{"place": "d.txt", "text": "AB"}]
    assert written == 'point,labels,probabilities\r\n"a""b",x;y|z,0.123457|1\r\nnone,,\r\n'


def test_labels_are_copied(page: Browser) -> None:
    page.run(
        "Object.defineProperty(navigator, 'clipboard',"
        " { value: { writeText: async (text) => { window.copied = text; } } })"
    )
    write(page, "violin opera herring net", "")
    change(page, "#least", 20)
    page.wait_text("#labels", "Music")
    page.click("#copy")
    page.wait_text("#state", f"Copied {len(names(page))} labels")
    assert page.run("return window.copied").split("\n") == names(page)
    page.click("#clear")
    page.wait_text("#empty", "Nothing to label yet.")
    assert page.all("#copy") == []


def test_two_texts_side_by_side(page: Browser) -> None:
    write(page, FISH, "Fishery")
    change(page, "#least", 1)
    page.click("#compare summary")
    page.type("#other", f"violin, opera, herring, net {EVIL}")
    page.wait_text("#pairs-rows", ODD)  # the first answers may be about half of what was typed
    assert "Only in the second" in page.text("#pairs-rows")
    rows = page.all("#pairs-rows tr")
    assert rows[0].startswith("In both (") and rows[1].startswith("Fishery")
    both = page.all("#pairs-rows tr:nth-child(2) .both")
    assert {word.split()[0] for word in both} >= {"herring", "net"}
    assert any("trawler" in word for word in page.all("#pairs-rows tr:nth-child(2) .first"))
    assert any(row.startswith("Music") for row in rows)
    assert unharmed(page)
    page.clear("#text")
    page.type("#text", SOUP)
    page.wait_text("#pairs-rows", "Kitchen")
    emptied = "const e = document.querySelector('#other'); e.value = '';"
    page.run(f"{emptied} e.dispatchEvent(new Event('input'))")
    page.wait("document.querySelector('#pairs').hidden")


def test_a_threshold_is_chosen_by_its_curve(page: Browser, service: httpx.Client) -> None:
    write(page, FISH, "Fishery")
    page.click("#curve summary")
    page.wait("document.querySelectorAll('#plot polyline').length === 3")
    told = service.get("/thresholds").json()
    best = round(100 * told["best"]["threshold"])
    page.click("#curve-best")
    assert page.text("#least-said") == f"{best} %"
    row = told["thresholds"][best]
    assert row == told["best"]
    said = page.text("#curve-said").replace(">99", "100")
    assert f"recall {round(100 * row['recall'])} %" in said
    page.point("#plot", 0, 0, click=True)
    middle = page.run("return document.querySelector('#least').valueAsNumber")
    assert 40 <= middle <= 60 and page.text("#curve-said").startswith(f"From {middle} %:")
    x = "document.querySelector('#plot .hair').getAttribute('x1')"
    assert float(page.run(f"return {x}")) == pytest.approx(34 + 2.8 * middle)
    page.tab_to("#least")
    page.press("Right")
    page.wait_text("#least-said", f"{middle + 1} %")
    assert page.text("#curve-said").startswith(f"From {middle + 1} %:")


def test_lessons_are_reviewed_and_taken_back(page: Browser, service: httpx.Client) -> None:
    lesson = {"texts": [f"{EVIL}\nherring soup", "salt"], "labels": [[EVIL, "Kitchen"], ["Music"]]}
    service.post("/learn", json=lesson)
    number = service.get("/lessons?limit=1").json()["lessons"][0]["number"]
    item = f"#review-list [data-number='{number}']"
    page.click("#review summary")
    page.wait_text(item, EVIL)
    page.click(f"{item} button[aria-expanded]")
    page.wait_text(f"{item} .taught-text", f"{EVIL}\nherring soup")
    assert page.all(f"{item} .chip") == [EVIL, "Kitchen", "Music"] and unharmed(page)
    change(page, "#least", 0)
    write(page, "soup of herring", "")
    page.wait_text("#labels", EVIL)
    page.click(f"{item} [aria-label^=Undo]")
    page.wait_text("#review-state", f"Took lesson {number} out of the journal")
    page.wait("!document.querySelector('#labels').textContent.includes('script')")
    assert page.all(item) == []
    assert page.run("return document.activeElement.tagName") == "SUMMARY"
    assert service.get("/health").json()["points"] == 120


def test_lessons_are_shown_to_those_with_the_token(browser: Browser, copied: Path) -> None:
    right = {"Authorization": "Bearer secret"}
    with serving(copied, "--token", "secret") as (_, client):
        for i in range(23):
            lesson = {"texts": ["herring"], "labels": [["Fishery"]], "ids": [f"t{i}"]}
            assert client.post("/learn", json=lesson, headers=right).status_code == 200
        total = client.get("/lessons", headers=right).json()["total"]  # with those of other tests
        assert 23 <= total <= 40
        open_page(browser, client)
        browser.click("#review summary")
        browser.wait_text("#review-token-form", "This service wants a token")
        browser.write("wrong")
        browser.press("Enter")
        browser.wait_text("#review-problem", "That is not the token.")
        browser.clear("#review-token")
        browser.type("#review-token", "secret")
        browser.press("Enter")
        browser.wait_text("#review-state", f"{total} lessons")
        assert len(browser.all("#review-list > li")) == 20
        browser.click("#review-older")
        browser.wait(
            "document.querySelectorAll('#review-list > li').length === arguments[0]", total
        )
        assert browser.all("#review-older") == [] == browser.all("#review-token-form")
        browser.open("about:blank")
    assert all("401" in said for said in browser.console())


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_all_cards_fit_any_width(page: Browser, tmp_path: Path, width: int) -> None:
    page.size(width, 900, phone=width < 500)
    write(page, FISH, "Fishery")
    for card in ("curve", "compare", "files", "review"):
        page.click(f"#{card} summary")
    page.type("#other", "violin " + "b" * 200)
    choose_files(page, tmp_path, **{"c" * 60 + "__txt": "opera " + "d" * 200})
    page.click("#files-start")
    page.wait_text("#files-state", "1 of 1 text labelled")
    page.wait("document.querySelectorAll('#plot polyline').length === 3")
    page.wait("!document.querySelector('#pairs').hidden")
    assert page.run("return document.documentElement.scrollWidth") <= width
    seen = "[...document.querySelectorAll('main *')].filter((e) => e.checkVisibility()"
    box = "e.getBoundingClientRect()"
    outside = f"{seen} && !e.closest('.unseen, svg') && {box}.right > innerWidth + 1)"
    assert page.run(f"return {outside}.map((e) => e.id || e.className)") == []
    small = f"{seen} && e.matches('button, summary, input') && {box}.height < 24)"
    assert page.run(f"return {small}.map((e) => e.id || e.className)") == []


def test_a_model_of_features_has_none_of_it(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from dxml.data import make_planted
    from dxml.joint import Joint

    data = make_planted(200, 60, 8, labels_per_point=1, features_per_point=8, random_state=0)
    model = Joint(device="cpu").fit(data.X, data.Y).save(tmp_path_factory.mktemp("j") / "joint")
    with serving(model) as (_, client):
        open_page(browser, client)
        browser.wait_text("#hint", "This model was trained on features")
        assert browser.all("#compare, #files, #review") == []
        browser.click("#curve summary")
        browser.wait("document.querySelectorAll('#plot polyline').length === 3")
        browser.open("about:blank")
    assert browser.console() == []
