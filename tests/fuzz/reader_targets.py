"""What is fuzzed: one target a reader, each with sound files, and what an accepted file must be.

A target's input is a byte and a content. The byte says what the content is: the whole file, or one
part of a sound file, such as a member of an archive whose checksum is then right, or the text that
is compressed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from dxml.data import Dataset
from dxml.data._formats import convert, read
from dxml.data._mapped import write_mapped
from dxml.tagging._thesaurus import Thesaurus
from dxml.tagging._vocabulary import read_thesaurus
from dxml.text import TextTable, read_table

Parts = dict[str, bytes]
_RAM = Path("/dev/shm")
FOLDER = "DXML_FUZZ_FOLDER"


@dataclass(frozen=True)
class Target:
    """A reader and its sound files.

    Parameters
    ----------
    file : str
        The name of the file or folder that is read.
    read : callable
        Reads the path, and checks what was read.
    seeds : callable
        Sound contents, as lists of parts; a plain file has one part.
    pack : callable
        Parts → the bytes of a file; None for a folder with a file a part.
    words : tuple of bytes
        What such files are made of, for mutations.
    """

    file: str
    read: Callable[[Path], object]
    seeds: Callable[[], list[Parts]]
    pack: Callable[[Parts], bytes] | None = field(default=lambda parts: next(iter(parts.values())))
    words: tuple[bytes, ...] = ()

    def inputs(self) -> list[bytes]:
        """Every part of every sound file, as an input."""
        found = []
        for parts in _seeds(self):
            if self.pack is not None:
                found.append(b"\x00" + self.pack(parts))
            names = sorted(parts)
            if self.pack is None or len(names) > 1 or self.pack(parts) != parts[names[0]]:
                found += [bytes([1 + at]) + parts[name] for at, name in enumerate(names)]
        return found

    def run(self, data: bytes) -> object:
        """Write an input to a file and read that."""
        which, content = data[0] if data else 0, data[1:]
        path = _folder() / self.file
        parts = _seeds(self)[0]
        names = sorted(parts)
        if self.pack is None:
            path.mkdir(exist_ok=True)
            chosen = names[(which - 1) % len(names)]
            for name in names:
                (path / name).write_bytes(content if name == chosen else parts[name])
        elif which == 0:
            path.write_bytes(content)
        else:
            path.write_bytes(self.pack({**parts, names[(which - 1) % len(names)]: content}))
        return self.read(path)


@cache
def _folder() -> Path:
    """Where files are written: what `FOLDER` says, or a folder that goes when the process ends."""
    if given := os.environ.get(FOLDER):
        return Path(given)
    kept.append(in_memory())
    return Path(kept[0].name)


def in_memory() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory, where the system has one."""
    parent = _RAM if os.access(_RAM, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="dxml-fuzz-", dir=parent)


kept: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _seeds_of(name: str) -> list[Parts]:
    return TARGETS[name].seeds()


def _seeds(target: Target) -> list[Parts]:
    return _seeds_of(next(name for name, found in TARGETS.items() if found is target))


# --- what an accepted file must be ---------------------------------------------------------------


def check_dataset(found: Dataset) -> None:
    """Features finite, labels true, rows sorted without repeats, all ids in range."""
    for matrix in (found.X, found.Y):
        matrix.check_format(full_check=True)
        for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            assert (np.diff(matrix.indices[start:end]) > 0).all(), "rows are not sorted"
    assert found.X.dtype == np.float32 and found.Y.dtype == np.bool_, "odd types"
    assert np.isfinite(found.X.data).all(), "not finite"
    assert found.X.shape[0] == found.Y.shape[0], "points without labels"


def check_table(found: TextTable) -> None:
    """As many labels and ids as texts, and all can be written down."""
    labels, ids = found.labels or (), found.ids or ()
    assert len(labels) in (0, len(found)) and len(ids) in (0, len(found)), "columns differ"
    for text in (*found.texts, *ids, *(label for row in labels for label in row)):
        text.encode("utf-8")


def check_thesaurus(found: Thesaurus) -> None:
    """All names can be written down, and every parent is there."""
    names = set(found.descriptions)
    for name, parents in found.parents.items():
        name.encode("utf-8")
        assert set(parents) <= names, "a parent that is not there"


