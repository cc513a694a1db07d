"""Tables of texts and labels from the package lists of a Debian release: data nobody tuned on.

A package's text is its description. Its labels are its tags (some 600), its section (some 60), or
the packages it depends on (some 35,000): a few labels of texts, one of many texts, and very many.
Test texts are those of a fifth of the source packages, so that packages built from one source do
not stand on both sides.

    python benchmarks/package_texts.py FOLDER Packages.xz Translation-en.bz2
    dxml train FOLDER/tags-train.jsonl --text text --labels labels --model m
    dxml evaluate FOLDER/tags-test.jsonl --model m

Both files are on every Debian mirror, under dists/RELEASE/main/binary-amd64 and .../main/i18n. They
may be plain, .gz, .bz2 or .xz; without a translation the short descriptions are used.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import re
from collections.abc import Iterator
from pathlib import Path

from text_tables import TextTables

OPEN = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
Fields = dict[str, str]


def paragraphs(path: Path) -> Iterator[Fields]:
    """The records of a file of Debian's control format, their values on one line."""
    with OPEN.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        fields: Fields = {}
        name = ""
        for line in file:
            if not line.strip():
                if fields:
                    yield fields
                fields = {}
            elif line[0] in " \t":
                fields[name] += " " + line.strip().removeprefix(".")
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
        if fields:
            yield fields


def labels_of(package: Fields) -> dict[str, list[str]]:
    """The labels of a package in each of the three tables."""
    tags = re.sub(r"([\w-]+::)\{([^}]*)\}", _spelt_out, package.get("Tag", ""))
    needed = (part.strip() for part in package.get("Depends", "").split(","))
    return {
        "tags": sorted({tag.strip() for tag in tags.split(",") if "::" in tag}),
        "section": [package["Section"]] if "Section" in package else [],
        "depends": sorted({re.split(r"[ (|:]", part)[0] for part in needed if part}),
    }


def _spelt_out(found: re.Match[str]) -> str:
    """game::{a,b} → game::a, game::b"""
    return ", ".join(found[1] + tag.strip() for tag in found[2].split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the tables go")
    parser.add_argument("packages", type=Path)
    parser.add_argument("translation", type=Path, nargs="?")
    given = parser.parse_args()
    long = {}
    if given.translation:
        for fields in paragraphs(given.translation):
            long[fields["Description-md5"]] = fields.get("Description-en", "")
    tables = TextTables()
    for package in paragraphs(given.packages):
        text = long.get(package.get("Description-md5", "")) or package.get("Description", "")
        source = package.get("Source", package["Package"]).split()[0]
        for table, labels in labels_of(package).items():
            tables.add(table, package["Package"], text, labels, source)
    tables.write(given.folder)


if __name__ == "__main__":
    main()
