"""Connections: a second one to the same database, and the notices of a statement."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._checks import called
from ._optional import required

#: What libpq calls a connection whose transaction has failed.
_FAILED = 3


@dataclass(frozen=True)
class Notice:
    """A notice of the server."""

    severity: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} ({self.hint})"


def check_connection(conn: Any) -> None:
    """Refuses anything but a connection, and a connection whose transaction has failed.

    In a failed transaction, every statement is refused, with an error that does not name the cause.

    Raises:
        TypeError: it is not a connection of psycopg 3. psycopg.errors.InFailedSqlTransaction: its transaction has
            failed.
    """
    execute, info = getattr(conn, "execute", None), getattr(conn, "info", None)
    if execute is None or not hasattr(info, "transaction_status"):
        raise TypeError(f"conn: must be a connection of psycopg 3, as psycopg.connect gives it, not {called(conn)}")
    if inspect.iscoroutinefunction(execute):
        raise TypeError("conn: an asynchronous connection cannot be used: psycopg.connect gives one that can")
    if info is not None and int(info.transaction_status) == _FAILED:
        errors = required("psycopg.errors", "a database connection", "psycopg[binary]")
        raise errors.InFailedSqlTransaction(
            "the transaction of the connection has failed, and must be rolled back first: conn.rollback()"
        )


def beside(conn: Any, purpose: str) -> Any:
    """A second connection of the same user to the same database, in autocommit."""
    psycopg = required("psycopg", "a database connection", "psycopg[binary]")
    parameters = {**conn.info.get_parameters(), "application_name": f"corgipile {purpose}", "connect_timeout": "10"}
    if conn.info.password:
        parameters["password"] = conn.info.password
    return psycopg.connect(**parameters, autocommit=True)


@contextmanager
def notices(conn: Any, tell: Callable[[Notice], None]) -> Iterator[None]:
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
