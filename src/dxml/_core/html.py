"""How results show themselves in a notebook: small tables of HTML, with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any, Protocol, TypeVar

__all__ = ["MOST_SHOWN", "Html", "Shown", "bar", "html", "not_shown", "table"]

MOST_SHOWN = 20
"""Rows of a table, or items of a list, that are shown; the rest is counted."""


class HasHtml(Protocol):
    """What a notebook shows as HTML."""

    def _repr_html_(self) -> str: ...


Item = TypeVar("Item", bound=HasHtml)


class Html(str):
    """Text that is HTML already."""


def html(value: Any) -> Html:
    """A value as HTML; what is not `Html` is escaped.

    >>> html("a < b")
    'a &lt; b'
    """
    return value if isinstance(value, Html) else Html(escape(str(value)))


def bar(share: float) -> Html:
    """A share from 0 to 1 in per cent, with a bar as long.

    >>> "width:50%" in bar(0.5), bar(0.5).endswith("50 %")
    (True, True)
    """
    width = 100 * min(max(share, 0.0), 1.0)
    fill = f"display:block;width:{width:.0f}%;height:100%;background:#5c6bc0"
    frame = "display:inline-block;width:6em;height:.7em;margin-right:.5em;background:#8883"
    return Html(f'<span style="{frame}"><span style="{fill}"></span></span>{100 * share:.0f} %')


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]], caption: Any = "") -> Html:
    """A table; cells are escaped unless they are `Html`."""
    left = ' style="text-align:left"'
    head = "".join(f"<th{left}>{html(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td{left}>{html(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    title = f"<caption{left}>{html(caption)}</caption>" if caption else ""
    return Html(f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def not_shown(total: int, what: str) -> Html:
    """A line that says how many are not shown, or nothing."""
    return Html(f"<p>… and {total - MOST_SHOWN:,} more {what}</p>" if total > MOST_SHOWN else "")


class Shown(list[Item]):
    """A list whose items show themselves one below the other in a notebook."""

    def _repr_html_(self) -> str:
        shown = [item._repr_html_() for item in islice(self, MOST_SHOWN)]
        return "".join([*shown, not_shown(len(self), "answers")])
