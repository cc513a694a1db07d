"""What each command imports of the packages that take long: no more than it needs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
import scipy.sparse as sp

import dxml
from dxml import Joint, TextTagger, make_planted
from dxml.tagging import Columns

HEAVY = {
    "fastapi",
    "matplotlib",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "scipy",
    "sklearn",
    "torch",
    "transformers",
    "uvicorn",
}
RUN = """
import json, sys
from dxml._cli import main
sys.argv[1:] = json.loads(sys.argv[1])
try:
    main()
finally:
    print("imported", json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
TEXTS = ["fish in the sea", "the sea has fish", "soup with salt", "a soup of salt"]
LABELS = [["ocean"], ["ocean"], ["food"], ["food"]]
SMALL, NUMBA = {"scipy"}, {"scipy", "numba"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of a linear head, label trees and votes, which needs no torch, and tables for it.

    Another, as few texts make it, has a kernel, for which few texts need no torch either; so has
    one of features of which most are there.
    """
    folder = tmp_path_factory.mktemp("imports")
    tagger = TextTagger(candidates="nearest", width=0, n_trees=2, min_df=1)
    tagger.columns = Columns(("text",), "labels")
    tagger.fit(TEXTS, LABELS).save(folder / "model")
    kernel = TextTagger(min_df=1).fit(TEXTS, LABELS)
    assert "kernel" in kernel.model.parts_
    kernel.columns = tagger.columns
    kernel.save(folder / "kernel")
    data = make_planted(40, 12, 3, features_per_point=10, random_state=0)
    dense = Joint().fit(data.X, data.Y)
    assert "kernel" in dense.parts_
    dense.save(folder / "dense")
    sp.save_npz(folder / "X.npz", data.X[:3])
    rows = [
        json.dumps({"text": text, "labels": labels})
        for text, labels in zip(TEXTS, LABELS, strict=True)
    ]
    (folder / "few.jsonl").write_text("\n".join(rows), "utf-8")
    (folder / "many.jsonl").write_text("\n".join(rows * 20), "utf-8")
    return folder


def imported(folder: Path, *arguments: str) -> tuple[int, set[str]]:
    """(exit code, the heavy packages that were imported)."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1]
    assert last.startswith("imported "), done.stderr
    return done.returncode, HEAVY & set(json.loads(last.removeprefix("imported ")))


@pytest.mark.parametrize(
    ("arguments", "code", "needed"),
    [
        ("--help", 0, set()),
        ("methods", 0, SMALL),
        ("methods joint", 0, SMALL),
        ("predict few.jsonl -m nowhere", 2, SMALL),
        ("predict nothing.jsonl -m model", 2, SMALL),
        ("predict few.jsonl -m model --top 0", 2, set()),
        ("labels -m model", 0, SMALL),
        ("explain fish -m model", 0, SMALL),
        ("predict few.jsonl -m model", 0, SMALL),
        ("predict many.jsonl -m model", 0, NUMBA),
        ("evaluate few.jsonl -m model", 0, SMALL),
        ("model check model", 0, SMALL),
        ("labels -m kernel", 0, SMALL),
        ("labels rename nobody else -m kernel", 2, SMALL),
        ("predict nothing.jsonl -m kernel", 2, SMALL),
        ("predict few.jsonl -m kernel", 0, SMALL),
        ("explain fish -m kernel", 0, SMALL),
        ("evaluate few.jsonl -m kernel", 0, SMALL),
        ("predict X.npz -m dense", 0, SMALL),
    ],
)
def test_what_a_command_imports(folder: Path, arguments: str, code: int, needed: set[str]) -> None:
    assert imported(folder, *arguments.split()) == (code, needed)


def test_numpy_and_compiled_code_answer_alike(folder: Path) -> None:
    """Few rows are ranked by numpy in a fresh process, and by compiled code in one that has it."""
    code = """
import json, sys
import dxml
from dxml import TextTagger
if sys.argv[1] == "compiled":
    import numba
tagger = TextTagger.load("model")
texts = ["fish and soup", "the sea", "salt", ""]
print([[(tag.name, tag.probability) for tag in row] for row in tagger.tag(texts)])
print([[e.words, e.from_head, e.neighbours] for e in tagger.explain("fish in a soup of salt")])
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", code, how],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for how in ("numpy", "compiled")
    ]
    assert said[0] == said[1] and "ocean" in said[0]


def test_numba_is_imported_in_one_place() -> None:
    """Loops are marked with `compiled`; a module that imports numba would bring it to commands."""
    source = Path(dxml.__file__).parent
    for path in source.rglob("*.py"):
        if path.name in ("compiled.py", "packed.py", "threads.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not any(name.split(".")[0] == "numba" for name in names), path
