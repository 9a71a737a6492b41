"""Keys of JSON objects as features, as the extension reads them.

A feature `data->price` is the number at key `price` of column `data`, `data->>colour` a text, and `data->size->width` a
number of an object within. Values may be dictionaries, or JSON as a string.
"""

from __future__ import annotations

import json
from typing import Any

from ._nulls import is_null


def split(feature: str) -> tuple[str, list[str], bool] | None:
    """Column, keys and whether the value is a text, if a feature is called like one."""
    column, arrow, keys = feature.partition("->")
    path = keys.split("->")
    is_text = path[-1].startswith(">")
    if is_text:
        path[-1] = path[-1][1:]
    is_path = all(key and not key.startswith(">") for key in path)
    return (column, path, is_text) if column and arrow and is_path else None


def values(column: str, path: list[str], is_text: bool, rows: Any) -> list[Any]:
    """The value at these keys of each row, None where it is missing: a text, or what a number is made of.

    Raises:
        ValueError: a row is no JSON, or a number is asked for and is missing.
    """
    found = []
    for row, value in enumerate(rows):
        where = f"feature {column!r}, row {row}"
        try:
            document = json.loads(value) if isinstance(value, str | bytes) else value
        except ValueError as error:
            raise ValueError(f"{where}: no JSON: {error}") from None
        found.append(_typed(_at(document, path), is_text, f"{where}, key {'->'.join(path)!r}"))
    return found


def _at(document: Any, path: list[str]) -> Any:
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document


def _typed(value: Any, is_text: bool, where: str) -> Any:
    if is_null(value):
        return None
    if isinstance(value, dict | list):
        raise ValueError(f"{where}: an object or array, where the model has a {'text' if is_text else 'number'}")
    if is_text:
        return value if isinstance(value, str) else json.dumps(value)
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{where}: {value!r}, where the model has a number") from None
