"""HTML that cannot be injected into: whatever is not HTML already is escaped where it is put in."""

from __future__ import annotations

from html import escape
from typing import Any

#: Tags without an end.
_VOID = frozenset(("meta", "line", "circle", "rect", "path", "polyline", "br"))


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def text(value: Any) -> Html:
    """Any value as HTML: Html as it is, all else escaped, without characters that steer a terminal or the line."""
    if isinstance(value, Html):
        return value
    shown = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(value))
    return Html(escape(shown, quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. Underscores in names of attributes are dashes, one at the end is dropped; None leaves one out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not children:
        return Html(f"<{name}{said}/>" if name not in ("meta", "br") else f"<{name}{said}>")
    return Html(f"<{name}{said}>{join(*children)}</{name}>")


def join(*children: Any) -> Html:
    """Children one after the other; None is nothing, lists are what is in them."""
    out: list[str] = []
    for child in children:
        if isinstance(child, list | tuple):
            out.append(join(*child))
        elif child is not None:
            out.append(text(child))
    return Html("".join(out))


def name(value: Any) -> Html:
    """A name that somebody else has chosen: whatever script it is in, it does not turn the text around it."""
    return tag("bdi", value)


def table(head: list[Any], rows: list[list[Any]], label: str, numeric: set[int] | None = None) -> Html:
    """A table that scrolls by itself where it is wider than the page. Its first column names the rows."""
    right = numeric if numeric is not None else set(range(1, len(head)))

    def cells(row: list[Any]) -> list[Html]:
        first = tag("th", row[0], scope="row")
        return [first, *(tag("td", cell, class_="n" if i in right else None) for i, cell in enumerate(row[1:], 1))]

    titles = [tag("th", title, scope="col", class_="n" if i in right else None) for i, title in enumerate(head)]
    content = tag("table", tag("thead", tag("tr", titles)), tag("tbody", [tag("tr", cells(row)) for row in rows]))
    return scrolling(content, label)


def scrolling(content: Html, label: str) -> Html:
    """What scrolls by itself; with the keyboard, too."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def number(value: Any, digits: int = 4) -> str:
    """A number as people read it; a dash for none."""
    if value is None or value != value:
        return "\N{EN DASH}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15 and abs(value) >= 1000):
        return f"{int(value):,}"
    return f"{value:.{digits}g}" if abs(value) < 1e6 else f"{value:,.0f}"
