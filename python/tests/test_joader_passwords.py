"""Passwords of databases: JOADER's servers neither get, keep nor show them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from joader_fixtures import Serve, Server

import corgipile
from corgipile import _native, joader

SECRET = "geheim123"
WITH_PASSWORD = [
    f"host=127.0.0.1 port=1 dbname=d password={SECRET}",
    f"host=127.0.0.1 port=1 password = '{SECRET} x'",
    f"postgresql://me:{SECRET}@127.0.0.1:1/d",
    f"postgresql://127.0.0.1:1/d?password={SECRET}",
    f"host=127.0.0.1 port=1 sslpassword={SECRET}",
]


def text_of(connection: str) -> str:
    return json.dumps({"kind": "postgres", "arguments": [connection, "t", None, None, None, "auto", None]})


def put(address: str, source: str) -> Any:
    return _native.joader_put(address, "t", source, columns=[], element_size="auto", sampler="", replaces=False)


@pytest.mark.parametrize("connection", WITH_PASSWORD)
def test_a_server_refuses_a_connection_string_with_a_password(serve: Serve, tmp_path: Path, connection: str) -> None:
    file = tmp_path / "data sets"
    address = serve(datasets=file)
    with pytest.raises(ValueError, match=r"connection: it has a password.*pgpass.*service") as refused:
        put(address, text_of(connection))
    assert SECRET not in str(refused.value)
    assert SECRET not in file.read_text() and joader.datasets(address) == []


@pytest.mark.parametrize(
    "source",
    [
        f"postgresql://me:{SECRET}@h/d",
        json.dumps({"kind": "postgresql", "arguments": [f"password={SECRET}"]}),
        text_of(f"password=my {SECRET} host=h"),
        text_of(f"postgresql://me:%zz{SECRET}@h/d"),
    ],
)
def test_what_a_server_says_of_a_source_that_it_does_not_know_shows_no_password(serve: Serve, source: str) -> None:
    with pytest.raises(ValueError) as refused:
        put(serve(), source)
    assert SECRET not in str(refused.value)


def test_a_password_is_not_sent(database: str, conn: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATABASE", database)
    conn.execute("CREATE TABLE secrets AS SELECT i AS number FROM generate_series(0, 9) i")
    source = corgipile.postgres("secrets", connection=f"password={SECRET}")
    # where no one serves: it is refused before anybody could hear it
    with pytest.raises(ValueError, match="connection: it has a password"):
        joader.create(str(tmp_path / "nobody"), "rows", source)


def test_a_password_comes_from_where_server_and_job_run(
    database: str, conn: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, passwords = tmp_path / "data sets", tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:*:{SECRET}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGDATABASE", database)
    conn.execute("CREATE TABLE referred AS SELECT i AS number FROM generate_series(0, 9) i")
    address = str(tmp_path / "socket")
    server = Server(address, datasets=file)
    try:
        source = corgipile.postgres("referred", connection=f"passfile='{passwords}'")
        joader.create(address, "rows", source)
        job = joader.Job(address, dataset="rows", epochs=1)
        assert sorted(number for batch in job for number in batch["number"].tolist()) == list(range(10))
        job.close()
        assert str(passwords) in file.read_text() and SECRET not in file.read_text()
        assert SECRET not in json.dumps([joader.datasets(address), joader.status(address)])
    finally:
        server.stop()


def test_a_data_set_of_before_with_a_password_is_not_opened_and_says_why(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "data sets"
    of = {"name": "t", "source": text_of(WITH_PASSWORD[0]), "columns": [], "element_size": "auto", "sampler": ""}
    file.write_text(json.dumps({"version": 1, "data_sets": [of]}))
    file.chmod(0o600)
    address = serve(datasets=file)
    (found,) = joader.datasets(address)
    assert found["error"].startswith("connection: it has a password") and SECRET not in found["error"]
    joader.drop(address, "t")
    assert SECRET not in file.read_text()
