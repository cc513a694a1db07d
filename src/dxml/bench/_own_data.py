"""A data set of one's own for the benchmark: one TOML file beside its files.

::

    name = "mine"
    train = "train.txt"            # any file of features that dxml reads
    test = "test.txt"
    propensity = [0.55, 1.5]       # A and B of propensity-scored precision; these by default

    # or tables of texts, from which tf-idf features are made
    train = "train.jsonl"
    test = "test.jsonl"
    text = ["title", "abstract"]
    labels = "subjects"
    label_separator = ";"          # where labels are one string

Files are looked for beside the TOML file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dxml.bench._toml import Kinds, check_kinds, read_toml, texts
from dxml.data import REGISTRY, Dataset, open_data
from dxml.exceptions import ParameterError

__all__ = ["OwnData", "is_own_data", "read_own_data"]

_KINDS: Kinds = {
    **dict.fromkeys(("name", "train", "test", "labels", "label_separator"), (str,)),
    "text": (str, list),
    "propensity": (list,),
}


@dataclass(frozen=True)
class OwnData:
    """What the file says."""

    folder: Path
    name: str
    train: str
    test: str
    text: tuple[str, ...] = ()
    labels: str | None = None
    label_separator: str | None = None
    propensity: tuple[float, float] = (0.55, 1.5)

    @property
    def files(self) -> tuple[Path, Path]:
        """Of training and of test points."""
        return self.folder / self.train, self.folder / self.test

    def load(self) -> tuple[Dataset, Dataset]:
        """Training and test points."""
        train, test = self._texts() if self.text else self._features()
        name, propensity = self.name, self.propensity
        train = replace(train, name=name, propensity=propensity)
        return train, replace(test, name=name, propensity=propensity)

    def _features(self) -> tuple[Dataset, Dataset]:
        train = open_data(self.files[0])
        widths = (train.n_features, train.n_labels)
        test = open_data(self.files[1], widths=widths)
        for what, own, other in zip(
            ("features", "labels"), widths, (test.n_features, test.n_labels), strict=True
        ):
            if own != other:
                raise ParameterError(
                    f"{self.name}: {self.train} has {own} {what} and {self.test} has {other}. "
                    f"Write both files with the same {what}, those that occur in one alone too."
                )
        return train, test

    def _texts(self) -> tuple[Dataset, Dataset]:
        from dxml.text import TextFeatures, read_table

        tables = [
            read_table(
                file,
                list(self.text),
                self.labels,
                label_separator=self.label_separator,
            )
            for file in self.files
        ]
        rows = [[sorted(set(own)) for own in table.labels or ()] for table in tables]
        names = sorted({name for table in rows for own in table for name in own})
        features = TextFeatures()
        X = features.fit_transform(tables[0].texts), features.transform(tables[1].texts)
        Y = [_indicator(own, names) for own in rows]
        return Dataset(X[0], Y[0]), Dataset(X[1], Y[1])


def is_own_data(name: str) -> bool:
    """Whether a data set is named by a file."""
    return name.endswith(".toml")


def read_own_data(path: str | Path) -> OwnData:
    """Read and check the file; its data are read by `OwnData.load`."""
    path = Path(path)
    if not path.is_file():
        raise ParameterError(f"{path}: no such file of a data set.")
    table = read_toml(path)
    try:
        check_kinds(table, _KINDS, "the file")
        table["text"] = tuple(texts(table, "text", "the file"))
    except ParameterError as error:
        raise ParameterError(f"{path.name}: {error}") from error
    for key in ("train", "test"):
        if key not in table:
            raise ParameterError(f"{path.name}: {key} is missing. Add {key} = 'FILE'.")
    if bool(table["text"]) != ("labels" in table):
        raise ParameterError(f"{path.name}: a table of texts needs both text and labels.")
    table["propensity"] = _propensity(path, table.get("propensity", [0.55, 1.5]))
    name = table.pop("name", path.stem)
    if not name.strip():
        raise ParameterError(f"{path.name}: name is empty. Leave it out, or say one.")
    if name.casefold() in REGISTRY:
        raise ParameterError(
            f"{path.name}: the name {name!r} is that of a data set of dxml. "
            "Give it another: name = '…'."
        )
    return OwnData(path.parent, name, **table)


def _propensity(path: Path, given: list[Any]) -> tuple[float, float]:
    numbers = [each for each in given if type(each) in (int, float) and math.isfinite(each)]
    if len(given) != 2 or len(numbers) != 2:
        raise ParameterError(f"{path.name}: propensity must be [A, B], got {given!r}.")
    return float(given[0]), float(given[1])


def _indicator(rows: list[list[str]], names: list[str]) -> sp.csr_matrix:
    place = {name: i for i, name in enumerate(names)}
    ids = np.array([place[name] for row in rows for name in row], dtype=np.int32)
    ends = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix((np.ones(len(ids), bool), ids, ends), (len(rows), len(names)))
