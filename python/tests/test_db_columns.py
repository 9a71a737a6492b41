"""`columns`: what a training would make of each column, as the server says it."""

from __future__ import annotations

from typing import Any

import pytest

from corgipile import db
from corgipile.db import _columns

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module", autouse=True)
def tables(database: str) -> None:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE films AS
               SELECT i AS id, (ARRAY['drama', 'comedy'])[1 + i % 2] AS genre, nullif(i % 4, 0) AS stars,
                      CASE WHEN i % 7 = 0 THEN '?' ELSE (i % 90)::text END AS minutes, now() AS seen, i % 3 = 0 AS good
                 FROM generate_series(1, 2000) AS i"""
        )


def test_the_rows_are_those_of_the_server(conn: Any) -> None:
    found = db.columns(conn, "films", label="good")
    cursor = conn.execute("SELECT * FROM corgipile_columns('films', 'good')")
    names = [column.name for column in cursor.description]
    assert [tuple(row[name] for name in names) for row in rows(found)] == cursor.fetchall()
    assert [row["role"] for row in rows(found)] == [
        "left out", "category", "number", "category", "left out", "label"
    ]  # fmt: skip
    assert rows(found)[3]["expression"] == "NULLIF(minutes, '?')::float8"
    assert rows(found)[2]["null_fraction"] == 0.25


def test_options_change_the_roles(conn: Any) -> None:
    features = ["seen", "genre"]
    found = rows(db.columns(conn, "films", label="good", features=features, date_parts=["dow"], weight="stars"))
    assert {row["name"]: row["role"] for row in found} == {
        "id": "left out", "genre": "category", "stars": "other argument", "minutes": "left out", "seen": "date parts",
        "good": "label",
    }  # fmt: skip


def test_without_pandas_rows_are_dicts(conn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_columns, "optional", lambda name: None)
    found = db.columns(conn, "SELECT genre FROM films")
    assert isinstance(found, list)
    assert [(row["name"], row["distinct_values"], row["based_on"]) for row in found] == [("genre", 2, "all 2000 rows")]


def test_what_is_wrong_is_said_by_name(conn: Any) -> None:
    with pytest.raises(TypeError, match="source is the name of a table or a query, not int"):
        db.columns(conn, 7)  # type: ignore[arg-type]
    with pytest.raises(psycopg.errors.UndefinedColumn, match="bad"):
        db.columns(conn, "films", label="bad")
    conn.rollback()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="wieght"):
        db.columns(conn, "films", wieght="stars")


def rows(found: Any) -> list[dict[str, Any]]:
    """The rows as dicts, with None for what a data frame has as NaN."""
    if isinstance(found, list):
        return found
    records = found.astype(object).to_dict("records")
    return [{name: None if value != value else value for name, value in row.items()} for row in records]
