"""The notebook of the documentation: what is stored in it, and that it runs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"


def code_cells(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text("utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def kinds(cell: dict[str, Any]) -> list[list[str]]:
    """What each output of a cell is: its type, and the formats of its data."""
    return [[output["output_type"], *sorted(output.get("data", ()))] for output in cell["outputs"]]


def labels(cell: dict[str, Any]) -> list[str]:
    """The labels that a cell shows first, of each text."""
    tables = ["".join(output["data"]["text/html"]) for output in cell["outputs"]]
    return [re.findall(r"<td[^>]*>(.*?)</td>", part)[0] for part in tables[0].split("<table>")[1:]]


def test_the_notebook_is_stored_as_it_ran() -> None:
    cells = code_cells(NOTEBOOK)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(output["output_type"] == "error" for c in cells for output in c["outputs"])
    assert sum("text/html" in kind for cell in cells for kind in kinds(cell)) >= 5


def test_the_notebook_tells_nothing_of_a_machine() -> None:
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert all(cell["metadata"] == {} for cell in notebook["cells"])
    text = NOTEBOOK.read_text("utf-8")
    assert not re.search(r"(?<![<\w])/(home|root|tmp|work|Users|usr)/", text)


def test_the_notebook_imports_only_public_names() -> None:
    table = (ROOT / "docs" / "reference.md").read_text("utf-8")
    public = set(re.findall(r"^\| `(dxml[\w.]*)` \| `(\w+)` \|", table, re.MULTILINE))
    code = "\n".join("".join(cell["source"]) for cell in code_cells(NOTEBOOK))
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    assert found and {(node.module, name.name) for node in found for name in node.names} <= public


@pytest.mark.notebook
def test_the_notebook_runs_and_shows_what_is_stored(tmp_path: Path) -> None:
    again = tmp_path / "again.ipynb"
    program = [sys.executable, ROOT / "docs" / "run_notebook.py", "--output", again]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    compared = 0
    for stored, new in zip(code_cells(NOTEBOOK), code_cells(again), strict=True):
        assert kinds(new) == kinds(stored), stored["source"]
        if any("tagger.tag(" in line for line in stored["source"]):
            assert labels(new) == labels(stored)
            compared += 1
    assert compared == 3
