"""`corgipile.sklearn`: scikit-learn's own checks, and fits on tables and arrays."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pytest

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("sklearn")

# behind what skips the tests where scikit-learn is not there
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_diabetes, load_iris  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from corgipile.sklearn import DatabaseClassifier, DatabaseRegressor  # noqa: E402

#: Checks of scikit-learn that do not apply, and why.
LEFT_OUT = {
    "check_sample_weight_equivalence_on_dense_data": (
        "shuffles the rows that have weights and not those that are repeated: SGD depends on the order of rows. That "
        "weights are repetitions is shown below, by rows in one order"
    ),
    "check_sample_weight_equivalence_on_sparse_data": "is the same with sparse rows",
    "check_array_api_input": "is for arrays of other libraries; scikit-learn skips it unless these are set up",
}


@pytest.fixture(scope="module")
def connect(database: str) -> Iterator[str]:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE pumps AS
               SELECT i AS id, sin(i) * 5 AS hours, (ARRAY['mine', 'quarry', 'it''s 100%'])[1 + i % 3] AS site,
                      date '2024-01-01' + i % 300 AS day, sin(i) * 5 + i % 3 > 1 AS failed, i % 3 AS digit,
                      (sin(i) * 10 + i % 3)::numeric(8, 2) AS litres, 1 + i % 2 AS weight
                 FROM generate_series(1, 900) AS i"""
        )
    yield f"dbname='{database}'"


def models(conn: Any) -> int:
    return conn.execute("SELECT count(*) FROM corgipile.models").fetchone()[0]


@pytest.mark.parametrize(
    "estimator",
    [
        DatabaseClassifier(random_state=0),
        pytest.param(
            DatabaseClassifier(random_state=0, model="mlp", hidden_layer_sizes=[20], max_epochs=60),
            marks=pytest.mark.full,
        ),
        pytest.param(DatabaseRegressor(random_state=0), marks=pytest.mark.full),
        DatabaseRegressor(random_state=0, model="mlp", hidden_layer_sizes=[30], max_epochs=60),
        pytest.param(DatabaseClassifier(random_state=0, name="checked"), marks=pytest.mark.full),
        DatabaseRegressor(random_state=0, name="checked numbers"),
    ],
    ids=["classifier", "mlp", "regressor", "mlp_regressor", "partial_fit", "partial_fit of a regressor"],
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_pass(connect: str, estimator: Any) -> None:
    estimator.set_params(connection=connect)
    checks: Any = check_estimator(estimator, on_fail=None)
    failed = {c["check_name"]: repr(c["exception"]) for c in checks if c["status"] != "passed"}
    wrong = {name: error for name, error in failed.items() if name not in LEFT_OUT}
    assert not wrong, wrong
    assert len(checks) - len(failed) > 45


def test_what_it_learns_is_what_scikit_learn_learns(connect: str) -> None:
    X, y = load_iris(return_X_y=True)
    assert cross_val_score(DatabaseClassifier(connect, random_state=0), X, y).mean() > 0.95
    two = y > 0
    ours = DatabaseClassifier(connect, random_state=0, max_epochs=100, l2=0.01).fit(X, two)
    theirs = make_pipeline(StandardScaler(), LogisticRegression(C=1 / (0.01 * len(X)))).fit(X, two)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.02)
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(DatabaseRegressor(connect, random_state=0), X, y).mean() > 0.45


def test_pipelines_grids_clones_and_pickles(connect: str) -> None:
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), DatabaseClassifier(connect, random_state=0, standardize=False))
    search = GridSearchCV(pipeline, {"databaseclassifier__max_epochs": [1, 20]}, cv=3).fit(X, y)
    assert search.best_params_ == {"databaseclassifier__max_epochs": 20}
    fitted = DatabaseClassifier(connect, random_state=0, model="mlp", hidden_layer_sizes=[4], max_epochs=5).fit(X, y)
    same = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(same.predict_proba(X), fitted.predict_proba(X))
    copied: Any = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copied.predict(X)
    again = copied.fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert (len(again.loss_curve_), again.n_iter_) == (5, 5)


