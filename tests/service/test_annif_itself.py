"""Annif asks a service by its backend ``http``, and weighs it beside a backend of its own.

``make annif`` installs Annif into an environment of its own and runs these tests.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dxml import TextTagger
from dxml.service.app import create_app

from .conftest import SIGNS, at_a_port, make_texts

pytestmark = pytest.mark.annif

PROGRAM = Path(__file__).parents[2] / "build" / "annif" / "bin" / "annif"
URIS = {name: f"http://example.org/{number}" for number, name in enumerate(SIGNS)}
TEXT = "a herring in the net, and soup"
PROJECTS = """
[dxml]
name=dxml
language=en
backend=http
vocab=subjects
endpoint={address}/v1/projects/m/suggest
limit=100

[words]
name=words
language=en
backend=tfidf
analyzer=simple
vocab=subjects

[together]
name=dxml and words
language=en
backend=ensemble
vocab=subjects
sources=dxml:3,words:1
"""


class Annif:
    """Annif's commands, in a folder."""

    def __init__(self, folder: Path) -> None:
        program = os.environ.get("DXML_ANNIF", PROGRAM)
        assert Path(program).exists(), f"{program} is not there: make annif installs it"
        self.program, self.folder = str(program), folder

    def run(self, *arguments: str, typed: str = "") -> str:
        place = os.environ | {"NLTK_DATA": str(self.folder / "nltk"), "PYTHONPATH": ""}
        command, pipe = [self.program, *arguments], subprocess.PIPE
        done = subprocess.run(
            command, input=typed, cwd=self.folder, env=place, stdout=pipe, stderr=pipe, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def suggest(self, project: str) -> dict[str, float]:
        """Scores of the subjects, by their URIs."""
        lines = self.run("suggest", project, typed=TEXT).splitlines()
        hits = [line.split("\t") for line in lines]
        return {uri.strip("<>"): float(score) for uri, *_, score in hits}


@pytest.fixture(scope="module")
def tagger() -> TextTagger:
    texts, labels = make_texts(80)
    table = {"name": list(URIS), "uri": list(URIS.values())}
    return TextTagger(device="cpu", candidates="nearest", width=0).fit(
        texts, labels, label_info=table
    )


@pytest.fixture(scope="module")
def annif(tagger: TextTagger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Annif]:
    """Annif with a vocabulary, a trained backend of its own, and dxml behind HTTP."""
    folder = tmp_path_factory.mktemp("annif")
    sentences = folder / "nltk" / "tokenizers" / "punkt_tab" / "english"
    sentences.mkdir(parents=True)  # of a tokenizer that knows no abbreviation
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (sentences / name).touch()
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    concept = '<{uri}> a skos:Concept ; skos:prefLabel "{name}"@en .'
    lines += [concept.format(uri=uri, name=name) for name, uri in URIS.items()]
    (folder / "subjects.ttl").write_text("\n".join(lines), "utf-8")
    texts, labels = make_texts(40, seed=1)
    rows = [f"{text}\t<{URIS[name]}>\n" for text, [name] in zip(texts, labels, strict=True)]
    (folder / "corpus.tsv").write_text("".join(rows), "utf-8")
    with at_a_port(create_app(tagger.save(folder / "m"))) as address:
        (folder / "projects.cfg").write_text(PROJECTS.format(address=address), "utf-8")
        made = Annif(folder)
        made.run("load-vocab", "subjects", "subjects.ttl")
        made.run("train", "words", "corpus.tsv")
        yield made


def test_annif_gets_the_probabilities(annif: Annif, tagger: TextTagger) -> None:
    expected = {URIS[name]: value for name, value in tagger.tag(TEXT, top=4)}
    assert annif.suggest("dxml") == pytest.approx(expected, abs=1e-3)


def test_an_ensemble_weighs_it_beside_a_backend_of_its_own(annif: Annif) -> None:
    ours, theirs, both = (annif.suggest(name) for name in ("dxml", "words", "together"))
    assert theirs, "Annif's own backend suggests something"
    expected = {uri: (3 * score + theirs.get(uri, 0)) / 4 for uri, score in ours.items()}
    assert both == pytest.approx(expected, abs=1e-3)


def test_annif_evaluates_it(annif: Annif) -> None:
    annif.run("eval", "dxml", "corpus.tsv", "--metric", "F1@5", "--metrics-file", "found.json")
    found = json.loads((annif.folder / "found.json").read_text("utf-8"))
    assert found["F1@5"] == pytest.approx(0.4), "one of the four subjects is right: 2 / (4 + 1)"
