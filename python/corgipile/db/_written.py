"""What texts say as features, as the extension reads them: numbers, parts of dates, and whether there is a value.

A feature `price::number` is the number that a text in column `price` says (`price::decimal_comma` if its decimal sign
is a comma), `sold::mdy.month` a part of the date, with month, day and year in this order, and `note IS NULL` is 1 where
`note` has no value. A text that says nothing of the kind is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from ._nulls import is_null

#: What a value says: a number or a text, None if it says nothing.
Reader = Callable[[Any, str], "float | str | None"]

_CURRENCIES = "$€£¥₹₽₩"
_SPACES = " \u00a0\u202f"
_APOSTROPHES = "'\u2019"
_BLANKS = _SPACES + "\t\n\r"
_STYLES = {"number": (".", ","), "decimal_comma": (",", ".")}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _number_pattern(decimal: str, thousand: str) -> re.Pattern[str]:
    digits = "[0-9]{1,40}"
    whole = f"(?:[0-9]{{1,3}}(?:[{thousand}{_SPACES}{_APOSTROPHES}][0-9]{{3}}){{1,12}}|{digits})"
    number = f"(?:{whole}(?:[{decimal}][0-9]{{0,40}})?|[{decimal}]{digits})(?:[eE][-+]?[0-9]{{1,2}})?"
    sign = f"(?:[-+]?[{_CURRENCIES}]?[{_SPACES}]*|[{_CURRENCIES}][{_SPACES}]*[-+]?)"
    number += f"(?:[{_SPACES}]*[{_CURRENCIES}%])?"
    negative = f"[{_CURRENCIES}]?[(][{_CURRENCIES}]?{number}[)]"
    return re.compile(f"[{_BLANKS}]*(?:{sign}{number}|{negative})[{_BLANKS}]*")


_NUMBERS = {style: _number_pattern(*signs) for style, signs in _STYLES.items()}


def _date_pattern(order: str) -> re.Pattern[str]:
    day, number = "(0?[1-9]|[12][0-9]|3[01])(?![0-9])", "(?:0?[1-9]|1[0-2])(?![0-9])"
    year, month = "[1-9][0-9]{3}", f"({number}|(?:{'|'.join(_MONTHS)})[a-z]{{0,7}})"
    dates = {
        "ymd": f"({year})[-/.]({number})(?:[-/.]{day})?",
        "dmy": f"{day}[-/. ]{month}[-/.,]? ?({year}|[0-9]{{2}})",
        "mdy": f"{month}[-/. ]{day}[-/.,]? ?({year}|[0-9]{{2}})",
    }
    zone = "(?:([ap])m|z|utc|gmt|[-+][0-9:]{2,6})?"
    time = f"(?:,?[ t]([01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-9.]{{1,12}})? ?{zone})?"
    return re.compile(f"[ \t\n\r]*{dates[order]}{time}[ \t\n\r]*", re.IGNORECASE)


_DATES = {order: _date_pattern(order) for order in ("ymd", "dmy", "mdy")}
_PARTS = ("year", "month", "day", "dow", "hour", "doy")


def split(feature: str) -> tuple[str, Reader] | None:
    """Column and how it is read, if a feature is called like what texts say."""
    if feature.endswith(" IS NULL") and len(feature) > len(" IS NULL"):
        return feature.removesuffix(" IS NULL"), lambda value, _: float(is_null(value))
    column, colons, how = feature.rpartition("::")
    if not column or not colons:
        return None
    if how in _STYLES:
        return column, lambda value, where: _number(how, value, where)
    order, _, part = how.partition(".")
    if order in _DATES and part in _PARTS:
        return column, lambda value, where: _date(order, part, value, where)
    return None


def _number(style: str, value: Any, where: str) -> float | None:
    if is_null(value):
        return None
    if not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError):
            raise TypeError(f"{where}: {value!r} is neither a number nor a text that may say one") from None
    if _NUMBERS[style].fullmatch(value) is None:
        return None
    decimal, _ = _STYLES[style]
    kept = "".join(c for c in value.replace("(", "-") if c in f"0123456789+-eE{decimal}")
    return float(kept.replace(decimal, "."))


def _date(order: str, part: str, value: Any, where: str) -> float | str | None:
    if is_null(value):
        return None
    if not isinstance(value, str):
        raise TypeError(
            f"{where}: the model was trained on dates as text in this column, not on {type(value).__name__}"
        )
    found = _DATES[order].fullmatch(value)
    if found is None:
        return None
    fields = dict(zip(order, found.groups()))
    named = fields["m"]
    month = int(named) if named.isdigit() else _MONTHS.index(named[:3].lower()) + 1
    year, day = int(fields["y"]), int(fields["d"] or 1)
    if len(fields["y"]) == 2:
        year += 2000 if year < 70 else 1900
    if part in ("year", "day"):
        return float(year if part == "year" else day)
    if part in ("month", "hour"):
        return f"{month if part == 'month' else _hour(*found.groups()[3:]):02d}"
    # 31 February is 3 March, as in the database; of December, days never reach the next year
    at = date(year, month, 1) + timedelta(days=day - 1)
    return str(at.isoweekday() % 7) if part == "dow" else float(at.timetuple().tm_yday)


def _hour(hour: str | None, half: str | None) -> int:
    """Of the day; `half` is "a" or "p" of one of 12 hours."""
    return int(hour or 0) if half is None else int(hour or 0) % 12 + (12 if half in "pP" else 0)
