"""What PostgreSQL takes text for."""

from __future__ import annotations

import re

#: Python's float() and int() would take "1_0" and digits of other scripts, too.
_NUMBER = re.compile(r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)\s*", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)


def number_of_text(text: str) -> float:
    """A number as PostgreSQL reads it.

    Raises:
        ValueError: it is none there.
    """
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def whole_of_text(text: str) -> int:
    """A whole number as PostgreSQL reads it.

    Raises:
        ValueError: it is none there.
    """
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not an integer")
    return int(text)


def is_unicode(text: str) -> bool:
    """Has a text no half of a surrogate pair? No text of a database or an Arrow column has one."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
