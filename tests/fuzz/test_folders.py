"""The fuzzer itself: damage is done, sound checksums are sound, and every method is among them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from dxml._core.storage import read_config
from dxml.exceptions import ModelFormatError
from dxml.methods import METHODS, TAGGER, method_class

from .folders import DAMAGE, answers, change_number, planted, save_models, seal


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "knn"
    data = planted()
    method_class("knn")().fit(data.X, data.Y).save(folder)
    return folder


def content(folder: Path) -> dict[str, object]:
    return {
        path.name: path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.iterdir()
    }


@pytest.mark.parametrize("way", [way for way, _ in DAMAGE], ids=lambda way: way.__name__)
def test_damage_is_done_and_found(way: object, sound: Path, tmp_path: Path) -> None:
    data, before, damaged = planted(), answers(sound), 0
    another = method_class("knn")().fit(data.X[:40], data.Y[:40])
    another.save(tmp_path / "sound" / "another")
    for number in range(20):
        folder = tmp_path / str(number)
        shutil.copytree(sound, folder)
        way(folder, random.Random(number))  # type: ignore[operator]
        if content(folder) == content(sound):
            continue
        damaged += 1
        try:
            assert answers(folder) == before
        except ModelFormatError:
            pass
    assert damaged >= 10


def test_sealed_again_only_the_arrays_themselves_tell(sound: Path, tmp_path: Path) -> None:
    before = answers(sound)
    shutil.copytree(sound, tmp_path / "whole")
    seal(tmp_path / "whole")
    assert answers(tmp_path / "whole") == before
    outcomes = set()
    for number in range(30):
        folder = tmp_path / str(number)
        shutil.copytree(sound, folder)
        change_number(folder, random.Random(number))
        seal(folder)
        read_config(folder)
        try:
            outcomes.add(answers(folder) == before)
        except ModelFormatError as error:
            assert "CRC-32" not in str(error) and "SHA-256" not in str(error)
            outcomes.add("refused")
    assert False in outcomes and "refused" in outcomes


@pytest.mark.slow
def test_every_method_is_damaged(tmp_path: Path) -> None:
    saved = {read_config(folder)["method"] for folder in save_models(tmp_path)}
    assert saved == {*METHODS, TAGGER}
