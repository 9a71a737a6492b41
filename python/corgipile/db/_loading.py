"""Rows of Python as a temporary table, by COPY in its binary form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._connections import quoted
from ._nulls import is_null

#: The table, which is seen by its own connection only, and gone with the transaction.
TABLE = "corgipile_rows"
SOURCE = f"pg_temp.{TABLE}"

_FLOAT8_OID = 701

#: Bytes that are sent at once.
_AT_ONCE = 1 << 22


def load_arrays(
    conn: Any, features: NDArray[np.float64], label: NDArray[Any], weight: NDArray[np.float64] | None
) -> None:
    """Rows of a matrix as one column of arrays, `features`, with `label` and perhaps `weight`. NaN is NULL."""
    columns = [("label", "float8"), ("features", "float8[]")] + [("weight", "float8")] * (weight is not None)
    _create(conn, columns)
    numbers = [label.astype(np.float64)] + ([] if weight is None else [weight.astype(np.float64)])
    if np.isnan(features).any():
        _copy_with_nulls(conn, features, numbers)
        return
    row = _binary_row(features.shape[1], has_weight=weight is not None)
    step = max(1, _AT_ONCE // row.itemsize)
    with _copy(conn, columns) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        for first in range(0, len(features), step):
            some = slice(first, first + step)
            copy.write(_binary(row, features[some], [n[some] for n in numbers]))
        copy.write(b"\xff\xff")


def _binary_row(width: int, has_weight: bool) -> np.dtype[Any]:
    """A row as COPY has it: the number of fields, and for each its length and its bytes."""
    element = np.dtype([("length", ">i4"), ("number", ">f8")])
    fields: list[Any] = [
        ("fields", ">i2"), ("label_length", ">i4"), ("label", ">f8"), ("array_length", ">i4"), ("dimensions", ">i4"),
        ("has_nulls", ">i4"), ("type", ">i4"), ("elements", ">i4"), ("first", ">i4"), ("array", element, (width,)),
    ]  # fmt: skip
    if has_weight:
        fields += [("weight_length", ">i4"), ("weight", ">f8")]
    return np.dtype(fields)


def _binary(row: np.dtype[Any], features: NDArray[np.float64], numbers: list[NDArray[np.float64]]) -> bytes:
    rows = np.zeros(len(features), row)
    width = features.shape[1]
    rows["fields"] = 1 + len(numbers)
    rows["label_length"], rows["label"] = 8, numbers[0]
    rows["array_length"], rows["dimensions"], rows["type"] = 20 + 12 * width, 1, _FLOAT8_OID
    rows["elements"], rows["first"] = width, 1
    rows["array"]["length"], rows["array"]["number"] = 8, features
    if len(numbers) > 1:
        rows["weight_length"], rows["weight"] = 8, numbers[1]
    return rows.tobytes()


def _copy_with_nulls(conn: Any, features: NDArray[np.float64], numbers: list[NDArray[np.float64]]) -> None:
    with conn.cursor().copy(f"COPY {SOURCE} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["float8", "float8[]", "float8"][: 1 + len(numbers)])
        for row, rest in zip(features, zip(*numbers)):
            values = [None if value != value else float(value) for value in row]
            copy.write_row([float(rest[0]), values, *map(float, rest[1:])])


def load_sparse(conn: Any, features: Any, label: NDArray[Any], weight: NDArray[np.float64] | None) -> None:
    """Rows of a CSR matrix of scipy's as arrays of indices, from 0, and values, with `label` and perhaps `weight`."""
    columns = [("label", "float8"), ("indices", "int4[]"), ("vals", "float8[]")]
    columns += [("weight", "float8")] * (weight is not None)
    _create(conn, columns)
    starts = features.indptr.tolist()
    indices, values = features.indices.astype(np.int64), features.data.astype(np.float64)
    with conn.cursor().copy(f"COPY {SOURCE} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types([kind for _, kind in columns])
        for row, (first, end) in enumerate(pairwise(starts)):
            rest = [] if weight is None else [float(weight[row])]
            copy.write_row([float(label[row]), indices[first:end].tolist(), values[first:end].tolist(), *rest])


def load_columns(
    conn: Any, columns: Sequence[tuple[str, Sequence[Any]]], label: NDArray[Any], weight: NDArray[np.float64] | None
) -> list[str]:
    """Columns of numbers, booleans, texts, dates and times, by the types of their values, with `label` and perhaps
    `weight`. Their names in the table are not those of the user, which may be too long for it, or there twice: they are
    returned.

    Raises:
        TypeError: a value is of no type that can be a feature.
        ValueError: a table has no room for this many columns.
    """
    kinds = {f"column_{place}": kind_of(name, values) for place, (name, values) in enumerate(columns, 1)}
    named = list(kinds)
    numbers = {"label": label} if weight is None else {"label": label, "weight": weight}
    kinds.update(dict.fromkeys(numbers, "float8"))
    try:
        _create(conn, list(kinds.items()))
        with conn.cursor().copy(f"COPY {SOURCE} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(list(kinds.values()))
            converters = [CONVERTERS[kind] for kind in kinds.values()]
            for row in zip(*(values for _, values in columns), *numbers.values()):
                copy.write_row([None if is_null(value) else convert(value) for value, convert in zip(row, converters)])
    except Exception as error:
        # too many columns, or a row that is too long: class 54, "program limit exceeded"
        if not str(getattr(error, "sqlstate", None) or "").startswith("54"):
            raise
        raise ValueError(
            f"X has {len(columns)} columns, not all of numbers, but a table has no room for this many: make texts and "
            "dates numbers first, so that X is a matrix"
        ) from error
    return named


CONVERTERS: dict[str, Any] = {
    "float8": float,
    "bool": bool,
    "text": str,
    "timestamptz": lambda v: v,
    "timestamp": lambda v: v,
    "date": lambda v: v,
}


def kind_of(name: str, values: Sequence[Any]) -> str:
    """SQL's type for the values of a column.

    Raises:
        TypeError: a value is of no type that can be a feature.
    """
    found = {_kind(name, value) for value in values if not is_null(value)}
    if len(found) <= 1:
        return found.pop() if found else "float8"
    if found <= {"bool", "float8"}:
        return "float8"
    raise TypeError(f"column {name!r} has values of several types: {', '.join(sorted(found))}")


def _kind(name: str, value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime):
        return "timestamp" if value.tzinfo is None else "timestamptz"
    if isinstance(value, date):
        return "date"
    try:
        # numpy makes numbers of moments and durations, and Python of bytes
        if isinstance(value, bytes | bytearray | memoryview | np.datetime64 | np.timedelta64):
            raise TypeError
        float(value)
    except OverflowError:
        raise ValueError(f"column {name!r} has a whole number that is out of range for type float8") from None
    except (TypeError, ValueError):
        raise TypeError(f"column {name!r} has {type(value).__name__}, which can be no feature") from None
    return "float8"


def _create(conn: Any, columns: list[tuple[str, str]]) -> None:
    defined = ", ".join(f"{quoted(name)} pg_catalog.{kind}" for name, kind in columns)
    conn.execute(f"CREATE TEMPORARY TABLE {TABLE} ({defined}) ON COMMIT DROP")


def _copy(conn: Any, columns: list[tuple[str, str]]) -> Any:
    named = ", ".join(quoted(name) for name, _ in columns)
    return conn.cursor().copy(f"COPY {SOURCE} ({named}) FROM STDIN (FORMAT BINARY)")
