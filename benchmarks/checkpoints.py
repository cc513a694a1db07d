"""What checkpoints of a training cost: core seconds of storing them, and of the rest.

    python benchmarks/checkpoints.py                         # texts of PubMed-MeSH, and an encoder
    python benchmarks/checkpoints.py bibtex eurlex-4k        # data sets of features
    python benchmarks/checkpoints.py delicious --methods fastxml one-vs-all
    python benchmarks/checkpoints.py --store                 # adds to results/checkpoints.json

Both are counted in one run: between two runs of the same training the machine varies by more than
checkpoints cost. The encoder is a small one with random weights; its states are written more often
than usual, and the share is that of one state in the usual time between two. Where other threads
train on meanwhile, only the thread that stores is counted. A share of 3 % or more is an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dxml import TextTagger
from dxml._core import stages
from dxml.bench._machine import circumstances
from dxml.data import load_dataset, load_texts
from dxml.methods import method_class
from stored_results import add_result

STORED = "checkpoints.json"
OFTEN = 1.0  # seconds between two states of the encoder
LABELS, TEXTS = 2000, 2000  # that the encoder learns
MOST = 0.03  # storing takes less than this share of the rest


@dataclass
class Storing:
    """Core seconds spent in functions that store, by a clock of the process or of a thread."""

    clock: Callable[[], float]
    seconds: float = 0.0
    times: int = 0

    @contextmanager
    def watch(self, where: object, *names: str) -> Iterator[None]:
        """Count what functions of a module or class take meanwhile."""
        real = {name: getattr(where, name) for name in names}
        for name in names:
            setattr(where, name, self._timed(name, real[name]))
        try:
            yield
        finally:
            for name, function in real.items():
                setattr(where, name, function)

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = self.clock()
            try:
                return function(*arguments)
            finally:
                self.seconds += self.clock() - start
                self.times += name != "_checksum"

        return call


def measured(what: str, train: Callable[[Path], object], where: object, *names: str) -> dict:
    """Train in a folder; what was spent."""
    storing = Storing(time.process_time if where is not stages else time.thread_time)
    with tempfile.TemporaryDirectory() as folder, storing.watch(where, *names):
        start = time.process_time()
        train(Path(folder) / "run")
        whole = time.process_time() - start
    return {
        "training": what,
        "seconds": round(whole, 1),
        "stored": storing.times,
        "storing": round(storing.seconds, 3),
        "share": round(storing.seconds / (whole - storing.seconds), 5),
    }


def texts() -> dict:
    """The tagger of PubMed-MeSH, as `dxml train` makes it."""
    table = load_texts("pubmed-mesh", "train")

    def train(folder: Path) -> None:
        TextTagger(device="cpu").fit(table.texts, table.labels, checkpoint=folder)

    return measured("PubMed-MeSH, texts", train, stages, "_checksum", "write_folder")


def features(dataset: str, method: str) -> dict:
    """A method on a data set of features."""
    data = load_dataset(dataset, "train")

    def train(folder: Path) -> None:
        with stages.open_stages(folder):
            method_class(method)().fit(data.X, data.Y)

    return measured(f"{dataset}, {method}", train, stages, "_checksum", "write_folder")


def encoder() -> dict:
    """A text encoder."""
    import torch

    from deep_scale import make_texts
    from dxml._deep import DeepSettings, fit_deep, open_pretrained
    from dxml._deep.resuming import Keep
    from dxml._deep.training import Trainer

    with tempfile.TemporaryDirectory() as folder:
        start = open_pretrained(small_encoder(Path(folder)), 64)
    tokens, Y = make_texts(TEXTS, LABELS, int(start.config["vocab_size"]), 0)
    settings = replace(DeepSettings(), epochs=2)

    def train(folder: Path) -> None:
        keep = Keep(folder, interval=OFTEN)
        fit_deep(tokens, Y, settings, start=start, device=torch.device("cpu"), keep=keep)

    found = measured("text encoder", train, Trainer, "_store")
    every = Keep(Path()).interval
    return found | {"share": round(found["storing"] / found["stored"] / every, 5), "every": every}


def small_encoder(folder: Path) -> Path:
    """A folder as transformers writes it: four layers, 256 wide, random weights."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import BertConfig, BertModel

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(8000))]
    vocabulary = {word: i for i, word in enumerate(words)}
    Tokenizer(WordLevel(vocabulary, unk_token="[UNK]")).save(str(folder / "tokenizer.json"))
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def judge(trainings: list[dict]) -> list[str]:
    """What took too long, a line each."""
    return [
        f"{each['training']}: storing took {each['share']:.1%} of the rest, {MOST:.0%} or more"
        for each in trainings
        if each["share"] >= MOST
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("datasets", nargs="*")
    parser.add_argument("--methods", nargs="+", default=["joint", "dxml"])
    parser.add_argument("--store", action="store_true", help=f"add to {STORED}")
    given = parser.parse_args()
    found = []
    trainings = [
        lambda dataset=dataset, method=method: features(dataset, method)
        for dataset in given.datasets
        for method in given.methods
    ]
    for train in trainings or [texts, encoder]:
        found.append(train())
        print(json.dumps(found[-1]), flush=True)
    if given.store:
        run = {
            **circumstances(device="cpu", seed=0),
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "trainings": found,
        }
        add_result(STORED, run)
    if too_much := judge(found):
        sys.exit("\n".join(too_much))


if __name__ == "__main__":
    main()
