"""`columns`: what a training would make of each column of a source."""

from __future__ import annotations

from typing import Any

from ._calls import in_database, run
from ._connections import connected
from ._given import sourced
from ._table import Table


def columns(
    conn: Any,
    source: Any,
    *,
    label: str | None = None,
    features: Any = None,
    **options: Any,
) -> Table:
    """Describes the columns of a source as `train` with these arguments would use them.

    The server looks at a sample of the rows: all rows of a small table, rows of random blocks of a large one, the first
    rows of a query that joins or aggregates. Nothing is trained.

    Args:
        conn, source: as for `train`.
        label: the column to predict, as for `train`.
        features: the features, as for `train`.
        **options: options of `corgipile_train` that change what columns are: `weight`, `validation_column`,
            `date_parts`, `hash` and so on.

    Returns:
        One row per column, with the columns of `corgipile_columns`: `name`, `type`, `role`, `reason`, `null_fraction`,
            `distinct_values`, `example`, `expression` and `based_on`.
    """
    arguments = {"label": label, "features": features, **options}
    with connected(conn) as conn, in_database(conn, False, "") as told, sourced(conn, source) as name:
        return Table(*run(conn, "corgipile_columns", [("text", name)], arguments), told.notices)
