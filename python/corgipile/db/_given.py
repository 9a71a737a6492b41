"""Sources as Python has them: names, queries, what SQLAlchemy selects, and frames, which become temporary tables."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from .._checks import called, check_text
from .._text import is_unicode
from ._connections import quoted
from ._loading import CONVERTERS, kind_of
from ._nulls import is_null

_numbers = count(1)

#: Bytes of a name in PostgreSQL.
_LONGEST_NAME = 63


@contextmanager
def sourced(conn: Any, source: Any) -> Generator[str, None, None]:
    """The source as SQL calls it. A frame is a temporary table within this, which is in a transaction.

    Raises:
        TypeError: it is nothing that can be a source, or a column has values that no column of SQL has.
        ValueError: names of columns that a table cannot have.
    """
    if isinstance(source, str):
        yield check_text("source", source, "my_table")
    elif _is_of_sqlalchemy(source):
        yield _of_sqlalchemy(source)
    else:
        columns = _columns_of(source)
        table = f"corgipile_frame_{next(_numbers)}"
        _load(conn, table, columns)
        yield f"pg_temp.{table}"
        conn.execute(f"DROP TABLE pg_temp.{table}")


def _of_sqlalchemy(given: Any) -> str:
    import sqlalchemy
    from sqlalchemy.dialects.postgresql import dialect
    from sqlalchemy.sql import expression, visitors

    selectable = getattr(given, "statement", given)  # of a query of a session
    if isinstance(given, type):
        selectable = sqlalchemy.inspect(given).selectable  # of a class that is mapped to a table
    # percent signs of a query are doubled for drivers that have parameters like %s
    own = dialect(paramstyle="named")
    if isinstance(selectable, expression.TableClause):
        return own.identifier_preparer.format_table(selectable)
    if isinstance(selectable, expression.FromClause):
        selectable = sqlalchemy.select(sqlalchemy.text("*")).select_from(selectable)
    if not isinstance(selectable, expression.SelectBase | expression.TextClause):
        raise TypeError(f"source: what SQLAlchemy selects rows by is needed, not {type(given).__name__}")
    for part in visitors.iterate(selectable):
        if isinstance(part, expression.BindParameter) and part.required:
            raise ValueError(f"source: its parameter {part.key!r} has no value: source.params(...) or bindparams(...)")
    return str(selectable.compile(dialect=own, compile_kwargs={"literal_binds": True}))


def _is_of_sqlalchemy(source: Any) -> bool:
    is_statement = hasattr(source, "compile") and hasattr(source, "_execute_on_connection")
    return is_statement or hasattr(source, "statement") or hasattr(source, "__mapper__")


def _columns_of(frame: Any) -> list[tuple[str, list[Any]]]:
    """The columns of a frame of pandas, polars or pyarrow, or of a dict of sequences."""
    if hasattr(frame, "collect") and hasattr(frame, "lazy"):
        frame = frame.collect()  # a lazy frame of polars
    if hasattr(frame, "column_names") and hasattr(frame, "to_pydict"):
        columns = [(name, frame.column(place).to_pylist()) for place, name in enumerate(frame.column_names)]
    elif hasattr(frame, "columns") and hasattr(frame, "iloc"):
        columns = [(str(name), list(frame.iloc[:, place])) for place, name in enumerate(frame.columns)]
    elif hasattr(frame, "columns") and hasattr(frame, "get_columns"):
        columns = [(column.name, column.to_list()) for column in frame.get_columns()]
    elif isinstance(frame, dict):
        columns = [(str(name), _values_of(str(name), values)) for name, values in frame.items()]
    else:
        raise TypeError(
            "source: the name of a table, a query, what SQLAlchemy selects, or a frame of pandas, polars or pyarrow is "
            f"needed, not {called(frame)}"
        )
    names = [name for name, _ in columns]
    for name in names:
        if not name or "\0" in name or not is_unicode(name) or len(name.encode()) > _LONGEST_NAME:
            raise ValueError(f"source: a table can have no column {name!r}: a name has from 1 to {_LONGEST_NAME} bytes")
    if len(set(names)) < len(names):
        raise ValueError(f"source: two columns have the same name, of {', '.join(map(repr, names))}")
    lengths = {len(values) for _, values in columns}
    if len(lengths) != 1:
        raise ValueError("source: " + ("it has no columns" if not columns else "its columns have different lengths"))
    return columns


def _values_of(name: str, values: Any) -> list[Any]:
    """The values of a sequence, moments of numpy as Python has them."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"source: column {name!r} is {called(values)}, where a sequence of values is needed")
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        # as whole numbers of nanoseconds, tolist() would have them
        return values.astype("M8[us]" if np.datetime_data(values.dtype)[0] != "D" else "M8[D]").tolist()
    return list(values)


def _load(conn: Any, table: str, columns: Sequence[tuple[str, list[Any]]]) -> None:
    kinds = [_type_of(name, values) for name, values in columns]
    defined = ", ".join(f"{quoted(name)} pg_catalog.{kind}" for (name, _), kind in zip(columns, kinds))
    conn.execute(f"CREATE TEMPORARY TABLE {table} ({defined}) ON COMMIT DROP")
    converters = [_CONVERTERS.get(kind) or CONVERTERS[kind] for kind in kinds]
    with conn.cursor().copy(f"COPY pg_temp.{table} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(kinds)
        try:
            for row in zip(*(values for _, values in columns)):
                copy.write_row([None if is_null(value) else convert(value) for value, convert in zip(row, converters)])
        except (TypeError, ValueError, OverflowError) as error:
            raise _of_value(columns, kinds) or error from error


def _of_value(columns: Sequence[tuple[str, list[Any]]], kinds: Sequence[str]) -> Exception | None:
    """What is wrong with the first value that cannot be what its column is."""
    for (name, values), kind in zip(columns, kinds):
        convert = _CONVERTERS.get(kind) or CONVERTERS[kind]
        for row, value in enumerate(values):
            where = f"source: column {name!r}, row {row}"
            try:
                if not is_null(value) and isinstance(convert(value), str) and not is_unicode(value):
                    return ValueError(f"{where}: {value!r} is not valid Unicode text")
            except OverflowError:
                return ValueError(f"{where}: the number is out of range for type {kind}")
            except (TypeError, ValueError):
                return TypeError(f"{where}: {called(value)} is no value of a column of type {kind}")
    return None


def _type_of(name: str, values: list[Any]) -> str:
    """The type of a column: as features have it, but for whole numbers, which may be labels, and lists."""
    there = [value for value in values if not is_null(value)]
    if there and all(_is_whole(value) for value in there):
        return "int8" if all(-(2**63) <= value < 2**63 for value in there) else "float8"
    if there and all(isinstance(value, list | tuple | np.ndarray) for value in there):
        return "float8[]"
    return kind_of(name, there)


def _is_whole(value: Any) -> bool:
    # a duration of numpy is an integer to it
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def _numbers_of(values: Any) -> list[float | None]:
    return [None if is_null(value) else float(value) for value in values]


_CONVERTERS: dict[str, Any] = {"int8": int, "float8[]": _numbers_of}
