"""What people do on the page, in a real browser with a real service behind it."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import httpx
import pytest

from dxml.data import make_planted
from dxml.joint import Joint
from dxml.tagging import TextTagger, read_thesaurus

from ..service.test_server import serving
from .conftest import ODD, open_page
from .driver import Browser

pytestmark = pytest.mark.browser

FISH = "The Herring in the net of an old trawler"
SOUP = "herring soup with salt"


def names(page: Browser) -> list[str]:
    return page.all("#labels .open > span:first-child")


def shares_of(page: Browser) -> list[int]:
    return [int(re.sub(r"\D", "", said)) for said in page.all("#labels .share")]


def every(selector: str) -> str:
    """An expression of the page: a list of elements."""
    return f"[...document.querySelectorAll({selector!r})]"


def change(page: Browser, selector: str, value: int | str) -> None:
    """Set a number, a slider or a choice as a person's hand does."""
    script = "e.value = arguments[1]; e.dispatchEvent(new Event('input'))"
    page.run(f"const e = document.querySelector(arguments[0]); {script}", selector, value)


def write(page: Browser, text: str, first: str) -> None:
    """Write a text and wait until its best label is the one that is expected."""
    page.clear("#text")
    page.type("#text", text)
    page.wait_text("#labels li:first-child .open", first)
    page.wait("!document.querySelector('#results').ariaBusy")


def test_the_whole_story(page: Browser) -> None:
    """Paste, read, ask why, teach a new label, see it predicted, undo."""
    write(page, FISH, "Fishery")
    change(page, "#least", 0)
    page.wait("document.querySelectorAll('#labels li').length > 1")
    shares = shares_of(page)
    assert len(shares) > 1 and shares == sorted(shares, reverse=True)
    widths = page.run(f"return {every('#labels .bar i')}.map((e) => parseFloat(e.style.width))")
    assert widths == pytest.approx(shares, abs=1.01)

    page.click("#labels li:first-child .open")
    page.wait_text(".legend", "neighbours")
    head, near = (int(n) for n in re.findall(r"\d+", page.text(".legend")))
    assert 99 <= head + near <= 101
    assert {said.split()[0] for said in page.all(".words li")} >= {"herring", "net", "trawler"}
    marks = page.run(f"return {every('#marks mark')}.map((e) => e.textContent)")
    assert {"Herring", "net", "trawler"} <= set(marks)
    neighbours = page.all(".near li")
    assert neighbours and all(re.search(r"\bdoc/\d+\b", said) for said in neighbours)
    assert "Fishery" in page.all(".near li:first-child .chip")

    page.click("#labels li:first-child .open")
    assert page.all(".why") == []
    assert page.run("return document.querySelectorAll('#marks mark').length") == 0

    write(page, SOUP, "Kitchen")
    before = page.text("#summary")
    page.click("#labels li:first-child .judge")
    assert page.all("#lesson .chip") == ["Kitchen ×"]
    page.type("#add-field", "Fish soup")
    page.wait_text("#add li", "new label")
    page.press("Enter")
    assert [said.split()[0] for said in page.all("#lesson .chip")] == ["Kitchen", "Fish"]
    page.click("#teach")
    page.wait_text("#taught-said", "Learnt: this text is “Kitchen” and “Fish soup”.")
    assert "“Fish soup” is a new label." in page.text("#taught-said")
    page.wait("document.querySelector('#summary').textContent !== arguments[0]", before)
    assert page.text("#summary") == "6 labels learnt from 121 texts"
    assert page.text("#text-title") == "Text" and page.all("#lesson .chip") == []

    page.clear("#text")
    page.type("#text", "salt in a soup of herring")
    page.wait_text("#labels", "Fish soup")
    assert "Fish soup" in names(page)[:3]

    page.click("#undo")
    page.wait_text("#taught-said", "Forgotten again.")
    page.wait("!document.querySelector('#labels').textContent.includes('Fish soup')")
    assert page.text("#summary") == before


