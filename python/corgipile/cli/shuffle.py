"""`shuffle`: rows of a table or of files in random order."""

from __future__ import annotations

import argparse
import glob
import os
import sys
from typing import Any, BinaryIO

from .._checks import check_number, check_seed
from ..db._connections import quoted
from .common import ParquetWriter, add_connection, bar, connect, written

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
    parser.add_argument("--shuffle", default="corgipile", help="corgipile, or another strategy")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from .shuffle_files import KINDS, shuffle_files

    if arguments.seed is not None:
        check_seed(arguments.seed)
    check_number("--epoch", arguments.epoch, 1)
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
            "shuffle": arguments.shuffle, "seed": arguments.seed, "epoch": arguments.epoch,
            "block_size": arguments.block_size, "buffer_size": arguments.buffer_size,
        }  # fmt: skip
        calls = [f"NULL::{row_type}"]
        for name, value in named.items():
            if value is not None:
                literal = str(value) if isinstance(value, int) else _literal(conn, value)
                calls.append(f"{name} => {literal}")
        rows_in_order = f"{schema(conn)}.corgipile_shuffle({', '.join(calls)})"
        with written(arguments.output) as beside:
            if arguments.output.endswith(".parquet"):
                _to_parquet(conn, row_type, rows_in_order, beside, expected)
            else:
                _to_csv(conn, f"SELECT * FROM {rows_in_order}", beside, expected)
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


#: Types of the server by their oids, and what makes pyarrow's of them. Whatever else is text, as the server writes it.
_TYPES = {
    16: "bool_", 17: "binary", 20: "int64", 21: "int16", 23: "int32", 700: "float32", 701: "float64", 1082: "date32",
}  # fmt: skip
_ARRAYS = {1000: 16, 1001: 17, 1016: 20, 1005: 21, 1007: 23, 1021: 700, 1022: 701, 1182: 1082}
_TIMES = {1114: None, 1184: "UTC"}
_NUMERIC = 1700


def _columns(conn: Any, row_type: str, pyarrow: Any) -> tuple[str, dict[str, Any]]:
    """What to select, and pyarrow's types: of a sample of values they would be those of the sample."""
    selected: list[str] = []
    types: dict[str, Any] = {}
    for column in conn.execute(f"SELECT (NULL::{row_type}).*").description:
        oid, name = column.type_code, quoted(column.name)
        if oid in _TYPES:
            types[column.name] = getattr(pyarrow, _TYPES[oid])()
        elif oid in _ARRAYS:
            types[column.name] = pyarrow.list_(getattr(pyarrow, _TYPES[_ARRAYS[oid]])())
        elif oid in _TIMES:
            types[column.name] = pyarrow.timestamp("us", _TIMES[oid])
        else:
            types[column.name] = pyarrow.float64() if oid == _NUMERIC else pyarrow.string()
            name = f"{name}::{'float8' if oid == _NUMERIC else 'text'} AS {name}"
        selected.append(name)
    return ", ".join(selected), types


def _to_parquet(conn: Any, row_type: str, rows_in_order: str, output: str, expected: float) -> None:
    with (
        conn.transaction(),
        ParquetWriter(output) as write,
        bar("shuffle", expected or None, " rows") as progress,
        conn.cursor("corgipile_shuffle") as cursor,
    ):
        selected, types = _columns(conn, row_type, write.pyarrow)

        def put(rows: list[Any]) -> None:
            columns = zip(*rows) if rows else [()] * len(types)
            arrays = zip(types.items(), columns)
            write.write({name: write.pyarrow.array(values, kind) for (name, kind), values in arrays})

        put([])  # a table without rows makes a file without rows
        cursor.execute(f"SELECT {selected} FROM {rows_in_order}")
        while rows := cursor.fetchmany(10_000):
            put(rows)
            progress.update(len(rows))
