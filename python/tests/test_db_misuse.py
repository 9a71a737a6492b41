"""What `corgipile.db` is asked for wrongly is refused by the argument's name, before anything is sent or written."""

from __future__ import annotations

import asyncio
import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_db_model import DOCUMENT, LINEAR, changed

from corgipile import db
from corgipile.db import Model

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def named(database: str) -> str:
    """A table, one without its label, and a model of the first, in a database."""
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE pumps AS
               SELECT i AS id, sin(i) AS hours, sin(i) > 0.2 AS failed FROM generate_series(1, 400) AS i;
               CREATE TABLE unlabelled AS SELECT id, hours FROM pumps;"""
        )
        db.train(connection, "pumps", label="failed", features=["hours"], name="m", seed=1, max_epochs=2)
    return "m"


@pytest.mark.parametrize("x", [None, 5, "abc", b"abc", float("nan"), object()])
def test_what_is_no_rows_is_refused_by_name(x: Any) -> None:
    model = Model.from_dict(LINEAR)
    for answer in (model.predict, model.decision_function):
        with pytest.raises(TypeError, match="X: rows are needed: an array, columns by name or a list of rows, not"):
            answer(x)
    with pytest.raises(TypeError, match="X: row 1 is None, where others are dictionaries"):
        model.predict([{"km": 1.0, "load": 2.0}, None])
    with pytest.raises(TypeError, match="feature 'km', row 0: the model was trained on numbers"):
        model.predict(np.array([[1 + 2j, 0]]))


def test_labels_to_compare_with_are_one_for_each_row() -> None:
    model = Model.from_dict(LINEAR)
    for y in (None, 5, "a", [[1]]):
        with pytest.raises(ValueError, match=r"y has \d dimensions, and must be a sequence of labels"):
            model.score([[1.0, 2.0]], y)
    for y in (["a"], np.array(["a"], object)):
        with pytest.raises(TypeError, match="y: numbers are needed"):
            model.score([[1.0, 2.0]], y)


@pytest.mark.parametrize("document", [None, 5, "{}", [1], b"x"])
def test_what_is_no_document_is_refused_by_name(document: Any) -> None:
    with pytest.raises(TypeError, match=r"document: must be a dictionary, as corgipile_export and Model\.to_dict give"):
        Model.from_dict(document)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("history", 5),
        ("name", 5),
        ("source", b"t"),
        ("hyperparameters", {"winsorize": "x"}),
        ("hyperparameters", {"winsorize": -1}),
        ("hyperparameters", {"winsorize": float("nan")}),
        ("hyperparameters", {"nulls": 5}),
        ("hyperparameters", {"handle_unknown": [1]}),
        ("hyperparameters", {"transform": {"log": 5}}),
        ("hyperparameters", {"transform": {"log": [[1]]}}),
    ],
)
def test_keys_of_other_types_are_named(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"key '{key}' of the model"):
        Model.from_dict(changed(DOCUMENT, **{key: value}))
    with pytest.raises(ValueError, match="key '5' of the model is unknown"):
        Model.from_dict({**DOCUMENT, 5: 1, "strange": 2})  # type: ignore[dict-item]


def test_files_of_models_that_are_none_are_named(tmp_path: Path) -> None:
    model = Model.from_dict(LINEAR)
    for path, error in [(None, TypeError), (5, TypeError), (b"m.json", TypeError), ("", ValueError)]:
        for use in (Model.load, model.save):
            with pytest.raises(error, match="path: "):
                use(path)  # type: ignore[arg-type]
    file = tmp_path / "m.json"
    for content, told in [
        (b"\xff", "is not text in UTF-8"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"5", "is not a model"),
    ]:
        file.write_bytes(content)
        with pytest.raises(ValueError, match=f"m.json {told}"):
            Model.load(file)


def test_what_is_no_connection_is_refused_by_name() -> None:
    class Connection(psycopg.AsyncConnection):  # type: ignore[type-arg]
        """One that is never opened."""

        def __init__(self) -> None:
            """Opens nothing."""

        def __del__(self) -> None:
            """Closes nothing."""

        @property
        def info(self) -> Any:
            return type("Info", (), {"transaction_status": 0})

    for conn, told in [
        (7, "must be a connection of psycopg 3"),
        (object(), "or a connection string"),
        (Connection(), "asynchronous"),
    ]:
        calls: list[Any] = [
            lambda conn=conn: db.train(conn, "t"),
            lambda conn=conn: db.report(conn, "m"),
            lambda conn=conn: db.watch(conn, rounds=1),
            lambda conn=conn: db.running(conn),
            lambda conn=conn: Model.from_database(conn, "m"),
        ]
        for call in calls:
            with pytest.raises(TypeError, match=f"conn: .*{told}"):
                call()
    assert asyncio.iscoroutinefunction(Connection.execute)


def test_arguments_of_the_wrong_type_are_refused_by_name(conn: Any, named: str, tmp_path: Path) -> None:
    page, silent = tmp_path / "page.html", io.StringIO()

    def report(**given: Any) -> Any:
        return lambda: db.report(conn, **{"model": named, "path": page, **given})

    def watch(**given: Any) -> Any:
        return lambda: db.watch(conn, **{"rounds": 0, "file": silent, **given})

    calls: list[tuple[str, Any, Any]] = [
        ("max_rows: 'x' is not an integer", TypeError, report(max_rows="x")),
        ("max_rows: 2.5 is not an integer", TypeError, report(max_rows=2.5)),
        ("max_rows: nan is not an integer", TypeError, report(max_rows=float("nan"))),
        ("max_rows: True is not an integer", TypeError, report(max_rows=True)),
        ("max_rows: 0 is not between 1 and", ValueError, report(max_rows=0)),
        ("max_rows: .* is not between 1 and", ValueError, report(max_rows=2**64)),
        ("path: must be a path", TypeError, report(path=None)),
        ("title: must be a string", TypeError, report(title=5)),
        ("source: must be a string", TypeError, report(source=5)),
        ("source: the text is empty", ValueError, report(source=" ")),
        ("source: .* has a character", ValueError, report(source="a\0b")),
        ("model: must be a pair of name and version", ValueError, report(model=(named,))),
        ("model is a name or an id, not NoneType", TypeError, report(model=None)),
        ("version: '1' is not an integer", TypeError, report(model=(named, "1"))),
        ("version: 'x' is not an integer", TypeError, lambda: Model.from_database(conn, named, "x")),  # type: ignore[arg-type]
        ("version: 1.0 is not an integer", TypeError, lambda: Model.from_database(conn, named, 1.0)),  # type: ignore[arg-type]
        ("version: 0 is not between", ValueError, lambda: Model.from_database(conn, named, 0)),
        ("version: .* is not between", ValueError, lambda: Model.from_database(conn, named, 2**31)),
        ("model: .* has a character", ValueError, lambda: Model.from_database(conn, "a\0b")),
        ("pid: 'x' is not an integer", TypeError, lambda: db.running(conn, "x")),  # type: ignore[arg-type]
        ("interval: must be a number of seconds", TypeError, watch(interval="1")),
        ("interval: must be a number of seconds", TypeError, watch(interval=None)),
        ("interval is nan, and must be at least 0", ValueError, watch(interval=float("nan"))),
        ("interval is inf, and must be at least 0", ValueError, watch(interval=float("inf"))),
        ("rounds: '1' is not an integer", TypeError, watch(rounds="1")),
        ("rounds: -1 is not between", ValueError, watch(rounds=-1)),
        ("file: must be a file that is open", TypeError, watch(file="out.txt")),
        ("source: .* has a character", ValueError, lambda: db.train(conn, "a\0b")),
        ("source: .* has a character", ValueError, lambda: db.train(conn, "a\ud800")),
    ]
    for told, error, call in calls:
        with pytest.raises(error, match=told):
            call()
    assert not page.exists() and silent.getvalue() == ""


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1])
def test_a_seed_that_is_no_bigint_is_refused_with_its_bounds(conn: Any, named: str, seed: int) -> None:
    given: Any
    for given in ({"seed": seed}, {"options": {"seed": seed}}):
        with pytest.raises(ValueError, match=f"seed: {seed} is not between {-(2**63)} and {2**63 - 1}"):
            db.train(conn, "pumps", label="failed", **given)


def test_a_source_of_a_report_without_the_label_is_named(conn: Any, named: str, tmp_path: Path) -> None:
    for source in ("unlabelled", "SELECT hours FROM pumps"):
        with pytest.raises(ValueError, match=f"source: '{source}' has no column 'failed', which the model predicts"):
            db.report(conn, named, source, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
    # what the model was trained on has lost it meanwhile: the report is written, and says so
    conn.execute("CREATE TABLE losing AS SELECT * FROM pumps")
    db.train(conn, "losing", label="failed", features=["hours"], name="lost", max_epochs=1)
    conn.execute("ALTER TABLE losing DROP failed")
    page = db.report(conn, "lost", path=tmp_path / "page.html").read_text()
    assert "cannot be read: the source has no column &#x27;failed&#x27;, which the model predicts" in page


def test_a_transaction_that_has_failed_is_all_that_is_said(
    database: str, named: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[Any] = [
        lambda: db.train(failed, "pumps", label="failed"),
        lambda: db.report(failed, named, path=tmp_path / "page.html"),
        lambda: db.watch(failed, rounds=1, file=io.StringIO()),
        lambda: db.running(failed),
        lambda: Model.from_database(failed, named),
    ]
    with psycopg.connect(dbname=database) as failed:
        with pytest.raises(psycopg.Error):
            failed.execute("SELECT 1 / 0")
        for call in calls:
            with (
                caplog.at_level(logging.WARNING),
                pytest.raises(psycopg.errors.InFailedSqlTransaction) as caught,
            ):
                call()
            assert str(caught.value).startswith("the transaction of the connection has failed, and must be rolled back")
            assert caught.value.__context__ is None
        failed.rollback()
        assert Model.from_database(failed, named).name == named
    assert caplog.records == []


def test_an_extension_that_is_not_there_or_too_old_is_said_to_be(conn: Any) -> None:
    conn.execute("ALTER EXTENSION corgipile DROP FUNCTION corgipile_options(text)")
    try:
        with pytest.raises(LookupError, match="no function corgipile_options: ALTER EXTENSION corgipile UPDATE"):
            db.Database(conn).options()
    finally:
        conn.execute("ALTER EXTENSION corgipile ADD FUNCTION corgipile_options(text)")
    assert db.Database(conn).options("svm").rows
    with (
        psycopg.connect(dbname="template1") as without,
        pytest.raises(LookupError, match="the database has no extension corgipile: CREATE EXTENSION corgipile"),
    ):
        db.Database(without).options()
