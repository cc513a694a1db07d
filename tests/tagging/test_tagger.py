"""Texts whose words decide their labels: names come out, with the words and texts behind them."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from copy import copy
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dxml._core.storage import read_config, sealed
from dxml.exceptions import DataFormatError, ModelFormatError, NotFittedError, ParameterError
from dxml.joint import Joint
from dxml.methods import load_model, saved_method
from dxml.tagging._tagger import Columns, TextTagger
from dxml.tagging._tags import Explanation, Neighbour, Tag, Tags

SIGNS = {
    "Fischerei": ["hering", "netz", "kutter"],
    "Küche": ["suppe", "salz", "löffel"],
    "Straßenbau": ["asphalt", "brücke", "schotter"],
    "Musik": ["geige", "orchester", "oper"],
}
FILLING = "der die das und von mit auf ein eine über haus tag jahr groß klein alt neu weit".split()


def make_texts(n: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Each text has two signs of each of its labels, and filling."""
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(n):
        names = rng.sample(sorted(SIGNS), rng.choice([1, 1, 2]))
        words = [word for name in names for word in rng.sample(SIGNS[name], 2)]
        words += rng.sample(FILLING, 6)
        rng.shuffle(words)
        texts.append(" ".join(words).capitalize() + ".\nZweite Zeile")
        labels.append(names)
    return texts, labels


PLANS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "linear": {"candidates": "nearest", "width": 0},
    "n-grams": {"char_ngrams": 4, "candidates": "nearest", "width": 0, "precision": "int8"},
    "wide": {"candidates": "all", "width": 64, "epochs": 10},
}


@pytest.fixture(scope="module", params=sorted(PLANS))
def fitted(request: pytest.FixtureRequest) -> TextTagger:
    texts, labels = make_texts(150)
    ids = [f"doc-{i}" for i in range(150)]
    plan = PLANS[request.param]
    return TextTagger(device="cpu", vectors="none", **plan).fit(texts, labels, ids=ids)


@pytest.fixture
def tagger(fitted: TextTagger, tmp_path: Path) -> TextTagger:
    """A copy that a test may teach."""
    return TextTagger.load(fitted.save(tmp_path / "copy"))


def test_names_come_out(fitted: TextTagger) -> None:
    assert fitted.labels_ == tuple(sorted(SIGNS))
    texts, labels = make_texts(60, seed=1)
    for tags, names in zip(fitted.tag(texts, top=2), labels, strict=True):
        assert {tag.name for tag in tags[: len(names)]} == set(names)
    for name, signs in SIGNS.items():
        [(first, probability), *_] = fitted.tag(" ".join(signs).upper())
        assert first == name and probability > 0.5


def test_a_frame_is_not_tagged_by_the_names_of_its_columns(fitted: TextTagger) -> None:
    frame = pd.DataFrame({"title": ["herring", "moon"], "abstract": ["sea", "sky"]})
    told = "found a frame with the columns 'title', 'abstract'. Give one of them"
    for ask in (fitted.tag, fitted.rank, fitted.predict):
        with pytest.raises(DataFormatError, match=told):
            ask(frame)
    with pytest.raises(DataFormatError, match=told):
        fitted.learn(frame, [["Fish"], ["Sky"]])
    with pytest.raises(DataFormatError, match=told):
        TextTagger().fit(frame, [["Fish"], ["Sky"]])
    assert len(fitted.tag(frame["title"])) == 2


def test_one_text_or_many(fitted: TextTagger) -> None:
    one = fitted.tag("Hering im Netz", top=3)
    among_others = fitted.tag(["Hering im Netz", "Oper"], top=3)[0]
    assert [tag.name for tag in among_others] == [tag.name for tag in one]
    assert [p for _, p in among_others] == pytest.approx([p for _, p in one], abs=1e-6)
    assert all(isinstance(tag, Tag) for tag in one)
    assert [tag.probability for tag in one] == sorted((p for _, p in one), reverse=True)
    assert len(fitted.tag("Hering", top=50)) <= 4
    sure = fitted.tag("Hering im Netz", top=4, threshold=0.5)
    assert [tag.name for tag in sure] == ["Fischerei"]
    assert fitted.tag("Hering im Netz", threshold=1.0) == []
    with pytest.raises(DataFormatError, match=r"a text or a list of texts, found None\."):
        fitted.tag(None)  # type: ignore[call-overload]
    for wrong in (30, -0.1, float("nan")):
        with pytest.raises(ParameterError, match=r"probability from 0 to 1, got .*give 0\.3"):
            fitted.tag("Hering im Netz", threshold=wrong)
        with pytest.raises(ParameterError, match="probability from 0 to 1, got"):
            fitted.predict(["Hering im Netz"], threshold=wrong)
    assert fitted.tag([]) == []
    assert len(fitted.tag("unbekannt", top=2)) == 2


