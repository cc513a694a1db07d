"""Imports point one way, one level a folder; docs/architecture.md draws the same order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import dxml

SOURCE = Path(dxml.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "architecture.md"
LEVELS = [
    {"exceptions", "progress"},
    {"_core"},
    {"topk"},
    {"metrics", "text", "label_graph", "neighbors"},
    {"data", "learners"},
    {"base", "label_map"},
    {"paper", "joint", "baselines"},
    {"methods"},
    {"tagging"},
    {"plots"},
    {"bench"},
    {"service"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
FRONT_DOOR = 10  # files beside the folders, at most


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The rooms of dxml that a file imports from, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dxml."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "dxml":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {name[1] for name in names if name[0] == "dxml" and len(name) > 1}
    return found - {"__version__"}


def files() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if room(path) not in ("__init__", "__main__")]


def test_every_room_has_a_level() -> None:
    assert {room(path) for path in files()} == set(LEVEL)


def test_the_front_door_is_small() -> None:
    assert len(list(SOURCE.glob("*.py"))) < FRONT_DOOR


def test_imports_point_down() -> None:
    for path in files():
        own = room(path)
        for name in imports(path) - {own}:
            assert LEVEL[name] < LEVEL[own], f"{path.relative_to(SOURCE)} imports {name}"


def test_the_architecture_page_draws_the_same_levels() -> None:
    drawn = re.findall(r"^│ +([^│]+?) +│", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [set(line.replace("·", " ").split()) for line in drawn] == LEVELS[::-1]


def test_every_idea_is_in_the_file_that_the_page_names() -> None:
    page = PAGE.with_name("where.md").read_text("utf-8")
    ideas = re.findall(r"^\| (.+) \| `([\w/]+\.py)` \| `(\w+)` \|$", page, re.MULTILINE)
    assert len({idea for idea, _, _ in ideas}) == page.count("\n| ") - 1 >= 20
    for idea, file, name in ideas:
        code = ast.parse((SOURCE / file).read_text("utf-8"))
        assert name in top_level_names(code), f"{idea}: {file} has no {name}"


def top_level_names(code: ast.Module) -> set[str]:
    """Functions, classes and constants of a file."""
    names = set()
    for node in code.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_the_architecture_page_names_every_file_of_a_room() -> None:
    page = PAGE.read_text("utf-8")
    rooms = {path.parent for path in files() if path.parent != SOURCE}
    for folder in sorted(rooms):
        if folder.name in ("page", "experiments", "peers"):
            continue
        names = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
        missing = [name for name in sorted(names) if f"`{name}`" not in page]
        assert missing == [], f"{folder.relative_to(SOURCE)}: {missing}"
