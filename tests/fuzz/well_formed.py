"""Damage that keeps the form: files that could have been written, and say something else.

Lengths, types and checksums may all be right here. What a part of a model says then does not fit
what another says, or is no number, or is there twice.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

FLOATS, INTS = (np.float64, np.float32, np.float16), (np.int64, np.int32, np.int16, np.uint16)
ODD = ("\ud800", "\0", "a" * 100_000, "../x", "\u202e", " ")
NUMBERS = (float("nan"), float("inf"), -0.0, 1e-320, 10**400, -(10**400), 2**31, 2**63, 2**64)


def arrays_file(folder: Path) -> Path:
    return next(folder.glob("arrays-*.safetensors"))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    config.pop("sha256", None)
    return config


def _write_config(folder: Path, config: dict[str, Any]) -> None:
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))


def change_array(folder: Path, rng: random.Random) -> None:
    """One array is another of the same name: turned round, longer, of another type, all alike."""
    path = arrays_file(folder)
    arrays = load_file(path)
    name = rng.choice(sorted(arrays))
    arrays[name] = np.ascontiguousarray(rng.choice(WAYS)(arrays[name], rng))
    save_file(arrays, path)


def _shuffled(array: Any, rng: random.Random) -> Any:
    return np.random.default_rng(rng.randrange(2**32)).permutation(array) if array.ndim else array


def _two_swapped(array: Any, rng: random.Random) -> Any:
    flat = array.reshape(-1).copy()
    if len(flat) > 1:
        i, j = rng.sample(range(len(flat)), 2)
        flat[[i, j]] = flat[[j, i]]
    return flat.reshape(array.shape)


def _longer(array: Any, rng: random.Random) -> Any:
    return np.concatenate([array, array[: rng.choice([1, 2, len(array)])]]) if array.ndim else array


def _shorter(array: Any, rng: random.Random) -> Any:
    return array[: rng.randrange(len(array))] if array.ndim and len(array) else array


def _other_type(array: Any, rng: random.Random) -> Any:
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(FLOATS if array.dtype.kind == "f" else INTS))


def _all_alike(array: Any, rng: random.Random) -> Any:
    number = rng.choice([0, 1, *array.reshape(-1)[:1]])
    return np.full_like(array, number)


def _other_shape(array: Any, rng: random.Random) -> Any:
    return array.reshape(rng.choice([(-1,), (1, -1), (-1, 1)])) if array.size else array


def _doubled(array: Any, rng: random.Random) -> Any:
    with np.errstate(all="ignore"):
        return (array * np.array(rng.choice([2, 3, -1])).astype(array.dtype)).astype(array.dtype)


def _repeated(array: Any, rng: random.Random) -> Any:
    """A value stands where its neighbour stood: an index twice, a row that is empty."""
    array = array.copy()
    if array.ndim and len(array) > 1:
        at = rng.randrange(1, len(array))
        array[at] = array[at - 1]
    return array


WAYS: tuple[Callable[[Any, random.Random], Any], ...] = (
    _shuffled,
    lambda array, rng: array[::-1] if array.ndim else array,
    _two_swapped,
    _longer,
    _shorter,
    _other_type,
    _all_alike,
    _other_shape,
    _doubled,
    _repeated,
)


def change_setting(folder: Path, rng: random.Random) -> None:
    """A value of config.json is another of its kind: no number, another's text, a list turned."""
    config = _config(folder)
    found = list(places(config))
    container, key = rng.choice(found)
    value = container[key]
    if isinstance(value, str):
        others = [a[b] for a, b in found if isinstance(a[b], str)]
        container[key] = rng.choice([*others, *ODD, value.upper(), value + "\n"])
    elif isinstance(value, list) and value:
        turned = [value[::-1], value * 2, value[:-1], [value[0]] * len(value), [*value, value[0]]]
        container[key] = rng.choice(turned)
    elif isinstance(value, dict) and value:
        name = rng.choice(sorted(value))
        value[rng.choice([*ODD, "", name.upper()])] = value.pop(name)
    else:
        others = [a[b] for a, b in found if isinstance(a[b], int | float)]
        container[key] = rng.choice([*others, *NUMBERS])
    _write_config(folder, config)


def change_name(folder: Path, rng: random.Random) -> None:
    """A key of config.json stands twice, with another value."""
    text = json.dumps(_config(folder), indent=2, ensure_ascii=False)
    lines = text.split("\n")
    at = rng.choice([i for i, line in enumerate(lines) if line.endswith(",") and '": ' in line])
    name = lines[at].partition('": ')[0]
    lines.insert(at + 1, f'{name}": {rng.choice(["null", "1", "NaN", "[]", "{}", "true"])},')
    (folder / "config.json").write_text("\n".join(lines) + "\n", "utf-8")


def take_of_another(folder: Path, rng: random.Random) -> None:
    """The arrays, or the settings, are those of another model."""
    sound = folder.parent / "sound"
    other = rng.choice(sorted(sound.iterdir()) if sound.is_dir() else [folder])
    if rng.random() < 0.5:
        shutil.copy(arrays_file(other), arrays_file(folder))
        return
    config = _config(other)
    config["arrays"] = _config(folder)["arrays"]
    _write_config(folder, config)


def mix_with_another(folder: Path, rng: random.Random) -> None:
    """Some arrays are those of another model that has some of the same name."""
    sound = folder.parent / "sound"
    other = rng.choice(sorted(sound.iterdir()) if sound.is_dir() else [folder])
    arrays, theirs = load_file(arrays_file(folder)), load_file(arrays_file(other))
    both = sorted(arrays.keys() & theirs.keys())
    for name in rng.sample(both, rng.randrange(1, len(both) + 1)) if both else []:
        arrays[name] = theirs[name]
    save_file(arrays, arrays_file(folder))


WELL_FORMED: tuple[tuple[Callable[[Path, random.Random], None], int], ...] = (
    (change_array, 8),
    (change_setting, 6),
    (change_name, 1),
    (take_of_another, 1),
    (mix_with_another, 2),
)
