"""Parts of dates and times as the extension computes them: the results of EXTRACT, in UTC.

A feature `created.month` is a part of column `created`. Values may be datetime and date objects, numpy's and pandas'
date types, and strings in ISO format, which are timestamps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._nulls import is_null

#: The parts, and whether each value of one is a category.
PARTS = {"year": False, "month": True, "day": False, "dow": True, "hour": True, "doy": False, "epoch": False}

_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1)
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def split(feature: str) -> tuple[str, str] | None:
    """Column and part, if a feature is called like one."""
    column, dot, part = feature.rpartition(".")
    return (column, part) if dot and part in PARTS else None


class Times:
    """A column of dates or times: microseconds since 1970, and which of them are missing."""

    def __init__(self, column: str, values: Any) -> None:
        self.column = column
        self.has_hours = True
        array = values.to_numpy() if hasattr(values, "to_numpy") else values
        if isinstance(array, np.ndarray) and array.dtype.kind == "M":
            self.has_hours = not _is_plain_date(array.dtype)
            self.missing = np.isnat(array)
            self.microseconds = np.where(self.missing, 0, self._of_numpy(array).astype(np.int64))
        else:
            self._read(list(array))

    def _read(self, values: Sequence[Any]) -> None:
        self.microseconds = np.zeros(len(values), np.int64)
        self.missing = np.zeros(len(values), bool)
        plain_dates = 0
        for i, value in enumerate(values):
            if is_null(value):
                self.missing[i] = True
                continue
            if isinstance(value, np.datetime64):
                plain_dates += _is_plain_date(value.dtype)
            else:
                plain_dates += isinstance(value, date) and not isinstance(value, datetime)
            self.microseconds[i] = self._microseconds(value, i)
        self.has_hours = plain_dates == 0

    def _of_numpy(self, array: NDArray[np.datetime64]) -> NDArray[np.datetime64]:
        micros = array.astype("datetime64[us]")
        # numpy lets what is too far away wrap around
        if _is_plain_date(array.dtype) or np.datetime_data(array.dtype)[0] in ("h", "m", "s", "ms"):
            wrapped = (micros.astype(array.dtype) != array) & ~np.isnat(array)
            if wrapped.any():
                raise ValueError(f"column {self.column!r}: {array[wrapped][0]} is out of range for a timestamp")
        return micros

    def _microseconds(self, value: Any, row: int) -> int:
        if isinstance(value, str):
            text = value.strip()
            if text.lower() in ("infinity", "-infinity"):
                return _LEAST if text.startswith("-") else _MOST
            value = _of_text(text)
            if value is None:
                raise ValueError(f"column {self.column!r}, row {row}: {text!r} is not a date in ISO format")
        if isinstance(value, np.datetime64):
            return int(self._of_numpy(np.array([value]))[0].astype(np.int64))
        if isinstance(value, datetime):
            if value.tzinfo is not None:
                value = value.astimezone(timezone.utc).replace(tzinfo=None)
            since = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second) - _EPOCH
            return (since.days * 86_400 + since.seconds) * 1_000_000 + value.microsecond
        if isinstance(value, date):
            return (value - _EPOCH.date()).days * _DAY
        raise TypeError(
            f"column {self.column!r}, row {row}: the model was trained on dates in this column, "
            f"not on {type(value).__name__}"
        )

    def part(self, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The values of a part, and which are missing: numbers, of which infinities stay infinite, or texts."""
        infinite = (self.microseconds == _LEAST) | (self.microseconds == _MOST)
        number = _part(name, np.where(infinite, 0, self.microseconds))
        signs = np.where(self.microseconds < 0, -1.0, 1.0)
        if not PARTS[name]:
            return np.where(infinite, signs * np.inf, number.astype(np.float64)), self.missing
        digits = 1 if name == "dow" else 2
        texts = np.array([f"{int(n):0{digits}d}" for n in number], object)
        texts[infinite] = np.where(signs[infinite] < 0, "-infinity", "infinity")
        return texts, self.missing


def _is_plain_date(kind: np.dtype[Any]) -> bool:
    """Has a type of numpy's no hours?"""
    return np.datetime_data(kind)[0] in ("Y", "M", "W", "D")


_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?",
    re.IGNORECASE,
)


def _of_text(text: str) -> datetime | None:
    """A timestamp as PostgreSQL and ISO 8601 write it: Python 3.10 does not read all of these by itself."""
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    *numbers, fraction, zone = found.groups()
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    offset = None
    if zone is not None:
        digits = zone[1:].replace(":", "").ljust(4, "0")
        minutes = 0 if zone in "zZ" else int(digits[:2]) * 60 + int(digits[2:])
        offset = timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))
    try:
        return datetime(year, month, day, hour, minute, second, int((fraction or "").ljust(6, "0")), offset)
    except ValueError:
        return None


def _part(name: str, microseconds: NDArray[np.int64]) -> NDArray[Any]:
    days = microseconds // _DAY
    at = days.astype("datetime64[D]")
    if name == "epoch":
        return microseconds / 1e6
    if name == "hour":
        return microseconds % _DAY // 3_600_000_000
    if name == "dow":
        return (days + 4) % 7  # 1970-01-01 was a Thursday
    if name == "year":
        year = at.astype("datetime64[Y]").astype(np.int64) + 1970
        return year - (year <= 0)  # there is no year 0
    if name == "month":
        return at.astype("datetime64[M]").astype(np.int64) % 12 + 1
    start = at.astype("datetime64[M]" if name == "day" else "datetime64[Y]").astype("datetime64[D]")
    return (at - start).astype(np.int64) + 1
