"""The documents run, and name what there is."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import dxml
from dxml._label_graph.graph import label_graph
from dxml.joint._plan import PARTS
from dxml.methods import method_class
from dxml.paper._dxml import mean_label_vectors

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "dxml"
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


RECORDS = [
    ROOT / "benchmarks" / "README.md",
    ROOT / "benchmarks" / "results" / "joint-experiments" / "README.md",
    ROOT / "benchmarks" / "results" / "deep-experiments" / "README.md",
]


def anchors(page: Path) -> set[str]:
    """What a link may name after #: the headings, in small letters, with hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *RECORDS], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(there), f"{page.name}: {target}#{anchor}"


def test_the_page_on_the_joint_method_is_one_page_with_a_picture() -> None:
    page = (ROOT / "docs" / "joint.md").read_text("utf-8")
    assert len(page.splitlines()) <= 90
    assert "](joint.svg)" in page
    assert [name for name in PARTS if f"| `{name}` |" not in page] == []


def test_figure_1_shows_what_algorithm_1_computes() -> None:
    """Its edges are those of the label graph, f_y the mean label vector, f_x of length 1."""
    spec = spec_from_file_location("paper_picture", ROOT / "docs" / "paper_picture.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    picture = module.PaperPicture()
    numbers, steps = picture.numbers(), picture.steps
    data = module.planted()
    graph = label_graph(data.Y).adjacency.toarray()
    assert numbers["edges"] == np.argwhere(np.triu(graph)).tolist()
    expected = mean_label_vectors(data.Y[:1], steps["V"])[0]
    np.testing.assert_allclose(numbers["f_y"], expected, rtol=1e-5)
    assert np.linalg.norm(numbers["f_x"]) == pytest.approx(1, abs=1e-5)
    assert 0 < numbers["loss"] < 1 and (steps["hidden"] >= 0).all()
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    assert "](paper.svg)" in page and (ROOT / "docs" / "paper.svg").stat().st_size > 10_000


def test_the_picture_of_the_encoder_shows_the_scores_of_its_page() -> None:
    spec = spec_from_file_location("deep_picture", ROOT / "docs" / "deep_picture.py")
    assert spec is not None and spec.loader is not None
    picture = module_from_spec(spec)
    spec.loader.exec_module(picture)
    page = (ROOT / "docs" / "guide" / "deep.md").read_text("utf-8")
    assert "](pictures/deep.svg)" in page
    drawn = (ROOT / "docs" / "guide" / "pictures" / "deep.svg").read_text("utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| (Joint|with the encoder) \| (.+?) \|", page, re.M)
    assert len(rows) == 4
    for data, method, scores in rows:
        name = picture.WITHOUT if method == "Joint" else picture.WITH
        numbers = picture.DeepPicture().numbers()[data][name]
        assert scores.split(" / ") == [f"{value:.2f}" for value in numbers]
        assert all(f"<!-- {value:.2f} -->" in drawn for value in numbers)


def is_there(dotted: str) -> bool:
    """Whether ``dxml.room.file.name`` is a file, or a name that occurs in one."""
    home = SOURCE
    for part in dotted.split(".")[1:]:
        if (home / part).is_dir():
            home = home / part
        elif (home / f"{part}.py").exists():
            home = home / f"{part}.py"
        else:
            file = home if home.is_file() else home / "__init__.py"
            return re.search(rf"\b{part}\b", file.read_text("utf-8")) is not None
    return True


@pytest.mark.parametrize("page", [*PAGES, *RECORDS], ids=lambda page: page.name)
def test_pages_mention_modules_that_there_are(page: Path) -> None:
    assert [name for name in mentioned(page) if not is_there(name)] == []


def test_docstrings_mention_modules_that_there_are() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        missing = [name for name in mentioned(path) if not is_there(name)]
        assert missing == [], f"{path.relative_to(SOURCE)}: {missing}"


def mentioned(path: Path) -> list[str]:
    """Everything that reads like ``dxml.something``, but for files called dxml."""
    found = re.findall(r"(?<![/\w])dxml(?:\.[A-Za-z]\w*)+", path.read_text("utf-8"))
    return sorted(set(found))


def test_a_module_that_moved_is_noticed() -> None:
    assert is_there("dxml.joint._mixture.Mixture")
    assert not is_there("dxml.mixture")
    assert not is_there("dxml.joint._mixture.Nothing")


def test_the_paper_s_ideas_are_in_the_files_that_the_page_names() -> None:
    """Wherever docs/how-it-works.md says "`name` in `file.py`"."""
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    named = re.findall(r"((?:`[\w.]+[^`]*`,? )+)in `([\w/]+\.py)`", page)
    assert len(named) == page.count(".py`") > 15
    for names, file in named:
        code = (SOURCE / file).read_text("utf-8")
        for name in re.findall(r"[`.](\w+)(?=[`(])", names):
            assert re.search(rf"(def|class) {name}\b", code), f"{file} has no {name}"


def test_the_tutorial_names_every_command() -> None:
    from dxml._cli import app

    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    commands = [command.name for command in app.registered_commands]
    assert [name for name in commands if f"dxml {name}" not in tutorial] == []


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


REFERENCE = re.findall(
    r"^\| `(dxml[\w.]*)` \| `(\w+)` \| .+ \|$",
    (ROOT / "docs" / "reference.md").read_text("utf-8"),
    re.MULTILINE,
)
PROGRAMS = [*sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "docs").glob("*.py"))]


