"""A connection of psycopg2 as the rest of the package uses one: as a connection of psycopg 3.

psycopg2 waits within libpq, where Python does not see Ctrl-C. So a statement runs in a thread, and an interrupt cancels
it in the server.
"""

from __future__ import annotations

import io
import re
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

_IDLE = 0

#: Bytes of a COPY that are kept in memory; more are in a file.
_IN_MEMORY = 1 << 26


@dataclass(frozen=True)
class _Diagnostic:
    severity: str
    message_primary: str
    message_hint: str | None


class OfPsycopg2:
    """The connection."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn
        self._handlers: list[Callable[[Any], None]] = []

    @property
    def info(self) -> Any:
        info = self.conn.info
        return SimpleNamespace(
            transaction_status=info.transaction_status,
            backend_pid=info.backend_pid,
            password=info.password,
            dbname=info.dbname,
            get_parameters=lambda: info.dsn_parameters,
        )

    def cursor(self, row_factory: Any = None) -> _Cursor:
        """A cursor whose rows are tuples."""
        return _Cursor(self)

    def execute(self, query: str, values: Any = None) -> _Cursor:
        """A cursor that has executed this."""
        cursor = self.cursor()
        cursor.execute(query, values)
        return cursor

    @contextmanager
    def transaction(self, force_rollback: bool = False) -> Generator[None, None, None]:
        """A transaction, or a savepoint within one."""
        is_outer = self.conn.info.transaction_status == _IDLE
        begin, keep = "SAVEPOINT corgipile", "RELEASE SAVEPOINT corgipile"
        undo = f"ROLLBACK TO SAVEPOINT corgipile; {keep}"  # else that of an outer one would end at this one
        if is_outer:
            begin, keep, undo = "BEGIN" if self.conn.autocommit else "SELECT", "COMMIT", "ROLLBACK"
        self.execute(begin)
        try:
            yield
        except BaseException:
            self._end(undo, is_outer)
            raise
        self._end(undo if force_rollback else keep, is_outer)

    def _end(self, statement: str, is_outer: bool) -> None:
        if self.conn.closed:
            return
        if is_outer and not self.conn.autocommit:
            (self.conn.commit if statement == "COMMIT" else self.conn.rollback)()
        else:
            self.execute(statement)

    def add_notice_handler(self, handler: Callable[[Any], None]) -> None:
        """Has the notices of later statements handled."""
        if not self._handlers:
            # a list of its own: psycopg2 keeps 50 notices only, and in whatever the user has for them
            self._before, self.conn.notices = self.conn.notices, _Kept()
        self._handlers.append(handler)

    def remove_notice_handler(self, handler: Callable[[Any], None]) -> None:
        """Ends that."""
        self._handlers.remove(handler)
        if not self._handlers:
            self.conn.notices = self._before

    def run(self, call: Callable[[], Any]) -> None:
        """Runs what waits for the server, so that an interrupt ends it there."""
        failed: list[BaseException] = []

        def work() -> None:
            try:
                call()
            except BaseException as error:  # the thread that asked for it gets it
                failed.append(error)

        thread = threading.Thread(target=work, name="corgipile statement", daemon=True)
        thread.start()
        try:
            thread.join()
        except KeyboardInterrupt:
            self.conn.cancel()
            thread.join()
            raise
        finally:
            self._tell()
        if failed:
            raise failed[0]

    def _tell(self) -> None:
        if self._handlers:
            told, self.conn.notices = self.conn.notices, _Kept()
            for text in told.texts:
                severity, _, rest = text.strip().partition(":  ")
                parts = re.split(r"\n(DETAIL|HINT|QUERY|CONTEXT|LOCATION):  ", rest)
                hint = dict(zip(parts[1::2], parts[2::2])).get("HINT")
                for handler in self._handlers:
                    handler(_Diagnostic(severity, parts[0], hint))

    def close(self) -> None:
        """Closes the connection."""
        self.conn.close()

    def __enter__(self) -> OfPsycopg2:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class _Kept:
    """All notices: of a list, psycopg2 drops those before the last 50."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def append(self, text: str) -> None:
        self.texts.append(text)


class _Cursor:
    """A cursor of psycopg2, as one of psycopg 3."""

    def __init__(self, conn: OfPsycopg2) -> None:
        from psycopg2.extensions import cursor

        self._conn = conn
        self._cursor = conn.conn.cursor(cursor_factory=cursor)

    def execute(self, query: str, values: Any = None) -> None:
        """Executes a statement. Without values, psycopg2 takes % as it is, as psycopg 3 does."""
        self._conn.run(lambda: self._cursor.execute(query, values))

    @property
    def description(self) -> Any:
        return self._cursor.description

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows."""
        return self._cursor.fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        return self._cursor.fetchone()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._cursor)

    @contextmanager
    def copy(self, statement: str) -> Generator[_Copy, None, None]:
        """COPY FROM STDIN of what is written meanwhile."""
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
            copy = _Copy(file)
            yield copy
            copy.text.flush()
            file.seek(0)
            if copy.has_rows:
                statement = statement.replace("(FORMAT BINARY)", "(FORMAT CSV, ENCODING 'UTF8')")
            self._conn.run(lambda: self._cursor.copy_expert(statement, file))

    def __enter__(self) -> _Cursor:
        return self

    def __exit__(self, *_error: object) -> None:
        self._cursor.close()


class _Copy:
    """What is copied: bytes as they are, or rows, which are written as CSV."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        self.has_rows = False

    def write(self, data: bytes) -> None:
        """Writes bytes of a COPY in binary form."""
        self._file.write(data)

    def set_types(self, types: Sequence[str]) -> None:
        """Rows will be written."""
        self.has_rows = True

    def write_row(self, row: Sequence[Any]) -> None:
        """Writes a row. In CSV, NULL is what is empty without quotes."""
        self.text.write(",".join(map(_field, row)) + "\n")


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        inside = ",".join(
            "NULL" if part is None else repr(part) if isinstance(part, float) else str(part) for part in value
        )
        return f'"{{{inside}}}"'
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"'
