"""Count the terms of texts, and learn which terms become columns and their idf."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack

from dxml._core.blocks import cut, run_blocks, spread
from dxml._core.listed import Listed
from dxml.progress import Stage
from dxml.text._tokens import Find, TermIds

__all__ = [
    "CountedTerms",
    "Vocabulary",
    "count_all_terms",
    "count_terms",
    "join_rows",
    "learn_terms",
]

BLOCK = 1000  # texts counted at a time
SENT = 32_000  # and on a cluster, where a block costs some hundredths of a second
Terms = tuple[dict[str, int], npt.NDArray[np.float32], csr_matrix]


class Vocabulary:
    """Terms of one kind and their numbers; it never changes.

    Parameters
    ----------
    first : dict
        Term → number, from 0 in the order of the dict.
    later : Listed, optional
        Terms that were added, with the numbers after those.
    """

    def __init__(self, first: dict[str, int], later: Listed | None = None) -> None:
        self.first = first
        self.later = Listed(()) if later is None else later

    def __len__(self) -> int:
        return len(self.first) + len(self.later)

    def __iter__(self) -> Iterator[str]:
        yield from self.first
        yield from self.later

    @property
    def find(self) -> Find:
        """The number of a term, or None."""
        return self._find if len(self.later) else self.first.get

    def _find(self, term: str) -> int | None:
        if (number := self.first.get(term)) is not None:
            return number
        place = self.later.place(term)
        return None if place is None else len(self.first) + place

    def add(self, terms: Sequence[str]) -> Vocabulary:
        """With these terms, of which none is known, after the others."""
        return Vocabulary(self.first, self.later.add(terms))


class _Numbers(dict[str, int]):
    """Numbers of the terms that it is asked for: those of a vocabulary, then new ones."""

    def __init__(self, known: Vocabulary) -> None:
        self._find, self._known, self.new = known.find, len(known), list[str]()

    def __missing__(self, term: str) -> int:
        if (number := self._find(term)) is None:
            number = self._known + len(self.new)
            self.new.append(term)
        self[term] = number
        return number


def _blocks(texts: Sequence[str], cutter: TermIds) -> Iterator[Sequence[str]]:
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    count = SENT if spread() else BLOCK
    return (texts[run] for run in cut(cutter.letter_bytes * sizes, count=count))


def _counted(block: Sequence[str], cutter: TermIds) -> csr_matrix:
    """Term counts of some texts, of shape (texts, largest id + 1)."""
    ids, row_ends = array("i"), array("i", [0])
    for text in block:
        ids.extend(cutter.ids(text))
        row_ends.append(len(ids))
    indices = np.array(ids, dtype=np.int32)
    ones = np.ones(indices.size, dtype=np.int32)
    shape = (len(block), int(indices.max(initial=-1)) + 1)
    counts = csr_matrix((ones, indices, np.array(row_ends, dtype=np.int32)), shape=shape)
    counts.sum_duplicates()
    return counts


class _Packed(NamedTuple):
    """A matrix of counts, in the smallest types that hold them: most counts are 1."""

    counts: npt.NDArray[np.unsignedinteger[Any]]
    columns: npt.NDArray[np.unsignedinteger[Any]]
    ends: npt.NDArray[np.int32]
    width: int

    @classmethod
    def of(cls, counts: csr_matrix) -> _Packed:
        return cls(_small(counts.data), _small(counts.indices), counts.indptr, counts.shape[1])

    def unpacked(self, columns: npt.NDArray[np.int32] | None = None) -> csr_matrix:
        """With column i moved to `columns[i]`, where these are given; not sorted then."""
        if columns is None:
            moved, width = self.columns.astype(np.int32), self.width
        else:
            moved, width = columns[self.columns], int(columns.max(initial=-1)) + 1
        ends = self.ends.copy()  # a view would keep the whole of what was sent
        shape = (len(ends) - 1, width)
        return csr_matrix((self.counts.astype(np.int32), moved, ends), shape=shape)


def _small(values: npt.NDArray[np.int32]) -> npt.NDArray[np.unsignedinteger[Any]]:
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


def _count_block(shared: tuple[TermIds], block: Sequence[str]) -> csr_matrix:
    return _counted(block, *shared)


def _count_packed(shared: tuple[TermIds], block: Sequence[str]) -> _Packed:
    return _Packed.of(_counted(block, *shared))


def count_terms(texts: Sequence[str], cutter: TermIds, stage: Stage) -> list[csr_matrix]:
    """Term counts, a matrix of shape (texts of a block, largest id + 1) for each block of texts."""
    cuts, counted = _blocks(texts, cutter), list[csr_matrix]()
    found: Iterator[csr_matrix] = (
        (packed.unpacked() for packed in run_blocks(_count_packed, (cutter,), cuts))
        if spread()
        else run_blocks(_count_block, (cutter,), cuts)
    )
    for counts in found:
        stage.advance(counts.shape[0])
        counted.append(counts)
    return counted


def join_rows(blocks: list[csr_matrix], width: int) -> csr_matrix:
    """The blocks stacked into one matrix with `width` columns."""
    for block in blocks:
        block.resize(block.shape[0], width)
    if len(blocks) == 1:
        return blocks[0]
    return csr_matrix(vstack([csr_matrix((0, width), dtype=np.int32), *blocks], format="csr"))


def _numbering() -> defaultdict[str, int]:
    """Gives every term that it is asked for a number, from 0 in the order in which they come."""
    seen: defaultdict[str, int] = defaultdict()
    seen.default_factory = seen.__len__
    return seen


def _count_new_terms(
    shared: tuple[Callable[[Find], TermIds]], block: Sequence[str]
) -> tuple[list[str], _Packed]:
    """The terms of some texts, and their counts by the order in which they come."""
    seen = _numbering()
    counts = _counted(block, shared[0](seen.__getitem__))
    return list(seen), _Packed.of(counts)


def _count_apart(
    texts: Sequence[str],
    cutter: Callable[[Find], TermIds],
    seen: dict[str, int],
    stage: Stage,
) -> list[csr_matrix]:
    """As `count_terms`, where each block numbers its terms by itself, and `seen` then renumbers.

    Columns are not sorted within a row.
    """
    blocks, cuts = [], _blocks(texts, cutter(seen.__getitem__))
    for terms, packed in run_blocks(_count_new_terms, (cutter,), cuts):
        numbers = np.fromiter(map(seen.__getitem__, terms), dtype=np.int32, count=len(terms))
        blocks.append(packed.unpacked(numbers))
        stage.advance(len(packed.ends) - 1)
    return blocks


def count_all_terms(
    texts: Sequence[str], cutter: Callable[[Find], TermIds], known: Vocabulary, stage: Stage
) -> tuple[list[str], csr_matrix]:
    """(terms that have no number, counts of all terms); the new ones have the next numbers."""
    numbers = _Numbers(known)
    if spread():
        blocks = _count_apart(texts, cutter, numbers, stage)
        for counts in blocks:
            counts.sort_indices()
    else:
        blocks = count_terms(texts, cutter(numbers.__getitem__), stage)
    return numbers.new, join_rows(blocks, len(known) + len(numbers.new))


@dataclass(frozen=True, eq=False)
class CountedTerms:
    """Every term of some texts, before it is decided which ones become columns.

    Attributes
    ----------
    numbers : dict
        Term → number, from 0 in the order in which terms come.
    blocks : list of csr_matrix
        Counts, of shape (texts of a block, largest number + 1); columns are in any order.
    """

    numbers: dict[str, int]
    blocks: list[csr_matrix]

    @cached_property
    def df(self) -> npt.NDArray[np.int64]:
        """Texts that have each term."""
        df = np.zeros(len(self.numbers), dtype=np.int64)
        for counts in self.blocks:
            df[: counts.shape[1]] += np.bincount(counts.indices, minlength=counts.shape[1])
        return df

    def texts_with(self, min_df: int) -> npt.NDArray[np.bool_]:
        """Whether each text has a term that `min_df` or more of them have."""
        often = self.df >= min_df
        found = []
        for counts in self.blocks:
            row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
            found.append(np.bincount(row[often[counts.indices]], minlength=counts.shape[0]) > 0)
        return np.concatenate([np.empty(0, bool), *found])

    def columns(self, min_df: int) -> Terms:
        """(term → column, idf, counts) of the terms that occur in `min_df` or more texts."""
        seen, df, n_texts = self.numbers, self.df, sum(each.shape[0] for each in self.blocks)
        kept = sorted(term for term, id in seen.items() if df[id] >= min_df)
        numbers = np.fromiter((seen[term] for term in kept), dtype=np.int64, count=len(kept))
        columns = np.full(len(seen), -1, dtype=np.int32)
        columns[numbers] = np.arange(len(kept), dtype=np.int32)
        idf = np.full(len(kept), 1 + n_texts, dtype=np.float32)
        idf /= df[numbers].astype(np.float32) + np.float32(1)
        np.log(idf, out=idf)
        idf += 1.0
        renamed = [_rename(counts, columns, len(kept)) for counts in self.blocks]
        named = {term: column for column, term in enumerate(kept)}
        return named, idf, join_rows(renamed, len(kept))


def learn_terms(
    texts: Sequence[str], cutter: Callable[[Find], TermIds], stage: Stage
) -> CountedTerms:
    """All terms of the texts, counted."""
    seen = _numbering()
    if spread():
        blocks = _count_apart(texts, cutter, seen, stage)
    else:
        blocks = count_terms(texts, cutter(seen.__getitem__), stage)
    return CountedTerms(seen, blocks)


def _rename(counts: csr_matrix, columns: npt.NDArray[np.int32], width: int) -> csr_matrix:
    """`counts` with column i moved to `columns[i]`, or dropped where that is -1."""
    indices = columns[counts.indices]
    known = indices >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[counts.indptr].astype(np.int32)
    renamed = csr_matrix((counts.data[known], indices[known], ends), shape=(counts.shape[0], width))
    renamed.sort_indices()
    return renamed
