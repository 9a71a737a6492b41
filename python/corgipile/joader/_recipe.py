"""Preparation of rows before jobs get them: steps as plain data, so that a server recognizes equal ones.

Rows go through the steps in order. What must differ from job to job, such as random crops, is done by the job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from corgipile.dataset import check_number

Step = dict[str, Any]


_FILTERS = ("nearest", "box", "bilinear", "bicubic", "lanczos")

_MANY = 2**32 - 1


def _check_column(column: str) -> None:
    if not isinstance(column, str):
        raise TypeError(f"column: {column!r} is not a name")


def _check_sizes(least: int, **sizes: int) -> None:
    for name, size in sizes.items():
        check_number(name, size, least, _MANY)


def decode(column: str, channels: int = 3) -> Step:
    """Decodes JPEG or PNG pictures: bytes become arrays of height, width and channels (1 or 3), of uint8.

    All pictures of a data set must have the same size afterwards, if necessary by `resize` or a crop.
    """
    _check_column(column)
    if channels not in (1, 3, 4):
        raise ValueError(f"channels: {channels!r} is not one of 1 (gray), 3 (red, green, blue), 4 (with opacity)")
    return {"step": "decode", "column": column, "channels": channels}


def resize(column: str, height: int, width: int, filter: str = "bilinear") -> Step:
    """Resizes pictures."""
    _check_column(column)
    _check_sizes(1, height=height, width=width)
    if filter not in _FILTERS:
        raise ValueError(f"filter: {filter!r} is not one of {', '.join(_FILTERS)}")
    return {"step": "resize", "column": column, "height": height, "width": width, "filter": filter}


def crop(column: str, top: int, left: int, height: int, width: int) -> Step:
    """Cuts out a part of each picture."""
    _check_column(column)
    _check_sizes(0, top=top, left=left)
    _check_sizes(1, height=height, width=width)
    return {"step": "crop", "column": column, "top": top, "left": left, "height": height, "width": width}


def center_crop(column: str, height: int, width: int) -> Step:
    """Cuts out the centre of each picture."""
    _check_column(column)
    _check_sizes(1, height=height, width=width)
    return {"step": "center_crop", "column": column, "height": height, "width": width}


def drop_column(column: str) -> Step:
    """Removes a column that only other steps need."""
    _check_column(column)
    return {"step": "drop", "column": column}


def function(callable: str | Callable[..., Any]) -> Step:
    """Calls a function with a dictionary of column name to array, which returns one with the same number of rows.

    It is called in processes of the server, which import it by name ("package.module:function"): it must be importable
    there, and return the same result for the same rows.
    """
    if not isinstance(callable, str):
        module, name = getattr(callable, "__module__", None), getattr(callable, "__qualname__", "<")
        if module in (None, "__main__") or "<" in name or "." in name:
            raise ValueError(f"callable: {callable!r} cannot be imported by other processes: put it into a module")
        callable = f"{module}:{name}"
    return {"step": "python", "callable": callable}


def as_text(steps: Sequence[Step]) -> str:
    """Steps as a server takes them."""
    if not isinstance(steps, list | tuple) or not all(isinstance(step, dict) for step in steps):
        raise TypeError("prepare: must be a list of steps, such as [joader.decode('image')]")
    try:
        return json.dumps(list(steps), allow_nan=False) if steps else ""
    except (TypeError, ValueError, RecursionError) as error:
        raise type(error)(f"prepare: {error}") from None
