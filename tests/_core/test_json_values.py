"""Values of a JSON text, counted without parsing it."""

from __future__ import annotations

import json
import random
from typing import Any

from dxml._core.json_values import count_values


def grow(rng: random.Random, depth: int) -> Any:
    """Any JSON value, with strings that look like JSON themselves."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([1, None, -0.5, '",[{', "a\\", '\\"', '\\\\",', "ü[,", ""])
    inside = [grow(rng, depth - 1) for _ in range(rng.randrange(1, 5))]
    return inside if rng.random() < 0.5 else {f'k",[{i}': v for i, v in enumerate(inside)}


def size(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value
    return 1 + sum(map(size, inside)) if isinstance(value, dict | list) else 1


def test_values_are_counted_as_a_parser_counts_them() -> None:
    rng = random.Random(0)
    for _ in range(300):
        value = grow(rng, 5)
        for ascii in (True, False):
            text = json.dumps(value, ensure_ascii=ascii).encode()
            assert count_values(text) == size(value), text
            assert count_values(text, 10**6) >= size(value)  # the quick bound
