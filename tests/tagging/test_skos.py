"""SKOS vocabularies: the same in every syntax, by language, with the faults of published ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import rdflib

from dxml.exceptions import DataFormatError
from dxml.tagging import read_thesaurus

TURTLE = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix v: <http://example.org/v/> .
v:1 a skos:Concept ; skos:prefLabel "animals"@en, "Tiere"@de ; skos:narrower v:2 .
v:2 a skos:Concept ; skos:prefLabel "fish"@en, "Fisch"@de ; skos:altLabel "fishes"@en, "Fische"@de ;
  skos:hiddenLabel "fsh"@en ; skos:definition "Lives in water"@en ; skos:notation "597" .
v:3 a skos:Concept ; skos:prefLabel "eel"@en-GB ; skos:broader v:2 ; skos:scopeNote "Long" .
v:4 a skos:Concept ; skos:prefLabel "bank"@en ; skos:notation "332" .
v:5 a skos:Concept ; skos:prefLabel "bank"@en ; skos:altLabel "shore"@en .
v:6 a skos:Concept ; xl:prefLabel [ xl:literalForm "Ufer"@de ] ; skos:altLabel "shore"@en .
v:7 a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true .
v:8 a skos:Concept ; skos:broader v:1 .
v:s a skos:ConceptScheme ; skos:prefLabel "the scheme"@en .
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "v.ttl"
    path.write_text(TURTLE, "utf-8")
    return path


def test_concepts_become_labels(file: Path) -> None:
    known = read_thesaurus(file)
    assert set(known) == {"animals", "fish", "eel", "bank (332)", "bank (5)", "Ufer"}
    fish = known.info("fish")
    assert fish.parents == ("animals",) and fish.children == ("eel",), "narrower is broader, back"
    assert fish.alternatives == ("fishes", "fsh") and fish.description == "Lives in water"
    assert (fish.uri, fish.notation) == ("http://example.org/v/2", "597")
    assert known.info("eel").path == ("animals", "fish", "eel")
    assert known.descriptions["eel"] == "Long"
    assert known.languages == {"en": 4, "de": 3, "en-GB": 1}
    assert known.remarks == (
        "deprecated concepts, left out: 1",
        "concepts without a name in 'en', called by another language's: 1",
        "names that others have too, told apart by notation or identifier: 2",
    )


def test_a_language_is_chosen(file: Path) -> None:
    german = read_thesaurus(file, language="de,en")
    assert {"Tiere", "Fisch", "Ufer", "eel"} <= set(german)
    assert german.alternatives["Fisch"] == ("Fische", "fish", "fishes", "fsh")
    assert german.descriptions["Fisch"] == "Lives in water"
    assert "fish" not in read_thesaurus(file, language="de").alternatives["Fisch"]
    with pytest.raises(DataFormatError, match=r"no concept has a name in 'fr'. .* en \(4\), de"):
        read_thesaurus(file, language="fr")


def test_labels_are_found_by_all_they_are_called(file: Path) -> None:
    known = read_thesaurus(file, language="en,de")
    uri = "http://example.org/v/2"
    called = ["fish", "fishes", "Fisch", uri, f"<{uri}>", "2", "v:2", "597"]
    assert {known.resolve(label) for label in called} == {"fish"}
    assert known.resolve("shore") is None, "two concepts are called so"
    assert known.resolve("bank") is None and known.resolve("332") == "bank (332)"
    assert known.resolved([["Fisch", "fish", "other"]]) == [["fish", "other"]]
    assert known.outside([["shore", "x"], ["x", "x"], ["fishes"]]) == {"x": 2, "shore": 1}


@pytest.mark.parametrize(("suffix", "format"), [(".rdf", "xml"), (".nt", "nt"), (".ttl", "ttl")])
def test_every_syntax_says_the_same(file: Path, suffix: str, format: str) -> None:
    other = file.with_suffix(f"{suffix}.gz")
    graph = rdflib.Graph().parse(file)
    other.write_bytes(gzip.compress(graph.serialize(format=format, encoding="utf-8")))
    assert read_thesaurus(other) == read_thesaurus(file)


def test_circles_are_opened(tmp_path: Path) -> None:
    lines = ["@prefix s: <http://www.w3.org/2004/02/skos/core#> ."]
    links = {"a": "b", "b": "c", "c": "a", "d": "a", "e": "e"}
    lines += [
        f'<x:{one}> a s:Concept ; s:prefLabel "{one}" ; s:broader <x:{up}> .'
        for one, up in links.items()
    ]
    path = tmp_path / "circle.ttl"
    path.write_text("\n".join(lines), "utf-8")
    known = read_thesaurus(path)
    assert known.remarks == ("broader links that closed a circle, left out: 1",)
    assert sum(map(len, known.parents.values())) == 3 and known.parents["d"] == ("a",)
    assert known.info("d").path[-1] == "d", "the way up ends"


def test_what_is_no_vocabulary_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.ttl").write_text("<a:b> no turtle", "utf-8")
    with pytest.raises(DataFormatError, match="bad.ttl: cannot be read as RDF"):
        read_thesaurus(tmp_path / "bad.ttl")
    (tmp_path / "none.ttl").write_text('<x:a> <x:b> "c" .', "utf-8")
    with pytest.raises(DataFormatError, match="none.ttl: has no skos:Concept. Give a SKOS"):
        read_thesaurus(tmp_path / "none.ttl")


def test_without_rdflib_it_says_what_to_install(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rdflib", None)
    with pytest.raises(DataFormatError, match=r"needs rdflib. .* pip install 'dxml\[skos\]'"):
        read_thesaurus(file)


CONCEPT = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:skos="http://www.w3.org/2004/02/skos/core#"><skos:Concept rdf:about="http://a.org/1">'
    '<skos:prefLabel xml:lang="en">fish&x;</skos:prefLabel></skos:Concept></rdf:RDF>'
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "xxx"><!ENTITY x "&a;&a;&a;">',
        "<!ENTITY a 'xxx'><!ENTITY x '>&a;&a;'>",
        '<!ENTITY a "xxx"><!ENTITY x "&#38;a;&#38;a;">',
        '<!ENTITY x SYSTEM "file:///etc/passwd">',
        '<!ENTITY x PUBLIC "a" "http://example.org/a">',
        '<!ENTITY % p "a"><!ENTITY x "b">',
    ],
)
def test_entities_that_expand_without_end(tmp_path: Path, declared: str, encoding: str) -> None:
    """A kilobyte of them kept the reader busy for minutes."""
    path = tmp_path / "v.rdf"
    path.write_text(f"<!DOCTYPE rdf:RDF [{declared}]>{CONCEPT}", encoding)
    with pytest.raises(DataFormatError, match="v.rdf: has an entity that is made of others, or of"):
        read_thesaurus(path)


def test_an_entity_of_a_plain_text_is_read(tmp_path: Path) -> None:
    """As Protégé writes them, for the beginnings of URIs."""
    path = tmp_path / "v.rdf"
    path.write_text(f'<!DOCTYPE rdf:RDF [<!ENTITY x "es">]>{CONCEPT}', "utf-8")
    assert set(read_thesaurus(path)) == {"fishes"}