def test_arrays_leave_nothing_in_the_database_unless_the_model_has_a_name(conn: Any, connect: str) -> None:
    X, y = load_iris(return_X_y=True)
    before = models(conn)
    DatabaseClassifier(connect).fit(X, y)
    with pytest.raises(psycopg.Error):
        DatabaseClassifier(connect, options={"nonsense": 1}).fit(X, y)
    assert models(conn) == before
    fitted = DatabaseClassifier(connect, name="iris").fit(X, y)
    assert models(conn) == before + 1 and fitted.model_.name == "iris"
    assert conn.execute("SELECT to_regclass('pg_temp.corgipile_rows')").fetchone() == (None,)


def test_a_function_may_make_the_connection_which_is_closed(database: str) -> None:
    made: list[Any] = []

    def open_one() -> Any:
        made.append(psycopg.connect(dbname=database))
        return made[-1]

    X, y = load_iris(return_X_y=True)
    cloned: Any = clone(DatabaseClassifier(open_one))
    cloned.fit(X, y)
    assert len(made) == 1 and made[0].closed


def test_a_table_is_trained_on_and_predicted_where_it_is(conn: Any, connect: str) -> None:
    fitted = DatabaseClassifier(connect, features=["hours", "site"], random_state=0).fit("pumps", "failed")
    rows = conn.execute("SELECT hours, site, failed FROM pumps").fetchall()
    table = dict(zip(["hours", "site"], map(list, zip(*rows))))
    of_table = fitted.predict("SELECT * FROM pumps ORDER BY id")
    np.testing.assert_array_equal(of_table, fitted.predict(table))
    np.testing.assert_allclose(fitted.predict_proba("SELECT * FROM pumps ORDER BY id"), fitted.predict_proba(table))
    assert fitted.classes_.tolist() == [False, True] and of_table.dtype == bool
    expected = float(np.mean(of_table == [row[2] for row in rows]))
    assert fitted.score("pumps") == pytest.approx(expected) == fitted.score(table, [row[2] for row in rows])
    with pytest.raises(TypeError, match="y is the name of a column if X is a table, not list"):
        fitted.fit("pumps", [1, 2])


@pytest.mark.parametrize(("label", "kind"), [("digit", "softmax"), ("site", "softmax"), ("failed", "logistic")])
def test_the_kind_of_model_follows_from_the_labels_of_a_table(connect: str, label: str, kind: str) -> None:
    fitted = DatabaseClassifier(connect, features=["hours", "id"], max_epochs=3).fit("pumps", label, "weight")
    assert fitted.model_.kind == kind
    assert fitted.model_.hyperparameters["weight"] == "weight"
    assert set(fitted.predict("pumps")) <= set(fitted.classes_)
    assert 0 <= fitted.score("pumps") <= 1


def test_a_regression_scores_a_table_in_the_server(conn: Any, connect: str) -> None:
    fitted = DatabaseRegressor(connect, features=["hours", "site"], random_state=0).fit("pumps", "litres")
    rows = conn.execute("SELECT hours, site, litres::float8 FROM pumps").fetchall()
    hours, site, litres = map(list, zip(*rows))
    of_arrays = fitted.score({"hours": hours, "site": site}, litres)
    assert of_arrays > 0.9
    assert fitted.score("pumps", "litres") == pytest.approx(of_arrays, rel=1e-9)
    np.testing.assert_array_equal(
        fitted.predict("SELECT * FROM pumps ORDER BY id"), fitted.predict({"hours": hours, "site": site})
    )


def test_data_frames_keep_their_texts_dates_and_gaps(connect: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "site": ["mine", None, "quarry", '100% "x" \\ \t'] * 50,
            "hours": [1.0, np.nan, 3.0, 4.5] * 50,
            "day": [date(2024, 1 + i % 12, 1 + i % 28) for i in range(200)],
            "at": pandas.date_range("2024-01-01", periods=200, freq="7h"),
            "on": [True, False] * 100,
            "label": ["a", "b", "a", "c"] * 50,
        }
    )
    frame["kind"] = frame["site"].astype("category")
    fitted: Any = DatabaseClassifier(connect, random_state=0).fit(frame, frame["label"])
    assert fitted.score(frame, frame["label"]) == 1.0
    assert set(fitted.model_.input_columns) == set(frame.columns)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame.drop(columns=["site"]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.fit(frame, frame["label"][:-1])
    with pytest.raises(TypeError, match="column 'odd' has dict, which can be no feature"):
        DatabaseClassifier(connect).fit(frame.assign(odd=[{}] * 200), frame["label"])


def test_weights_of_classes_and_of_rows_count(connect: str) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 2))
    y = np.where(X[:, 0] + generator.normal(size=2000) > 1.5, "rare", "common")
    plain = DatabaseClassifier(connect, random_state=0).fit(X, y)
    for weighted in (
        DatabaseClassifier(connect, random_state=0, class_weight="balanced").fit(X, y),
        DatabaseClassifier(connect, random_state=0, class_weight={"rare": 10.0}).fit(X, y),
        DatabaseClassifier(connect, random_state=0).fit(X, y, np.where(y == "rare", 10.0, 1.0)),
    ):
        assert (weighted.predict(X) == "rare").sum() > 2 * (plain.predict(X) == "rare").sum()


