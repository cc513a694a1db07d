"""Numbers that others published, with their source: the loader of ``published.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["LARGE", "PAPER_METHODS", "SMALL", "TITLES", "Published", "load_published"]

SMALL = ("bibtex", "delicious", "mediamill")
LARGE = ("wiki10-31k", "delicious-200k", "amazon-670k")
TITLES = {
    "bibtex": "Bibtex",
    "delicious": "Delicious",
    "mediamill": "Mediamill",
    "eurlex-4k": "Eurlex-4K",
    "pubmed-mesh": "PubMed-MeSH",
    "tibkat-gnd": "TIBKAT-GND",
    "wiki10-31k": "Wiki10-31K",
    "delicious-200k": "Delicious-200K",
    "amazon-670k": "Amazon-670K",
}
"""How a data set is called in headings."""
PAPER_METHODS = {
    "dxml": ("DXML",),
    "sleec": ("SLEEC",),
    "leml": ("LEML",),
    "wsabie": ("WSABIE",),
    "cplst": ("CPLST",),
    "cs": ("CS",),
    "ml-cssp": ("ML-CSSP",),
    "fastxml": ("FastXML",),
    "lpsr": ("LPSR", "LPSR-NB"),
    "one-vs-all": ("1-vs-All",),
    "knn": ("KNN", "kNN"),
}
"""Our name → the names it has in tables, in the paper's order."""


@dataclass(frozen=True)
class Published:
    """What is in the file.

    Attributes
    ----------
    scores : dict of (source, data set, method as published) to measure to [@1, @3, @5]
    seconds : dict of (data set, method as published) to {"train", "test"}
    statistics : dict of data set to the paper's Table 1
    """

    sources: dict[str, dict[str, str]]
    scores: dict[tuple[str, str, str], dict[str, list[float]]]
    seconds: dict[tuple[str, str], dict[str, float]]
    statistics: dict[str, dict[str, float]]
    not_measured: dict[str, str]
    ablation: dict[str, str]
    notes: list[str] = field(default_factory=list)

    def values(self, source: str, dataset: str, method: str, measure: str) -> list[float] | None:
        """Published values at 1, 3 and 5 of one of our methods; None where there are none."""
        for name in PAPER_METHODS.get(method, ()):
            if (source, dataset, name) in self.scores:
                return self.scores[source, dataset, name].get(measure)
        return None

    def methods(self, source: str, dataset: str) -> list[str]:
        """Published names, in the file's order."""
        return [name for origin, where, name in self.scores if (origin, where) == (source, dataset)]


def _measures(entry: dict[str, Any]) -> dict[str, list[float]]:
    return {name: entry[name] for name in ("P", "nDCG", "PSP") if name in entry}


@cache
def load_published() -> Published:
    """Read the file that ships with the package."""
    text = resources.files("dxml.bench").joinpath("published.toml").read_text("utf-8")
    table = tomllib.loads(text)
    return Published(
        sources=table["sources"],
        scores={(e["source"], e["dataset"], e["method"]): _measures(e) for e in table["scores"]},
        seconds={(e["dataset"], e["method"]): e for e in table["seconds"]},
        statistics={e["dataset"]: e for e in table["statistics"]},
        not_measured=table["not_measured"],
        ablation=table["ablation"],
        notes=[
            f"{TITLES[e['dataset']]}, {e['method']}: {e['note']}."
            for e in table["scores"]
            if "note" in e
        ],
    )
