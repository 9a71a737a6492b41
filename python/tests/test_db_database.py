"""`Database`: any kind of connection, any kind of source, every function of SQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from corgipile import db

psycopg = pytest.importorskip("psycopg")

KINDS = ["psycopg", "psycopg, committing", "psycopg2", "psycopg2, committing", "text", "engine", "engine of psycopg2",
         "connection", "connection of psycopg2", "session"]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def tables(database: str) -> None:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE pumps AS
               SELECT i AS id, sin(i) AS hours, cos(i * 7) AS load, (ARRAY['100% mine', 'quarry'])[1 + i % 2] AS site,
                      sin(i) + (i % 2) > 0.5 AS failed, 2 * sin(i) - cos(i * 7) AS litres
                 FROM generate_series(1, 1000) AS i"""
        )


def opened(kind: str, database: str) -> Iterator[Any]:
    """A connection of a kind."""
    address = str_of(database)
    if kind.startswith("psycopg2"):
        connection = pytest.importorskip("psycopg2").connect(address)
        connection.autocommit = "committing" in kind
        yield connection
        connection.close()
    elif kind.startswith("psycopg"):
        with psycopg.connect(address, autocommit="committing" in kind) as connection:
            yield connection
    elif kind == "text":
        yield address
    else:
        sqlalchemy = pytest.importorskip("sqlalchemy")
        driver = "psycopg2" if "psycopg2" in kind else "psycopg"
        pytest.importorskip(driver)
        engine = sqlalchemy.create_engine(
            sqlalchemy.URL.create(f"postgresql+{driver}", database=database, query={"host": os.environ["PGHOST"]})
        )
        if kind.startswith("engine"):
            yield engine
        elif kind == "session":
            with pytest.importorskip("sqlalchemy.orm").Session(engine) as session:
                yield session
        else:
            with engine.connect() as connection:
                yield connection
        engine.dispose()


@pytest.fixture(params=KINDS)
def given(request: pytest.FixtureRequest, database: str) -> Iterator[Any]:
    """A connection of each kind."""
    yield from opened(request.param, database)


def str_of(database: str) -> str:
    return f"host={os.environ['PGHOST']} dbname='{database}'"


FEATURES = ["hours", "load", "site"]


def names(conn: Any) -> list[str]:
    return [row[0] for row in conn.execute("SELECT name FROM corgipile.models")]


def test_connections_of_every_kind_train_and_predict(given: Any, conn: Any, request: pytest.FixtureRequest) -> None:
    name = f"of {request.node.callspec.params['given']}"
    epochs = db.train(given, "pumps", label="failed", features=FEATURES, name=name, max_epochs=3, seed=1)
    assert epochs["epoch"] == [1, 2, 3] and epochs.name == name
    assert any(notice.message.startswith("learning rate") for notice in epochs.notices)
    assert all(notice.severity == "NOTICE" for notice in epochs.notices)
    if name != "of session":  # whose transaction is the user's
        assert name in names(conn)
    model = epochs.model(given)
    at = db.Database(given)
    frame = {"hours": [0.5, -0.9], "load": [0.1, 0.2], "site": ["quarry", "100% mine"]}
    expected = [{True: "t", False: "f"}[bool(label)] for label in model.predict(frame)]
    assert at.predict(epochs, frame)["prediction"] == expected
    metrics = dict(at.evaluate(name, "pumps").rows)
    assert metrics["accuracy"] > 0.9
    with pytest.raises(Exception, match="nowhere") as error:
        at.evaluate(name, "nowhere")
    assert type(error.value).__module__.startswith("psycopg")
    # and the connection can still be used
    assert at.list()["name"][0] == name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("text", "engine", "engine of psycopg2")])