def test_a_text_of_which_nothing_is_known_says_so(fitted: TextTagger) -> None:
    one = fitted.tag("xyzzy qqq")
    assert isinstance(one, Tags) and one.nothing_known
    assert {tag.name for tag in one} == set(SIGNS)
    shares = fitted.model.label_frequency_ / 150
    assert [p for _, p in one] == pytest.approx(sorted(shares, reverse=True))
    several = fitted.tag(["Hering", "xyzzy", "", "xyzzy Netz"], threshold=0.99)
    assert [tags.nothing_known for tags in several] == [False, True, True, False]
    assert fitted.nothing_known(["Hering", "xyzzy"]) == [1]
    assert not fitted.tag("Hering").nothing_known


def test_explanations_name_the_planted_words_and_texts(fitted: TextTagger) -> None:
    near = "Ein Kutter mit Hering und Netz.\nZweite Zeile"
    [best, *_] = fitted.explain(near, top=2)
    assert best.name == "Fischerei" and best.probability == fitted.tag(near)[0].probability
    assert {word for word, _ in best.words[:3]} == {"kutter", "hering", "netz"}
    assert best.from_head + best.from_neighbours == pytest.approx(1)
    assert best.from_head > 0.1 and best.from_neighbours > 0.1
    texts, labels = make_texts(150)
    assert best.neighbours
    for voter in best.neighbours:
        row = int(voter.id.removeprefix("doc-"))
        assert voter.labels == tuple(sorted(labels[row])) and "Fischerei" in voter.labels
        assert voter.title == texts[row].partition("\n")[0]
        assert 0 < voter.similarity <= 1 and 0 < voter.weight <= 1
    again = texts[labels.index(["Fischerei"])]
    known = fitted.explain(again, top=1)[0].neighbours[0]
    assert known.id == f"doc-{labels.index(['Fischerei'])}"
    assert known.similarity == pytest.approx(1, abs=0.02)


def test_two_labels_have_each_their_own_words(fitted: TextTagger) -> None:
    text = "Suppe mit Salz, dazu Geige und Oper"
    found = {each.name: each for each in fitted.explain(text, top=2, n_words=2)}
    assert {word for word, _ in found["Küche"].words} == {"suppe", "salz"}
    assert {word for word, _ in found["Musik"].words} == {"geige", "oper"}
    for label in found.values():
        assert len(label.words) == 2 and all(effect > 0 for _, effect in label.words)
    assert fitted.explain(text, top=1, n_words=0, n_neighbours=0)[0].words == ()
    nothing = fitted.explain("??", top=1)[0]
    assert nothing.words == ()
    assert nothing.neighbours == () or "wide" in fitted.model.parts_, "a wide layer has a bias"


UNSPACED: dict[str, dict[str, list[str]]] = {
    "Chinese": {
        "医学": ["糖尿病患者需要控制血糖", "医生建议糖尿病人注意饮食", "心脏病的手术治疗"],
        "体育": ["这支足球队昨天赢得了比赛", "篮球比赛将在明天举行", "足球运动员正在训练"],
        "asked": ["我父亲得了糖尿病", "他喜欢看足球比赛"],
    },
    "Thai": {
        "การแพทย์": [
            "ผู้ป่วยโรคเบาหวานต้องควบคุมน้ำตาลในเลือด",
            "การรักษาโรคหัวใจด้วยการผ่าตัด",
            "ยารักษาโรคความดันโลหิตสูง",
        ],
        "กีฬา": [
            "ทีมฟุตบอลชนะการแข่งขันเมื่อวานนี้",
            "การแข่งขันบาสเกตบอลจะมีขึ้นพรุ่งนี้",
            "นักฟุตบอลกำลังฝึกซ้อม",
        ],
        "asked": ["พ่อของฉันเป็นโรคเบาหวาน", "ฉันชอบดูฟุตบอล"],
    },
}


