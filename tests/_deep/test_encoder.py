"""Kinds of transformers that are published, each tiny and made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoModel

from dxml._deep import open_pretrained
from dxml._deep.checkpoints import build
from dxml._deep.encoder import TextEncoder

from .planting import make_tokenizer

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
}
KINDS: dict[str, dict[str, Any]] = {
    "Bert": SIZES,
    "Roberta": SIZES | {"pad_token_id": 1},
    "XLMRoberta": SIZES | {"pad_token_id": 1},
    "MPNet": SIZES | {"pad_token_id": 1},
    "Electra": SIZES | {"embedding_size": 32},
    "DistilBert": {
        "dim": 32,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 64,
        "max_position_embeddings": 40,
    },
    "ModernBert": SIZES | {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3},
}


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind: str, tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=tokenizer.get_vocab_size(), **KINDS[kind]
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AutoModel.from_config(config).save_pretrained(tmp_path)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    opened = open_pretrained(tmp_path, 256)
    longest = 38 if "pad_token_id" in KINDS[kind] and kind != "ModernBert" else 40
    assert opened.reader.max_length == longest
    encoder = TextEncoder(opened.transformer, 8).eval()
    attention = "eager" if kind == "MPNet" else "sdpa"  # MPNet has only its own
    assert encoder.transformer.config._attn_implementation == attention
    text = opened.reader.read(["storm " * 99]).ids
    ids = torch.full((2, longest), opened.reader.pad)
    ids[0], ids[1, :6] = torch.from_numpy(text), torch.tensor([2, 9, 7, 8, 6, 3])
    real = torch.ones(2, longest, dtype=torch.bool)
    real[1, 6:] = False
    hidden, embedded = encoder(ids, real)
    alone, mean = encoder(ids[1:, :6], real[1:, :6])
    assert torch.allclose(hidden[1:], alone, atol=1e-5)
    assert torch.allclose(embedded[1:], mean, atol=1e-5)
    if kind != "MPNet":  # where it depends on the version of transformers
        assert encoder._square is (kind != "ModernBert")  # whose layers have windows
    encoder._square = False
    assert torch.allclose(encoder(ids, real)[0], hidden, atol=1e-5)
    again = TextEncoder(build(opened.config), 8)
    again.load_state_dict(encoder.state_dict())
    assert torch.allclose(again.eval()(ids, real)[0], hidden, atol=1e-5)