def test_a_training_is_a_part_of_the_transaction_of_its_connection(kind: str, database: str, conn: Any) -> None:
    for given in opened(kind, database):
        name = f"transaction of {kind}"
        execute = getattr(given, "execute", None) or given.cursor().execute
        statement = "BEGIN" if "committing" in kind else "SELECT 1"
        if hasattr(given, "get_bind") or hasattr(given, "exec_driver_sql"):
            execute(pytest.importorskip("sqlalchemy").text("SELECT 1"))
        else:
            execute(statement)
        with pytest.raises(Exception, match="nowhere"):
            db.train(given, "nowhere", label="failed")  # is undone by itself
        db.train(given, "pumps", label="failed", features=FEATURES, name=name, max_epochs=1)
        assert name in db.Database(given).list()["name"]
        assert name not in names(conn)
        execute("ROLLBACK") if "committing" in kind else given.rollback()
        assert name not in names(conn)
        db.train(given, "pumps", label="failed", features=FEATURES, name=name, max_epochs=1)
        if kind != "session":
            assert name in names(conn)


def test_other_things_are_no_connections(database: str) -> None:
    for given in (7, object(), {}, b"dbname=x"):
        with pytest.raises(TypeError, match="conn: must be a connection of psycopg 3"):
            db.train(given, "pumps")
    connection = pytest.importorskip("psycopg2").connect(host=os.environ["PGHOST"], dbname=database)
    with pytest.raises(Exception, match="syntax"):
        connection.cursor().execute("nonsense")
    with pytest.raises(Exception, match="must be rolled back first"):
        db.train(connection, "pumps")
    connection.close()


def test_connections_made_to_measure(database: str) -> None:
    """Classes derived from a driver's, URLs, JSON as text, and notices in whatever the user keeps them."""
    sa, psycopg2 = pytest.importorskip("sqlalchemy"), pytest.importorskip("psycopg2")
    from sqlalchemy.orm import Session

    url = sa.URL.create("postgresql+psycopg", database=database, query={"host": os.environ["PGHOST"]})
    engine = sa.create_engine(url)
    for given in (type("Mine", (Session,), {})(engine), url):
        assert db.Database(given).list().columns[0] == "model_id"
    engine.dispose()
    connection = psycopg2.connect(host=os.environ["PGHOST"], dbname=database)
    __import__("psycopg2.extras").extras.register_default_jsonb(connection, loads=str)
    kept: deque[Any] = deque(["mine"])
    connection.notices = kept
    epochs = db.train(connection, "pumps", label="failed", name="measured", max_epochs=1)
    assert list(kept) == ["mine"] and connection.notices is kept
    assert [str(notice) for notice in epochs.notices] == [
        str(notice) for notice in db.train(str_of(database), "pumps", label="failed", max_epochs=1).notices
    ]
    assert epochs.model(connection).label == db.Database(connection).export("measured")["label"] == "failed"
    with db._connections.connected(connection) as conn, db._connections.notices(conn, kept.append):
        conn.execute("DO $$BEGIN FOR i IN 1..70 LOOP RAISE NOTICE 'n' USING HINT = 'h'; END LOOP; END$$")
    assert list(kept)[1:] == [db.Notice("NOTICE", "n", "h")] * 70
    connection.close()


def test_a_failed_call_within_another_leaves_nothing(database: str) -> None:
    """A savepoint that was rolled back to is not taken for the one around it."""
    for given in opened("psycopg2", database):
        with db._connections.connected(given) as conn:
            conn.execute("SELECT 1")
            for _ in range(2):
                with pytest.raises(Exception, match="nonsense"), conn.transaction():
                    conn.execute("CREATE TEMPORARY TABLE left_over (a int)")
                    db.train(given, "pumps", label="failed", model="nonsense")
            assert conn.execute("SELECT to_regclass('left_over')").fetchone() == (None,)


# --- sources


