"""What is odd about a table is found, and nothing else."""

from __future__ import annotations

import json

import pytest

from dxml.text import TextTable, check_table
from dxml.text._checking import MARKS, likely_separator

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
TEXTS = ("Fish in the sea", "", "fish in the SEA!", LONG, LONG + " fifteen", "soup", " . ")
LABELS = (("a",), ("b",), ("a", "b"), (), ("c",), ("b",), ("b",))


def test_odd_rows_by_hand() -> None:
    found = check_table(TextTable(TEXTS, LABELS, skipped=2))
    assert found.rows == 7 and found.skipped == 2
    assert found.no_text == (1, 6) and found.no_labels == (3,)
    assert found.repeated == (2,) and found.other_labels == 1
    assert found.nearly == (4,)
    assert found.label_counts == {"b": 4, "a": 2, "c": 1} and found.once == 1
    assert found.words_a_text == (4, 0, 4, 14, 15, 1, 0)
    assert list(found.lines()) == [
        "7 rows, 3 labels, 1.2 a text",
        "2 bad rows left out",
        "2 rows have no text",
        "1 row has no labels",
        "1 text repeats another, 1 of them with other labels",
        "1 text is nearly the same as another",
        "1 label is carried by a single text",
    ]
    assert list(found.warnings()) == ["2 rows have no text", "1 row has no labels"]
    named = "\n".join(found.lines(named=True))
    assert "2 rows have no text: 1, 6" in named and "from 0 to 15" in named
    assert "words a text: 4 in the middle" in named
    told = json.loads(json.dumps(found.numbers()))
    assert told["no_text"] == [1, 6] and told["label_counts"] == {"b": 4, "a": 2, "c": 1}


def test_rows_go_by_their_ids() -> None:
    ids = tuple("tuvwxyz")
    named = "\n".join(check_table(TextTable(TEXTS, LABELS, ids)).lines(named=True))
    assert "2 rows have no text: u, z" in named and "another: x" in named.replace("x, ", "x")


def test_nothing_odd_is_one_line() -> None:
    table = TextTable(("fish", "soup", "rain", "fog"), (("a",), ("b",), ("a",), ("b",)))
    assert list(check_table(table).lines()) == ["4 rows, 2 labels, 1 a text"]
    assert check_table(table, near=False).nearly is None


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark != " - "])
def test_labels_that_were_not_split(mark: str) -> None:
    parts = ["sea", "food", "sky", "war"]
    rows = [[f"{a}{mark}{b}"] for a in parts for b in parts if a != b] + [[a] for a in parts]
    found = likely_separator(rows)
    assert found is not None and found.mark == mark
    table = TextTable(("fish",) * len(rows), tuple(map(tuple, rows)))
    assert list(check_table(table).warnings()) == [str(found)]
    assert (found.labels, found.split_labels) == (16, 4) and found.share == 0.75
    assert f"--label-separator {mark!r} would make 4 labels of 16" in str(found)
    assert likely_separator([[part] for part in parts]) is None


def test_lists_of_more_labels_than_there_are_rows() -> None:
    parts = [f"label{i}" for i in range(200)]
    lists = [parts[i : i + 2 + i % 5] for i in range(0, 190)]
    whole = [[", ".join(row)] for row in lists]
    found = likely_separator(whole)
    assert found is not None and found.mark == ","
    assert found.labels == 190 and found.split_labels == len(
        {name for row in lists for name in row}
    )
    assert found.texts == 1 and found.split_texts == sum(map(len, lists)) / found.split_labels
    assert likely_separator(lists) is None, "they are split already"


def test_names_of_three_parts_are_no_lists() -> None:
    places = [[f"Town{i}, County{i % 20}, Country{i % 3}"] for i in range(100)]
    assert likely_separator(places) is None


def test_lists_of_uris_are_split_at_spaces() -> None:
    uris = [f"<http://example.org/v/{i}>" for i in range(6)]
    lists = [uris[i : i + 1 + j] for i in range(6) for j in range(3)]
    found = likely_separator([[" ".join(row)] for row in lists])
    assert found is not None and (found.mark, found.split_labels) == (" ", 6)
    assert likely_separator([[uri] for uri in uris] * 2) is None, "no part of a URI is a label"


def test_names_with_a_comma_are_no_lists() -> None:
    names = [f"Name{i}, First{i % 40}" for i in range(100)]
    assert likely_separator([[name] for name in names]) is None
    assert likely_separator([["a,b"], ["a"], *([f"x{i}"] for i in range(40))]) is None, "too few"
    assert likely_separator([]) is None and likely_separator([[], []]) is None


def test_what_test_texts_share_with_training_texts() -> None:
    train = TextTable(("Fish in the sea", LONG, "soup"), (("a",), ("b",), ("c",)))
    test = TextTable(("fish, in the sea", LONG + " fifteen", "rain", ""), (("a",), ("d",), (), ()))
    found = check_table(train, test)
    assert found.overlap is not None
    assert vars(found.overlap) == {
        "rows": 4,
        "same": 1,
        "nearly": 1,
        "labels": 2,
        "unknown_labels": 1,
    }
    assert found.nearly == (), "a test text is no repetition in the training table"
    assert list(found.lines("t.csv"))[-3:] == [
        "t.csv: 4 rows, 2 labels",
        "1 text of t.csv is a training text too, 1 more nearly",
        "1 label of t.csv has no training text",
    ]


def test_languages_are_told_where_they_are_mixed() -> None:
    texts = ("the fish is in the sea", "der Fisch und die Suppe im Meer") * 5
    table = TextTable(texts, (("a",),) * 10)
    assert "languages: en 50 %, de 50 %" in list(check_table(table, near=False).lines())
    alone = TextTable(texts[::2], (("a",),) * 5)
    assert "languages: en 100 %" in list(check_table(alone, near=False).lines(named=True))
    assert not any("languages" in line for line in check_table(alone, near=False).lines())
    short = TextTable((*texts[::2], *["libfoo 2"] * 15), (("a",),) * 20)
    lines = list(check_table(short, near=False).lines(named=True))
    assert "languages: en 25 %, not told 75 %" in lines, "the shares add up"


def test_texts_without_a_shared_word_are_told() -> None:
    """Twenty single words, each once, among forty texts that share theirs."""
    single = tuple(f"word{i}" for i in range(20))
    shared = tuple(f"fish soup number{i}" for i in range(40))
    found = check_table(TextTable(single + shared, (("a",),) * 60), near=False)
    assert found.lonely == tuple(range(20))
    told = "20 texts have no word that another text has: parts of words count too, unless "
    told += "char_ngrams says otherwise"
    assert told in list(found.warnings())
    assert told + ": 0, 1, 2, 3, 4, …" in list(found.lines(named=True))
    assert found.numbers()["without_shared_words"] == list(range(20))
    fewer = check_table(TextTable(single + shared * 3, (("a",),) * 140), near=False)
    told = "20 texts have no word that another text has: where words share parts, train with "
    assert told + "--set char_ngrams=4" in list(fewer.warnings()), "a seventh of the texts"
    few = check_table(TextTable(single + shared * 20, (("a",),) * 820), near=False)
    assert not any("shared" in line or "no word" in line for line in few.warnings())
    chinese = tuple(f"漁業與海洋{chr(0x4E00 + i)}" for i in range(20))
    assert check_table(TextTable(chinese, (("a",),) * 20), near=False).lonely == ()
