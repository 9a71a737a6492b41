"""Sources as Python has them: names, queries, what SQLAlchemy selects, and frames, which become temporary tables."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from .._checks import called, check_text
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
    elif hasattr(source, "compile") and hasattr(source, "_execute_on_connection"):
        yield _of_sqlalchemy(source)
    else:
        columns = _columns_of(source)
        table = f"corgipile_frame_{next(_numbers)}"
        _load(conn, table, columns)
        yield f"pg_temp.{table}"
        conn.execute(f"DROP TABLE pg_temp.{table}")


def _of_sqlalchemy(selectable: Any) -> str:
    from sqlalchemy import Table
    from sqlalchemy.dialects.postgresql import dialect

    # percent signs of a query are doubled for drivers that have parameters like %s
    own = dialect(paramstyle="named")
    if isinstance(selectable, Table):
        return own.identifier_preparer.format_table(selectable)
    return str(selectable.compile(dialect=own, compile_kwargs={"literal_binds": True}))


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
        columns = [(str(name), list(values)) for name, values in frame.items()]
    else:
        raise TypeError(
            "source: the name of a table, a query, what SQLAlchemy selects, or a frame of pandas, polars or pyarrow is "
            f"needed, not {called(frame)}"
        )
    names = [name for name, _ in columns]
    for name in names:
        if not name or "\0" in name or len(name.encode()) > _LONGEST_NAME:
            raise ValueError(f"source: a table can have no column {name!r}: a name has from 1 to {_LONGEST_NAME} bytes")
    if len(set(names)) < len(names):
        raise ValueError(f"source: two columns have the same name, of {', '.join(map(repr, names))}")
    lengths = {len(values) for _, values in columns}
    if len(lengths) != 1:
        raise ValueError("source: " + ("it has no columns" if not columns else "its columns have different lengths"))
    return columns


def _load(conn: Any, table: str, columns: Sequence[tuple[str, list[Any]]]) -> None:
    kinds = [_type_of(name, values) for name, values in columns]
    defined = ", ".join(f"{quoted(name)} pg_catalog.{kind}" for (name, _), kind in zip(columns, kinds))
    conn.execute(f"CREATE TEMPORARY TABLE {table} ({defined}) ON COMMIT DROP")
    converters = [_CONVERTERS.get(kind) or CONVERTERS[kind] for kind in kinds]
    with conn.cursor().copy(f"COPY pg_temp.{table} FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(kinds)
        for row in zip(*(values for _, values in columns)):
            copy.write_row([None if is_null(value) else convert(value) for value, convert in zip(row, converters)])


def _type_of(name: str, values: list[Any]) -> str:
    """The type of a column: as features have it, but for whole numbers, which may be labels, and lists."""
    there = [value for value in values if not is_null(value)]
    if there and all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in there):
        return "int8" if all(-(2**63) <= value < 2**63 for value in there) else "float8"
    if there and all(isinstance(value, list | tuple | np.ndarray) for value in there):
        return "float8[]"
    return kind_of(name, there)


def _numbers_of(values: Any) -> list[float | None]:
    return [None if is_null(value) else float(value) for value in values]


_CONVERTERS: dict[str, Any] = {"int8": int, "float8[]": _numbers_of}
