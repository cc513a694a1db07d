"""The model card of a tagger: data, held-out scores, calibration, labels, and how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dxml._core.card import card, plain_sections, scores_of, table

if TYPE_CHECKING:
    from dxml.tagging._tagger import TextTagger

__all__ = ["tagger_card"]

SHOWN = 10  # labels that are named
USE = """    dxml predict new.jsonl --model FOLDER
    dxml explain 'a text' --model FOLDER
    dxml serve --model FOLDER

In Python: `from dxml import TextTagger`, then `TextTagger.load("FOLDER").tag("a text")`.

What it says of texts unlike those it was trained on is a guess: a text of which no word is known
gets the most frequent labels, and the answer says so."""
PURPOSE = (
    "It gives texts the labels that texts like them carry, by name, with probabilities, and says "
    "why."
)


def tagger_card(tagger: TextTagger, config: Mapping[str, Any], name: str) -> str:
    """The card of a tagger that is saved; `config` is that of its model."""
    header: dict[str, Any] = {
        "library_name": "dxml",
        "pipeline_tag": "text-classification",
        "tags": ["dxml", "multi-label", "extreme-classification"],
    }
    if scores := scores_of(config):
        metrics = [
            {"type": "precision", "name": name, "value": round(value / 100, 4)}
            for name, value in scores.items()
        ]
        about = {"name": "held-out training texts", "type": "held-out"}
        task = {"type": "text-classification"}
        result = {"task": task, "dataset": about, "metrics": metrics}
        header["model-index"] = [{"name": name, "results": [result]}]
    (heading, counts), accuracy = plain_sections(config, "texts")
    sections = [
        ("What it does", PURPOSE),
        (heading, f"{counts}\n\n{_words(tagger)}"),
        accuracy,
        ("Probabilities", _calibration(tagger)),
        ("Labels", _labels(tagger)),
        ("Parts", _parts(tagger)),
        ("Use", USE),
    ]
    return card(name, header, sections)


def _words(tagger: TextTagger) -> str:
    features = tagger.features
    texts = "text" if features.min_df_ == 1 else "texts"
    chosen = ", which the texts decided" if features.min_df == "auto" else ""
    said = (
        f"A word counts from {features.min_df_} training {texts} on "
        f"(`min_df={features.min_df_}`{chosen})."
    )
    if not features.char_ngrams_:
        return said
    chosen = ", which the texts decided" if features.char_ngrams == "auto" else ""
    return (
        f"{said} Parts of words, of up to {features.char_ngrams_} characters, count too "
        f"(`char_ngrams={features.char_ngrams_}`{chosen})."
    )


def _calibration(tagger: TextTagger) -> str:
    mixture = tagger.model.mixture_
    if not mixture.by_rank:
        return "They were not calibrated for each rank: that takes 500 held-out texts."
    rows = [
        (f"{share:.0%}", f"{value:.1f}")
        for share, value in zip(mixture.shares[::5], mixture.knots[::5], strict=True)
    ]
    said = "A probability is the share of right labels among held-out pairs of such a score:"
    shown = f"{said}\n\n{table(['right', 'at a score of'], rows)}"
    if mixture.familiarity is None:
        return shown
    gain = mixture.familiarity.worth * np.log(2)
    said = f"A first label's score counts {gain:+.2f} for twice as many known words, about."
    return f"{shown}\n\n{said}"


def _labels(tagger: TextTagger) -> str:
    counts = tagger.model.label_frequency_
    order = np.argsort(-counts, kind="stable")[:SHOWN]
    rare = int(((counts > 0) & (counts < 5)).sum())
    often = table(["label", "texts"], [(tagger.labels_[i], f"{counts[i]:,}") for i in order])
    lines = [
        f"{len(counts):,} labels, {counts.sum() / max(tagger.model.n_samples_, 1):.1f} a text; "
        f"{rare:,} are carried by fewer than five texts. The most frequent:",
        "",
        often,
    ]
    if (known := tagger.thesaurus) is not None:
        others = sum(map(len, known.alternatives.values()))
        lines += ["", f"From a vocabulary of {len(known):,} labels with {others:,} other names."]
    return "\n".join(lines)


def _parts(tagger: TextTagger) -> str:
    weights = tagger.model.mixture_.weights
    rows = [(name, ", ".join(f"{w:.2f}" for w in weights[name])) for name in tagger.model.parts_]
    return table(["part", "weight"], rows)
