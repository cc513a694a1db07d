"""The documents run, and name what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import dxml

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = [
    pytest.param(code, id=f"{page.name}-{i}")
    for page in PAGES
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_python_snippets_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "snippet", "exec"), {"__name__": "snippet"})


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_names_every_command() -> None:
    from dxml.cli import app

    readme = (ROOT / "README.md").read_text("utf-8")
    commands = [command.name for command in app.registered_commands]
    assert [name for name in commands if f"dxml {name}" not in readme] == []


def test_every_public_name_exists_and_is_documented() -> None:
    assert sorted(dxml.__all__) == sorted(dxml._HOMES)
    for name in dxml.__all__:
        thing = getattr(dxml, name)
        assert thing.__doc__, name
    assert set(dir(dxml)) == {*dxml.__all__, "__version__"}
    with pytest.raises(AttributeError, match="module 'dxml' has no attribute 'nothing'"):
        _ = dxml.nothing


def test_the_sdist_has_all_that_the_commands_of_the_readme_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = {word.split("/")[0] for word in re.findall(r"[\w.-]+(?:/[\w.-]+)*", makefile)}
    beside = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    linked = {target.split("/")[0] for target in re.findall(r"\]\(([^):#]+)", PAGES[0].read_text())}
    wanted = ((named | linked) & beside) - {"pyproject.toml", "build", "dist"}
    assert {"examples", "constraints.txt", "CONTRIBUTING.md"} <= wanted
    assert wanted | {"Makefile"} <= included
