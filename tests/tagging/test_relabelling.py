"""Labels of a tagger renamed, merged and deleted, with what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml import TextTagger
from dxml.exceptions import ParameterError
from dxml.tagging import read_thesaurus

TEXTS = ["fresh herring", "herring and cod", "cod in nets", "hot soup", "soup and salt", "salt pot"]
LABELS = [["fish"], ["fishes"], ["fish", "nets"], ["food"], ["food"], ["food"]]
TABLE = {
    "name": ["things", "fish", "fishes", "food", "eel", "nets"],
    "description": ["", "It swims", "They swim", "", "Long", ""],
    "parents": ["", "things", "things", "", "fishes", ""],
    "alternatives": ["", "pisces", "shoal", "", "", ""],
    "uri": ["", "v:f", "v:g", "", "", ""],
}


@pytest.fixture
def tagger() -> TextTagger:
    return TextTagger(device="cpu", min_df=1).fit(TEXTS * 4, LABELS * 4)


@pytest.fixture
def knowing() -> TextTagger:
    return TextTagger(device="cpu", min_df=1).fit(TEXTS * 4, LABELS * 4, label_info=TABLE)


def test_a_label_is_renamed(tagger: TextTagger, tmp_path: Path) -> None:
    before = tagger.tag("fresh herring")
    tagger.rename_label("fish", "ocean")
    opened = TextTagger.load(tagger.save(tmp_path / "m"))
    for each in (tagger, opened):
        assert [tag.name for tag in each.tag("fresh herring")] == [
            "ocean" if tag.name == "fish" else tag.name for tag in before
        ]
        assert each.labels_of("2") == ["ocean", "nets"]
    opened.learn(["a shark"], [["fish"]], ids=["new"])
    assert opened.labels_of("new") == ["fish"], "without a vocabulary the old name is free"


def test_labels_are_merged(tagger: TextTagger, tmp_path: Path) -> None:
    tagger.learn(["cod on ice"], [["cold fish"]], ids=["taught"])
    tagger.merge_labels(["fishes", "cold fish"], into="fish")
    assert tagger.labels_ == ("fish", "food", "nets")
    assert tagger.labels_of("1") == tagger.labels_of("taught") == ["fish"]
    assert tagger.model.label_frequency_.tolist() == [13, 12, 4]
    assert TextTagger.load(tagger.save(tmp_path / "m")).tag("cod", top=1)[0].name == "fish"
    tagger.merge_labels(["fish", "nets"], into="fishery")
    assert tagger.labels_ == ("fishery", "food")
    assert tagger.model.label_frequency_.tolist() == [13, 12], "a text that had both has one"


def test_a_label_is_deleted(tagger: TextTagger) -> None:
    tagger.delete_label("fish")
    assert tagger.labels_ == ("fishes", "food", "nets") and tagger.labels_of("0") == []
    assert "fish" not in {tag.name for tag in tagger.tag("fresh herring", top=9)}
    assert len(tagger.ids_) == 24, "its texts stay"


def test_mistakes_change_nothing(tagger: TextTagger) -> None:
    names = tagger.labels_
    for wrong, message in [
        (lambda: tagger.rename_label("fich", "x"), r"no label 'fich' \(did you mean 'fish'\?\)"),
        (
            lambda: tagger.rename_label("fish", "food"),
            "a label 'food' already. Use merge_",
        ),
        (lambda: tagger.rename_label("fish", "fish"), "is called 'fish' already. Give another"),
        (lambda: tagger.rename_label("fish", " "), "expected a label's name, got ' '. Give some"),
        (lambda: tagger.merge_labels(["fish"], "fish"), "'fish' is one label. Name several, or"),
        (lambda: tagger.merge_labels(["fish", "zz"], "fish"), "there is no label 'zz'."),
        (lambda: tagger.delete_label("zz"), "there is no label 'zz'."),
    ]:
        with pytest.raises(ParameterError, match=message):
            wrong()
    assert tagger.labels_ == names


def test_the_old_name_means_the_label_where_a_vocabulary_has_it(knowing: TextTagger) -> None:
    knowing.rename_label("fish", "ocean")
    info = knowing.describe("ocean")
    assert info.description == "It swims" and info.alternatives == ("fish", "pisces")
    assert info.uri == "v:f" and info.parents == ("things",)
    knowing.learn(["a shark"], [["fish"]], ids=["new"])
    assert knowing.labels_of("new") == ["ocean"]


def test_what_is_known_of_merged_labels_is_put_together(knowing: TextTagger) -> None:
    knowing.merge_labels(["fishes", "fish"], into="fish")
    assert knowing.describe("shoal").name == "fish"
    info = knowing.describe("fish")
    assert info.description == "It swims" and info.uri == "v:f"
    assert info.alternatives == ("pisces", "fishes", "shoal") and info.children == ("eel",)
    knowing.delete_label("fish")
    assert knowing.describe("eel").parents == ("things",), "it is below what the other was below"


def test_merging_what_is_above_and_below_closes_no_circle() -> None:
    known = read_thesaurus({"name": ["a", "b", "c"], "parents": ["", "a", "b"]})
    one = known.merged(["a", "c"], "a")
    assert list(one) == ["a", "b"] and one.parents in ({"a": (), "b": ("a",)},)
    assert known.merged(["a", "c"], "new").info("b").path == ("new", "b")
    assert known.merged(["zz"], "a") is known
