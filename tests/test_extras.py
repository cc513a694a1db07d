"""What works without optional packages, and that what needs one names its extra."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dxml.tagging import TextTagger

from ._cli.asking import fails

OPTIONAL = (
    *("matplotlib", "pandas", "polars", "pyarrow", "openpyxl", "rdflib", "onnx", "onnxscript"),
    *("onnxruntime", "fastapi", "uvicorn", "prometheus_client", "sentence_transformers"),
    *("transformers", "tokenizers", "wordllama", "ray", "safetensors", "httpx"),
)
"""Packages that extras bring, and development."""
WITHOUT = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from dxml._cli import app

columns = ["--text", "text", "--labels", "labels"]
for command in (
    ["train", "docs.jsonl", *columns, "--model", "bare", "--set", "width=0", "-q"],
    ["predict", "docs.jsonl", "--text", "text", "-m", "bare", "-q"],
    ["explain", "fish in a net", "-m", "bare", "--json"],
    ["learn", "docs.jsonl", *columns, "-m", "bare", "-q"],
    ["evaluate", "docs.jsonl", *columns, "-m", "bare", "-q"],
):
    app(command, standalone_mode=False)
"""
ROWS = [
    {"text": text, "labels": label}
    for text, label in (
        *[(f"a fish in the sea and its net {i}", ["ocean"]) for i in range(15)],
        *[(f"soup with salt in a pot {i}", ["food"]) for i in range(15)],
    )
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("extras")
    lines = "\n".join(json.dumps(row) for row in ROWS)
    (folder / "docs.jsonl").write_text(lines, "utf-8")
    texts, labels = [row["text"] for row in ROWS], [row["labels"] for row in ROWS]
    TextTagger(width=0).fit(texts, labels).save(folder / "m")  # type: ignore[arg-type]
    for name in ("a.parquet", "a.xlsx", "a.ttl"):
        (folder / name).write_bytes(b"PAR1 PK")
    return folder


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("matplotlib", "plot", "plot training -m {folder}/m --output {folder}/a.png"),
        ("pyarrow", "parquet", "predict {folder}/a.parquet --text text -m {folder}/m"),
        ("openpyxl", "excel", "predict {folder}/a.xlsx --text text -m {folder}/m"),
        ("rdflib", "skos", "vocabulary {folder}/a.ttl"),
        ("onnx", "onnx", "model export {folder}/m --output {folder}/onnx"),
        ("uvicorn", "serve", "serve -m {folder}/m"),
        ("fastapi", "serve", "serve -m {folder}/m"),
        ("ray", "ray", "predict {folder}/docs.jsonl -m {folder}/m --ray local"),
    ],
)
def test_the_extra_is_named(
    package: str,
    extra: str,
    command: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [package, *sys.modules]:
        if name == package or name.startswith(f"{package}."):
            monkeypatch.setitem(sys.modules, name, None)
        elif name.startswith("dxml.service"):  # may have been imported with the package
            monkeypatch.delitem(sys.modules, name)
    said = fails(capsys, *(part.format(folder=folder) for part in command.split()))
    assert f"pip install 'dxml[{extra}" in said, said
    assert said.startswith("error: ") and said.count("\n") == 1


def test_the_rest_works_without_any_of_them(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    for part in ("\tocean\t", '"words"', "best threshold"):  # predicted, explained, evaluated
        assert part in done.stdout
