"""`shuffle`: rows of a table or of files in random order."""

from __future__ import annotations

import argparse
import glob
import os
import sys
from typing import Any, BinaryIO

from .common import add_connection, bar, connect, written

HELP = "write the rows of a table or of files in random order"
DESCRIPTION = (
    "Write the rows of a table, or of files, in an order that is nearly random, while they are read nearly in sequence."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="+", metavar="SOURCE", help="a table as SQL names it, or files")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="a CSV or Parquet file; - is standard output"
    )
    parser.add_argument(
        "--table", action="store_true", help="the source is a table, even if there is a file of that name"
    )
    parser.add_argument("--seed", type=int, help="determines the order; drawn by default")
    parser.add_argument("--epoch", type=int, default=1, metavar="N", help="which of the seed's orders, from 1")
    parser.add_argument("--block-size", metavar="SIZE", help="how much is read at a place")
    parser.add_argument("--buffer-size", metavar="SIZE", help="how much is mixed: a share such as 10%%, or a size")
    parser.add_argument("--strategy", default="corgipile", help="corgipile, or another strategy")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from .shuffle_files import KINDS, shuffle_files

    is_file = any(os.path.exists(s) or glob.glob(s) or s.endswith(tuple(KINDS)) for s in arguments.source)
    if is_file and not arguments.table:
        return shuffle_files(arguments)
    if len(arguments.source) != 1:
        raise ValueError("several sources are files, and there are no such files; a table is one source")
    return _shuffle_table(arguments)


def _shuffle_table(arguments: argparse.Namespace) -> int:
    from ..db._extension import schema, select

    source = arguments.source[0]
    with connect(arguments) as conn:
        # the type's name comes from the catalog: what the user has written becomes a value, and no part of a query
        _, rows = select(
            conn,
            """SELECT t.oid::regtype::text, greatest(c.reltuples, 0) FROM pg_catalog.pg_class AS c
                 JOIN pg_catalog.pg_type AS t ON t.oid = c.reltype WHERE c.oid = %s::regclass""",
            [source],
        )
        row_type, expected = rows[0]
        named = {
            "shuffle": arguments.strategy, "seed": arguments.seed, "epoch": arguments.epoch,
            "block_size": arguments.block_size, "buffer_size": arguments.buffer_size,
        }  # fmt: skip
        calls = [f"NULL::{row_type}"]
        for name, value in named.items():
            if value is not None:
                literal = str(value) if isinstance(value, int) else _literal(conn, value)
                calls.append(f"{name} => {literal}")
        query = f"SELECT * FROM {schema(conn)}.corgipile_shuffle({', '.join(calls)})"
        write = _to_parquet if arguments.output.endswith(".parquet") else _to_csv
        with written(arguments.output) as beside:
            write(conn, query, beside, expected)
    return 0


def _literal(conn: Any, text: str) -> str:
    from psycopg import sql

    return sql.Literal(text).as_string(conn)


def _to_csv(conn: Any, query: str, output: str, expected: float) -> None:
    target: BinaryIO = sys.stdout.buffer if output == "-" else open(output, "wb")  # noqa: SIM115 - closed at the end
    try:
        copying = conn.cursor().copy(f"COPY ({query}) TO STDOUT (FORMAT CSV, HEADER)")
        with bar("shuffle", expected or None, " rows") as progress, copying as copy:
            for data in copy:
                target.write(data)
                progress.update(1)
        target.flush()
    finally:
        if output != "-":
            target.close()


def _to_parquet(conn: Any, query: str, output: str, expected: float) -> None:
    from ..db._optional import required

    pyarrow = required("pyarrow", "a Parquet file", "pyarrow")
    parquet = required("pyarrow.parquet", "a Parquet file", "pyarrow")
    writer = None
    with (
        conn.transaction(),
        conn.cursor("corgipile_shuffle") as cursor,
        bar("shuffle", expected or None, " rows") as progress,
    ):
        cursor.execute(query)
        names = [column.name for column in cursor.description]
        while rows := cursor.fetchmany(10_000):
            columns = dict(zip(names, zip(*rows)))
            kept = pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})
            if writer is None:
                writer = parquet.ParquetWriter(output, kept.schema)
            writer.write_table(kept.cast(writer.schema))
            progress.update(len(rows))
    if writer is None:
        raise ValueError("the table has no rows: an empty Parquet file would have no types")
    writer.close()
