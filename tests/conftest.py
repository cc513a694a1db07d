"""The rule for tests on real data, and a tiny text encoder that the tests make themselves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `real` run where DXML_DATA names a folder, and are deselected elsewhere."""
    if os.environ.get("DXML_DATA"):
        return
    real = [item for item in items if item.get_closest_marker("real")]
    if real:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if not item.get_closest_marker("real")]


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as transformers writes it: two layers, 32 wide, no dropout."""
    import torch
    from transformers import BertConfig, BertModel

    from .deep.planting import make_tokenizer

    folder = tmp_path_factory.mktemp("tiny-encoder")
    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