@pytest.mark.parametrize("language", UNSPACED)
def test_languages_without_spaces(language: str, tmp_path: Path) -> None:
    """Each sentence asked about shares one word with what it was trained on."""
    topics = dict(UNSPACED[language])
    asked = topics.pop("asked")
    pairs = [(text, [name]) for name, texts in topics.items() for text in texts]
    tagger = TextTagger(device="cpu").fit([text for text, _ in pairs], [row for _, row in pairs])
    assert tagger.without_known_words(asked) == []
    for opened in (tagger, TextTagger.load(tagger.save(tmp_path / "m"))):
        assert [tags[0].name for tags in opened.tag(asked, top=1)] == list(topics)
    [why] = tagger.explain(asked[0], top=1)
    assert why.words and all(word in asked[0] for word, _ in why.words)


def test_round_trip(fitted: TextTagger, tmp_path: Path) -> None:
    fitted.columns = Columns(("Werk",), "Schlagwörter", "Nummer")
    opened = TextTagger.load(fitted.save(tmp_path / "m"))
    texts, _ = make_texts(20, seed=2)
    assert opened.tag(texts) == fitted.tag(texts)
    assert opened.explain(texts[0]) == fitted.explain(texts[0])
    assert opened.columns == fitted.columns and opened.labels_ == fitted.labels_
    assert opened.get_params() == fitted.get_params() and opened.ids_ == fitted.ids_
    assert repr(opened) == repr(fitted) and repr(opened).startswith("TextTagger(")
    found = sorted(path.suffix for path in (tmp_path / "m").iterdir() if path.name != ".lock")
    assert found == [".json", ".md", ".safetensors"]


def test_a_learnt_label_is_predicted_at_once(tagger: TextTagger) -> None:
    texts = ["Hering über Hering, groß und alt", "Hering mit Geige", "Geige und Hering, neu"]
    tagger.learn(texts[1:], [["Fischmusik"], ["Fischmusik", "Musik"]], ids=["a", "b"])
    assert tagger.labels_[-1] == "Fischmusik" and tagger.ids_[-2:] == ("a", "b")
    tags = {tag.name: tag.probability for tag in tagger.tag("Geige mit Hering", top=3)}
    assert tags["Fischmusik"] > 0.2
    found = {each.name: each for each in tagger.explain("Geige mit Hering", top=3)}
    assert {voter.id for voter in found["Fischmusik"].neighbours} == {"a", "b"}
    assert found["Fischmusik"].neighbours[0].title.startswith(("Hering mit", "Geige und"))
    tagger.learn(["Hering"], [["Fischerei"]])
    assert tagger.ids_[-1] == "152"


def test_words_that_no_text_had_are_learnt(tagger: TextTagger, tmp_path: Path) -> None:
    """Both words of the lesson are new, and so are both of its columns."""
    width, names = tagger.features.n_columns, tagger.features.feature_names
    before = tagger.tag(["Hering im Netz", "Geige und Oper"], top=2)
    assert tagger.without_known_words(["Honig, Bienen"]) == [0] or not tagger.features.only_words
    tagger.learn(["Honig, Bienen"], [["Imkerei"]], ids=["biene"])
    assert tagger.features.feature_names[:width] == names
    for opened in (tagger, TextTagger.load(tagger.save(tmp_path / "m"))):
        assert opened.features.feature_names == tagger.features.feature_names
        assert {"honig", "bienen"} <= set(opened.features.feature_names[width:])
        assert opened.without_known_words(["Honig", "Bienen"]) == []
        for asked, least in (("Honig, Bienen", 0.5), ("bienen", 0.3)):
            [first, *_] = opened.tag(asked)
            assert first.name == "Imkerei" and first.probability > least
            assert first == tagger.tag(asked)[0]
        [why] = opened.explain("Honig, Bienen", top=1)
        assert {word for word, effect in why.words if effect > 0} == {"honig", "bienen"}
        assert why.neighbours[0].id == "biene"
        after = opened.tag(["Hering im Netz", "Geige und Oper"], top=2)
        assert [tags[0].name for tags in after] == [tags[0].name for tags in before]


def test_new_words_survive_all_that_teaches(tagger: TextTagger) -> None:
    for i in range(3):
        tagger.learn(["Honig, Bienen", "Bienen im Stock"], [["Imkerei"]] * 2, ids=[f"a{i}", "b"])
    tagger.learn(["Wachs und Honig"], [["Imkerei", "Küche"]], ids=["c"])
    tagger.remove_label("c", "Küche")
    tagger.forget("a0")
    assert tagger.tag("Wachs", top=1)[0].name == "Imkerei"
    for train in (tagger.catch_up, tagger.refit):
        train()
        assert tagger.tag("Bienen und Wachs", top=1)[0].name == "Imkerei"
        assert tagger.tag("Hering im Netz", top=1)[0].name == "Fischerei"


