"""benchmarks/growth.py: fitted exponents."""

from __future__ import annotations

from math import log

import pytest

from .scripts import load_script

SCRIPT = load_script("growth")
SIZES = [1000, 2000, 4000, 8000]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(power: float) -> None:
    assert SCRIPT.exponent(SIZES, [3 * n**power for n in SIZES]) == pytest.approx(power)


def test_the_bound_is_the_exponent_of_n_log_n() -> None:
    fitted = SCRIPT.exponent(SIZES, [n * log(n) for n in SIZES])
    assert SCRIPT.bound(SIZES) == pytest.approx(fitted, abs=0.01)
    assert 1.1 < fitted < 1.2
