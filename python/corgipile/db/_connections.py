"""Connections: a second one beside the user's, and what notices a statement gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ._optional import required


@dataclass(frozen=True)
class Notice:
    """What the server said beside its rows."""

    severity: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} ({self.hint})"


def beside(conn: Any, purpose: str) -> Any:
    """Another connection of the same user to the same database, in autocommit."""
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
