"""What commands share: connections, bars, errors in a line."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Generator
from typing import Any, TypeVar

from ..db._optional import optional, required


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Where the database is."""
    parser.add_argument(
        "--dsn",
        default="",
        metavar="DSN",
        help="connection string of libpq; without it PGHOST, PGDATABASE and so on count",
    )


def connect(arguments: argparse.Namespace) -> Any:
    """A connection in autocommit."""
    psycopg = required("psycopg", "this command", "psycopg[binary]")
    return psycopg.connect(arguments.dsn, autocommit=True)


def bar(description: str, total: float | None, unit: str, is_wanted: bool | None = None) -> Any:
    """A bar of tqdm's on standard error, if that is a terminal and tqdm is installed; else nothing is drawn."""
    tqdm = optional("tqdm")
    shown = sys.stderr.isatty() if is_wanted is None else is_wanted
    if tqdm is None or not shown:
        return _NoBar()
    return tqdm.tqdm(total=total, desc=description, unit=unit, unit_scale=True, file=sys.stderr)


@contextlib.contextmanager
def written(output: str) -> Generator[str, None, None]:
    """A name next to `output` under which to write: that takes the place of `output` once all of it is written, so that
    neither an error nor an output that is also read leaves half a file. Pipes, devices and standard output, which is
    called "-", are written to as they are.
    """
    if output == "-":
        yield output
        return
    target = os.path.realpath(output)
    if os.path.exists(target) and not os.path.isfile(target):
        yield output
        return
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), output)
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        try:
            yield beside
        except OSError as error:
            if error.filename == beside:
                error.filename = output
            raise
        if os.path.exists(target):
            shutil.copymode(target, beside)
        os.replace(beside, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


_Writer = TypeVar("_Writer", bound="ParquetWriter")


class ParquetWriter:
    """A Parquet file of tables that have the types of the first."""

    def __init__(self, output: str) -> None:
        #: pyarrow, with which tables are made.
        self.pyarrow = required("pyarrow", "a Parquet file", "pyarrow")
        self._parquet = required("pyarrow.parquet", "a Parquet file", "pyarrow")
        self._output, self._writer = output, None

    def write(self, arrays: dict[str, Any]) -> None:
        """Writes columns, which are arrays of pyarrow's, by name."""
        table = self.pyarrow.table(arrays)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._output, table.schema)
        self._writer.write_table(table)

    def __enter__(self: _Writer) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()


class _NoBar:
    def update(self, n: float = 1) -> None:
        pass

    def __enter__(self) -> _NoBar:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def said(error: Exception) -> str | None:
    """An error in one line; None if it is not one that a user has made, and its trace is wanted."""
    diagnostic = getattr(error, "diag", None)
    primary = getattr(diagnostic, "message_primary", None)
    if primary:
        hint = getattr(diagnostic, "message_hint", None)
        return one_line(f"{primary} ({hint})" if hint else primary)
    # of the native module, which may not be there
    is_source_error = type(error).__name__ in ("SourceError", "JoaderError")
    is_of_database = type(error).__module__.split(".")[0] == "psycopg"
    if is_source_error or is_of_database or isinstance(error, _USERS_ERRORS):
        return one_line(str(error) or type(error).__name__)
    return None


_USERS_ERRORS = (ValueError, TypeError, LookupError, OSError, ImportError)


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())


def listed(text: str) -> list[str]:
    """Names between commas; a comma in a name is written twice."""
    return [part.replace("\0", ",").strip() for part in text.replace(",,", "\0").split(",")]