def _dataset(path: Path) -> None:
    check_dataset(read(path))


def _converted(path: Path) -> None:
    """Read whole, and piece by piece into a folder of arrays."""
    _dataset(path)
    convert(path, path.with_name("converted.dxml"))


def _pair(path: Path) -> None:
    features, _, labels = path.read_bytes().partition(b"\x00")
    x, y = path.with_name("x.txt"), path.with_name("y.txt")
    x.write_bytes(features)
    y.write_bytes(labels)
    check_dataset(read(f"{x},{y}"))


def _npz(path: Path) -> None:
    check_dataset(read(f"{path},{path}"))


def _table(path: Path) -> None:
    skip = path.stat().st_size % 2 == 0
    check_table(
        read_table(path, labels="labels", id="id", id_if_there=True, skip_bad_rows=skip, lines=skip)
    )


def _texts(path: Path) -> None:
    check_table(read_table(path, lines=path.stat().st_size % 2 == 0))


def _vocabulary(path: Path) -> None:
    check_thesaurus(read_thesaurus(path, language="en" if path.stat().st_size % 2 else None))


# --- sound files ---------------------------------------------------------------------------------

ROWS = b"3 5 4\n0,2 0:1 3:0.5\n1 1:2.5e-3 4:-7\n 2:1e5\n"
JSON_LINES = (
    '{"text": "salt in the soup", "labels": ["food", "é"], "id": 1}\n'
    '{"text": "a fish", "labels": "food; sea", "id": "b"}\n\n{"text": null, "id": 3}\n'
).encode()
CSV = b'id,text,labels\n1,"fish, ""raw""",food;sea\n2,salt,"[\'a\', ""b""]"\n3,,\n'
VOCABULARY = b"name,name_en,parents,alternatives,uri,notation\na,a,,x;y,urn:1,N\nc,d,a,,,\n"
TURTLE = b"""@prefix s: <http://www.w3.org/2004/02/skos/core#> .
<urn:a> a s:Concept ; s:prefLabel "Fish"@en, "Fisch"@de ; s:notation "7" .
<urn:b> a s:Concept ; s:prefLabel "Cod"@en ; s:broader <urn:a> ; s:altLabel "x" .
"""
RDF = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:s="http://www.w3.org/2004/02/skos/core#">
<s:Concept rdf:about="urn:a"><s:prefLabel xml:lang="en">Fish</s:prefLabel></s:Concept>
<s:Concept rdf:about="urn:b"><s:prefLabel>Cod</s:prefLabel><s:broader rdf:resource="urn:a"/>
</s:Concept></rdf:RDF>
"""


def one(*contents: bytes) -> Callable[[], list[Parts]]:
    return lambda: [{"content": content} for content in contents]


def zipped(parts: Parts, method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of parts, its checksums right."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def _members(content: bytes) -> Parts:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _npz_seeds() -> list[Parts]:
    matrix = sp.csr_matrix(np.array([[1, 0, 0], [0, 0, 1], [1, 1, 0]], np.float32))
    found = []
    for form in (matrix, matrix.tocsc(), matrix.tocoo(), matrix.todia(), matrix.tobsr((1, 1))):
        packed = io.BytesIO()
        sp.save_npz(packed, form, compressed=False)
        found.append(_members(packed.getvalue()))
    return found


def _parquet_seeds() -> list[Parts]:
    import pyarrow
    from pyarrow import parquet

    columns = {"text": ["fish", "a soup"], "labels": [["a", "b"], []], "id": [1, 2]}
    found = []
    for chosen in ("none", "snappy"):
        packed = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), packed, compression=chosen)
        found.append({"content": packed.getvalue()})
    return found


def _excel_seeds() -> list[Parts]:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["id", "text", "labels"], [1, "fish", "food;sea"], [2.5, None, "x"]):
        book.active.append(row)
    packed = io.BytesIO()
    book.save(packed)
    return [_members(packed.getvalue())]


def _mapped_seeds() -> list[Parts]:
    X = sp.csr_matrix(np.array([[1, 0], [0, 2]], np.float32))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.dxml"
        write_mapped(path, [(X, X.astype(bool))])
        return [{file.name: file.read_bytes() for file in path.iterdir()}]


def _content(parts: Parts) -> bytes:
    return parts["content"]


NUMBERS = (
    b"0",
    b"1",
    b"-1",
    b"4294967296",
    b"1e999",
    b"nan",
    b"0x1",
    b":",
    b",",
    b" ",
    b"\n",
    b".",
)
TEXTS = (b'"', b"\\ud800", b"[", b"]", b"{", b"}", b"null", b"true", b"1e999", b"\xff", b"\x00")
SIGNS = (b'"', b",", b";", b"\t", b"\n", b"\r", b"|", b"[", b"]", b"\xef\xbb\xbf", b"\xff", b"\xc3")
RDF_WORDS = (
    b"<urn:a>",
    b"s:broader",
    b"@en",
    b'"',
    b"[",
    b"]",
    b"(",
    b")",
    b"<",
    b"&",
    b"/>",
    b"_:",
)

TARGETS: dict[str, Target] = {
    "repository": Target("x.txt", _converted, one(ROWS), words=NUMBERS),
    "libsvm": Target("x.svm", _dataset, one(b"0,2 1:1 4:0.5\n1 2:2.5e-3\n 3:1e5\n"), words=NUMBERS),
    "pair": Target(
        "pair.txt",
        _pair,
        one(b"2 3\n0:1 2:5\n1:2\n\x002 2\n0:1 1:1\n1:0\n"),
        words=(*NUMBERS, b"\x00"),
    ),
    "npz": Target("x.npz", _npz, _npz_seeds, zipped, words=(b"<f4", b"<i4", b"|O", b"csr", b"()")),
    "mapped": Target("x.dxml", _dataset, _mapped_seeds, None, words=(*NUMBERS, *TEXTS)),
    "csv": Target("x.csv", _table, one(CSV, CSV.replace(b",", b";")), words=SIGNS),
    "tsv": Target("x.tsv", _table, one(CSV.replace(b",", b"\t")), words=SIGNS),
    "json lines": Target("x.jsonl", _table, one(JSON_LINES), words=TEXTS),
    "json array": Target(
        "x.json",
        _table,
        one(json.dumps([json.loads(line) for line in JSON_LINES.splitlines() if line]).encode()),
        words=TEXTS,
    ),
    "plain text": Target(
        "texts.txt", _texts, one("Ein Text.\nNoch einer: é\n".encode()), words=SIGNS
    ),
    "parquet": Target("x.parquet", _table, _parquet_seeds, words=(b"PAR1",)),
    "excel": Target("x.xlsx", _table, _excel_seeds, zipped, words=(b"<c>", b't="s"', b"&", b"A1")),
    "vocabulary": Target("v.csv", _vocabulary, one(VOCABULARY), words=SIGNS),
    "uri list": Target(
        "v.tsv", _vocabulary, one(b"<urn:a>\tfish\tN\nurn:b\tcod\n"), words=(*SIGNS, b"<", b"urn:")
    ),
    "json vocabulary": Target(
        "v.jsonl",
        _vocabulary,
        one(b'{"name": "a", "name_en": "b", "parents": ["c"], "uri": "u"}\n{"name": "c"}\n'),
        words=TEXTS,
    ),
    "skos turtle": Target("v.ttl", _vocabulary, one(TURTLE), words=RDF_WORDS),
    "skos rdf": Target("v.rdf", _vocabulary, one(RDF), words=RDF_WORDS),
    "skos triples": Target(
        "v.nt",
        _vocabulary,
        one(
            b"<urn:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
            b"<http://www.w3.org/2004/02/skos/core#Concept> .\n"
            b'<urn:a> <http://www.w3.org/2004/02/skos/core#prefLabel> "f\\u00e9"@en .\n'
        ),
        words=RDF_WORDS,
    ),
    "gz": Target(
        "z.txt.gz",
        _dataset,
        one(ROWS),
        lambda parts: gzip.compress(_content(parts), 1),
        words=NUMBERS,
    ),
    "bz2": Target(
        "z.csv.bz2", _table, one(CSV), lambda parts: bz2.compress(_content(parts), 1), words=SIGNS
    ),
    "xz": Target(
        "z.jsonl.xz",
        _table,
        one(JSON_LINES),
        lambda parts: lzma.compress(_content(parts), preset=0),
        words=TEXTS,
    ),
}
