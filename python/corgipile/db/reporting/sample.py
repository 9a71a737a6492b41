"""Sampling of a source's rows: all of a small one; of a large one, rows that the server draws.

Guarantees: the server never sends more than the requested number of rows, and of a large table it reads not many more
pages than those of the sample. This prevents a report from reading a table of 100 GB to plot a curve.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .._connections import quoted
from .._extension import only, select

#: How many times more rows than are wanted are drawn, because estimates are estimates.
_MARGIN = 1.5


@dataclass(frozen=True)
class Sample:
    """What to put behind FROM, the name of the row there, an order to draw by, and what is to be told of it."""

    columns: list[str]
    relation: str
    row: str
    where: str
    order: str
    estimate: float
    is_drawn: bool

    def told(self, rows: int, found: int) -> str:
        """How many rows these are, of as many that were found, and of how many."""
        if not self.is_drawn and rows == found:
            return f"all {rows:,} rows"
        of = f" of about {self.estimate:,.0f}" if self.estimate > rows else ""
        return f"a random sample of {rows:,}{of} rows"


def is_query(source: str) -> bool:
    """Whether a source is a query, and not the name of a table, as the extension tells them apart."""
    start = _without_blanks(source)
    found = re.match(r"(?:select|with|values|table)(?=[\s(*\-/'\"+])", start, re.IGNORECASE)
    return start.startswith("(") or (found is not None and _without_blanks(start[found.end() :]) != "")


def _without_blanks(text: str) -> str:
    """A text without the white space and the comments that it begins with."""
    text = text.lstrip()
    if text.startswith("--"):
        return _without_blanks(text.partition("\n")[2])
    if not text.startswith("/*"):
        return text
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return _without_blanks(text[mark.end() :])
    return ""


def subquery(source: str, condition: str | None = None) -> str:
    """A source as a query in brackets, perhaps of some of its rows."""
    body = source.strip().rstrip(";") if is_query(source) else f"SELECT * FROM {source}"
    if condition is None:
        return f"({body}\n)"
    return f"(SELECT * FROM ({body}\n) AS corgipile_all WHERE {condition})"


def literal(text: str) -> str:
    """Text of a query in which a percent sign is not a placeholder."""
    return text.replace("%", "%%")


def draw(conn: Any, source: str, wanted: int, condition: str | None = None) -> Sample:
    """How to draw about this many rows of a source, or of those where a column of booleans is true.

    Raises:
        psycopg.Error: the source is not there, or may not be read.
    """
    if not is_query(source):
        source = only(select(conn, "SELECT %s::regclass::text", [source])[1])
    columns, _ = _one_statement(conn, f"SELECT * FROM {subquery(source, condition)} AS corgipile_source WHERE", "false")
    row = _free_name(columns)
    estimate_of = f"{subquery(source, condition)} AS {row}"
    estimate = _estimate(conn, estimate_of)
    is_few = estimate <= 4 * wanted
    share = min(1.0, _MARGIN * wanted / max(1.0, estimate))
    if not is_query(source) and _is_plain_table(conn, source):
        # rows come in an order of their places: the same rows for all models, as long as nothing changes
        sampled = "" if is_few else f" TABLESAMPLE SYSTEM ({100 * share:.6f}) REPEATABLE (0)"
        where = "true" if condition is None else f"{row}.{condition}"
        order = f"pg_catalog.hashtextextended({row}.ctid::text, 0)"
        return Sample(columns, f"{source} AS {row}{sampled}", row, where, order, estimate, not is_few)
    where = "true" if is_few else f"pg_catalog.random() < {share:.9f}"
    return Sample(columns, estimate_of, row, where, "pg_catalog.random()", estimate, not is_few)


def _one_statement(conn: Any, query: str, last: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Runs a query with its last word as a parameter. What has parameters is one statement, so that a source that is
    more than a query is an error."""
    return select(conn, literal(query) + " %s::boolean", [last])


def _free_name(columns: list[str]) -> str:
    """A name for the row that no column has: else a name would mean the column."""
    name = "corgipile_row"
    while name in columns:
        name += "_"
    return quoted(name)


def _is_plain_table(conn: Any, source: str) -> bool:
    """Whether it is a table or materialized view whose rows have places."""
    _, rows = select(
        conn,
        """SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_am AS a ON a.oid = c.relam
            WHERE c.oid = %s::regclass AND c.relkind IN ('r', 'm') AND a.amname = 'heap'""",
        [source],
    )
    return bool(rows)


def _estimate(conn: Any, relation: str) -> float:
    """How many rows the planner expects."""
    _, rows = _one_statement(conn, f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {relation} WHERE", "true")
    return float(only(rows)[0]["Plan"]["Plan Rows"])
