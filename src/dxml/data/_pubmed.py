"""A file of the PubMed baseline (XML) → JSON lines: title, abstract and MeSH headings."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from dxml.progress import SILENT, Progress

__all__ = ["pubmed_to_jsonl"]


def pubmed_to_jsonl(source: Path, target: Path, progress: Progress = SILENT) -> None:
    """Write a record for each article of `source` (.xml.gz) that has MeSH headings.

    Parameters
    ----------
    source, target : Path
        Both compressed with gzip. A record has the fields pmid, title, abstract, labels (the ids of
        the headings' descriptors, in their order) and label_names.
    progress : Progress
        Counts the bytes read.
    """
    size = os.path.getsize(source)
    with (
        open(source, "rb") as raw,
        gzip.GzipFile(fileobj=raw) as xml,
        open(target, "wb") as packed,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as out,
        progress.stage("convert to JSON lines", size, "bytes") as stage,
    ):
        told = 0
        for record in _records(xml):
            out.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
            stage.advance(raw.tell() - told)
            told = raw.tell()


def _records(xml: IO[bytes] | gzip.GzipFile) -> Iterator[dict[str, Any]]:
    """One record per article; memory holds one article at a time."""
    for _, element in ElementTree.iterparse(xml):
        if element.tag == "PubmedArticle":
            record = _record(element)
            if record["labels"]:
                yield record
            element.clear()


def _record(article: ElementTree.Element) -> dict[str, Any]:
    def texts(path: str) -> str:
        return " ".join(map(_text, article.iterfind(f"MedlineCitation/{path}")))

    headings: dict[str, str] = {}
    descriptors = "MedlineCitation/MeshHeadingList/MeshHeading/DescriptorName"
    for descriptor in article.iterfind(descriptors):
        headings.setdefault(descriptor.get("UI", ""), _text(descriptor))
    return {
        "pmid": texts("PMID"),
        "title": texts("Article/ArticleTitle"),
        "abstract": texts("Article/Abstract/AbstractText"),
        "labels": list(headings),
        "label_names": list(headings.values()),
    }


def _text(element: ElementTree.Element) -> str:
    """All text inside, markup left out."""
    return "".join(element.itertext()).strip()
