"""Data sets: read and write them, find or fetch them by name, or generate them."""

from dxml.data._dataset import Dataset
from dxml.data._fetch import fetch
from dxml.data._formats import Format, read, read_pair, recognise, write
from dxml.data._loading import (
    Part,
    cache_directory,
    is_present,
    load_dataset,
    load_texts,
    open_data,
)
from dxml.data._pseudo_texts import make_texts
from dxml.data._registry import (
    REGISTRY,
    Archive,
    Conversion,
    DatasetInfo,
    Sdist,
    TextRecipe,
    lookup,
)
from dxml.data._splits import read_split
from dxml.data._synthetic import make_planted, train_test
from dxml.data._twins import make_twin

__all__ = [
    "REGISTRY",
    "Archive",
    "Conversion",
    "Dataset",
    "DatasetInfo",
    "Format",
    "Part",
    "Sdist",
    "TextRecipe",
    "cache_directory",
    "fetch",
    "is_present",
    "load_dataset",
    "load_texts",
    "lookup",
    "make_planted",
    "make_texts",
    "make_twin",
    "open_data",
    "read",
    "read_pair",
    "read_split",
    "recognise",
    "train_test",
    "write",
]
