"""``dxml model check``: a line a file, or one sentence and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dxml._core.storage import sealed
from dxml.data import make_planted
from dxml.methods import method_class
from dxml.tagging._tagger import TextTagger

from .asking import fails, run

PAST = Path(__file__).parents[1] / "models" / "format-3-joint"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = make_planted(40, 12, 6, labels_per_point=2, features_per_point=4, random_state=0)
    return method_class("knn")().fit(data.X, data.Y).save(tmp_path / "m")


def test_a_sound_folder_is_a_line_a_file(folder: Path) -> None:
    done = run("model", "check", folder)
    assert done.exit_code == 0, done.output
    config, arrays, model = done.stdout.splitlines()
    size = (folder / "config.json").stat().st_size
    assert config == f"config.json: {size:,} bytes, as written (SHA-256)"
    (file,) = folder.glob("*.safetensors")
    said = f"{file.name}: {file.stat().st_size:,} bytes, 9 arrays, as written (SHA-256)"
    assert arrays == said
    assert model == "knn: opens; 40 points, 12 features, 6 labels"


def test_taggers_and_older_folders_are_checked_too(tmp_path: Path) -> None:
    texts = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"]
    TextTagger().fit(texts, [["ocean"], ["ocean"], ["food"], ["food"]]).save(tmp_path)
    assert "tagger: opens; 4 points" in run("model", "check", tmp_path).stdout
    done = run("model", "check", PAST)
    assert done.stdout.count("no checksum, as an older version wrote it") == 2
    assert "joint: opens; 40 points, 12 features, 6 labels" in done.stdout


def test_damage_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = folder.glob("*.safetensors")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "damaged, its content is not what was written (by its CRC-32)" in fails(
        capsys, "model", "check", folder
    )
    file.write_bytes(content)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config["sha256"]
    config["arrays"]["sha256"] = "0" * 64
    path.write_bytes(sealed(config))
    assert "damaged, its content is not what was written (by its SHA-256)" in fails(
        capsys, "model", "check", folder
    )


def test_parts_are_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["a fish in the sea", "the sea and its fish", "soup with salt", "a soup of salt"] * 9
    labels = [["ocean"], ["ocean"], ["food"], ["food"]] * 9
    tagger = TextTagger(candidates="nearest", width=0, device="cpu")
    folder = tagger.fit(texts, labels).save(tmp_path / "m")
    done = run("model", "export", folder, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"{tmp_path / 'out' / 'linear.onnx'}: ")
    said = fails(capsys, "model", "export", folder, "-o", tmp_path / "out", "--format", "x")
    assert "unknown format 'x'; known: onnx" in said
