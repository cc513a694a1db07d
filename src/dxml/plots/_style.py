"""Shared by all figures: colours, panels, and writing to files.

Colours are those of Okabe and Ito, which colour-blind people can distinguish. Series also differ by
marker, and bars by hatching.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from dxml.exceptions import DxmlError, ParameterError
from dxml.plots._letters import escaped, fonts_for, no_talk_of_fonts

__all__ = [
    "COLOURS",
    "DPI",
    "FORMATS",
    "HATCHES",
    "MARKERS",
    "MissingExtraError",
    "NothingToDrawError",
    "bars",
    "check_target",
    "heading",
    "log_scale",
    "make_room",
    "panels",
    "pyplot",
    "write",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*<>hd"
HATCHES = ("", "//", "..", "xx", "\\\\")
FORMATS: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""File types, and the metadata to leave out so that the same figure gives the same bytes."""
DPI = 120
ROOM = 15  # pixels around a number beside its bar
STYLE = {"font.size": 10, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "dxml"}


class MissingExtraError(DxmlError, ImportError):
    """An optional dependency is not installed."""


class NothingToDrawError(DxmlError, ValueError):
    """A model or ranking lacks the data that a figure shows."""


@contextmanager
def pyplot(instead: str = "") -> Iterator[Any]:
    """matplotlib's pyplot in our style, without a window; `instead` is added to the error."""
    try:
        import_module("matplotlib").use("Agg")
    except ImportError as error:
        raise MissingExtraError(
            f"figures need matplotlib: install with: pip install 'dxml[plot]'{instead}."
        ) from error
    plt: Any = import_module("matplotlib.pyplot")
    with plt.rc_context(STYLE), no_talk_of_fonts():
        yield plt


def check_target(path: Path) -> Path:
    """A file that a figure can be written to, by its suffix."""
    if path.suffix.removeprefix(".").lower() not in FORMATS:
        raise ParameterError(f"a figure is written as .png, .svg or .pdf, got {path.name!r}.")
    return path


def write(canvas: Any, path: Path, palette: int | None = None) -> Path:
    """Save a figure in the format that the file's suffix names, the same bytes every time.

    With `palette`, a PNG is reduced to that many colours, which makes it several times smaller.
    """
    kind = check_target(path).suffix.removeprefix(".").lower()
    small = kind == "png" and palette is not None
    target = BytesIO() if small else path
    canvas.savefig(target, format=kind, dpi=DPI, bbox_inches="tight", metadata=FORMATS[kind])
    if small:
        image = import_module("PIL.Image").open(target).convert("RGB")
        image.quantize(palette).save(path, optimize=True)
    return path


def panels(
    plt: Any, count: int, width: float = 4.0, height: float = 3.4, margin: float = 0.0
) -> tuple[Any, list[Any]]:
    """A figure of `count` panels in up to three columns, `margin` inches wider than they need."""
    columns = 2 if count == 4 else min(count, 3)
    lines = -(-count // columns)
    size = (width * columns + margin, height * lines)
    canvas, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    flat = list(axes.ravel())
    for unused in flat[count:]:
        unused.set_visible(False)
    return canvas, flat[:count]


def make_room(canvas: Any, axis: Any) -> None:
    """Have a panel of horizontal bars end after the number at the longest bar."""
    canvas.draw_without_rendering()
    widest = max(text.get_window_extent().width for text in axis.texts)
    share = min((widest + ROOM) / axis.get_window_extent().width, 0.8)
    longest = max(bar.get_width() for bar in axis.patches) or 1.0
    axis.set_xlim(0, longest / (1 - share))


def heading(canvas: Any, text: str) -> None:
    """The title of the whole figure, at its left."""
    families, missing = fonts_for([text])
    plain = escaped(text, missing).replace("$", r"\$")  # unescaped, matplotlib reads a formula
    canvas.suptitle(plain, x=0.01, ha="left", fontweight="bold", fontfamily=families)


def log_scale(axis: Any) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5 times the powers of ten."""
    ticker: Any = import_module("matplotlib.ticker")
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())


def bars(axis: Any, groups: Sequence[str], series: dict[str, list[tuple[float, float]]]) -> None:
    """Grouped bars: name → (height, deviation) for each group."""
    width = 0.8 / max(len(series), 1)
    for i, (name, values) in enumerate(series.items()):
        places = [g + (i - (len(series) - 1) / 2) * width for g in range(len(groups))]
        heights, errors = [v[0] for v in values], [v[1] for v in values]
        axis.bar(
            places,
            heights,
            width * 0.92,
            yerr=errors if any(errors) else None,
            label=name,
            color=COLOURS[i % len(COLOURS)],
            hatch=HATCHES[i % len(HATCHES)],
            edgecolor="white",
            error_kw={"elinewidth": 1, "capsize": 2},
        )
    axis.set_xticks(range(len(groups)), groups)
    axis.set_ylim(bottom=0)
    axis.grid(axis="x", visible=False)