def test_a_lesson_that_fails_changes_nothing(
    tagger: TextTagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **named: object) -> None:
        raise MemoryError

    before = tagger.tag("Hering im Netz"), tagger.features.n_columns
    with monkeypatch.context() as patch:
        patch.setattr(Joint, "partial_fit", fail)
        with pytest.raises(MemoryError):
            tagger.learn(["Honig, Bienen"], [["Imkerei"]])
    assert (tagger.tag("Hering im Netz"), tagger.features.n_columns) == before


def test_what_was_known_before_a_lesson_stays(tagger: TextTagger) -> None:
    """Two descend from one: neither sees what the other learnt."""
    one, other = copy(tagger), copy(tagger)
    one.learn(["Honig, Bienen"], [["Imkerei"]], ids=["a"])
    other.learn(["Wachs, Kerze", "Docht"], [["Licht"], ["Licht", "Kerzen"]], ids=["b", "c"])
    assert len(tagger.ids_) == 150 and tagger.labels_ == tuple(sorted(SIGNS))
    assert one.ids_[150:] == ("a",) and one.labels_[4:] == ("Imkerei",)
    assert other.ids_[150:] == ("b", "c") and other.labels_[4:] == ("Kerzen", "Licht")
    assert one.tag("Bienen")[0].name == "Imkerei" and other.tag("Kerze")[0].name == "Licht"
    assert other.tag("Bienen").nothing_known and tagger.tag("Kerze")[0].name in SIGNS
    assert other.explain("Docht", top=1)[0].neighbours[0].title == "Docht"


def test_texts_without_a_word(tagger: TextTagger) -> None:
    assert tagger.without_words(["", " ", "Honig", "Hering"]) == [0, 1]


def test_a_forgotten_text_votes_no_more(tagger: TextTagger) -> None:
    tagger.learn(["Geige mit Hering"], [["Fischmusik"]], ids=["a"])
    assert tagger.explain("Geige mit Hering", top=1)[0].name
    tagger.forget("a")
    assert "a" not in tagger.ids_
    found = tagger.explain("Geige mit Hering", top=5, n_neighbours=100)
    assert "a" not in {voter.id for each in found for voter in each.neighbours}
    assert "Fischmusik" not in [each.name for each in found], "its only text is forgotten"
    assert len(tagger.tag("Geige mit Hering", top=5)) <= 4
    with pytest.raises(ParameterError, match="there is no text with the id 'a'"):
        tagger.forget("a")


def test_a_known_id_takes_the_place_of_the_old_text(tagger: TextTagger) -> None:
    n = len(tagger.ids_)
    tagger.learn(["Hering\nund Geige"], [["Musik"]], ids=["doc-3"])
    assert len(tagger.ids_) == n and tagger.ids_[-1] == "doc-3"
    found = {each.name: each for each in tagger.explain("Hering und Geige", top=4)}
    nearest = found["Musik"].neighbours[0]
    assert (nearest.id, nearest.title, nearest.labels) == ("doc-3", "Hering", ("Musik",))


def test_a_label_is_taken_off(tagger: TextTagger) -> None:
    tagger.learn(["Geige mit Hering"], [["Fischmusik", "Musik"]], ids=["a"])
    tagger.remove_label("a", "Fischmusik")
    assert "Fischmusik" not in [tag.name for tag in tagger.tag("Geige mit Hering", top=5)]
    found = {each.name: each for each in tagger.explain("Geige mit Hering", top=4)}
    nearest = found["Musik"].neighbours[0]
    assert (nearest.id, nearest.labels) == ("a", ("Musik",))
    with pytest.raises(ParameterError, match="'a' does not carry the label 'Musk'; did you mean"):
        tagger.remove_label("a", "Musk")


def test_refit_keeps_what_was_learnt(tagger: TextTagger, tmp_path: Path) -> None:
    rows = ["Geige mit Hering", "Hering und Geige", "eine Geige, ein Hering"]
    tagger.learn(rows, [["Fischmusik"]] * 3).refit()
    assert tagger.model.n_samples_ == 153
    assert tagger.tag("Geige Hering", top=1)[0].name == "Fischmusik"
    opened = TextTagger.load(tagger.save(tmp_path / "m"))
    assert opened.tag(rows) == tagger.tag(rows)