def test_with_the_keyboard_alone(page: Browser) -> None:
    assert page.run("return document.activeElement.id") == "text"
    page.write("herring net")
    page.press("Enter", holding="Control")
    page.wait_text("#labels li:first-child .open", "Fishery")
    page.tab_to("#labels li:first-child .open")
    page.press("Enter")
    page.wait_text("#labels li:first-child .why", "Words that mattered")
    assert page.run("return document.activeElement.getAttribute('aria-expanded')") == "true"
    page.tab_to("#labels li:first-child .judge")
    page.press("Enter")
    assert page.run("return document.activeElement.ariaPressed") == "true"
    page.tab_to("#add-field")
    page.write("mus")
    page.wait_text("#add [role=option]", "Music")
    page.press("Down")
    lit = page.run("return document.activeElement.getAttribute('aria-activedescendant')")
    assert page.run("return document.getElementById(arguments[0]).ariaSelected", lit) == "true"
    page.press("Enter")
    assert [said.split()[0] for said in page.all("#lesson .chip")] == ["Fishery", "Music"]
    assert page.run("return document.activeElement.ariaExpanded") == "false"
    page.tab_to("#teach")
    page.press("Enter")
    page.wait_text("#taught-said", "Learnt: this text is “Fishery” and “Music”.")
    page.tab_to("#undo")
    page.press("Enter")
    page.wait_text("#taught-said", "Forgotten again.")
    page.tab_to("#map")
    page.wait("document.querySelector('#map').dataset.zoom")
    page.press("Right", "+")
    page.wait("Number(document.querySelector('#map').dataset.zoom) >= 1.3")
    page.wait_text("#tip", "texts")
    assert page.text("#focused") == page.text("#tip")
    page.press("Enter")
    page.wait_text("#chosen-name", page.text("#tip").partition(" · ")[0])
    page.press("Escape")
    assert page.text("#chosen-name") == ""


def test_labels_are_found_and_the_map_flies_there(page: Browser) -> None:
    page.wait_text("#map-state", "5 labels")
    write(page, "violin opera herring net", "")
    page.wait_text("#map-state", "of your text lit")
    page.type("#find-field", "fISH")
    page.wait_text("#find [role=option]", "Fishery")
    page.press("Down", "Enter")
    page.wait_text("#chosen-name", "Fishery")
    page.wait("Number(document.querySelector('#map').dataset.zoom) >= 1.4")
    assert re.match(r"\d+ texts\. Goes with:", page.text("#chosen-said"))
    related = page.all("#chosen-related .chip")
    assert ODD in related and "Fishery" not in related
    page.run(
        f"{every('#chosen-related .chip')}.find((e) => e.innerText === arguments[0]).click()", ODD
    )
    page.wait_text("#chosen-name", ODD)
    assert page.run("return document.querySelectorAll('img').length") == 0  # a name is no markup
    page.click("#zoom-all")
    page.wait("document.querySelector('#map').dataset.zoom === '1.00'")
    page.wheel("#map", -400)
    page.wait("Number(document.querySelector('#map').dataset.zoom) > 1.5")
    page.click("#chosen-add")
    assert page.all("#lesson .chip") == [f"{ODD} ×"]
    page.type("#find-field", "nothing is called so")
    page.wait_text("#find li", "No label has this in its name.")
    page.press("Escape")


def test_hover_click_and_drag_on_the_map(page: Browser) -> None:
    page.wait_text("#map-state", "5 labels")
    page.type("#find-field", "Roads")
    page.wait_text("#find [role=option]", "Roads")
    page.press("Down", "Enter")
    page.wait("Number(document.querySelector('#map').dataset.zoom) >= 1.4")
    page.click("#chosen-close")
    assert page.text("#chosen-name") == ""
    page.point("#map", 0, 0)  # it is in the middle now
    page.wait_text("#tip", "Roads · ")
    page.point("#map", 0, 0, click=True)
    page.wait_text("#chosen-name", "Roads")
    page.drag("#map", 120, 60)
    page.point("#map", 0, 0)
    assert page.text("#tip") == ""
    page.point("#map", 120, 60)
    page.wait_text("#tip", "Roads · ")


def test_thresholds_and_texts_that_change(page: Browser) -> None:
    write(page, FISH, "Fishery")
    change(page, "#least", 0)
    page.wait("document.querySelectorAll('#labels li').length > 1")
    first, second = shares_of(page)[:2]
    assert first > second + 1
    highest = min(first, 90)  # as far as the slider goes
    change(page, "#least", highest)
    page.wait("document.querySelectorAll('#labels li').length < 2")
    assert page.text("#least-said") == f"{highest} %"
    change(page, "#least", 0)
    page.wait("document.querySelectorAll('#labels li').length === 5")
    change(page, "#top", 2)
    page.wait("document.querySelectorAll('#labels li').length === 2")
    page.click("#labels li:nth-child(2) .judge.no")
    assert page.run("return document.querySelectorAll('#labels li.rejected').length") == 1
    page.click("#clear")
    page.wait_text("#empty", "Nothing to label yet.")
    assert names(page) == []
    page.click("#teach")
    page.wait_text("#taught-problem", "There is no text to teach yet.")


