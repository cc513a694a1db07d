"""Descriptions and parents of labels: read, checked, kept with a tagger, and put to use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dxml.exceptions import DataFormatError, ParameterError
from dxml.tagging._tagger import TextTagger
from dxml.tagging._thesaurus import LabelInfo, Thesaurus
from dxml.tagging._vocabulary import read_thesaurus

TABLE = """name,description,parents
things,,
animals,All that breathes,things
fish,Lives in the sea,animals; food
food,What is eaten,things
eel,A long slippery fish,fish
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(TABLE, "utf-8")
    return path


@pytest.fixture
def known(table: Path) -> Thesaurus:
    return read_thesaurus(table)


def test_a_label_has_a_way_to_it(known: Thesaurus) -> None:
    assert known.info("fish") == LabelInfo(
        "fish",
        "Lives in the sea",
        ("animals", "food"),
        ("things", "animals", "fish"),
        ("eel",),
    )
    assert known.info("things").path == ("things",)
    assert known.info("things").children == ("animals", "food")
    assert known.ancestors("eel") == ("fish", "animals", "food", "things"), "nearest first, once"
    assert known.ancestors("unknown") == () and known.info("unknown").path == ("unknown",)
    assert repr(known) == "Thesaurus(5 labels, 4 described)" and len(known) == 5


def test_every_kind_of_table_says_the_same(known: Thesaurus, tmp_path: Path) -> None:
    rows = [
        {
            "name": name,
            "description": known.descriptions[name],
            "parents": list(known.parents[name]),
        }
        for name in known
    ]
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    frame = pd.DataFrame(rows)
    frame.to_parquet(tmp_path / "l.parquet")
    columns = {column: [row[column] for row in rows] for column in rows[0]}
    for source in (tmp_path / "l.jsonl", tmp_path / "l.parquet", frame, columns, known):
        assert read_thesaurus(source) == known
    single = {"name": ["a", "b"], "parent": ["", "a"], "other": [1, 2]}
    assert read_thesaurus(single).parents == {"a": (), "b": ("a",)}
    assert read_thesaurus({"name": ["a"]}).info("a") == LabelInfo("a", path=("a",))
    comma = {"name": ["a", "b", "c"], "parents": ["", "", "a,b"]}
    assert read_thesaurus(comma, separator=",").parents["c"] == ("a", "b")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            "a,,b\nb,,c\nc,,a",
            r"labels.csv line \d: '(\w)' is its own ancestor \(\1 → \w → \w → \1\)",
        ),
        ("a,,a", r"line 2: 'a' is its own ancestor \(a → a\). Take one of these parents away"),
        ("fish,,\neel,,fisch", r"line 3: the parent 'fisch' of 'eel' has no row of its own \(did "),
        ("fish,,\neel,,zzz", "line 3: the parent 'zzz' of 'eel' has no row of its own. Add a row"),
        ("a,,\nb,,\na,,", "line 4: the label 'a' stands here again, first at .*labels.csv line 2"),
        ("a,,\n ,,", "line 3: the name is empty. Name the label, or drop the row"),
        ("a,\n", "line 2: expected 3 fields as in the header, found 2"),
    ],
)
def test_mistakes_have_their_line(rows: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"name,description,parents\n{rows}\n", "utf-8")
    with pytest.raises(DataFormatError, match=message):
        read_thesaurus(path)


def test_a_table_needs_names(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("names,description\na,b\n", "utf-8")
    with pytest.raises(DataFormatError, match="line 1: there is no column 'name'; did you mean"):
        read_thesaurus(path)
    with pytest.raises(DataFormatError, match="row 0: expected text in column 'description', fou"):
        read_thesaurus({"name": ["a"], "description": [3]})


TEXTS = ["fresh herring", "herring and cod", "cod in nets", "hot soup", "soup and salt", "salt pot"]
LABELS = [["fish"]] * 3 + [["food"]] * 3


@pytest.fixture
def tagger(table: Path) -> TextTagger:
    settings: dict[str, Any] = {"device": "cpu", "min_df": 1}
    return TextTagger(**settings).fit(TEXTS * 5, LABELS * 5, label_info=table)


def test_a_tagger_keeps_it(tagger: TextTagger, known: Thesaurus, tmp_path: Path) -> None:
    opened = TextTagger.load(tagger.save(tmp_path / "m"))
    assert opened.thesaurus == known and opened.describe("fish") == known.info("fish")
    assert opened.describe("animals").children == ("fish",), "no text carries it"
    with pytest.raises(
        ParameterError, match=r"there is no label 'fich' \(did you mean 'fish'\?\)."
    ):
        opened.describe("fich")
    plain = TextTagger(device="cpu", min_df=1).fit(TEXTS * 5, LABELS * 5)
    assert plain.thesaurus is None and plain.describe("fish") == LabelInfo("fish", path=("fish",))
    assert TextTagger.load(plain.save(tmp_path / "p")).thesaurus is None


def test_parents_are_as_probable_as_the_best_below(tagger: TextTagger) -> None:
    first, second = tagger.tag("herring", top=2)
    assert first.name == "fish" and second.name == "food" and first.probability > second.probability
    raised = tagger.tag("herring", top=2, with_parents=True)
    assert [tag.name for tag in raised] == ["fish", "animals", "food", "things"]
    assert {tag.probability for tag in raised} == {first.probability}, "all stand above fish"
    soup = tagger.tag(["soup"], top=1, with_parents=True)[0]
    assert [tag.name for tag in soup] == ["food", "things"]
    assert tagger.tag("herring", threshold=1.0, with_parents=True) == []
    plain = TextTagger(device="cpu", min_df=1).fit(TEXTS, LABELS)
    with pytest.raises(ParameterError, match="knows no parents of labels. Give label_info"):
        plain.tag("herring", with_parents=True)


def test_a_label_without_texts_is_found_by_its_description(table: Path) -> None:
    settings: dict[str, Any] = {"device": "cpu", "min_df": 1}
    taught = TextTagger(**settings).fit(
        TEXTS * 5, LABELS * 5, label_info=table, learn_descriptions=True
    )
    assert taught.labels_ == ("fish", "food", "animals", "eel")
    assert taught.ids_[-2:] == ("label:animals", "label:eel"), "fish and food have texts enough"
    best = taught.explain("long and slippery", top=1)[0]
    assert best.name == "eel"
    assert (best.neighbours[0].id, best.neighbours[0].title) == ("label:eel", "eel")
    with pytest.raises(ParameterError, match="learn_descriptions needs label_info"):
        TextTagger(**settings).fit(TEXTS, LABELS, learn_descriptions=True)
    with pytest.raises(DataFormatError, match="the id 'label:eel' stands twice"):
        TextTagger(**settings).fit(
            TEXTS,
            LABELS,
            ids=["label:eel", *"abcde"],
            label_info=table,
            learn_descriptions=True,
        )


def test_the_language_of_the_names_stays(tmp_path: Path) -> None:
    table = {"name_fi": ["kala", "keitto", "suola"]}
    known = read_thesaurus(table, language="fi")
    assert known.language == "fi"
    assert read_thesaurus({"name": ["kala"]}).language == ""
    assert known.renamed("kala", "kalat").without("suola").language == "fi"
    texts, labels = ["kala meressä", "keitto suolalla"] * 5, [["kala"], ["keitto"]] * 5
    tagger = TextTagger(device="cpu", width=0).fit(texts, labels, label_info=known)
    again = TextTagger.load(tagger.save(tmp_path / "m")).thesaurus
    assert again == known and again is not None and again.language == "fi"