def imported_names(code: str) -> list[tuple[str, str]]:
    """(module, name) of every import from dxml; the name is empty for a plain ``import``."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dxml":
            found += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
            found += [(module, "") for module in modules if module.split(".")[0] == "dxml"]
    return found


def import_lines(page: Path) -> str:
    """The imports from dxml on a page, in blocks of any kind, as a program."""
    text = page.read_text("utf-8")
    lines = re.findall(r"^ *((?:from|import) dxml\b[^#\n]*)", text, re.MULTILINE)
    return "\n".join(lines)


def test_every_name_of_the_reference_exists() -> None:
    assert len(REFERENCE) == len(set(REFERENCE)) > 50
    for module, name in REFERENCE:
        home = import_module(module)
        assert hasattr(home, name), f"{module} has no {name}"
        assert name in home.__all__, f"{name} is not in __all__ of {module}"


def test_a_module_that_the_reference_does_not_have_is_private() -> None:
    source = Path(dxml.__file__).parent
    public = {module for module, _ in REFERENCE}
    rooms = {module.rpartition(".")[0] for module in public} | {
        "dxml.service",
        "dxml.bench",
        "dxml.bench.peers",
    }
    for path in source.rglob("*.py"):
        names = ("dxml", *path.relative_to(source).with_suffix("").parts)
        module = ".".join(names).removesuffix(".__init__")
        private = any(name.startswith("_") for name in module.split("."))
        assert private or module in public | rooms, f"{module} is neither private nor documented"


def test_the_reference_has_every_top_level_name_and_every_method() -> None:
    assert {name for module, name in REFERENCE if module == "dxml"} == set(dxml.__all__)
    listed = {
        getattr(import_module(module), name)
        for module, name in REFERENCE
        if (module.startswith("dxml.baselines.") or module in ("dxml.joint", "dxml.paper"))
        and name != "PARTS"
    }
    assert listed == {method_class(name) for name in dxml.METHODS}


@pytest.mark.parametrize("path", [*PROGRAMS, *PAGES], ids=lambda path: path.name)
def test_examples_and_pages_import_only_what_the_reference_has(path: Path) -> None:
    code = path.read_text("utf-8") if path.suffix == ".py" else import_lines(path)
    public = {*REFERENCE, *((module, "") for module, _ in REFERENCE)}
    assert [item for item in imported_names(code) if item not in public] == []


def test_an_import_of_something_private_is_noticed() -> None:
    code = "import dxml._cli\nfrom dxml._cli._console import console\nfrom os import path"
    assert imported_names(code) == [("dxml._cli", ""), ("dxml._cli._console", "console")]
