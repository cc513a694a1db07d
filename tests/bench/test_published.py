"""Other people's numbers: spot checks against the sources, and rules they must keep."""

from __future__ import annotations

from dxml.bench._published import LARGE, PAPER_METHODS, SMALL, load_published


def test_cells_of_the_paper() -> None:
    published = load_published()
    assert published.values("paper", "bibtex", "dxml", "P") == [66.03, 40.21, 27.51]
    assert published.values("paper", "mediamill", "knn", "nDCG") == [82.97, 75.44, 72.83]
    assert published.values("paper", "amazon-670k", "lpsr", "P") == [28.65, 24.88, 22.37]
    assert published.values("paper", "wiki10-31k", "wsabie", "P") is None
    assert published.seconds["delicious-200k", "SLEEC"]["test"] == 1347
    assert published.statistics["amazon-670k"]["labels"] == 670_091


def test_cells_of_the_repository() -> None:
    published = load_published()
    assert published.values("repository", "eurlex-4k", "sleec", "P") == [79.26, 64.30, 52.33]
    assert published.values("repository", "mediamill", "sleec", "PSP") == [70.14, 72.76, 74.02]
    assert published.values("repository", "eurlex-4k", "knn", "P") is None  # no such row
    assert "PPD-Sparse" in published.methods("repository", "eurlex-4k")


def test_every_table_is_complete() -> None:
    published = load_published()
    for dataset in SMALL:
        assert len(published.methods("paper", dataset)) == len(PAPER_METHODS)
    for dataset in LARGE:
        assert len(published.methods("paper", dataset)) == 5
    assert set(published.statistics) == {*SMALL, *LARGE}
    assert set(published.seconds) == {(d, m) for d in (*SMALL, *LARGE) for m in ("DXML", "SLEEC")}
    assert set(published.not_measured) == set(LARGE)


def test_numbers_keep_the_rules_of_the_measures() -> None:
    for key, measures in load_published().scores.items():
        assert all(len(values) == 3 for values in measures.values()), key
        assert measures["P"] == sorted(measures["P"], reverse=True), key
        if "nDCG" in measures:
            assert measures["nDCG"][0] == measures["P"][0], key
        assert key[0] in load_published().sources


def test_the_paper_copies_the_repository_but_for_one_misprint() -> None:
    published, differ = load_published(), []
    for dataset in SMALL:
        for method in PAPER_METHODS:
            for measure in ("P", "nDCG"):
                theirs = published.values("repository", dataset, method, measure)
                if theirs and theirs != published.values("paper", dataset, method, measure):
                    differ.append((dataset, method, measure))
    assert differ == [("delicious", "ml-cssp", "nDCG")]
    assert published.notes == [
        "Delicious, ML-CSSP: nDCG@5 is 53.36 on the repository's page: a misprint in the paper."
    ]
