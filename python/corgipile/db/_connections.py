"""Connections: a second one to the same database, and the notices of a statement."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._checks import called
from ._optional import required

#: What libpq calls a connection that waits for a statement, and one whose transaction has failed.
_ACTIVE, _FAILED = 1, 3


@dataclass(frozen=True)
class Notice:
    """A notice of the server."""

    severity: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} ({self.hint})"


@contextmanager
def connected(given: Any) -> Generator[Any, None, None]:
    """A connection of psycopg 3, or what behaves like one, to what was given: a connection of psycopg 3 or 2, an engine
    or a connection of SQLAlchemy, or a connection string, for which a connection is opened and closed.

    Raises:
        TypeError: it is something else. psycopg.errors.InFailedSqlTransaction: the transaction of the connection has
            failed, in which every statement is refused, with an error that does not name the cause.
    """
    if given is None or isinstance(given, str):
        psycopg = required("psycopg", "a database connection", "psycopg[binary]")
        # what SQLAlchemy calls its driver, libpq does not know
        with psycopg.connect(re.sub(r"^postgresql\+\w+://", "postgresql://", given or ""), autocommit=True) as conn:
            yield conn
        return
    kind = type(given)
    if _is_of(given, "sqlalchemy"):
        if hasattr(given, "connect") and hasattr(given, "dialect"):
            with given.connect() as connection, connected(connection) as conn:
                yield conn
            return
        if hasattr(given, "get_bind") and hasattr(given, "connection"):  # a session
            given = given.connection()
        if hasattr(given, "render_as_string"):  # a URL
            sqlalchemy = required("sqlalchemy", "a URL of it")
            with connected(sqlalchemy.create_engine(given, poolclass=sqlalchemy.NullPool)) as conn:
                yield conn
            return
        driver = getattr(getattr(given, "connection", None), "driver_connection", None)
        if driver is None:
            raise TypeError(f"conn: {kind.__name__} of SQLAlchemy is neither an engine nor a connection")
        if given.in_transaction():
            given.exec_driver_sql("SELECT 1")  # begun on the server, too: what follows is a part of it
        given = driver
    if _is_of(given, "psycopg2"):
        from ._psycopg2 import OfPsycopg2

        given = OfPsycopg2(given)
    check_connection(given)
    yield given


def _is_of(given: Any, package: str) -> bool:
    """Whether the class of an object, or one that it is derived from, is of this package."""
    return any(of.__module__.split(".")[0] == package for of in type(given).__mro__)


def check_connection(conn: Any) -> None:
    """Refuses anything but a connection as psycopg 3 has it, and one whose transaction has failed."""
    execute, info = getattr(conn, "execute", None), getattr(conn, "info", None)
    if execute is None or not hasattr(info, "transaction_status"):
        raise TypeError(
            "conn: must be a connection of psycopg 3, as psycopg.connect gives it, or of psycopg2, an engine or a "
            f"connection of SQLAlchemy, or a connection string, not {called(conn)}"
        )
    if inspect.iscoroutinefunction(execute):
        raise TypeError("conn: an asynchronous connection cannot be used: psycopg.connect gives one that can")
    if info is not None and int(info.transaction_status) == _FAILED:
        errors: Any = required("psycopg2.errors" if is_psycopg2(conn) else "psycopg.errors", "a database connection")
        raise errors.InFailedSqlTransaction(
            "the transaction of the connection has failed, and must be rolled back first: conn.rollback()"
        )


def is_psycopg2(conn: Any) -> bool:
    """Whether this is what `connected` makes of a connection of psycopg2."""
    return type(conn).__name__ == "OfPsycopg2"


def beside(conn: Any, purpose: str) -> Any:
    """A second connection of the same user to the same database, in autocommit."""
    if is_psycopg2(conn):
        from ._psycopg2 import OfPsycopg2

        parameters = {**conn.info.get_parameters(), "application_name": f"corgipile {purpose}", "connect_timeout": "10"}
        if conn.info.password:
            parameters["password"] = conn.info.password
        second = required("psycopg2", "a database connection").connect(**parameters)
        second.autocommit = True
        return OfPsycopg2(second)
    psycopg = required("psycopg", "a database connection", "psycopg[binary]")
    parameters = {**conn.info.get_parameters(), "application_name": f"corgipile {purpose}", "connect_timeout": "10"}
    if conn.info.password:
        parameters["password"] = conn.info.password
    return psycopg.connect(**parameters, autocommit=True)


def end_statement(conn: Any) -> None:
    """Ends what the server does for an interrupted call. psycopg 3 does that itself, unless the interrupt came while it
    was between two waits."""
    pgconn = getattr(conn, "pgconn", None)
    if pgconn is not None and int(conn.info.transaction_status) == _ACTIVE:
        conn.cancel()
        while pgconn.get_result() is not None:
            pass


@contextmanager
def notices(conn: Any, tell: Callable[[Notice], None]) -> Generator[None, None, None]:
    """Passes the notices of what is executed inside to `tell`."""

    def handle(diagnostic: Any) -> None:
        tell(Notice(diagnostic.severity or "", diagnostic.message_primary or "", diagnostic.message_hint))

    conn.add_notice_handler(handle)
    try:
        yield
    finally:
        conn.remove_notice_handler(handle)


def quoted(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'
