"""What formats 1 to 4 held, as the present one would have written it: by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dxml._core.arrays import Arrays
from dxml.exceptions import ModelFormatError
from dxml.joint._past_formats import upgraded


def arrays(*weights: float, **more: Any) -> dict[str, Any]:
    return {
        "parts.settings": np.float64([20, 4, 100, 0]),
        "mixture.weights": np.float32(weights),
        "mixture.bias": np.array([-0.5]),
        **more,
    }


def named(found: Arrays, *names: str) -> dict[str, list[float]]:
    return {name: found.floats(f"mixture.weights.{name}", None).tolist() for name in names}


def test_the_present_form_stays() -> None:
    config, given = {"every_label": True, "parts": {}}, Arrays({"a": np.zeros(1)})
    found = upgraded(config, given, 10, 1.0)
    assert found[0] is config and found[1] is given


def test_format_4() -> None:
    plan = {
        "every_label": False,
        "kernel": False,
        "linear": True,
        "width": 8,
        "learners": 2,
        "epochs": 3,
    }
    config = {"plan": plan, "C": 0.3, "history": [0.9, 0.7], "frequency": "share"}
    found, held = upgraded(config, Arrays(arrays(1, 2, 3, 4, 5)), 99, 1.0)
    assert found == {
        "every_label": False,
        "n_candidates": 100,
        "parts": {
            "frequency": {},
            "vote": {"n_neighbors": 20, "power": 4.0},
            "wide": {"width": 8, "learners": 2, "epochs": 3, "history": [0.9, 0.7]},
            "linear": {"C": pytest.approx(0.3)},
        },
    }
    expected = {"frequency": [1], "linear": [2], "vote": [3, 4], "wide": [5]}
    assert named(held, *expected) == expected
    assert held.numbers("mixture.bias", 1) == [-0.5]


def test_format_3_weighed_numbers_of_points() -> None:
    """w log(1 + c) is w log((1 + c) / (1 + n)) + w log(1 + n): the bias gets the last."""
    plan = {"every_label": True, "kernel": True, "linear": False, "width": 0}
    kernel = np.float64([1, 2, 0.5, 0.25])
    config = {"plan": plan, "C": 3.0}
    given = Arrays(arrays(0.4, 1, 2, 3, 4, **{"kernel.settings": kernel}))
    found, held = upgraded(config, given, 99, 1.0)
    assert found["parts"]["kernel"] == {"kind": "gauss", "gamma": 2, "ridge": 0.5, "pull": 0.25}
    assert set(found["parts"]) == {"frequency", "vote", "kernel"}
    assert named(held, "kernel", "vote") == {"kernel": [1, 2], "vote": [3, 4]}
    assert held.numbers("mixture.bias", 1) == pytest.approx(
        [-0.5 + float(np.float32(0.4)) * np.log(100)]
    )


@pytest.mark.parametrize("linear", [True, False])
def test_format_1_says_less(linear: bool) -> None:
    """No pull of a kernel, no learners, no C, and every label exactly where no linear head is."""
    plan = {"kernel": True, "linear": linear, "width": 16}
    kernel = np.float64([0, 2, 0.5])
    weights = (0, 1, 2, 3, 4, 5, 6)[: 7 if linear else 6]
    given = arrays(*weights, **{"kernel.settings": kernel})
    found, held = upgraded({"plan": plan}, Arrays(given), 99, 0.7)
    assert found["every_label"] is not linear
    assert found["parts"]["kernel"] == {"kind": "laplace", "gamma": 2, "ridge": 0.5, "pull": 0}
    assert found["parts"]["wide"] == {"width": 16, "learners": 1, "epochs": 25, "history": []}
    assert found["parts"].get("linear") == ({"C": 0.7} if linear else None)
    assert named(held, "wide") == {"wide": [weights[-1]]}


@pytest.mark.parametrize("weights", [(1, 2, 3), (1, 2, 3, 4, 5)])
def test_weights_that_no_part_has(weights: tuple[float, ...]) -> None:
    plan = {"every_label": False, "kernel": False, "linear": True, "width": 0}
    with pytest.raises(
        ModelFormatError, match=f"'mixture.weights' must be 4 long, is {len(weights)} long"
    ):
        upgraded({"plan": plan}, Arrays(arrays(*weights)), 99, 1.0)