def test_a_late_answer_is_dropped(page: Browser) -> None:
    """The first question's answer is held back until the second one's is there."""
    page.run(
        """
        const real = window.fetch;
        window.fetch = async (path, settings) => {
          const answer = await real(path, { ...settings, signal: undefined });
          const held = (done) => { window.release = done; };
          if (settings?.body?.includes("soup")) await new Promise(held);
          return answer;
        };
        """
    )
    page.type("#text", "soup spoon salt")
    page.wait("Boolean(window.release)")
    write(page, "violin orchestra", "Music")
    page.run("window.release()")
    page.run("return new Promise((done) => setTimeout(done, 100))")
    assert names(page)[0] == "Music"


@pytest.mark.parametrize(("width", "height"), [(360, 740), (768, 1024), (1900, 1000)])
def test_no_width_needs_scrolling_sideways(page: Browser, width: int, height: int) -> None:
    page.size(width, height, phone=width < 500)
    write(page, "violin " + "a" * 300 + " herring net opera", "")
    page.click("#labels li:first-child .open")
    page.wait_text("#labels li:first-child .why", "Similar texts")
    page.type("#find-field", "img")
    page.wait_text("#find [role=option]", ODD)
    page.press("Down", "Enter")
    page.wait_text("#chosen-name", ODD)
    assert page.run("return document.documentElement.scrollWidth") <= width
    seen = f"{every('body *:not(.unseen):not(.skip)')}.filter((e) => e.checkVisibility())"
    box, called = "e.getBoundingClientRect()", "map((e) => e.id || e.className)"
    outside = f"return {seen}.filter((e) => {box}.right > innerWidth + 1).{called}"
    assert page.run(outside) == []
    small = f"return {seen}.filter((e) => e.matches('button, input') && {box}.height < 24).{called}"
    assert page.run(small) == []


def test_in_the_dark(page: Browser) -> None:
    """Ground and ink swap, also on the map, and can be told apart."""
    light = [luminance(colour) for colour in grounds(page)]
    page.prefer(prefers_color_scheme="dark")
    dark = [luminance(colour) for colour in grounds(page)]
    for (ground, ink), expected in ((light, True), (dark, False)):
        assert (ground > ink) is expected
        lighter, darker = max(ground, ink), min(ground, ink)
        assert (lighter + 0.05) / (darker + 0.05) > 7


def grounds(page: Browser) -> list[str]:
    return page.run(
        "return [getComputedStyle(document.querySelector('.card')).backgroundColor,"
        " getComputedStyle(document.body).color]"
    )


def luminance(colour: str) -> float:
    """Of "rgb(…)", as WCAG 2 defines it."""
    parts = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_service_that_dies_and_comes_back(browser: Browser, copied: Path) -> None:
    with serving(copied) as (process, client):
        open_page(browser, client)
        port = client.base_url.port
        write(browser, FISH, "Fishery")
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        browser.type("#text", " and a violin")
        browser.wait_text("#problem", "The service does not answer. What you typed is still here")
        browser.click("#labels li:first-child .judge")
        browser.click("#teach")
        browser.wait_text("#taught-problem", "Nothing was changed; the lesson is still here.")
        assert browser.all("#lesson .chip") == ["Fishery ×"]
    with serving(copied, port=port) as _:
        browser.wait("document.querySelector('#problem').hidden")
        typed = browser.run("return document.querySelector('#text').value")
        assert typed == f"{FISH} and a violin"
        browser.wait_text("#labels", "Music")
        browser.click("#teach")
        browser.wait_text("#taught-said", "Learnt: this text is “Fishery”.")
    browser.open("about:blank")
    browser.console()  # it names the requests that failed


def test_labels_outside_the_vocabulary_are_named(browser: Browser, copied: Path) -> None:
    tagger = TextTagger.load(copied)
    tagger.thesaurus = read_thesaurus({"name": list(tagger.labels_)})
    tagger.save(copied)
    with serving(copied) as (_, client):
        open_page(browser, client)
        write(browser, SOUP, "Kitchen")
        browser.click("#labels li:first-child .judge")
        browser.type("#add-field", "Fish soup")
        browser.wait_text("#add li", "new label")
        browser.press("Enter")
        browser.click("#teach")
        browser.wait_text("#taught-said", "“Fish soup” is not in the vocabulary.")
    browser.open("about:blank")


def test_a_token_is_asked_for(browser: Browser, copied: Path) -> None:
    with serving(copied, "--token", "secret") as (_, client):
        open_page(browser, client)
        write(browser, FISH, "Fishery")
        browser.click("#labels li:first-child .judge")
        browser.click("#teach")
        browser.wait_text("#token-form", "This service wants a token")
        assert browser.run("return document.activeElement.id") == "token"
        browser.write("wrong")
        browser.press("Enter")
        browser.wait_text("#taught-problem", "That is not the token.")
        browser.clear("#token")
        browser.type("#token", "secret")
        browser.press("Enter")
        browser.wait_text("#taught-said", "Learnt: this text is “Fishery”.")
        assert browser.text("#token-form") == ""
        browser.click("#undo")
        browser.wait_text("#taught-said", "Forgotten again.")
        browser.open("about:blank")
    assert all("401" in said for said in browser.console())


