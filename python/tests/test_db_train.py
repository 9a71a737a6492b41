"""`train`, `watch` and `Model.from_database` against a server: the results, and what is left when it goes wrong."""

from __future__ import annotations

import io
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from joader_fixtures import until

from corgipile import db
from corgipile.db import _progress, _training

psycopg = pytest.importorskip("psycopg")

LONG = {"max_epochs": 1_000_000, "learning_rate": 1e-6}


@pytest.fixture(scope="module", autouse=True)
def tables(database: str) -> None:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE pumps AS
               SELECT i AS id, sin(i) AS hours, cos(i * 7) AS load, (ARRAY['mine', 'quarry'])[1 + i % 2] AS site,
                      sin(i) + (i % 2) > 0.5 AS failed, 2 * sin(i) - cos(i * 7) AS litres, i % 4 = 0 AS held
                 FROM generate_series(1, 4000) AS i"""
        )
        connection.execute(
            """CREATE TABLE wide AS SELECT (i % 2)::int AS label, array_fill(sin(i)::real, ARRAY[50]) AS x
                 FROM generate_series(1, 20000) AS i"""
        )
        connection.execute("VACUUM ANALYZE")


def pumps(conn: Any, **arguments: Any) -> Any:
    given = {"label": "failed", "features": ["hours", "load", "site"], "max_epochs": 4, "seed": 1, **arguments}
    return db.train(conn, "pumps", **given)


def models(conn: Any) -> int:
    return conn.execute("SELECT count(*) FROM corgipile.models").fetchone()[0]


def test_the_epochs_come_back_as_the_database_keeps_them(conn: Any) -> None:
    epochs = pumps(conn, name="epochs", validation_fraction=0.2)
    query = "SELECT epoch, loss, validation_loss, tuples FROM corgipile.training_history WHERE model_id = %s ORDER BY 1"
    kept = conn.execute(query, [epochs.model_id]).fetchall()
    columns = ("epoch", "loss", "validation_loss", "tuples")
    assert list(zip(*(list(epochs[column]) for column in columns))) == kept
    assert (len(kept), epochs.name, epochs.source) == (4, "epochs", "pumps")
    assert any(notice.message.startswith("learning rate") for notice in epochs.notices)
    assert epochs.model(conn).predict({"hours": [0.9], "load": [0.1], "site": ["quarry"]}).tolist() == [True]


def test_the_table_is_of_one_type_whatever_is_installed(conn: Any) -> None:
    epochs = pumps(conn, name="<small>")
    assert type(epochs) is db.Epochs and isinstance(epochs, db.Table)
    same = pickle.loads(pickle.dumps(epochs))
    assert same == epochs and (same.name, same.model_id, same.notices) == ("<small>", epochs.model_id, epochs.notices)
    assert epochs["epoch"] == [1, 2, 3, 4] and len(epochs) == 4 and "loss" in list(epochs)
    assert repr(epochs).splitlines()[0].split()[:3] == ["model_id", "epoch", "loss"]
    with pytest.raises(KeyError, match="'lost'; columns are model_id, epoch"):
        epochs["lost"]
    pytest.importorskip("pandas")
    assert list(epochs.to_pandas()["loss"]) == epochs["loss"]
    pytest.importorskip("pyarrow")
    assert epochs.to_arrow().column("loss").to_pylist() == epochs["loss"]
    assert epochs.to_dicts()[0]["epoch"] == 1
    page = db.Table(["<name>"], [["<b>"]] * 30)._repr_html_()
    assert "<th>&lt;name&gt;</th>" in page and page.count("&lt;b&gt;") == 20 and "30 rows" in page


def test_a_training_is_a_transaction_of_its_own_or_a_part_of_the_users(database: str) -> None:
    with psycopg.connect(dbname=database) as connection:
        pumps(connection, name="committed")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        connection.execute("SELECT 1")
        pumps(connection, name="rolled back")
        connection.rollback()
        names = [row[0] for row in connection.execute("SELECT name FROM corgipile.models")]
        assert "committed" in names and "rolled back" not in names


def test_every_argument_and_option_reaches_the_server(conn: Any) -> None:
    epochs = pumps(
        conn, model="mlp", name="all", hidden_layer_sizes=[3, 2], class_weight="balanced", l2=0.001,
        optimizer="momentum", momentum=0.5, validation_column="held", options={"activation": "tanh"}, learning_rate=0.1,
    )  # fmt: skip
    model = epochs.model(conn)
    assert {k: model.hyperparameters[k] for k in ("l2", "momentum", "activation", "validation_column")} == {
        "l2": 0.001, "momentum": 0.5, "activation": "tanh", "validation_column": "held",
    }  # fmt: skip
    assert model.to_dict()["hidden_layer_sizes"] == [3, 2]
    assert set(epochs["tuples"]) == {3000}
    grid = pumps(conn, grid={"l2": [0.1, 0.2]}, name="grid", group_by="site", features=["hours", "load"])
    assert len(grid.model_ids) == 4 and grid.names[grid.model_ids[0]] == "grid/mine/1"
    with pytest.raises(ValueError, match="4 models were trained"):
        _ = grid.model_id
    same = pumps(
        conn, max_epochs=np.int32(2), learning_rate=np.float32(0.5), features=np.array(["hours", "load"]), l2=0
    )
    assert len(same) == 2 and same.model(conn).features == ["hours", "load"]
    assert pumps(conn, features="hours", standardize="auto").model(conn).features == ["hours"]
    layers = pumps(conn, model="mlp", hidden_layer_sizes=(np.int64(4),), max_epochs=1).model(conn)
    assert layers.to_dict()["hidden_layer_sizes"] == [4]
    weighted = db.train(conn, "wide", class_weight={"1": 3, "0": 1}, max_epochs=1)
    assert weighted.model(conn).hyperparameters["class_weight"] == {"0": 1.0, "1": 3.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_epoch": 3}, "max_epoch"),
        ({"features": ["nowhere"]}, "nowhere"),
        ({"label": 'x" FROM pumps; DROP TABLE pumps; --'}, "DROP TABLE"),
        ({"name": ""}, "name"),
        ({"max_epochs": 2.5}, "max_epochs"),
        ({"max_epochs": "three"}, "max_epochs"),
        ({"max_epochs": 2**70}, "max_epochs"),
        ({"seed": True}, "seed"),
        ({"l2": "much"}, "l2"),
        ({"features": [1, 2]}, "features"),
        ({"model": 3}, "model"),
        ({"standardize": "perhaps"}, "standardize"),
        ({"hidden_layer_sizes": [2]}, "hidden_layer_sizes"),
    ],
)
def test_what_the_server_refuses_is_its_error_and_nothing_is_left(conn: Any, arguments: Any, message: str) -> None:
    before = models(conn)
    with pytest.raises(psycopg.Error, match=message):
        pumps(conn, **arguments)
    assert models(conn) == before
    assert conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_names_with_quotes_percents_and_newlines_are_only_names(conn: Any) -> None:
    name, table, column = 'it\'s "a" %s {x}\n<b>; --', 'odd "table" %s \'; --', 'col "1" %(x)s'
    quoted_table, quoted_column = (psycopg.sql.Identifier(word) for word in (table, column))
    create = psycopg.sql.SQL(
        "CREATE TABLE {} AS SELECT i % 2 = 0 AS label, sin(i) + i % 2 AS {} FROM generate_series(1, 99) AS i"
    )
    conn.execute(create.format(quoted_table, quoted_column))
    source = quoted_table.as_string(conn)
    epochs = db.train(conn, source, name=name, features=[column], max_epochs=2)
    model = db.Model.from_database(conn, name)
    assert (epochs.name, model.name, model.source, model.features) == (name, name, source, [column])
    query = psycopg.sql.SQL("SELECT {}, corgipile_predict_label({}, t) FROM {} AS t")
    rows = conn.execute(query.format(quoted_column, psycopg.sql.Literal(name), quoted_table)).fetchall()
    assert ["t" if p else "f" for p in model.predict({column: [row[0] for row in rows]})] == [row[1] for row in rows]


def test_a_function_of_somebody_else_is_not_called(conn: Any) -> None:
    conn.execute("CREATE SCHEMA trap")
    conn.execute(
        """CREATE FUNCTION trap.corgipile_train(
             source text, model text, label text, features text[], max_epochs int, seed bigint)
           RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$"""
    )
    conn.execute("SET search_path = trap, public")
    assert len(pumps(conn)) == 4
    conn.execute("SET search_path = trap, pg_catalog")  # the extension is found without the path, too
    assert len(db.train(conn, "public.pumps", label="failed", features=["hours"], max_epochs=2)) == 2
    conn.execute("RESET search_path")
    conn.execute("DROP SCHEMA trap CASCADE")


def test_a_database_without_the_extension_says_what_to_do(server: None) -> None:
    with psycopg.connect(dbname="postgres", autocommit=True) as connection:
        with pytest.raises(LookupError, match="CREATE EXTENSION corgipile"):
            db.train(connection, "pumps")
        with pytest.raises(LookupError, match="CREATE EXTENSION corgipile"):
            db.Model.from_database(connection, "pumps")


def _once(holds: Callable[[], Any], action: Callable[[], Any]) -> threading.Thread:
    """Does something as soon as something else holds."""

    def later() -> None:
        try:
            until(holds)
        finally:
            action()  # or what waits for it waits for ever

    thread = threading.Thread(target=later)
    thread.start()
    return thread


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def trains(conn: Any) -> Callable[[Any], Callable[[], bool]]:
    """Whether the process of a connection is beyond the first epoch of a training."""
    query = "SELECT count(*) FROM corgipile.stat_progress_train WHERE pid = %s AND epoch > 1"

    def of(connection: Any) -> Callable[[], bool]:
        pid = connection.info.backend_pid
        return lambda: conn.execute(query, [pid]).fetchone()[0] == 1

    return of


@pytest.mark.alone
@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.parametrize("autocommit", [True, False])
def test_ctrl_c_cancels_the_training_in_the_server(
    database: str, trains: Any, progress: bool, autocommit: bool
) -> None:
    with psycopg.connect(dbname=database, autocommit=autocommit) as connection:
        before = models(connection)
        connection.commit()
        thread = _once(trains(connection), _interrupt)
        with pytest.raises(KeyboardInterrupt):
            db.train(connection, "wide", progress=progress, **LONG)
        thread.join()
        assert db.running(connection, connection.info.backend_pid) == []
        assert models(connection) == before
        connection.commit()
        assert len(db.train(connection, "wide", max_epochs=1)) == 1


def test_a_training_in_a_transaction_that_is_interrupted_leaves_the_transaction(database: str, trains: Any) -> None:
    with psycopg.connect(dbname=database) as connection:
        connection.execute("CREATE TEMPORARY TABLE kept AS SELECT 1 AS one")
        thread = _once(trains(connection), _interrupt)
        with pytest.raises(KeyboardInterrupt):
            db.train(connection, "wide", **LONG)
        thread.join()
        assert connection.execute("SELECT one FROM kept").fetchone() == (1,)


@pytest.mark.alone
def test_a_connection_that_the_server_ends_is_an_error_at_once(database: str, trains: Any) -> None:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        pid = connection.info.backend_pid
        sent: list[float] = []

        def kill() -> None:
            sent.append(time.monotonic())
            with psycopg.connect(dbname=database, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [pid])

        thread = _once(trains(connection), kill)
        with pytest.raises(psycopg.OperationalError, match="terminat"):
            db.train(connection, "wide", progress=True, **LONG)
        assert time.monotonic() - sent[0] < 4
        thread.join()
        assert not [t for t in threading.enumerate() if t.name == "corgipile progress"]


def test_the_bar_follows_the_training_and_ends_full(
    conn: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    bars: list[Any] = []
    seen: list[float] = []
    show = _progress.Bar._show

    def spy(self: Any, progress: Any) -> None:
        show(self, progress)
        bars.append(self.bar)
        seen.append(progress.epochs_done)

    monkeypatch.setattr(_progress.Bar, "_show", spy)
    epochs = db.train(conn, "wide", max_epochs=1500, learning_rate=1e-4, progress=True)
    assert len(epochs) == 1500
    assert seen == sorted(seen) and seen[-1] > seen[0]
    assert (bars[-1].n, bars[-1].total) == (1500, 1500)
    written = capsys.readouterr()
    assert "1500.0/1500 epochs" in written.err and written.out == ""


def test_a_bar_that_cannot_be_had_is_a_warning_and_no_error(conn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> None:
        raise psycopg.OperationalError("too many clients")

    monkeypatch.setattr(_progress, "beside", fails)
    with pytest.warns(RuntimeWarning, match="no progress is shown: too many clients"):
        assert len(pumps(conn, progress=True)) == 4


def test_nothing_is_printed_unless_it_is_asked_for(conn: Any, capfd: pytest.CaptureFixture[str]) -> None:
    pumps(conn)
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def stranger(database: str) -> Any:
    role = f"stranger {os.getpid()}"
    quoted = psycopg.sql.Identifier(role)
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(psycopg.sql.SQL("CREATE ROLE {} LOGIN").format(quoted))
        yield role
        connection.execute(psycopg.sql.SQL("DROP OWNED BY {} CASCADE").format(quoted))
        connection.execute("SELECT corgipile_drop_owned(%s)", [role])
        connection.execute(psycopg.sql.SQL("DROP ROLE {}").format(quoted))


def test_who_may_not_read_a_table_or_use_a_model_is_refused(conn: Any, database: str, stranger: str) -> None:
    secret = pumps(conn, name="secret")
    with psycopg.connect(dbname=database, user=stranger, autocommit=True) as other:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            pumps(other)
        with pytest.raises(LookupError, match=f"no model {secret.model_id}"):
            db.Model.from_database(other, secret.model_id)
        with pytest.raises(psycopg.Error, match="permission denied for model"):
            db.Model.from_database(other, "secret")
        with pytest.raises(LookupError):
            db.report(other, secret.model_id)
        conn.execute("SELECT corgipile_grant('secret', %s)", [stranger])
        assert db.Model.from_database(other, "secret").features == ["hours", "load", "site"]


def test_a_name_means_what_it_means_in_sql(conn: Any, database: str, stranger: str) -> None:
    first, second = (pumps(conn, name="shared", seed=seed) for seed in (1, 2))
    model = db.Model.from_database
    assert model(conn, "shared").model_id == second.model_id
    assert (model(conn, "shared", 1).model_id, model(conn, "shared", 1).version) == (first.model_id, 1)
    conn.execute("SELECT corgipile_deploy('shared', 1)")
    assert model(conn, "shared").model_id == first.model_id
    # digits are an id, unless a model of the user's own has that name
    digits = str(second.model_id)
    assert model(conn, digits).model_id == second.model_id
    assert model(conn, digits, 1).model_id == first.model_id
    named = pumps(conn, name=digits, seed=3)
    assert model(conn, digits).model_id == named.model_id
    unnamed = pumps(conn, seed=3)
    assert model(conn, str(unnamed.model_id)).model_id == unnamed.model_id
    with pytest.raises(LookupError, match="no version 3 of model 'shared'"):
        model(conn, "shared", 3)
    with pytest.raises(ValueError, match="version goes with a name"):
        model(conn, first.model_id, 1)
    conn.execute(f'GRANT SELECT ON pumps TO "{stranger}"')
    with psycopg.connect(dbname=database, user=stranger, autocommit=True) as other:
        own = pumps(other, name="shared")
        assert model(other, "shared").model_id == own.model_id
        assert model(conn, "shared").model_id == first.model_id
        assert model(conn, f'"{stranger}".shared').model_id == own.model_id
        with pytest.raises(psycopg.Error):
            model(other, "postgres.shared")


def test_a_model_survives_a_file_and_another_database(conn: Any, tmp_path: Any) -> None:
    trained = pumps(conn, name="moved").model(conn)
    trained.save(tmp_path / "model.json")
    loaded = db.Model.load(tmp_path / "model.json")
    rows = {"hours": np.linspace(-1, 1, 50), "load": np.zeros(50), "site": ["mine"] * 50}
    np.testing.assert_array_equal(loaded.decision_function(rows), trained.decision_function(rows))
    conn.execute("SELECT corgipile_import(%s::jsonb, 'imported')", [(tmp_path / "model.json").read_text()])
    imported = db.Model.from_database(conn, "imported")
    np.testing.assert_array_equal(imported.decision_function(rows), trained.decision_function(rows))


def test_the_score_is_that_of_corgipile_evaluate(conn: Any) -> None:
    rows = conn.execute("SELECT hours, load, site, failed, litres FROM pumps").fetchall()
    table = dict(zip(["hours", "load", "site", "failed", "litres"], map(list, zip(*rows))))
    for label, kind, metric in (
        ("failed", "logistic", "accuracy"),
        ("failed", "mlp", "accuracy"),
        ("litres", "linear", "r2"),
    ):
        epochs = pumps(conn, label=label, model=kind)
        query = "SELECT value FROM corgipile_evaluate(%s, 'pumps') WHERE metric = %s"
        expected = conn.execute(query, [epochs.model_id, metric]).fetchone()[0]
        assert epochs.model(conn).score(table, table[label]) == pytest.approx(expected, rel=1e-12)


def test_watch_shows_what_runs_and_hides_what_it_must(conn: Any, database: str, stranger: str) -> None:
    conn.execute('CREATE TABLE "evil\x1b[2Jtable" AS SELECT * FROM wide')
    trainer = psycopg.connect(dbname=database, autocommit=True)
    errors: list[Exception] = []

    def run() -> None:
        try:
            db.train(trainer, '"evil\x1b[2Jtable"', **LONG)
        except psycopg.errors.QueryCanceled as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        pid = trainer.info.backend_pid
        until(lambda: [p for p in db.running(conn, pid) if p.epoch and p.loss])
        shown, hidden = io.StringIO(), io.StringIO()
        db.watch(conn, rounds=2, interval=0.1, file=shown)
        with psycopg.connect(dbname=database, user=stranger) as other:
            db.watch(other, rounds=1, file=hidden)
            assert other.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert shown.getvalue().count("evil?[2Jtable") == 2 and "\x1b" not in shown.getvalue()
        assert f"{trainer.info.backend_pid}" in shown.getvalue() and "of 1000000" in shown.getvalue()
        assert "evil" not in hidden.getvalue() and "not shown to you" in hidden.getvalue()
    finally:
        trainer.cancel_safe()
        thread.join()
        trainer.close()
    assert errors


@pytest.mark.alone
def test_watch_says_that_nothing_runs(conn: Any) -> None:
    nothing = io.StringIO()
    db.watch(conn, rounds=1, file=nothing)
    assert nothing.getvalue() == "no training runs\n"


@pytest.mark.alone
def test_in_a_notebook_the_picture_is_renewed_and_escaped(conn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import datetime, timezone

    from corgipile.db import _watch

    now = datetime.now(timezone.utc)
    progress = db.Progress(7, "d", "<u>", "<b>x</b>", 3, 10, 1, 2, 0.5, 100, 5.0, now, now, now)
    shown = _watch.html_of([progress])
    assert "&lt;b&gt;x" in shown and "<b>" not in shown and "value='2.500'" in shown and "25%" in shown
    pictures: list[Any] = []

    class Display:
        HTML = staticmethod(lambda text: text)

        @staticmethod
        def display(picture: str, display_id: bool) -> Any:
            pictures.append(("new", picture, display_id))
            return Display

        @staticmethod
        def update(picture: str) -> None:
            pictures.append(("renewed", picture))

    monkeypatch.setattr(_watch, "optional", lambda name: Display)
    monkeypatch.setattr(_watch, "_screen", lambda file: _watch._Notebook())
    db.watch(conn, rounds=2, interval=0)
    assert pictures == [("new", "<p>no training runs</p>", True), ("renewed", "<p>no training runs</p>")]


@pytest.mark.alone
def test_ctrl_c_ends_watch_without_an_error(conn: Any) -> None:
    shown = io.StringIO()
    thread = _once(shown.getvalue, lambda: (time.sleep(0.1), _interrupt()))
    start = time.monotonic()
    db.watch(conn, interval=30, file=shown)
    assert time.monotonic() - start < 1.5
    thread.join()


def test_the_plot_has_a_line_for_each_number(conn: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = pumps(conn, name="$x$ & <y>", validation_fraction=0.2).plot()
    assert [len(axis.lines) for axis in figure.axes] == [2, 2]
    assert [axis.get_ylabel() for axis in figure.axes] == ["loss", "accuracy"]
    grid = pumps(conn, grid={"l2": [0.1, 0.2]}, name="$\\broken", label="litres", model="linear")
    figure = grid.plot()
    assert figure.axes[1].get_ylabel() == "R²" and len(figure.axes[0].lines) == 2
    figure.savefig(io.BytesIO())  # names are no formulas


def test_types_of_arguments_are_checked_before_anything_is_sent(conn: Any) -> None:
    with pytest.raises(ValueError, match="source: it has no columns"):
        db.train(conn, pytest.importorskip("pandas").DataFrame())
    with pytest.raises(TypeError, match="options is a dict, not list"):
        pumps(conn, options=["l2"])
    with pytest.raises(TypeError, match="l2 is object, which is nothing that JSON knows"):
        pumps(conn, l2=object())
    with pytest.raises(TypeError, match="model is a name or an id, not float"):
        db.Model.from_database(conn, 1.5)  # type: ignore[arg-type]
    assert _training.train is db.train
