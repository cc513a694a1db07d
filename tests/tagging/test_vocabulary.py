"""Tables of labels with other names and identifiers, and taggers that hold to a vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from dxml import TextTagger
from dxml.exceptions import DataFormatError, ParameterError
from dxml.tagging import read_thesaurus

TEXTS = ["fresh herring", "herring and cod", "cod in nets", "hot soup", "soup and salt", "salt pot"]
TABLE = {
    "name": ["food", "fish"],
    "alternatives": [["meals"], ["fishes", "pisces"]],
    "uri": ["http://x.org/v/1", "http://x.org/v/2"],
    "parents": ["", "http://x.org/v/1"],
    "notation": ["", "597"],
}


def test_a_table_has_other_names_and_identifiers() -> None:
    known = read_thesaurus(TABLE)
    assert known.parents["fish"] == ("food",), "a parent may be given by its URI"
    assert known.alternatives == {"food": ("meals",), "fish": ("fishes", "pisces")}
    assert known.uris["fish"] == "http://x.org/v/2" and known.notations == {"fish": "597"}


def test_names_have_a_column_a_language(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(
        "uri,label_en,label_de,alternatives_de\nu:1,fish,Fisch,Fische;Pisces\nu:2,,Suppe,\n",
        "utf-8",
    )
    german = read_thesaurus(path, language="de")
    assert german.alternatives == {"Fisch": ("Fische", "Pisces")} and list(german)[1] == "Suppe"
    both = read_thesaurus(path, language="en,de")
    assert list(both) == ["fish", "Suppe"]
    assert both.alternatives == {"fish": ("Fische", "Pisces", "Fisch")}
    with pytest.raises(DataFormatError, match="v.csv: there is no column 'name_fr'. Add it"):
        read_thesaurus(path, language="fr")


def test_a_list_of_uris_and_names(tmp_path: Path) -> None:
    path = tmp_path / "v.tsv"
    path.write_text("<http://x.org/gnd/1-2>\tScale\n<http://x.org/gnd/3>\tScale\t7\n", "utf-8")
    known = read_thesaurus(path)
    assert list(known) == ["Scale (1-2)", "Scale (3)"]
    assert known.remarks == ("names that others have too, told apart by identifier: 2",)
    assert known.resolve("gnd:1-2") == "Scale (1-2)" and known.resolve("7") == "Scale (3)"
    path.write_text("http://x.org/gnd/1\tScale\nhttp://x.org/gnd/3\n", "utf-8")
    with pytest.raises(DataFormatError, match="v.tsv line 2: expected a URI, a tab and a name"):
        read_thesaurus(path)


def test_a_tagger_calls_labels_by_their_names(tmp_path: Path) -> None:
    labels = [["fishes"], ["v:2"], ["597", "fish"], ["meals"], ["food"], ["plain"]]
    tagger = TextTagger(device="cpu", min_df=1).fit(TEXTS * 5, labels * 5, label_info=TABLE)
    assert tagger.labels_ == ("fish", "food", "plain")
    assert tagger.model.label_frequency_.tolist() == [15, 10, 5]
    opened = TextTagger.load(tagger.save(tmp_path / "m"))
    assert opened.thesaurus == tagger.thesaurus and opened.describe("pisces").uri.endswith("v/2")
    opened.learn(["anchovies"], [["pisces"]], ids=["new"])
    assert opened.labels_of("new") == ["fish"] and len(opened.labels_) == 3
    assert opened.encode_labels([["fishes"]]).indices.tolist() == [0]
    assert opened.unknown_labels([["fishes", "other"]])[0] == ["other"]


def test_other_names_are_learnt_as_texts() -> None:
    table = {"name": ["fish", "soup"], "alternatives": ["pisces", "bouillon"]}
    labels = [["fish"]] * 3 + [["soup"]] * 3
    tagger = TextTagger(device="cpu", min_df=1)
    tagger.fit(TEXTS[:2] + TEXTS[-2:], labels[1:5], label_info=table, learn_descriptions=True)
    assert tagger.tag("bouillon", top=1)[0].name == "soup"


def test_strict_refuses_labels_outside() -> None:
    labels = [["fish"], ["fisch"], ["fisch"], ["fish"], ["food"], ["other"]]
    fit = TextTagger(device="cpu", min_df=1).fit
    said = r"the label 'fisch' of 2 texts \(did you mean 'fish'\?\) and 1 other are not in the voc"
    with pytest.raises(DataFormatError, match=said):
        fit(TEXTS, labels, label_info=TABLE, strict=True)
    with pytest.raises(ParameterError, match="strict needs label_info, the vocabulary that"):
        fit(TEXTS, labels, strict=True)
    assert "fish" in fit(TEXTS, [["fishes"]] * 6, label_info=TABLE, strict=True).labels_
