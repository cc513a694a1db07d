"""The language of a text, by its letters and its most frequent words.

Good enough to notice that a table mixes languages; a line or two are too little to tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["UNKNOWN", "count_languages", "language_of", "main_language"]

UNKNOWN = "?"
SAMPLE = 5_000  # texts that are looked at, evenly spaced
LOOKED_AT = 2_000  # characters of a text
LEAST_WORDS = 2  # frequent words that must be found
LETTERS = 0.3  # share of a text's letters by which a script is taken for its own

_WORDS = {
    "cs": "a je se na že s z do v jako který jsou ale také byl pro",
    "da": "og er det i at en den til af for ikke som har med på blev der også",
    "de": "der die das und ist nicht ein eine mit für auf von zu den sich des im wird",
    "en": "the of and to in is that for with as are by this from was be on it",
    "es": "el la los las de que y en un una por con para es del se como más",
    "fi": "ja on ei että se oli hän mutta joka ovat myös kuin tai sen",
    "fr": "le la les des et est une un dans que pour qui par sur au du pas avec",
    "hu": "a az és hogy nem egy is van ez volt meg csak mint már",
    "it": "il lo la gli di che e un una per con del della sono nel non più dei",
    "nl": "de het een en van is dat in niet op te zijn voor met die aan ook",
    "no": "og er det i en på som til av for med at ikke har den ble også",
    "pl": "i w na z się nie jest do że to jak przez dla oraz który są",
    "pt": "o a os as de que e em um uma para com não por do da dos mais",
    "ro": "și de la în un o este care nu cu pe din pentru mai sunt fost",
    "sv": "och att det är en på som av för med inte den till har ett om",
    "tr": "ve bir bu da de için ile olarak çok gibi daha olan kadar en",
}
_FREQUENT = {name: frozenset(words.split()) for name, words in _WORDS.items()}
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af\u1100-\u11ff]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "el": re.compile(r"[\u0370-\u03ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "he": re.compile(r"[\u0590-\u05ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
}
_UKRAINIAN = re.compile("[іїєґ]")


def language_of(text: str) -> str:
    """The code of a text's language (ISO 639-1), or ``?``.

    >>> language_of("The fish is in the sea"), language_of("Der Fisch ist nicht im Meer")
    ('en', 'de')
    >>> language_of("рыба в море"), language_of("海の魚です"), language_of("1984")
    ('ru', 'ja', '?')
    """
    text = text[:LOOKED_AT].casefold()
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    for name, script in _SCRIPTS.items():
        if letters and len(script.findall(text)) >= LETTERS * letters:
            return "uk" if name == "ru" and _UKRAINIAN.search(text) else name
    counts = Counter(words)
    found = {
        name: sum(counts[word] for word in frequent if word in counts)
        for name, frequent in _FREQUENT.items()
    }
    best, second = sorted(found, key=lambda name: (-found[name], name))[:2]
    sure = found[best] >= LEAST_WORDS and found[best] > found[second]
    return best if sure else UNKNOWN


def count_languages(texts: Sequence[str]) -> dict[str, float]:
    """The share of the texts in each language, largest first; texts without a letter are left out.

    Of many texts a sample is looked at.
    """
    step = max(1, len(texts) // SAMPLE)
    some = [text for text in texts[::step] if _WORD.search(text[:LOOKED_AT])]
    counts = Counter(map(language_of, some))
    return {name: n / len(some) for name, n in counts.most_common()}


def main_language(texts: Sequence[str]) -> str | None:
    """The language of most texts whose language can be told; None where none can.

    >>> main_language(["Fish soup", "The fish is in the sea"])
    'en'
    """
    return next((name for name in count_languages(texts) if name != UNKNOWN), None)
