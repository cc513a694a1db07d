"""The model card of a tagger."""

from __future__ import annotations

from pathlib import Path

from dxml import TextTagger

from .._core.test_card import header_of

TEXTS = ["fresh herring", "herring and cod", "cod in nets", "hot soup", "soup and salt", "salt pot"]
LABELS = [["fish"]] * 3 + [["food"]] * 2 + [["food", "rare"]]


def test_it_says_what_the_tagger_is(tmp_path: Path) -> None:
    table = {"name": ["fish"], "alternatives": ["pisces"]}
    tagger = TextTagger(device="cpu", min_df=1).fit(TEXTS * 4, LABELS * 4, label_info=table)
    folder = tagger.save(tmp_path / "my-tags")
    text = (folder / "README.md").read_text("utf-8")
    assert header_of(text)["pipeline_tag"] == "text-classification"
    assert "| texts | 24 |" in text and "| fish | 12 |\n| food | 12 |\n| rare | 4 |" in text
    assert "3 labels, 1.2 a text; 1 are carried by fewer than five texts" in text
    assert "From a vocabulary of 1 labels with 1 other names." in text
    assert all(f"| {part} | " in text for part in tagger.model.parts_)
    familiarity = tagger.model.mixture_.familiarity
    assert familiarity is not None and "for twice as many known words, about." in text
    held_out = tagger.model.held_out_
    assert held_out is not None and f"| P@1 | {held_out.precision[1]:.1f} |" in text
    [result] = header_of(text)["model-index"][0]["results"]
    assert result["metrics"][0]["name"] == "P@1"
    again = (tagger.save(tmp_path / "my-tags") / "README.md").read_text("utf-8")
    assert again == text and TextTagger.load(folder).labels_ == tagger.labels_


def test_it_says_which_words_count(tmp_path: Path) -> None:
    def card(texts: list[str], **settings: int) -> str:
        tagger = TextTagger(device="cpu", width=0, **settings)
        tagger.fit([*TEXTS, *texts], [*LABELS, *[["rare"]] * len(texts)])
        return (tagger.save(tmp_path / "m") / "README.md").read_text("utf-8")

    assert "from 2 training texts on (`min_df=2`, which the texts decided)." in card([])
    rare = ["haddock"]  # alone with its one word
    assert "from 1 training text on (`min_df=1`, which the texts decided)." in card(rare)
    assert "from 2 training texts on (`min_df=2`)." in card(rare, min_df=2)
