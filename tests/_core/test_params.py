"""Parameters declared in a signature: checked, parsed, described."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from sklearn.base import clone

from dxml import Joint, TextTagger
from dxml._core.params import Range, check_params, parameters_of, parse_settings
from dxml.baselines.leml import LEML
from dxml.exceptions import ParameterError


class Example:
    def __init__(
        self,
        *,
        dim: Annotated[int | None, Range(1), "a size"] = None,
        rate: Annotated[float, Range(0, 1, open_low=True), "a rate"] = 0.5,
        loss: Annotated[Literal["a", "b"], "a loss"] = "a",
        flag: Annotated[bool, "a switch"] = False,
        file: Annotated[str | None, "a path"] = None,
    ) -> None:
        self.dim, self.rate, self.loss, self.flag, self.file = dim, rate, loss, flag, file


def test_the_signature_is_the_table() -> None:
    known = parameters_of(Example)
    assert list(known) == ["dim", "rate", "loss", "flag", "file"]
    assert known["dim"].allowed == "a whole number, 1 or more or None"
    assert known["rate"].allowed == "a number, above 0 to 1"
    assert known["loss"].allowed == "one of 'a', 'b'"
    assert known["flag"].help == "a switch" and known["rate"].default == 0.5


def test_texts_become_values() -> None:
    texts = {"dim": "7", "rate": "1e-2", "loss": "b", "flag": "true", "file": "x.tsv"}
    assert parse_settings(Example, texts) == {
        "dim": 7,
        "rate": 0.01,
        "loss": "b",
        "flag": True,
        "file": "x.tsv",
    }
    assert parse_settings(Example, {"dim": "none", "flag": "0", "rate": "1"}) == {
        "dim": None,
        "flag": False,
        "rate": 1,
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dmi", "7", "unknown option 'dmi'; did you mean 'dim'?"),
        ("dim", "0", "dim must be a whole number, 1 or more or None, got '0'"),
        ("dim", "1.5", "dim must be a whole number"),
        ("rate", "0", "rate must be a number, above 0 to 1, got '0'"),
        ("rate", "nan", "rate must be a number"),
        ("loss", "c", "loss must be one of 'a', 'b', got 'c'"),
        ("flag", "maybe", "flag must be true or false, got 'maybe'"),
    ],
)
def test_bad_texts(name: str, text: str, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_settings(Example, {name: text})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "settings", [{"dim": 1.5}, {"dim": True}, {"rate": 2.0}, {"loss": 3}, {"flag": "yes"}]
)
def test_bad_values(settings: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(settings))} of Example must be"):
        check_params(Example(**settings))  # type: ignore[arg-type]
    check_params(Example())


def test_former_names_are_taken_for_the_present_ones() -> None:
    with pytest.warns(FutureWarning, match="passes of Joint is called max_iter now"):
        model = Joint(passes=3)
    assert model.max_iter == 3 and "passes" not in model.get_params()
    assert parse_settings(LEML, {"iterations": "7", "tol": "0"}) == {"max_iter": 7, "tol": 0}
    assert TextTagger(passes=2).model.max_iter == 2
    assert clone(Joint(max_iter=4)).max_iter == 4


def test_a_subclass_has_the_parameters_of_its_parent() -> None:
    class Mine(Joint):
        pass

    assert parameters_of(Mine) == parameters_of(Joint)
    assert Mine(max_iter=2).get_params()["max_iter"] == 2
