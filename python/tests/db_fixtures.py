"""What the tests of `corgipile.db` share: a database of their own in the server that PGHOST and the like name.

Run them with `scripts/with-postgres -- pytest python/tests`; without a server they are skipped, and pytest counts them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

SERVER = os.environ.get("PGHOST")


def _unreachable() -> str | None:
    if not SERVER:
        return "PGHOST is not set: run with scripts/with-postgres"
    try:
        with psycopg.connect(autocommit=True) as conn:
            found = conn.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'corgipile'").fetchone()
            return None if found else "the server has no extension corgipile"
    except psycopg.OperationalError as error:
        return f"no server: {error}"


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> Iterator[None]:
    """Ctrl-C interrupts, in the tests' own children too: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def server() -> None:
    """Skips what needs a server if there is no server."""
    reason = _unreachable()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def database(server: None, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the extension, for the tests of one file."""
    name = f"py {request.module.__name__} {os.getpid()}"
    with psycopg.connect(autocommit=True) as conn:
        conn.execute(f'DROP DATABASE IF EXISTS "{name}"')
        conn.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(dbname=name, autocommit=True) as own:
            own.execute("CREATE EXTENSION corgipile")
        yield name
        conn.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def conn(database: str) -> Iterator[Any]:
    """A connection in autocommit."""
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        yield connection
