"""The documentation as a site: what its hook does, and the site that is built."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
HOOK = runpy.run_path(str(ROOT / "docs" / "site_hook.py"))
RESOURCES = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}


def test_every_page_is_in_the_navigation() -> None:
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    named = re.findall(r"^ +- (?:.+: )?([\w/.-]+\.md)$", settings.split("\nnav:")[1], re.MULTILINE)
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted({*there, "index.md", "notebook.md"})


def test_links_lead_to_the_places_on_the_site() -> None:
    page = ROOT / "docs" / "guide" / "deep.md"
    text = "[a](../joint.md) [b](../../benchmarks/README.md#x) [c](https://d.e/f) ![g](h.png)"
    assert HOOK["relinked"](text, page) == (
        "[a](../joint.md) [b](../repository/benchmarks/README.md#x) [c](https://d.e/f) ![g](h.png)"
    )


def test_links_of_the_readme_and_of_other_files_lead_back_to_the_docs() -> None:
    relinked = HOOK["relinked"]
    assert relinked("[a](docs/guide/text.md#b)", ROOT / "README.md") == "[a](guide/text.md#b)"
    assert relinked("[a](LICENSE)", ROOT / "README.md") == "[a](repository/LICENSE)"
    record = ROOT / "benchmarks" / "README.md"
    assert relinked("[a](../docs/joint.md)", record) == "[a](../../joint.md)"
    assert relinked("[a](../README.md)", record) == "[a](../../index.md)"


def test_a_link_to_a_folder_becomes_text() -> None:
    assert HOOK["relinked"]("see [the peers](results) now", ROOT / "benchmarks" / "README.md") == (
        "see the peers now"
    )


def test_files_are_followed_from_file_to_file() -> None:
    found = HOOK["all_linked"]([ROOT / "docs" / "joint.md"])
    names = {path.relative_to(ROOT).as_posix() for path in found}
    record = "benchmarks/results/joint-experiments/"
    assert record + "README.md" in names  # which the page names
    assert "benchmarks/results/short-texts.json" in names  # which only that file names
    assert not any(name.startswith("docs/") for name in names)


def test_a_name_of_the_reference_has_one_place() -> None:
    table = "| `dxml` | `A` | it; the same as in `dxml.b` |\n| `dxml.b` | `A` | it |"
    assert HOOK["public_names"](table) == {"dxml.b": ["A"]}
    link = "[`A`](reference/dxml.b.md#dxml.b.A)"
    assert HOOK["with_links"](table) == (
        f"| `dxml` | {link} | it; the same as in `dxml.b` |\n| `dxml.b` | {link} | it |"
    )


def test_a_page_of_a_notebook_has_its_cells_and_what_they_showed() -> None:
    html = {"data": {"text/html": ["<b>", "x</b>"], "text/plain": ["x"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "B"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"text": ["2\n"]}, html]},
    ]
    page = "# A\nB\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n\n<div><b>x</b></div>\n"
    assert HOOK["notebook_page"]({"cells": cells}) == page


class Page(HTMLParser):
    """Anchors, links and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in RESOURCES and RESOURCES[tag] in values:
            self.loaded.append(values[RESOURCES[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """Path → page of the site, built so that a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return {path: Page(path) for path in sorted(folder.rglob("*.html"))}


@pytest.mark.site
def test_nothing_is_loaded_from_elsewhere(site: dict[Path, Page]) -> None:
    loaded = [name for page in site.values() for name in page.loaded]
    assert len(loaded) > 100
    assert [name for name in loaded if urlsplit(name).netloc] == []


@pytest.mark.site
def test_links_of_the_site_lead_somewhere(site: dict[Path, Page]) -> None:
    checked = 0
    for path, page in site.items():
        if path.name == "404.html":  # its links start at the root of a host
            continue
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if there.is_dir():
                there /= "index.html"
            assert there.exists(), f"{path.name}: {link}"
            if parts.fragment and there in site:
                known = site[there].anchors
                assert unquote(parts.fragment) in known | {"__top"}, f"{path.name}: {link}"
            checked += 1
    assert checked > 1000


@pytest.mark.site
def test_the_reference_shows_every_public_name(site: dict[Path, Page]) -> None:
    pages = {path.stem: page for path, page in site.items() if path.parent.name == "reference"}
    names = HOOK["public_names"]((ROOT / "docs" / "reference.md").read_text("utf-8"))
    assert set(names) == set(pages)
    for module, listed in names.items():
        wanted = {f"{module}.{name}" for name in listed}
        assert wanted <= pages[module].anchors, module
