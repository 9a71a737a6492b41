"""`columns`: what a training would make of each column, as the server says it."""

from __future__ import annotations

from typing import Any

import pytest

from corgipile import db

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
        "left out", "category", "number", "number", "left out", "label"
    ]  # fmt: skip
    assert rows(found)[3]["reason"].startswith("text as numbers: '?' ")
    assert rows(found)[2]["null_fraction"] == 0.25


def test_options_change_the_roles(conn: Any) -> None:
    features = ["seen", "genre"]
    found = rows(db.columns(conn, "films", label="good", features=features, date_parts=["dow"], weight="stars"))
    assert {row["name"]: row["role"] for row in found} == {
        "id": "left out", "genre": "category", "stars": "other argument", "minutes": "left out", "seen": "date parts",
        "good": "label",
    }  # fmt: skip


def test_a_query_has_the_columns_that_it_selects(conn: Any) -> None:
    found = db.columns(conn, "SELECT genre FROM films")
    assert type(found) is db.Table
    assert (found["name"], found["distinct_values"], found["based_on"]) == (["genre"], [2], ["all 2000 rows"])


def test_what_is_wrong_is_said_by_name(conn: Any) -> None:
    with pytest.raises(TypeError, match=r"source: the name of a table, a query, .* is needed, not 7"):
        db.columns(conn, 7)  # type: ignore[arg-type]
    with pytest.raises(psycopg.errors.UndefinedColumn, match="bad"):
        db.columns(conn, "films", label="bad")
    conn.rollback()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="wieght"):
        db.columns(conn, "films", wieght="stars")


def rows(found: db.Table) -> list[dict[str, Any]]:
    """The rows as dicts."""
    return found.to_dicts()
