"""How PostgreSQL parses text."""

from __future__ import annotations

import re

#: Python's float() and int() would take "1_0" and digits of other scripts, too.
_NUMBER = re.compile(r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)\s*", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)


def number_of_text(text: str) -> float:
    """A number as PostgreSQL parses it.

    Raises:
        ValueError: it is not a number there.
    """
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def whole_of_text(text: str) -> int:
    """An integer as PostgreSQL parses it.

    Raises:
        ValueError: it is not an integer there.
    """
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not an integer")
    return int(text)


def is_unicode(text: str) -> bool:
    """Is a text valid Unicode, without half of a surrogate pair? Text of a database or an Arrow column always is."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
