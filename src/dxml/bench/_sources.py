"""The data of a run: a registered data set, or generated data named by its recipe.

``bibtex`` is registered; ``planted:n_samples=600,n_features=200,n_labels=30`` and
``twin:eurlex-4k,share=0.1`` are generated. Of generated data the split number seeds the cut.
A twin has as many training and test points as its original, unless ``n_samples`` says otherwise.
``mine.toml`` is a file that says where the data are (`dxml.bench._own_data`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from dxml.bench._own_data import is_own_data, read_own_data
from dxml.data import (
    Dataset,
    load_dataset,
    load_texts,
    lookup,
    make_planted,
    make_twin,
    train_test,
)
from dxml.data._synthetic import train_test_rows
from dxml.exceptions import ParameterError, did_you_mean

__all__ = ["Part", "check_source", "load_parts", "n_splits"]

Part = Literal["test", "validation"]

TEST_SHARE = 0.2
"""Of generated data that is cut off for testing, where the recipe has no ``n_test``."""
VALIDATION_SHARE = 0.2
"""Of the training points that is held out to choose settings."""
_MAKERS: dict[str, Callable[..., Dataset]] = {"planted": make_planted, "twin": make_twin}


def _number(recipe: str, key: str, text: str) -> float:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise ParameterError(f"{recipe!r}: {key} must be a number, got {text!r}")


def _parse(recipe: str) -> tuple[str, dict[str, Any]]:
    """``twin:bibtex,n_samples=90`` → ``("twin", {"name": "bibtex", "n_samples": 90})``."""
    kind, _, rest = recipe.partition(":")
    if kind not in _MAKERS:
        raise ParameterError(
            f"unknown kind of generated data {kind!r}{did_you_mean(kind, _MAKERS)}"
        )
    words = [word for word in rest.split(",") if word]
    settings: dict[str, Any] = {}
    if kind == "twin":
        if not words or "=" in words[0]:
            raise ParameterError(f"{recipe!r} must name a data set first. Example: twin:eurlex-4k")
        settings["name"] = lookup(words.pop(0)).name
    known = {*inspect.signature(_MAKERS[kind]).parameters, "n_test"} - {"name"}
    for word in words:
        key, _, text = word.partition("=")
        if key not in known:
            raise ParameterError(f"{recipe!r}: unknown setting {key!r}{did_you_mean(key, known)}")
        settings[key] = _number(recipe, key, text)
    if kind == "planted":
        for key in ("n_samples", "n_features", "n_labels"):
            if key not in settings:
                raise ParameterError(f"{recipe!r}: {key} is missing. Add {key}=NUMBER.")
    return kind, settings


def check_source(name: str) -> None:
    """Raise the error that `load_parts` would raise for a name that means nothing."""
    if is_own_data(name):
        read_own_data(name)
    elif ":" in name:
        _parse(name)
    else:
        lookup(name)


def n_splits(name: str) -> int:
    """Splits that ``splits = "all"`` stands for."""
    return 1 if ":" in name or is_own_data(name) else lookup(name).n_splits


def _generate(recipe: str, split: int) -> tuple[Dataset, Dataset]:
    kind, settings = _parse(recipe)
    n_test = settings.pop("n_test", None)
    if kind == "twin" and "n_samples" not in settings:
        original, share = lookup(settings["name"]), settings.get("share", 1.0)
        n_test = round(original.n_test * share) if n_test is None else n_test
        settings["n_samples"] = round(original.n_train * share) + int(n_test)
    points = _MAKERS[kind](**settings)
    n_test = max(1, round(points.n_samples * TEST_SHARE)) if n_test is None else int(n_test)
    return train_test(points, n_test, random_state=split)


def load_parts(name: str, split: int, part: Part = "test") -> tuple[Dataset, Dataset]:
    """What a run trains on and what it is scored on.

    With part "validation" both come from the training part: the test part is never read.
    """
    if is_own_data(name):
        train, test = read_own_data(name).load()
    elif ":" in name:
        train, test = _generate(name, split)
    else:
        train = load_dataset(name, "train", split)
        test = train if part == "validation" else load_dataset(name, "test", split)
    if part == "test":
        return train, test
    return train_test(train, _n_held(train.n_samples), random_state=split)


def load_text_parts(name: str, split: int, part: Part = "test") -> tuple[list[str], list[str]]:
    """The texts of the points that `load_parts` gives, row by row."""
    if is_own_data(name):
        raise ParameterError(f"{name!r} gives features alone. Name a registered data set of texts.")
    if ":" in name:
        raise ParameterError(f"{name!r} is generated and has no texts. Name a data set of texts.")
    learnt = load_texts(name, "train").texts
    if part == "test":
        return list(learnt), list(load_texts(name, "test").texts)
    kept, held = train_test_rows(len(learnt), _n_held(len(learnt)), random_state=split)
    return [learnt[row] for row in kept], [learnt[row] for row in held]


def _n_held(n_samples: int) -> int:
    return max(1, round(n_samples * VALIDATION_SHARE))
