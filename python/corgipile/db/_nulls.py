"""What counts as NULL in Python: None, NaN, and what pandas and numpy put for a missing value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def is_null(value: Any) -> bool:
    """Is this value missing?"""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    if isinstance(value, Decimal):
        return value.is_nan()
    try:
        # NaN and NaT differ from themselves; pandas.NA says neither yes nor no
        return bool(value != value)
    except TypeError:
        return type(value).__name__ == "NAType"
    except ValueError:
        return False  # an array