def test_a_model_of_features(browser: Browser, tmp_path: Path) -> None:
    data = make_planted(200, 60, 8, labels_per_point=1, features_per_point=8, random_state=0)
    model = Joint(device="cpu").fit(data.X, data.Y).save(tmp_path / "joint")
    with serving(model) as (_, client):
        open_page(browser, client)
        browser.wait_text("#hint", "This model was trained on features, not on texts")
        assert browser.text("#text-title") == "Features" and browser.all("#teaching") == []
        row = data.X[0]
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        browser.type("#text", " ".join(f"{column}:{value:.4f}" for column, value in pairs))
        browser.wait("document.querySelectorAll('#labels li').length")
        right = str(data.Y[0].indices[0])
        browser.wait_text("#labels li:first-child .open", right)
        assert browser.all("#labels .judge") == []
        browser.click("#labels li:first-child .open")
        browser.wait_text(".why", "Features that mattered")
        browser.type("#text", " 3;4")
        browser.wait_text("#problem", "“3;4” is not a feature: write column:value, such as 17:0.5.")
        browser.open("about:blank")
    assert browser.console() == []


def test_errors_of_the_service_are_shown_in_words(page: Browser, service: httpx.Client) -> None:
    page.run("document.querySelector('#text').value = 'a'.repeat(100001)")
    page.click("#ask")
    page.wait_text("#problem", "A text may have 100,000 characters, text 1 has 100,001.")
    page.clear("#text")
    assert all("413" in said for said in page.console())


def test_the_page_about_the_routes(browser: Browser, copied: Path) -> None:
    """Every route is on it, and can be tried: a prediction, and a lesson with the token."""
    with serving(copied, "--token", "secret") as (_, client):
        own = open_page(browser, client)
        browser.click("header a[href=docs]")
        browser.wait_text("#swagger-ui .info", "Label names for texts")
        paths = client.get("/openapi.json").json()["paths"]
        told = [f"{method.upper()} {path}" for path, item in paths.items() for method in item]
        shown = browser.all("#swagger-ui .opblock-summary-control")
        assert sorted(" ".join(each.split()[:2]) for each in shown) == sorted(told)

        browser.size(360, 740, phone=True)
        assert browser.run("return document.documentElement.scrollWidth") <= 360
        browser.size(1280, 900)

        predict = "#operations-Asking-predict"
        browser.click(f"{predict} .opblock-summary-control")
        browser.wait_text(f"{predict} textarea", "")
        browser.clear(f"{predict} textarea")
        browser.type(f"{predict} textarea", '{"text": "herring net", "top": 2}')
        browser.click(f"{predict} .execute")
        browser.wait_text(f"{predict} .live-responses-table", '"name": "Fishery"')
        assert f"'{client.base_url.join('/predict')}'" in browser.text(f"{predict} .curl")
        assert browser.console() == []

        learn, before = "#operations-Teaching-learn", client.get("/health").json()["lessons"]
        browser.click(f"{learn} .opblock-summary-control")
        browser.wait_text(f"{learn} .execute", "Execute")
        browser.click(f"{learn} .execute")
        browser.wait_text(f"{learn} .live-responses-table", '"type": "unauthorized"')
        browser.click("#swagger-ui .auth-wrapper > .authorize")
        browser.type("#swagger-ui .auth-container input", "secret")
        browser.click("#swagger-ui .auth-container .authorize")
        browser.click("#swagger-ui .auth-container .btn-done")
        browser.click(f"{learn} .execute")
        browser.wait_text(f"{learn} .live-responses-table", '"learnt": ')
        assert client.get("/health").json()["lessons"] == before + 1

        browser.open("about:blank")
    assert browser.hosts() == {own}
    assert [said for said in browser.console() if "401" not in said] == []


def test_what_mattered_is_marked_in_text_without_spaces(page: Browser) -> None:
    marks = page.run(
        "return import('./page/evidence.js').then(({ marked }) =>"
        " marked(...arguments).filter((part) => part.tagName).map((e) => e.textContent))",
        "我父亲得了糖尿病, herring鱼汤 เบาหวาน Tide",
        [["糖尿", 1], ["病", 0.2], ["鱼汤", 0.5], ["เบาห", 1], ["herring", 1], ["tide", -1]],
    )
    assert marks == ["糖尿", "病", "herring", "鱼汤", "เบาห", "Tide"]