def test_titles_are_short() -> None:
    texts = ["  Eine Zeile  \nzwei", "wort " * 100, ""] * 4
    tagger = TextTagger(min_df=1).fit(texts, [["a"], ["b"], []] * 4)
    titles = tagger._known.titles
    assert titles[0] == "Eine Zeile" and titles[2] == ""
    assert len(titles[1]) <= 120 and titles[1].endswith("wort…")


def test_answers_print_well() -> None:
    near = Neighbour("7", "A title", 0.5, 0.25, ("x", "y"))
    why = Explanation("fish", 0.934, 0.6, 0.4, (("sea", 1.5),), (near,))
    assert str(why).splitlines() == [
        "fish 93 %: 60 % from the head, 40 % from the neighbours",
        "  words: sea +1.50",
        "  0.50 7: A title",
        "       x; y",
    ]
    assert json.loads(json.dumps(why.to_dict()))["neighbours"][0]["id"] == "7"
    assert str(Tag("fish", 0.5)) == "fish 50 %"


def test_a_threshold_alone_gives_all_labels_above_it() -> None:
    names = [f"label {i}" for i in range(9)]
    tagger = TextTagger(min_df=1, candidates="all", width=0).fit(["fish", "fish sea"], [names] * 2)
    assert len(tagger.tag("fish")) == 5 and len(tagger.tag("fish", top=7)) == 7
    assert len(tagger.tag("fish", threshold=0.0)) == 9
    assert len(tagger.tag("fish", top=2, threshold=0.0)) == 2


def test_mistakes_are_named(fitted: TextTagger) -> None:
    texts = ["a fish", "a soup"]
    cases: list[tuple[Any, Any, Any, str]] = [
        (texts, [["x"]], None, "there are 2 texts but 1 lists of labels"),
        ("a fish", [["x"]], None, "expected a list of texts, found one text"),
        (texts, [["x"], "y"], None, "a list of names as the labels of text 1, found 'y'. Put a si"),
        (texts, None, None, "requires y to be passed, but the target y is None. Give the labels"),
        (texts, [1.5, 2.0], None, "Unknown label type: .* got 1.5, as of a continuous quantity"),
        (
            texts,
            [["x"], [3.5]],
            None,
            "names or whole numbers .* text 1, found 3.5. Write",
        ),
        (texts, [["x"], [""]], None, "as the labels of text 1, found ''"),
        (texts, [["x"], ["y"]], ["1"], "there are 2 texts but 1 ids"),
        (texts, [["x"], ["y"]], ["1", "1"], "the id '1' stands twice"),
        ([None, "a"], [["x"], ["y"]], None, "text 0 is None"),
        (texts, [[], []], None, "Y must put a label on at least one point"),
    ]
    before = fitted.tag("Hering")
    for given, labels, ids, message in cases:
        with pytest.raises(DataFormatError, match=message):
            TextTagger(min_df=1).fit(given, labels, ids=ids)
        with pytest.raises(DataFormatError):
            fitted.fit(given, labels, ids=ids)
    assert fitted.tag("Hering") == before, "a fit that failed changed the tagger"
    with pytest.raises(DataFormatError, match="top must be a whole number, 1 or more, got 0"):
        fitted.tag("x", top=0)
    with pytest.raises(ParameterError, match="unknown option 'char_ngram'; did you mean 'char_"):
        TextTagger(char_ngram=3)
    with pytest.raises(ParameterError, match="unknown option 'scaling'"):
        TextTagger(scaling="rows")
    with pytest.raises(NotFittedError, match=r"not been fitted. Call fit\(texts, labels\)"):
        TextTagger().tag("x")


def test_folders_are_told_apart(fitted: TextTagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "t")
    assert saved_method(tmp_path / "t") == "tagger"
    with pytest.raises(ModelFormatError, match="holds a tagger of texts. Open it with dxml.TextT"):
        load_model(tmp_path / "t")
    with pytest.raises(ModelFormatError, match="a model of method 'tagger', not 'joint'"):
        Joint.load(tmp_path / "t")
    fitted.model.save(tmp_path / "j")
    with pytest.raises(ModelFormatError, match="method 'joint', which takes features, not texts"):
        TextTagger.load(tmp_path / "j")
    config = read_config(tmp_path / "t")
    del config["sha256"]
    for lost in ("text", "model", "columns"):
        kept = {name: value for name, value in config.items() if name != lost}
        (tmp_path / "t" / "config.json").write_bytes(sealed(kept))
        with pytest.raises(ModelFormatError, match="damaged, something is missing or wrong in it"):
            TextTagger.load(tmp_path / "t")


