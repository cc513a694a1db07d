"""Tables for notebooks."""

from __future__ import annotations

from dxml._core.html import Html, Shown, bar, html, table
from dxml.tagging import Tag

NASTY = "<script>alert('a')</script>"


def test_cells_captions_and_headers_are_escaped_once() -> None:
    shown = table([NASTY], [[NASTY], [Html("<b>x</b>")]], NASTY)
    assert "<script" not in shown and shown.count("&lt;script&gt;") == 3
    assert "<b>x</b>" in shown
    assert html(html("a & b")) == "a &amp; b"


def test_a_bar_is_as_long_as_its_share_and_never_longer_than_its_frame() -> None:
    assert "width:25%" in bar(0.25) and bar(0.25).endswith("25 %")
    assert "width:100%;height" in bar(1.2)
    assert "width:0%" in bar(-0.1)


def test_a_list_shows_its_items_in_order_and_counts_the_rest() -> None:
    tags = Shown(Tag(f"label {i}", 0.5) for i in range(25))
    shown = tags._repr_html_()
    assert shown.index("label 0") < shown.index("label 19")
    assert "label 20" not in shown and "… and 5 more answers" in shown
    assert tags == [Tag(f"label {i}", 0.5) for i in range(25)]
    assert "more" not in Shown(tags[:20])._repr_html_()
