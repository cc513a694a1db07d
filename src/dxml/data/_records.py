"""Records of text → the parts of a registered data set: texts, labels, and the labels' names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from dxml.data._registry import DatasetInfo, TextRecipe
from dxml.exceptions import DataFormatError
from dxml.progress import SILENT, Progress
from dxml.text._files import open_text
from dxml.text._rows import read_rows
from dxml.text._tables import TextTable, read_table

__all__ = ["read_names", "read_part"]


def read_part(
    info: DatasetInfo,
    recipe: TextRecipe,
    paths: Mapping[str, Path],
    part: str,
    progress: Progress = SILENT,
) -> TextTable:
    """The texts of one part, in the file's order, with the labels' ids."""
    if recipe.test_divisor is None:
        return _read(paths[info.files[0 if part == "train" else 1]], recipe, progress)
    table = _read(paths[info.files[0]], recipe, progress)
    is_test = [number % recipe.test_divisor == 0 for number in _numbers(paths, table)]
    return table.take(row for row, test in enumerate(is_test) if test == (part == "test"))


def _numbers(paths: Mapping[str, Path], table: TextTable) -> list[int]:
    ids = table.ids or ()
    for id in ids:
        if not id.isdecimal():
            raise DataFormatError(
                f"{', '.join(map(str, paths.values()))}: expected ids that are whole numbers, "
                f"found {id!a}. It is another version of the data: fetch it again."
            )
    return [int(id) for id in ids]


def _read(path: Path, recipe: TextRecipe, progress: Progress) -> TextTable:
    return read_table(path, recipe.text, recipe.labels, recipe.id, progress=progress)


def read_names(
    info: DatasetInfo, recipe: TextRecipe, paths: Mapping[str, Path], labels: Iterable[str]
) -> tuple[str, ...]:
    """Names of `labels`; the id if there is no name, name and id if several share a name."""
    read = _names_in_file if recipe.label_names is None else _names_in_records
    known = read(info, recipe, paths)
    names = [(label, known.get(label, label)) for label in labels]
    holders = Counter(name for _, name in names)
    return tuple(name if holders[name] == 1 else f"{name} ({label})" for label, name in names)


def _names_in_records(
    info: DatasetInfo, recipe: TextRecipe, paths: Mapping[str, Path]
) -> dict[str, str]:
    names: dict[str, str] = {}
    for _, row in read_rows(paths[info.files[0]]):
        labels, called = row.get(recipe.labels), row.get(recipe.label_names or "")
        names.update(zip(labels or (), called or (), strict=False))
    return names


def _names_in_file(
    info: DatasetInfo, recipe: TextRecipe, paths: Mapping[str, Path]
) -> dict[str, str]:
    """Lines ``https://…/ID<tab>name``; a label is the prefix and the id."""
    names = {}
    with open_text(paths[info.files[2]]) as file:
        for chunk in file.chunks():
            for line in chunk.decode("utf-8", "replace").split("\n"):
                address, _, name = line.partition("\t")
                names[recipe.id_prefix + address.rpartition("/")[2]] = name.strip()
    return {label: name for label, name in names.items() if name}
