"""Languages by letters and frequent words."""

from __future__ import annotations

import pytest

from dxml.text._languages import UNKNOWN, count_languages, language_of, main_language


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("cs", "Ryby jsou v moři a také v řece, který je pro ně domovem"),
        ("da", "Fisken blev ikke taget af havet, og der er også en god fisk"),
        ("de", "Der Fisch schwimmt im Meer und die Suppe ist nicht mit Salz"),
        ("en", "The fish swims in the sea and the soup is with salt"),
        ("es", "El pez nada en el mar y la sopa es con sal para los niños"),
        ("fi", "Kala ui meressä ja keitto on suolaista, mutta se ei ole kuuma"),
        ("fr", "Le poisson est dans la mer et la soupe est avec du sel pour les enfants"),
        ("hu", "A hal a tengerben van és a leves nem sós, hogy egy gyerek is szereti"),
        ("it", "Il pesce è nel mare e la zuppa è con il sale per gli amici della casa"),
        ("nl", "De vis zwemt niet in het meer en de soep is met een beetje zout"),
        ("no", "Fisken ble ikke tatt av havet, og det er en god fisk på land"),
        ("pl", "Ryba pływa w morzu i jest to zupa, która się nie psuje przez sól"),
        ("pt", "O peixe não está no mar e a sopa é com sal para os meninos da casa"),
        ("ro", "Peștele este în mare și nu are sare pentru că nu mai este din oraș"),
        ("sv", "Fisken är inte i havet och det är en soppa som har salt för att den är god"),
        ("tr", "Balık denizde ve bir çorba için çok tuz gibi daha fazla olarak"),
        ("ar", "السمك في البحر والحساء مع الملح"),
        ("el", "Το ψάρι είναι στη θάλασσα"),
        ("he", "הדג נמצא בים והמרק עם מלח"),
        ("hi", "मछली समुद्र में है"),
        ("ja", "魚は海にいます"),
        ("ko", "물고기는 바다에 있다"),
        ("ru", "Рыба плавает в море"),
        ("th", "ปลาอยู่ในทะเล"),
        ("uk", "Риба є в морі, і юшка її солона"),
        ("zh", "鱼在海里游泳"),
        (UNKNOWN, "fish soup"),
        (UNKNOWN, "1984 ..."),
        (UNKNOWN, ""),
    ],
)
def test_sentences(language: str, text: str) -> None:
    assert language_of(text) == language


def test_a_word_of_another_script_is_not_the_language() -> None:
    assert language_of("The word море is Russian, and it is the sea of this text") == "en"


def test_shares() -> None:
    texts = ["the fish is in the sea"] * 3 + ["der Fisch ist im Meer", "", "12"]
    assert count_languages(texts) == {"en": 0.75, "de": 0.25}
    assert count_languages(["", "5"]) == {}
    assert count_languages(["the sea is of the fish"] * 12_000) == {"en": 1.0}


def test_the_main_language_is_the_one_told_most_often() -> None:
    texts = ["fish"] * 9 + ["der Fisch ist im Meer"] * 2 + ["the fish is in the sea"]
    assert main_language(texts) == "de", "texts of which none can be told do not count"
    assert main_language(["fish", "soup", ""]) is None
    assert main_language([]) is None