def test_a_letter_is_the_same_however_it_is_written() -> None:
    """é as one character or as two, in texts and in names."""
    one, two = "café", "cafe\u0301"
    tagger = TextTagger(min_df=1).fit([f"{one} noir", "thé vert"], [[two], ["thé"]])
    assert tagger.labels_ == (one, "thé")
    assert tagger.tag(f"{two} noir") == tagger.tag(f"{one} noir")
    assert not tagger.tag(two).nothing_known
    assert tagger.encode_labels([[two]]).toarray().tolist() == [[True, False]]


def test_whole_numbers_are_labels_too() -> None:
    tagger = TextTagger(min_df=1).fit(["fish sea", "soup salt"], [[7], [np.int64(12), "food"]])
    assert tagger.labels_ == ("12", "7", "food") and tagger.tag("fish sea")[0].name == "7"


def test_scikit_learn_clones_a_tagger() -> None:
    tagger = TextTagger(min_df=3, max_iter=2)
    assert clone(tagger).get_params() == tagger.get_params() and clone(tagger) is not tagger


def bytes_of_lessons(n: int) -> dict[str, float]:
    """Median of the most bytes that were asked for at a time, in a lesson and a ranking after it.

    Each text has 50 words of its own and two labels, of as many as there are texts.
    """
    rng = np.random.default_rng(0)
    words = rng.integers(0, 3000, (n + 40, 50))
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    labels = [[f"l{i % n}", f"l{i * 7 % n}"] for i in range(n + 40)]
    tagger = TextTagger(device="cpu", candidates="nearest", width=0, n_trees=0, C=1.0)
    tagger.fit(texts[:n], labels[:n])
    lessons: dict[str, Callable[[int], Any]] = {
        "learn": lambda i: tagger.learn([texts[n + i]], [labels[n + i]], ids=[f"t{i}"]),
        "learn again": lambda i: tagger.learn([texts[n + i]], [labels[i]], ids=[f"t{i - 20}"]),
        "forget": lambda i: tagger.forget(str(i)),
    }
    found = {}
    for kind, lesson in lessons.items():
        peaks = []
        for i in range(20, 40) if kind == "learn again" else range(20):
            tracemalloc.start()
            lesson(i)
            tagger.tag(texts[i])
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        found[kind] = median(peaks)
    return found


def test_a_lesson_copies_no_texts() -> None:
    """Bytes, not seconds: a row takes 400 for its words, besides its labels, id and title."""
    few, many = bytes_of_lessons(300), bytes_of_lessons(1200)
    for kind, size in many.items():
        for_a_text = (size - few[kind]) / 900  # and for the label that comes with it
        assert for_a_text < 100, kind


def test_single_words_whose_endings_tell_their_labels(tmp_path: Path) -> None:
    """No word comes twice, so whole words tell nothing; by default parts of them count."""
    rng = random.Random(5)
    endings = {"noun": "ung", "adjective": "lich", "verb": "eln", "place": "heim"}
    words: dict[str, str] = {}
    while len(words) < 320:
        label = rng.choice(sorted(endings))
        stem = "".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3))
        words.setdefault(stem + endings[label], label)
    texts, labels = list(words), [[label] for label in words.values()]
    right = {}
    for how in ("auto", None):
        tagger = TextTagger(char_ngrams=how, device="cpu", random_state=0)
        tagger.fit(texts[:240], labels[:240])
        found = tagger.tag(texts[240:], 1)
        pairs = zip(found, labels[240:], strict=True)
        right[how] = sum(tags[0].name == label for tags, [label] in pairs)
    assert tagger.features.char_ngrams_ is None
    assert right["auto"] >= 76 and right[None] <= 40, right
    default = TextTagger(device="cpu", random_state=0).fit(texts[:240], labels[:240])
    assert clone(default).get_params()["char_ngrams"] == "auto"
    default.save(tmp_path / "words")
    card = (tmp_path / "words" / "README.md").read_text("utf-8")
    assert "Parts of words, of up to 4 characters, count too" in card
    assert "(`char_ngrams=4`, which the texts decided)." in card
    loaded = TextTagger.load(tmp_path / "words")
    assert loaded.features.char_ngrams == "auto" and loaded.features.char_ngrams_ == 4
    assert loaded.tag(texts[240:], 1) == default.tag(texts[240:], 1)
