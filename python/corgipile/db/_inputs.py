"""Rows as users have them: arrays, columns by name, data frames, lists of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import called
from .._text import is_unicode
from ._nulls import is_null


class NamedColumns:
    """Columns by name, all of the same length."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns = dict(columns)
        lengths = {len(values) for values in self.columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of X differ in length: {', '.join(map(str, sorted(lengths)))} rows")
        self.rows = lengths.pop() if lengths else 0


class OwnColumns(NamedColumns):
    """Columns by the names that the model's document has for them."""


#: What X is: columns by name, a matrix with a column per feature, or rows of entries (scipy.sparse).
Rows = NamedColumns | NDArray[Any]


def rows_of(x: Any) -> Any:
    """X as [`NamedColumns`], as an array of two dimensions, or as a sparse matrix of scipy's, as it is."""
    if hasattr(x, "tocsr"):
        return x.tocsr()
    if isinstance(x, NamedColumns):
        return x
    if isinstance(x, Mapping):
        return NamedColumns({str(name): _sequence(name, values) for name, values in x.items()})
    if hasattr(x, "columns") and hasattr(x, "__getitem__"):
        if hasattr(x, "column_names"):  # pyarrow
            return NamedColumns({name: x.column(name).to_pylist() for name in x.column_names})
        names = list(x.columns)
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"X has column {twice.pop()!r} twice")
        return NamedColumns({str(name): x[name] for name in names})
    if isinstance(x, np.ndarray) and x.dtype.names:
        return NamedColumns({name: x[name] for name in x.dtype.names})
    if not isinstance(x, np.ndarray):
        if isinstance(x, str | bytes) or not isinstance(x, Iterable):
            raise TypeError(f"X: rows are needed: an array, columns by name or a list of rows, not {called(x)}")
        x = list(x) if not isinstance(x, list | tuple) else x
        if x and isinstance(x[0], Mapping):
            return _columns_of_records(x)
    return _matrix(x)


def _sequence(name: Any, values: Any) -> Any:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise TypeError(f"column {name!r} of X is not a sequence of values")
    return values


def _columns_of_records(records: Sequence[Any]) -> NamedColumns:
    names: dict[str, None] = {}
    for row, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise TypeError(f"X: row {row} is {called(record)}, where others are dictionaries")
        names.update(dict.fromkeys(map(str, record)))
    return NamedColumns({name: [record.get(name) for record in records] for name in names})


def _matrix(x: Any) -> NDArray[Any]:
    if isinstance(x, np.ndarray):
        array = x
    else:
        widths = {len(row) for row in x if hasattr(row, "__len__") and not isinstance(row, str)}
        if len(widths) > 1:
            raise ValueError(f"rows of X differ in length: {', '.join(map(str, sorted(widths)))} values")
        has_objects = any(not isinstance(v, int | float | np.number) for row in x for v in np.atleast_1d(row))
        array = np.array(x, dtype=object if has_objects else np.float64)
    if array.ndim != 2:
        hint = "; give a row as [row]" if array.ndim == 1 else ""
        raise ValueError(f"X has {array.ndim} dimension{'s' * (array.ndim != 1)}, and must have 2{hint}")
    return array


def numbers(name: str, values: Any, rows: int | None = None) -> NDArray[np.float32]:
    """A column of numbers and booleans as reals, NaN where it is missing.

    Raises:
        TypeError: a value is not a number.
        ValueError: a value is infinite, or beyond the range of a real.
    """
    doubles = _doubles(name, values)
    if rows is not None and doubles.shape != (rows,):
        raise ValueError(f"feature {name!r} has {len(doubles)} values, and X {rows} rows")
    return narrow(doubles, lambda place: f"feature {name!r}, row {place[0]}")


def narrow(doubles: NDArray[np.float64], where: Any) -> NDArray[np.float32]:
    """Doubles as reals; what is not NaN has to be finite as one."""
    with np.errstate(over="ignore"):
        reals = doubles.astype(np.float32)
    if np.isinf(reals).any():
        place = tuple(int(i) for i in np.argwhere(np.isinf(reals))[0])
        value = doubles[place]
        reason = "is infinite" if np.isinf(value) else f"is {value}, out of range for type real"
        raise ValueError(f"{where(place)} {reason}")
    return reals


def _doubles(name: str, values: Any) -> NDArray[np.float64]:
    array = values
    if hasattr(values, "to_numpy"):
        kind = getattr(getattr(values, "dtype", None), "kind", "O")
        # pandas' own numbers with missing values say what stands for these
        array = values.to_numpy(dtype=np.float64, na_value=np.nan) if kind in "biuf" else values.to_numpy()
    if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return np.array([_double(name, i, value) for i, value in enumerate(array)], np.float64)


def _double(name: str, row: int, value: Any) -> float:
    if is_null(value):
        return np.nan
    is_number = isinstance(value, bool | int | float | Decimal | np.number | np.bool_)
    if is_number and not isinstance(value, np.complexfloating):
        try:
            return float(value)
        except OverflowError:
            return np.inf
    raise TypeError(
        f"feature {name!r}, row {row}: the model was trained on numbers or booleans in this column, "
        f"not on {type(value).__name__}"
    )


def texts(name: str, values: Any) -> list[str | None]:
    """A column of categories, None where it is missing.

    Raises:
        TypeError: a value is not a string.
        ValueError: a value has half of a surrogate pair, which no text of the database has.
    """
    out: list[str | None] = []
    for row, value in enumerate(list(values)):
        if isinstance(value, str):
            if not is_unicode(value):
                raise ValueError(f"feature {name!r}, row {row}: {value!r} is not valid Unicode text")
            out.append(value)
        elif is_null(value):
            out.append(None)
        else:
            raise TypeError(
                f"feature {name!r}, row {row}: the model was trained on text or an enum in this column, "
                f"not on {type(value).__name__}"
            )
    return out
