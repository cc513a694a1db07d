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
