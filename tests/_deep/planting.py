"""A tiny tokenizer and planted texts whose labels are words in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from dxml._deep import DeepSettings, Pretrained, Tokens

WORDS = [
    *("heart", "lung", "bone", "brain", "skin", "eye", "liver", "blood"),
    *("ship", "harbour", "sail", "anchor", "storm", "island", "compass", "wave"),
]
FILLER = ["the", "of", "a", "and", "with", "study", "report", "on", "new", "old", "notes", "case"]
TINY = DeepSettings(
    width=64,
    epochs=12,
    batch_size=16,
    encoder_rate=2e-3,
    head_rate=2e-2,
    dropout=0.0,
    bias=-3.0,
)
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Planted:
    """Texts of filler and one or two label words; label l is the word `names[l]`."""

    texts: list[str]
    Y: sp.csr_matrix
    names: list[str]
    tokens: Tokens


def make_tokenizer() -> Tokenizer:
    """WordPiece: the words of these tests, and letters for all others."""
    letters = "abcdefghijklmnopqrstuvwxyz,."
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *FILLER]
    entries += [piece for letter in letters for piece in (letter, f"##{letter}")]
    vocabulary = {entry: id for id, entry in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    return tokenizer


def write_encoder(folder: Path) -> Path:
    """An encoder as transformers writes it: two layers, 32 wide, no dropout."""
    from transformers import BertConfig, BertModel

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


def write_static(folder: Path) -> Path:
    """Static word vectors as model2vec writes them: 24 wide, drawn at random."""
    from safetensors.numpy import save_file

    tokenizer = make_tokenizer()
    shape = (tokenizer.get_vocab_size(), 24)
    table = np.random.default_rng(0).normal(size=shape).astype(np.float16)
    save_file({"embeddings": table}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    return folder


def plant(pretrained: Pretrained, n: int, seed: int, n_labels: int = len(WORDS)) -> Planted:
    """n texts with one or two of the first `n_labels` words."""
    rng = np.random.default_rng(seed)
    texts, rows = [], []
    for _ in range(n):
        labels = sorted(rng.choice(n_labels, size=rng.integers(1, 3), replace=False).tolist())
        words = [*rng.choice(FILLER, size=rng.integers(3, 12)), *(WORDS[each] for each in labels)]
        texts.append(" ".join(rng.permutation(words)))
        rows.append(labels)
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.array([label for row in rows for label in row], dtype=np.int32)
    Y = sp.csr_matrix((np.ones(len(indices), bool), indices, indptr), (n, n_labels))
    return Planted(texts, Y, WORDS[:n_labels], pretrained.reader.read(texts))


def plant_pairs(pretrained: Pretrained, n: int, seed: int, without: int) -> Planted:
    """Labels are named by two words, of the first and of the second half of the words.

    Of the 16 labels one has no text, though its words stand in others' names.
    """
    rng = np.random.default_rng(seed)
    names = [f"{first} {second}" for first in WORDS[:4] for second in WORDS[8:12]]
    labels = rng.choice([label for label in range(len(names)) if label != without], size=n)
    texts = [
        " ".join(
            rng.permutation([*rng.choice(FILLER, size=rng.integers(2, 6)), *names[label].split()])
        )
        for label in labels
    ]
    Y = sp.csr_matrix((np.ones(n, bool), labels, np.arange(n + 1)), (n, len(names)))
    return Planted(texts, Y, names, pretrained.reader.read(texts))


def precision_at_1(scores: np.ndarray, Y: sp.csr_matrix) -> float:
    """Share of texts whose best label is right."""
    return float(np.mean(Y.toarray()[np.arange(len(scores)), scores.argmax(axis=1)]))
