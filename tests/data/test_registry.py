"""The table of known data sets."""

from __future__ import annotations

import re

import pytest

from dxml.data import REGISTRY, DatasetInfo, Sdist, lookup
from dxml.exceptions import DatasetNotFoundError


def test_the_papers_six_and_eurlex() -> None:
    assert list(REGISTRY) == [
        "bibtex",
        "delicious",
        "mediamill",
        "eurlex-4k",
        "wiki10-31k",
        "delicious-200k",
        "amazon-670k",
    ]


@pytest.mark.parametrize("info", REGISTRY.values(), ids=list(REGISTRY))
def test_every_entry_is_complete(info: DatasetInfo) -> None:
    assert min(info.n_train, info.n_test, info.n_features, info.n_labels) > 0
    assert len(info.files) == (3 if info.n_splits == 10 else 2)
    assert info.n_samples == info.n_train + info.n_test
    assert len(info.urls) == 2
    assert all(re.fullmatch(r"https://[\w.]+/\S+", url) for url in info.urls)
    assert info.note.endswith(".")


def test_eurlex_comes_out_of_an_sdist_first() -> None:
    source = REGISTRY["eurlex-4k"].sources[0]
    assert isinstance(source, Sdist)
    assert re.fullmatch("[0-9a-f]{64}", source.sha256)
    assert str(source) == "napkinxc-0.6.2.tar.gz on the package index that pip is configured with"


def test_lookup_knows_any_case_and_suggests() -> None:
    assert lookup("Eurlex-4K") is REGISTRY["eurlex-4k"]
    assert lookup("amazon-670k").propensity == (0.6, 2.6)
    with pytest.raises(
        DatasetNotFoundError, match=r"unknown data set 'bibtx'; did you mean 'bibtex'"
    ):
        lookup("bibtx")
