"""Imports point one way: docs/architecture.md has the same order in words."""

from __future__ import annotations

import ast
from pathlib import Path

import dxml

SOURCE = Path(dxml.__file__).parent
LAYERS = [
    {"exceptions"},
    {"_random", "_progress", "_params", "_threads", "_device", "_sparse", "_locking"},
    {"topk", "_arrays"},
    {"_tensors"},
    {"_validation", "_storage"},
    {"_judging", "text"},
    {
        "data",
        "bands",
        "metrics",
        "scaling",
        "graph",
        "cooccurrence",
        "huffman",
        "kmeans",
        "voting",
        "encoder",
        "linear",
        "precision",
        "wide",
    },
    {"walks", "factorisation", "index", "_input_layer", "losses", "kernel"},
    {"skipgram", "training", "neighbours", "mixture"},
    {"joint_parts", "label_map", "tags", "thesaurus"},
    {"explaining", "joint_weighing", "teaching"},
    {"catching_up"},
    {"joint_fitting"},
    {"base"},
    {"baselines", "model", "joint"},
    {"methods"},
    {"_known_texts", "tagger"},
    {"plots"},
    {"bench"},
    {"service"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def top(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The parts of dxml that a file imports, anywhere in it, type checking aside."""
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
    return [path for path in SOURCE.rglob("*.py") if top(path) not in ("__init__", "__main__")]


def test_every_file_has_a_layer() -> None:
    assert {top(path) for path in files()} == set(LEVEL)


def test_imports_point_down() -> None:
    for path in files():
        for name in imports(path) - {top(path)}:
            assert LEVEL[name] <= LEVEL[top(path)], f"{path.relative_to(SOURCE)} imports {name}"


def test_the_architecture_page_names_every_part() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    assert [name for name in LEVEL if f"`{name}" not in page] == []
