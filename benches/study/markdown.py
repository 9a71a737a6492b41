"""What the pages are made of: titles with a table of contents, tables, figures and numbers."""

import re
import textwrap
from math import log10

WIDTH = 120


def page(title, introduction, sections):
    """A page of sections `(title, text)`, with their list at its head where there are several."""
    text = f"# {title}\n\n{wrapped(introduction)}\n\n"
    if len(sections) > 1:
        text += "".join(f"- [{name}](#{anchor(name)})\n" for name, _ in sections) + "\n"
    text += "".join(f"## {name}\n\n{wrapped(body)}\n\n" for name, body in sections)
    return text.rstrip() + "\n"


def wrapped(text):
    """With paragraphs and list items in lines of WIDTH; tables, figures and headings stay as they are."""
    return "\n\n".join(paragraph(part) for part in re.split(r"\n\s*\n", text.strip()))


def paragraph(text):
    if text.startswith(("#", "!", "|", "```")) or " | " in text:
        return text
    items = re.split(r"\n(?=- )", text)
    lines = [
        line
        for item in items
        for line in textwrap.wrap(
            " ".join(item.split()),
            WIDTH,
            subsequent_indent="  " if item.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    # a line that happens to begin as an item would become one
    return (
        text
        if sum(line.startswith("- ") for line in lines) > text.count("\n- ") + text.startswith("- ")
        else "\n".join(lines)
    )


def anchor(title):
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def table(columns, rows):
    """`columns` gives for each title what stands there of a row: a key of the row, or a function of it.

    Spaces at the end of a title are left out: they tell equal titles apart."""

    def field(column, row):
        return str(column(row) if callable(column) else row[column])

    lines = [" | ".join(title.strip() for title in columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(field(column, row) for column in columns.values()) for row in rows]
    return "\n".join(lines) + "\n\n"


def figure(name, caption):
    return f"![{caption}]({name})\n\n"


def mark(row):
    """The verdict on a row that was judged."""
    if row.get("better"):
        return "better"
    return {True: "pass", False: "**FAIL**", None: ""}[row["passed"]]


# Functions of a row, for columns of numbers.


def fixed(key, digits):
    return lambda row: f"{float(row[key]):.{digits}f}" if row[key] not in (None, "") else ""


def signed(key, digits=4):
    return lambda row: f"{float(row[key]):+.{digits}f}"


def percent(key, digits=2):
    return lambda row: f"{float(row[key]):+.{digits}%}"


def short(key):
    return lambda row: f"{float(row[key]):g}"


def time(key):
    return lambda row: seconds(row[key])


def size(key):
    return lambda row: megabytes(row[key])


def seconds(value):
    """Three digits."""
    value = float(value)
    if value <= 0:
        return "0"
    return f"{value:.{max(0, 2 - int(log10(value) // 1))}f}"


def megabytes(value):
    return f"{float(value) / 1e6:.0f}"
