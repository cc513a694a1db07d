"""Parameters as scikit-learn's tools ask for them."""

from __future__ import annotations

from typing import Annotated

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from dxml._core.estimator import Estimator, unfitted
from dxml._core.params import Range
from dxml.exceptions import ParameterError


class Ours(Estimator):
    def __init__(
        self, *, width: Annotated[int, Range(1), "of it"] = 3, name: Annotated[str, "its"] = "a"
    ) -> None:
        self.width = width
        self.name = name


class Theirs(BaseEstimator):
    def __init__(self, *, width: int = 3, name: str = "a") -> None:
        self.width = width
        self.name = name


@pytest.mark.parametrize("given", [{}, {"width": 5}, {"width": 5, "name": "b"}])
def test_it_is_to_its_tools_what_their_own_base_is(given: dict[str, object]) -> None:
    ours, theirs = Ours(**given), Theirs(**given)  # type: ignore[arg-type]
    assert list(ours.get_params().items()) == list(theirs.get_params().items())
    assert ours.get_params(deep=False) == theirs.get_params(deep=False)
    assert repr(ours).removeprefix("Ours") == repr(theirs).removeprefix("Theirs")
    assert clone(ours).get_params() == unfitted(ours).get_params() == clone(theirs).get_params()
    assert get_tags(ours) == get_tags(theirs)
    assert ours.set_params(width=7) is ours and clone(ours).width == 7


def test_an_unknown_parameter_is_named_with_the_nearest() -> None:
    ours = Ours()
    with pytest.raises(ParameterError, match="unknown parameter 'widt'; did you mean 'width'?"):
        ours.set_params(name="b", widt=3)
    assert ours.name == "a"  # nothing changes by halves


def test_a_copy_is_not_fitted() -> None:
    ours = Ours(width=4)
    ours.learnt_ = 1  # type: ignore[attr-defined]
    assert not hasattr(unfitted(ours), "learnt_") and unfitted(ours).width == 4