def frames() -> dict[str, Any]:
    """The same rows as each kind of frame."""
    generator = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "label": [int(number) for number in generator.integers(0, 3, 300)],
        "x y": [float(number) for number in generator.normal(size=300)],
        "site": [["mine", None, "100% 'q\\"][i % 3] for i in range(300)],
        "on": [bool(i % 2) for i in range(300)],
        "at": [datetime(2024, 1 + i % 12, 1, tzinfo=timezone.utc) for i in range(300)],
    }
    made: dict[str, Any] = {"dict": columns}
    try:
        import pandas

        made["pandas"] = pandas.DataFrame(columns)
    except ImportError:
        pass
    try:
        import polars

        made["polars"] = polars.DataFrame(columns)
        made["lazy"] = made["polars"].lazy()
    except ImportError:
        pass
    try:
        import pyarrow

        made["pyarrow"] = pyarrow.table(columns)
    except ImportError:
        pass
    return made


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "lazy", "pyarrow"])
def test_frames_are_loaded_and_leave_nothing(kind: str, driver: str, database: str) -> None:
    frame = frames().get(kind)
    if frame is None:
        pytest.skip(f"{kind} is not installed")
    for given in opened(driver, database):
        described = {row["name"]: row["type"] for row in db.columns(given, frame, label="label").to_dicts()}
        assert described == {
            "label": "bigint", "x y": "double precision", "site": "text", "on": "boolean",
            "at": "timestamp with time zone",
        }  # fmt: skip
        how: dict[str, Any] = {"model": "softmax", "label": "label", "max_epochs": 2, "seed": 1}
        epochs = db.train(given, frame, features=["x y", "site", "on"], **how)
        classes: Any = epochs.model(given).classes
        assert epochs["tuples"] == [300, 300] and classes.tolist() == [0, 1, 2]
        again = db.train(given, frames()["dict"], features=["x y", "site", "on"], **how)
        assert again["loss"] == epochs["loss"]
        with db._connections.connected(given) as conn:
            left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'corgipile_frame%%'"
            assert conn.execute(left, []).fetchone() == (0,)


