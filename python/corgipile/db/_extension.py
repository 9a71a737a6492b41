"""Where the extension is in a database.

Its functions are called with their schema, as pg_extension says it: a function of the same name elsewhere in the
search path is somebody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._connections import quoted


def select(conn: Any, query: str, values: Any = None) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and rows of a query, rows as tuples, whatever the connection makes of rows."""
    with conn.cursor(row_factory=_as_tuples) as cursor:
        cursor.execute(query, values)
        return [column.name for column in cursor.description or []], cursor.fetchall()


def _as_tuples(cursor: Any) -> type[tuple[Any, ...]]:
    return tuple


def schema(conn: Any) -> str:
    """The schema of the extension's functions, quoted.

    Raises:
        LookupError: the database has no extension corgipile.
    """
    _, rows = select(
        conn,
        """SELECT n.nspname
             FROM pg_catalog.pg_extension AS e JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
            WHERE e.extname = 'corgipile'""",
    )
    if not rows:
        raise LookupError("the database has no extension corgipile: CREATE EXTENSION corgipile")
    return quoted(rows[0][0])


def argument_types(conn: Any, function: str, first: str) -> dict[str, str]:
    """The arguments of a function of the extension whose first one has this type, and their types."""
    _, rows = select(
        conn,
        """SELECT a.name, pg_catalog.format_type(a.type, NULL)
             FROM pg_catalog.pg_proc AS p
             JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid
             JOIN pg_catalog.pg_extension AS e
               ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid,
                  ROWS FROM (pg_catalog.unnest(p.proargnames), pg_catalog.unnest(p.proargtypes::oid[])) AS a(name, type)
            WHERE e.extname = 'corgipile' AND p.proname = %s AND p.proargtypes[0] = %s::regtype
              AND a.type IS NOT NULL""",
        [function, first],
    )
    if not rows:
        schema(conn)  # raises an error that says what to do if there is no extension
        raise LookupError(f"the extension of the database has no function {function}: ALTER EXTENSION corgipile UPDATE")
    return {row[0]: row[1] for row in rows}


def only(rows: Sequence[tuple[Any, ...]]) -> Any:
    """The only value of the only row."""
    return rows[0][0]
