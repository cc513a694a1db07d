"""Place names beside dots so that they do not overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

__all__ = ["Name", "Style", "place_names"]

Style: TypeAlias = tuple[tuple[str, Any], ...]

MAX_NAME_LENGTH = 34  # characters
POSITIONS = (  # that are tried for a name: direction from its dot, and the text's anchor
    (1, 0, "left", "center"),
    (-1, 0, "right", "center"),
    (0, 1, "center", "bottom"),
    (0, -1, "center", "top"),
    (1, 1, "left", "bottom"),
    (-1, 1, "right", "bottom"),
    (1, -1, "left", "top"),
    (-1, -1, "right", "top"),
)


@dataclass(frozen=True)
class Name:
    """A name, the position of its dot, and its distance from the dot's centre in points."""

    text: str
    at: tuple[float, float]
    distance: float = 4.0
    style: Style = ()
    needed: bool = False


def place_names(canvas: Any, axis: Any, names: Iterable[Name]) -> list[Any]:
    """Write the names in order where they overlap no other; returns the text objects.

    A name that fits nowhere is left out, or put at the right of its dot if it is needed.
    """
    canvas.canvas.draw()  # fixes the position of the axes, on which those of texts depend
    renderer, frame = canvas.canvas.get_renderer(), axis.get_window_extent()
    placed: list[Any] = []
    taken: list[Any] = []
    for name in names:
        for direction in POSITIONS:
            text = _write(axis, name, *direction)
            box = text.get_window_extent(renderer).padded(3)
            inside = box.x0 >= frame.x0 and box.x1 <= frame.x1
            inside &= box.y0 >= frame.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                break
            text.remove()
        else:
            if not name.needed:
                continue
            text = _write(axis, name, *POSITIONS[0])
            box = text.get_window_extent(renderer)
        placed.append(text)
        taken.append(box)
    return placed


def _write(axis: Any, name: Name, right: int, up: int, horizontal: str, vertical: str) -> Any:
    effects: Any = import_module("matplotlib.patheffects")
    text = (
        name.text
        if len(name.text) <= MAX_NAME_LENGTH
        else f"{name.text[: MAX_NAME_LENGTH - 1].rstrip()}…"
    )
    return axis.annotate(
        text.replace("$", r"\$"),
        name.at,
        (right * name.distance, up * name.distance),
        textcoords="offset points",
        ha=horizontal,
        va=vertical,
        zorder=5,
        path_effects=[effects.withStroke(linewidth=2, foreground="white")],
        **dict(name.style),
    )