def test_nan_is_imputed_and_may_be_refused(connect: str) -> None:
    X, y = load_iris(return_X_y=True)
    gaps = X.copy()
    gaps[::7, 2] = np.nan
    fitted = DatabaseClassifier(connect, random_state=0).fit(gaps, y)
    assert fitted.score(gaps, y) > 0.9 and any("NULLs are imputed in 22" in notice for notice in fitted.notices_)
    with pytest.raises(ValueError, match="NaN"):
        DatabaseClassifier(connect, nulls="error").fit(gaps, y)


def test_an_svm_has_no_probabilities(connect: str) -> None:
    X, y = load_iris(return_X_y=True)
    fitted = DatabaseClassifier(connect, model="svm", random_state=0).fit(X, y > 0)
    assert not hasattr(fitted, "predict_proba")
    np.testing.assert_array_equal(fitted.decision_function(X) > 0, fitted.predict(X))


def test_without_connect_the_environment_counts(connect: str, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    monkeypatch.setitem(os.environ, "PGDATABASE", database)
    assert DatabaseClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    monkeypatch.setitem(os.environ, "PGDATABASE", "nowhere")
    with pytest.raises(psycopg.OperationalError):
        DatabaseClassifier().fit(X, y)


def frame_of(names: list[Any]) -> Any:
    """Texts that decide, and numbers, in columns of these names."""
    pandas = pytest.importorskip("pandas")
    columns: list[list[Any]] = [["a", "b", "c"] * 40] + [[float(row % 7) for row in range(120)]] * (len(names) - 1)
    frame = pandas.DataFrame(dict(enumerate(columns)))
    frame.columns = names
    return frame


LONG = "a column with quite a long name that is cut off after 63 bytes, "


@pytest.mark.parametrize(
    "names",
    [
        [LONG + "first", LONG + "second", "x"],
        ["", " ", "x"],
        ["ctid", "xmin", "tableoid"],
        ["label", "weight", "column_1"],
        ["column_2", "column_3", "column_1"],
        ["twice", "twice", "twice"],
        ['quoted "x"', "a.month", "100%s {x}"],
        ["Ä" * 40, "ä" * 40, "\n"],
        [3, 1, 2],
    ],
    ids=["long", "empty", "system", "ours", "ours in another order", "twice", "odd", "bytes", "numbers"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_names_of_columns_are_not_those_of_the_temporary_table(connect: str, names: list[Any], weighted: bool) -> None:
    frame, y = frame_of(names), ["p", "q", "r"] * 40
    fitted = DatabaseClassifier(connect, random_state=0, max_epochs=30).fit(
        frame, y, np.ones(120) if weighted else None
    )
    assert fitted.score(frame, y) == 1.0
    assert fitted.model_.input_columns == [str(name) for name in names]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(frame), fitted.predict_proba(frame))
    if len(set(names)) == len(names):
        np.testing.assert_array_equal(fitted.model_.predict_proba(frame), fitted.predict_proba(frame))
    numbers = DatabaseRegressor(connect, random_state=0, max_epochs=30).fit(frame, [1.0, 2.0, 3.0] * 40)
    assert numbers.score(frame, [1.0, 2.0, 3.0] * 40) > 0.9


def test_more_columns_than_a_table_has_are_refused(connect: str) -> None:
    for columns in (1700, 1200):
        with pytest.raises(ValueError, match=f"X has {columns} columns, not all of numbers, but a table has no room"):
            DatabaseClassifier(connect).fit(frame_of([f"c{i}" for i in range(columns)]), ["p", "q", "r"] * 40)


def test_a_data_frame_s_model_predicts_tables_and_hashes_by_the_user_s_names(conn: Any, connect: str) -> None:
    pandas = pytest.importorskip("pandas")
    rows = conn.execute("SELECT hours, site, failed FROM pumps ORDER BY id").fetchall()
    frame = pandas.DataFrame(rows, columns=["hours", "site", "failed"])
    for options in (
        {},
        {"hash": {"columns": ["site"], "buckets": 50}},
        {"transform": {"log": ["hours"]}},
        {"options": {"hash": {"columns": ["site"], "buckets": 50}}},
    ):
        before = json.dumps(options)
        X = frame[["hours", "site"]]
        fitted = DatabaseClassifier(connect, random_state=0, options=options).fit(X, frame["failed"])
        assert json.dumps(options) == before
        ordered = fitted.predict("SELECT * FROM pumps ORDER BY id")
        np.testing.assert_array_equal(ordered, fitted.predict(X))
        np.testing.assert_array_equal(fitted.model_.predict(X), fitted.model_.predict(X.rename(str, axis=1)))
        regression = DatabaseRegressor(connect, random_state=0, options=options).fit(X, frame["hours"] * 2)
        assert regression.score("SELECT *, hours * 2 AS label FROM pumps") > 0.9
    with pytest.raises(ValueError, match=r"X has no column 'site': the model's features are 'hours', 'site'"):
        fitted.model_.predict({"hours": [1.0]})


@pytest.mark.parametrize("as_text", [False, True], ids=["matrix", "columns"])
@pytest.mark.parametrize("estimator", [DatabaseClassifier, DatabaseRegressor])
def test_labels_are_checked_alike_for_matrices_and_columns(connect: str, estimator: Any, as_text: bool) -> None:
    frame = frame_of(["text", "x", "z"])
    X: Any = frame if as_text else frame[["x", "z"]].to_numpy()
    for y, what in (
        ([np.nan, 1.0, 0.0] * 40, "contains NaN"),
        (np.zeros((120, 2)), "y should be a 1d array"),
        ([np.inf, 1.0, 0.0] * 40, "contains infinity"),
        ([0.0, 1.0], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=what):
            estimator(connect).fit(X, y)
    with pytest.raises(ValueError, match="0 sample"):
        estimator(connect).fit(X[:0], [])
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        estimator(connect, max_epochs=1).fit(X, np.array([[1.0], [0.0], [1.0]] * 40))


@pytest.mark.parametrize("as_text", [False, True], ids=["matrix", "columns"])
def test_a_weight_of_a_class_that_no_row_has_is_refused_as_in_sql(connect: str, as_text: bool) -> None:
    frame = frame_of(["text", "x", "z"])
    X: Any = frame if as_text else frame[["x", "z"]].to_numpy()
    with pytest.raises(ValueError, match=r"class_weight: no row has the label 'w'; the labels are 'p', 'q', 'r'"):
        DatabaseClassifier(connect, class_weight={"p": 2.0, "w": 3.0}).fit(X, ["p", "q", "r"] * 40)


@pytest.mark.parametrize(
    "container", ["csr_matrix", "csr_array", "csc_matrix", "coo_matrix", "lil_matrix", "bsr_matrix"]
)
@pytest.mark.parametrize("indices", ["int32", "int64", "uint8", "int16"])
def test_sparse_matrices_are_learned_from_as_dense_ones(connect: str, container: str, indices: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    generator = np.random.default_rng(0)
    dense = generator.normal(size=(200, 30)) * (generator.random((200, 30)) < 0.2)
    dense[:, 29] = 0  # no row has the last feature
    y = dense[:, 0] - dense[:, 1] > 0
    X = getattr(sparse, container)(dense)
    for name in ("indices", "row", "col"):
        if hasattr(X, name):
            setattr(X, name, getattr(X, name).astype(indices))
    fitted: Any = DatabaseClassifier(connect, random_state=0).fit(X, y)
    assert fitted.n_features_in_ == 30 and fitted.score(X, y) > 0.9
    np.testing.assert_allclose(fitted.predict_proba(X), fitted.predict_proba(dense), atol=1e-6)
    weighted = DatabaseRegressor(connect, random_state=0).fit(X, y.astype(float), np.ones(200))
    assert weighted.score(X, y.astype(float)) > 0.3
    of_dense = DatabaseClassifier(connect, random_state=0).fit(dense, y)
    np.testing.assert_array_equal(of_dense.predict(X), of_dense.predict(dense))
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(sparse.csr_matrix(np.where(dense == 0, 0, np.nan)), y)
