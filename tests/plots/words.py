"""What every figure must say."""

from __future__ import annotations

from typing import Any


def check_words(canvas: Any) -> None:
    """A figure has a title, and every panel names its axes."""
    assert canvas.get_suptitle()
    for axis in canvas.axes:
        assert axis.get_xlabel() or axis.get_shared_x_axes().get_siblings(axis) != [axis]
        assert axis.get_ylabel() or axis.get_yticklabels()[0].get_text()


def check_numbers_inside(canvas: Any, axis: Any) -> None:
    """The numbers beside the bars of a panel stay within its frame."""
    canvas.draw_without_rendering()
    frame = axis.get_window_extent()
    assert all(text.get_window_extent().x1 <= frame.x1 for text in axis.texts)
