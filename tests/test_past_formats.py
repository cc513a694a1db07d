"""Models written by every past format go on loading, and rank as they did.

A folder under tests/models is made once, by the last version that wrote its format:

    model = DXML(dim=4, hidden=8, epochs=5, n_neighbors=3, n_partitions=2, device="cpu")
    model.fit(data.X, names).save("tests/models/format-1-dxml")      # data and names as below
    ranking.json: model.predict_topk(data.X[:5], 3), the indices

joint is ``Joint(device="cpu")``, joint-nearest has ``candidates="nearest", width=8, epochs=2`` too.
joint-weighed learnt from 300 points with ``noise=0.3``, enough to weigh its parts by; its folder
has the scores too, as probabilities.json.
Format 2 has the labels' relations in a kernel, and learners and epochs in a plan; format 3 a C that
was chosen, and `every_label` in a plan; in format 4 a mixture weighs labels' shares of the points
instead of their numbers; format 6 has the points of a model with shortlists by feature, and
joint-nearest-int8 has ``precision="int8"`` too.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dxml._core.storage import FORMAT
from dxml.data import Dataset, make_planted
from dxml.methods import load_model

MODELS = Path(__file__).parent / "models"


def planted() -> tuple[Dataset, list[list[str]]]:
    data = make_planted(40, 12, 6, labels_per_point=2, features_per_point=4, random_state=0)
    return data, [[f"label {label}" for label in row.indices] for row in data.Y]


def test_every_format_is_here() -> None:
    written = {int(folder.name.split("-")[1]) for folder in MODELS.iterdir()}
    assert written == set(range(1, FORMAT + 1))


def test_the_page_says_which_there_are() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text("utf-8")
    kinds = {"joint": set[int](), "dxml": set[int]()}
    for folder in MODELS.iterdir():
        _, number, kind = folder.name.split("-")[:3]
        kinds[kind].add(int(number))
    assert kinds == {"joint": set(range(1, FORMAT + 1)), "dxml": {1}}
    assert f"`joint` in the formats 1 to {FORMAT}, `DXML` in format 1;" in page


@pytest.mark.parametrize("folder", sorted(MODELS.iterdir()), ids=lambda folder: folder.name)
def test_past_formats_load(folder: Path) -> None:
    model = load_model(folder)
    expected = json.loads((folder / "ranking.json").read_text())
    ranking = model.predict_topk(planted()[0].X[:5], 3)
    assert ranking.indices.tolist() == expected
    if folder.name.endswith("weighed"):
        probabilities = json.loads((folder / "probabilities.json").read_text())
        np.testing.assert_allclose(ranking.scores, probabilities, atol=1e-4)
    assert model.label_names_ is not None and model.label_names_[0] == "label 0"
    assert json.loads((folder / "config.json").read_text())["format"] == int(folder.name[7])
