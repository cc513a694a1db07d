"""A model card beside a saved model: ``README.md`` with a YAML header, as Hugging Face shows it.

It is written with every model, from what the model knows itself. A README.md that somebody else
has written, which lacks the first line of ours, is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dxml._core.files import replace_text

__all__ = ["CARD", "MARK", "card", "plain_sections", "scores_of", "table", "write_card"]

CARD = "README.md"
MARK = "<!-- Written by dxml with the model; remove this line to keep your own text. -->"
UNKNOWN = "Nothing is known of its accuracy on held-out points: `dxml evaluate` measures it."

Section = tuple[str, str]
"""A heading and its text."""


def card(title: str, header: Mapping[str, Any], sections: Iterable[Section]) -> str:
    """The text of a card; values of the header are written as JSON, which YAML is too."""
    lines = ["---", *(f"{key}: {json.dumps(value)}" for key, value in header.items()), "---"]
    lines += [MARK, "", f"# {title}"]
    for heading, text in sections:
        lines += ["", f"## {heading}", "", text]
    return "\n".join(lines) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown; cells have no line ends or bars."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for row in rows:
        cells = (" ".join(str(cell).replace("|", "\\|").split()) for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def scores_of(config: Mapping[str, Any]) -> dict[str, float]:
    """P@k in per cent on held-out points, where a model's config has them."""
    return {f"P@{k}": float(score) for k, score in _held_out(config).get("precision", {}).items()}


def _held_out(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a joint model keeps of the points that were held out."""
    return config.get("state", {}).get("held_out") or {}


def plain_sections(config: Mapping[str, Any], points: str = "points") -> list[Section]:
    """What a model's config says of its data and its scores."""
    data = {
        points: config["n_samples"],
        "features": config["n_features"],
        "labels": config["n_labels"],
    }
    counts = table(["", "number"], [(what, f"{n:,}") for what, n in data.items()])
    scores, said = scores_of(config), UNKNOWN
    if scores:
        held = _held_out(config)["points"]
        said = table(["measure", "per cent"], [(k, f"{value:.1f}") for k, value in scores.items()])
        said += (
            f"\n\nOn {held:,} {points} that were held out to weigh the parts of the model, which "
            "was then trained with them too: an estimate for new ones."
        )
    return [("Data", counts), ("Accuracy", said)]


def write_card(folder: Path, text: str) -> None:
    """Write or replace the card of a folder, unless somebody else has written one."""
    path = folder / CARD
    if path.is_file() and MARK not in path.read_text("utf-8", "replace"):
        return
    replace_text(path, text)
