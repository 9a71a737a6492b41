"""`columns`: what a training would make of each column of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._checks import check_text
from ._connections import check_connection
from ._extension import select
from ._optional import optional
from ._training import call_of

if TYPE_CHECKING:
    import psycopg


def columns(
    conn: psycopg.Connection[Any],
    source: str,
    *,
    label: str | None = None,
    features: Any = None,
    **options: Any,
) -> Any:
    """Describes the columns of a source as `train` with these arguments would use them.

    The server looks at a sample of the rows: all rows of a small table, rows of random blocks of a large one, the first
    rows of a query that joins or aggregates. Nothing is trained.

    Args:
        conn: a connection of psycopg 3.
        source: a table or view, as in SQL, or a query.
        label: the column to predict, as for `train`.
        features: the features, as for `train`.
        **options: options of `corgipile_train` that change what columns are: `weight`, `validation_column`,
            `date_parts`, `hash` and so on.

    Returns:
        One row per column, with the columns of `corgipile_columns`: `name`, `type`, `role`, `reason`, `null_fraction`,
            `distinct_values`, `example`, `expression` and `based_on`. A data frame if pandas is installed, else a list
            of dicts.
    """
    if not isinstance(source, str):
        raise TypeError(f"source is the name of a table or a query, not {type(source).__name__}")
    check_text("source", source, "my_table")
    check_connection(conn)
    call, values = call_of(conn, "corgipile_columns", source, {"label": label, "features": features, **options})
    names, rows = select(conn, call, values)
    pandas = optional("pandas")
    if pandas is not None:
        return pandas.DataFrame(rows, columns=names)
    return [dict(zip(names, row)) for row in rows]