def test_arrays_in_a_frame_are_one_column_of_features(conn: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 5))
    frame = {"label": (rows[:, 0] > 0).tolist(), "x": list(rows)}
    assert db.train(conn, frame, label="label", features=["x"], max_epochs=5)["accuracy"][-1] > 0.9


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({}, "source: it has no columns"),
        ({"a": [1], "b": []}, "source: its columns have different lengths"),
        ({"": [1]}, "source: a table can have no column ''"),
        ({"x" * 64: [1]}, "source: a table can have no column 'x+'"),
        ({"a": [{}]}, "column 'a' has dict"),
        ({"a": [1, "x"]}, "column 'a' has values of several types"),
        ({"a": [b"1"]}, "column 'a' has bytes"),
        ({"a": np.array([1], "m8[s]")}, "column 'a' has timedelta64"),
        ({"a": [10**400]}, "column 'a', row 0: the number is out of range for type float8"),
        ({"a": [[1.0], ["x"]]}, "column 'a', row 1: list is no value of a column of type float8"),
        ({"b": [1, 2], "a": ["x", "\ud800"]}, "column 'a', row 1: .* is not valid Unicode text"),
        ({"\ud800": [1]}, "source: a table can have no column"),
        ({"a": "abc"}, "source: column 'a' is 'abc', where a sequence of values is needed"),
        ({"a": 3}, "source: column 'a' is 3, where a sequence of values is needed"),
        ([1, 2], "source: the name of a table, a query, .* is needed, not list"),
    ],
)
def test_frames_that_no_table_can_be_are_refused(conn: Any, frame: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        db.train(conn, frame, label="a")


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_values_of_frames_arrive_as_they_are(driver: str, database: str) -> None:
    at = datetime(2024, 3, 4, 5, 6, 7, 8)
    frame: dict[str, Any] = {
        "é %s": ["ü", 'a\n\\.\n"b",\t'],
        "naive": [at, None],
        "aware": [at.replace(tzinfo=timezone.utc), None],
        "days": np.array(["2024-03-04", "NaT"], "M8[D]"),
        "moments": np.array([at, "NaT"], "M8[ns]"),
        "whole": [2**63 - 1, None],
        "wide": [2**63, Decimal("0.1")],
        "real": [5e-324, float("nan")],
        "lists": [[0.1, None, float("inf")], None],
    }
    day = at.date()
    expected = [
        ("ü", at, at.replace(tzinfo=timezone.utc), day, at, 2**63 - 1, 2.0**63, 5e-324, [0.1, None, float("inf")]),
        (frame["é %s"][1], *[None] * 5, 0.1, None, None),
    ]
    for given in opened(driver, database):
        given.cursor().execute("SET datestyle = 'German'; SET timezone = 'UTC'")
        if driver == "psycopg2":
            given.set_client_encoding("LATIN1")  # what SET does to it, psycopg2 does not see
        else:
            given.execute("SET client_encoding = latin1")
        with db._connections.connected(given) as conn, conn.transaction(), db._given.sourced(conn, frame) as name:
            conn.execute("SET LOCAL datestyle = 'ISO'")
            cursor = conn.execute(f"SELECT * FROM {name}")
            assert [column.name for column in cursor.description] == list(frame)
            assert cursor.fetchall() == expected


def test_what_sqlalchemy_selects_is_a_source(conn: Any) -> None:
    sa = pytest.importorskip("sqlalchemy")
    conn.execute('CREATE SCHEMA IF NOT EXISTS "Odd"')
    conn.execute('CREATE TABLE "Odd"."My pumps" AS SELECT * FROM pumps')
    columns = [sa.column(name) for name in (*FEATURES, "failed")]
    table = sa.Table("My pumps", sa.MetaData(), *[sa.Column(c.name) for c in columns], schema="Odd")
    few = sa.select(table).where(sa.or_(table.c.site == "100% mine", table.c.hours > 0.5))
    count = conn.execute("SELECT count(*) FROM pumps WHERE site = '100%% mine' OR hours > 0.5", []).fetchone()[0]
    like = sa.text("SELECT * FROM pumps WHERE site LIKE :site")
    orm = pytest.importorskip("sqlalchemy.orm")
    mapped = orm.registry().map_imperatively(type("Pump", (), {}), table, primary_key=[table.c.hours]).class_
    for source, rows in (
        (table, 1000),
        (sa.table("My pumps", schema="Odd"), 1000),
        (mapped, 1000),
        (orm.Session().query(mapped), 1000),
        (table.alias("a"), 1000),
        (few, count),
        (few.subquery(), count),
        (few.cte("few"), count),
        (like.bindparams(site="100%"), 500),
        (sa.values(*columns[:2], columns[3], name="v").data([(1.0, 2.0, True), (2.0, 1.0, False)]), 2),
    ):
        features = FEATURES[:2] if rows == 2 else FEATURES
        assert db.train(conn, source, label="failed", features=features, max_epochs=1)["tuples"] == [rows]
    with pytest.raises(ValueError, match="source: its parameter 'site' has no value"):
        db.train(conn, like, label="failed")
    for source in (sa.insert(table), table.c.hours):
        with pytest.raises(TypeError, match="source: what SQLAlchemy selects rows by is needed, not"):
            db.train(conn, source, label="failed")


# --- every function


def test_every_function_of_sql_has_a_method(conn: Any, database: str, tmp_path: Any) -> None:
    at = db.Database(f"dbname='{database}'")
    epochs = at.train("pumps", label="failed", features=FEATURES, name="all", max_epochs=3, seed=1)
    first = epochs.model_id
    at.train("pumps", label="failed", features=FEATURES, name="all", max_epochs=2, seed=1, validation_fraction=0.2)

    def same(table: db.Table, query: str) -> None:
        assert type(table) is db.Table
        assert table.rows == conn.execute(query).fetchall()

    same(at.evaluate("all", "pumps"), "SELECT * FROM corgipile_evaluate('all', 'pumps')")
    same(at.evaluate(("all", 1), "pumps"), f"SELECT * FROM corgipile_evaluate({first}, 'pumps')")
    same(
        at.evaluate(epochs, "pumps", positive="t"),
        f"SELECT * FROM corgipile_evaluate({first}, 'pumps', positive => 't')",
    )
    same(at.confusion("all", "pumps"), "SELECT * FROM corgipile_confusion('all', 'pumps')")
    same(at.curves("all", "pumps"), "SELECT * FROM corgipile_curves('all', 'pumps')")
    same(at.importance("all", "pumps", seed=1), "SELECT * FROM corgipile_importance('all', 'pumps', seed => 1)")
    same(at.coefficients("all", "pumps"), "SELECT * FROM corgipile_coefficients('all', 'pumps')")
    same(at.drift("all", "pumps"), "SELECT * FROM corgipile_drift('all', 'pumps')")
    same(at.columns("pumps", label="failed"), "SELECT * FROM corgipile_columns('pumps', 'failed')")
    same(at.options("svm"), "SELECT * FROM corgipile_options('svm')")
    assert len(at.calibrate("all", "pumps")) == len(at.profile("all", "pumps")) == 1
    assert at.cluster_factor("pumps", label="failed") == pytest.approx(
        conn.execute("SELECT corgipile_cluster_factor('pumps', label => 'failed')").fetchone()[0]
    )
    found = at.search(
        "pumps", label="failed", features=FEATURES, grid={"l2": [0.0, 0.1]}, folds=3, max_epochs=2, seed=1
    )
    assert found["rank"] == [1, 2] and {point["l2"] for point in found["grid_point"]} == {0.0, 0.1}
    # predictions
    query = "SELECT * FROM pumps WHERE site LIKE '100%' ORDER BY id LIMIT 5"
    predicted = at.predict("all", query, keep=["id", "failed"], proba=True)
    assert predicted.columns == ["id", "failed", "prediction", "probabilities"] and len(predicted) == 5
    expected = f"SELECT corgipile_predict_label('all', p), corgipile_predict_proba('all', p) FROM ({query}) AS p"
    assert [row[2:] for row in predicted.rows] == conn.execute(expected).fetchall()
    same(
        at.explain("all", query),
        f"SELECT n, e.* FROM (SELECT row_number() OVER () AS n, p FROM ({query}) AS p) AS r, "
        "corgipile_explain('all', r.p) AS e ORDER BY n",
    )
    # a model that is not in the database
    loose = db.Model.from_dict(at.export("all"))
    assert at.predict(loose, query)["prediction"] == predicted["prediction"]
    with pytest.raises(ValueError, match=r"model: is not in the database: import_model\(\) stores it"):
        at.evaluate(loose, "pumps")
    # management
    imported = at.import_model(loose, "copied")
    assert at.list()["model_id"][0] == imported and at.list()["name"][0] == "copied"
    assert at.deploy("all", 1) == first and at.model("all").version == 1
    at.comment(imported, "100% 'odd'")
    assert at.list()["comment"][0] == "100% 'odd'"
    at.rename("copied", "renamed")
    at.grant("renamed", "public", "predict")
    at.revoke("renamed", "public")
    assert at.drop("renamed") == 1 and at.drop(epochs) == 1
    assert at.export_onnx("all")[:1] == b"\x08" and at.export("all")["label"] == "failed"
    conn.execute(
        """CREATE TABLE repeated AS
           SELECT i % 2 AS label, ARRAY[i % 3, i % 5]::float8[] AS x FROM generate_series(1, 999) i"""
    )
    assert at.compression_report("repeated", features=["x"])["encoding"]
    at.compress("repeated", "small", features=["x"])
    conn.execute("CREATE TABLE wide AS SELECT repeat('x', 1000) AS filler FROM generate_series(1, 1000)")
    assert len(at.io_profile("wide", max_seconds=0.1)) > 0
    conn.execute("CREATE TABLE spread AS SELECT i % 2 AS y, i AS x, filler FROM wide, generate_series(1, 2) i")
    assert sum(at.advise("spread", label="y", features=["x"], max_seconds=0.1)["recommended"]) == 1
    # sessions in other databases may train meanwhile
    assert [run for run in at.running() if run.database == database] == []
    assert at.report("all", "pumps", tmp_path / "all.html").exists()
    assert repr(at) == "<corgipile.db.Database by connection string>"
    # what it does not know
    with pytest.raises(TypeError, match="wieght_type: corgipile_coefficients has no such argument; it has"):
        at.coefficients("all", "pumps", wieght_type="x")
    with pytest.raises(TypeError, match="repeats: must be of SQL's type integer, not str"):
        at.importance("all", "pumps", repeats="many")


def test_no_function_of_the_extension_is_forgotten(conn: Any) -> None:
    """Those without a method are the parts of queries, or what only owners of a whole server need."""
    query = """SELECT DISTINCT p.proname FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
                JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'corgipile'
               WHERE p.proname LIKE 'corgipile\\_%' AND p.pronamespace = 'public'::regnamespace"""
    functions = {name.removeprefix("corgipile_") for (name,) in conn.execute(query)}
    assert len(functions) > 40
    without = {
        "predict_label", "predict_proba", "predict_interval", "predict_set", "shuffle", "shuffle_order", "sgd_agg",
        "sgd_agg_typed", "sgd_init", "sgd_intercepts", "sgd_report", "sgd_weights", "support", "times_toc", "train_uda",
        "train_in_steps", "drop_owned", "reassign_owned", "import",
    }  # fmt: skip
    left = {name for name in functions - without if not name.startswith("toc") and not hasattr(db.Database, name)}
    assert left == set()


# --- progress, and Ctrl-C

LONG = """
import sys
from corgipile import db
sys.path.insert(0, {tests!r})
from test_db_database import opened
for given in opened({kind!r}, {database!r}):
    print("ready", flush=True)
    try:
        db.Database(given).{call}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(db.Database(given).list()["name"], flush=True)
"""


@pytest.mark.alone
@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("psycopg2", "train('pumps', label='failed', features=['hours'], max_epochs=1000000, learning_rate=1e-6)"),
        ("engine of psycopg2", "evaluate('long', 'SELECT p.* FROM pumps p, pg_sleep(100)')"),
        ("engine", "search('pumps', label='failed', features=['hours'], grid={'l2': [0, 1]}, max_epochs=1000000)"),
        ("text", "evaluate('long', 'SELECT p.* FROM pumps p, pg_sleep(100)')"),
    ],
)
def test_ctrl_c_ends_the_statement_in_the_server(kind: str, call: str, database: str, conn: Any) -> None:
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg2")
    db.train(conn, "pumps", label="failed", features=["hours"], name="long", max_epochs=1)
    code = LONG.format(tests=os.path.dirname(__file__), kind=kind, database=database, call=call)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    busy = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
                AND pid <> pg_backend_pid() AND query LIKE '%corgipile\\_%' AND now() - query_start > '0.3 s'"""
    deadline = time.monotonic() + 60
    while conn.execute(busy).fetchone() == (0,) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert "'long'" in process.stdout.readline()
    assert process.wait(timeout=60) == 0
    assert conn.execute(busy).fetchone() == (0,)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_every_long_call_may_have_a_bar(driver: str, database: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    for given in opened(driver, database):
        at = db.Database(given)
        at.train("pumps", label="failed", features=FEATURES, name="bars", max_epochs=2, progress=True)
        assert "2.0/2 epochs" in capsys.readouterr().err
        at.evaluate("bars", "pumps", progress=True)
        assert "evaluate: 100%" in capsys.readouterr().err
        at.predict("bars", "pumps", progress=True)
        assert "predictions: 100%" in capsys.readouterr().err
        at.evaluate("bars", "pumps")
        assert capsys.readouterr().err == ""


def test_a_table_is_shown_in_notebooks_and_as_json(conn: Any) -> None:
    db.train(conn, "pumps", label="failed", features=FEATURES, name="shown", max_epochs=1)
    found = db.Database(conn).list()
    assert "<td>shown</td>" in found._repr_html_() and "shown" in repr(found)
    assert "name" in found._ipython_key_completions_()
    assert json.dumps(found["name"])
    assert db.Database(conn).evaluate("shown", "pumps").to_arrow().column_names == ["metric", "value"]
