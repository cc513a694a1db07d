"""Make the pictures of docs/guide/page.md: ``make page-pictures``, or ``page_pictures.py MODEL``.

The page of a tagger is opened in chromium, used as a person would, and photographed. Without a
model, one is trained on PubMed-MeSH.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image  # comes with matplotlib

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.driver import Browser, browsing, missing_programs  # noqa: E402
from tests.service.test_server import serving  # noqa: E402

from dxml import TextTagger  # noqa: E402
from dxml.data import load_texts  # noqa: E402

PICTURES = ROOT / "docs" / "guide" / "pictures"
TEXT = """Sleep and memory in older adults
We asked whether the quality of sleep predicts the decline of memory in healthy older people. \
Eighty volunteers aged 60 to 80 slept two nights in the laboratory while their brain waves were \
recorded, and learnt lists of words before and after. Fewer slow waves went along with poorer \
recall."""

OTHER = """Insomnia and mood in students
Students who sleep badly were asked about their mood over four weeks. Poor sleep came before low \
mood more often than after it."""
TABLE = """id,title,abstract,year
a1,Statins after a stroke,"Patients were given statins after an ischemic stroke, and followed.",2019
a2,Malaria in children,"Bed nets and the incidence of malaria in children under five in Kenya.",2021
a3,Insulin pumps,"Glucose control of adolescents with type 1 diabetes who use a pump.",2020
"""


def main() -> None:
    """Photograph the page, by day, by night and on a phone."""
    if sentence := missing_programs():
        sys.exit(sentence)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(sys.argv[1]) if len(sys.argv) > 1 else train(Path(scratch) / "tags")
        with serving(model) as (_, client), browsing(Path(scratch)) as browser:
            photograph(browser, str(client.base_url))


def train(folder: Path) -> Path:
    """A tagger of biomedical articles."""
    table = load_texts("pubmed-mesh")
    return TextTagger().fit(table.texts, table.labels, ids=table.ids).save(folder)


def photograph(browser: Browser, url: str) -> None:
    """From the first text to the map, in the dark, and on a phone."""
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
    browser.size(1280, 860)
    browser.open(url)
    browser.type("#text", TEXT)
    browser.wait("document.querySelectorAll('#labels li').length")
    browser.wait("document.querySelector('#map').dataset.zoom", patience=180)
    still(browser, "page.png")
    browser.click("#labels [data-name='Sleep'] .open")
    browser.wait("document.querySelector('.near')")
    browser.click("#labels [data-name='Sleep'] .judge")
    browser.run("document.querySelector('#labels').scrollIntoView()")
    browser.size(1280, 1000)
    still(browser, "page-evidence.png", scroll=250)
    browser.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    browser.click("#labels [data-name='Sleep'] .open")
    browser.click("#labels [data-name='Sleep'] .judge")
    browser.size(1280, 1000)
    browser.type("#find-field", "memory")
    browser.wait("document.querySelector('#find [role=option]')")
    browser.press("Down", "Enter")
    browser.wait("!document.querySelector('#chosen').hidden")
    still(browser, "page-map.png")
    browser.click("#chosen-close")
    browser.size(360, 720, phone=True)
    still(browser, "page-phone.png")
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
    photograph_tools(browser)


def photograph_tools(browser: Browser) -> None:
    """The cards that open: the curve, two texts, files and lessons."""
    browser.size(1280, 1000)
    browser.click("#curve summary")
    browser.wait("document.querySelectorAll('#plot polyline').length === 3")
    browser.click("#curve-best")
    part(browser, "page-curve.png", "section:has(#curve)")
    browser.click("#curve summary")
    browser.click("#compare summary")
    browser.type("#other", OTHER)
    browser.wait("!document.querySelector('#pairs').hidden")
    part(browser, "page-compare.png", "#compare")
    browser.click("#compare summary")
    browser.click("#files summary")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "articles.csv"
        table.write_text(TABLE, "utf-8")
        browser.type("#files-choose", str(table))
        browser.wait_text("#files-start", "Label 3 texts")
        browser.click("#files-start")
        browser.wait_text("#files-state", "3 of 3 texts labelled")
    part(browser, "page-files.png", "#files")


def part(browser: Browser, name: str, selector: str) -> None:
    """A picture of one card."""
    box = browser.run(
        "const e = document.querySelector(arguments[0]); e.scrollIntoView();"
        " document.activeElement.blur(); const b = e.getBoundingClientRect();"
        " return [b.left, b.top, b.right, b.bottom]",
        selector,
    )
    height = browser.run("return innerHeight")
    if box[3] > height:
        browser.size(1280, int(box[3] - box[1]) + 40)
        part(browser, name, selector)
        browser.size(1280, 1000)
        return
    browser.run("return new Promise((done) => setTimeout(done, 300))")
    browser.picture(PICTURES / name)
    with Image.open(PICTURES / name) as picture:
        cut = picture.convert("RGB").crop(tuple(round(side) for side in box))
    cut.quantize(128).save(PICTURES / name, optimize=True)


def still(browser: Browser, name: str, scroll: int = 0) -> None:
    """A picture without a caret or a focus ring in it."""
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")
    browser.point("h1", 0, 0)
    browser.run("scrollTo(0, arguments[0])", scroll)
    browser.run("return new Promise((done) => setTimeout(done, 300))")
    browser.picture(PICTURES / name)
    with Image.open(
        PICTURES / name
    ) as picture:  # 128 colours are enough for it, and a third the size
        picture.convert("RGB").quantize(128).save(PICTURES / name, optimize=True)
    print(f"{PICTURES / name}: {(PICTURES / name).stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
