"""What scikit-learn's users expect of an estimator, one test for each: attributes, weights, steps, and other estimators
that use it.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("sklearn")

from scipy import sparse  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.datasets import load_diabetes, load_iris, make_classification  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.feature_selection import RFE, SelectFromModel  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: E402

from corgipile.sklearn import DatabaseClassifier, DatabaseRegressor  # noqa: E402


@pytest.fixture
def connect(database: str) -> str:
    return f"dbname='{database}'"


IRIS, KINDS = load_iris(return_X_y=True)
PATIENTS, PROGRESS = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("model", ["auto", "svm", "softmax"])
@pytest.mark.parametrize("classes", [2, 3])
def test_coef_and_intercept_are_the_decision(connect: str, model: str, classes: int) -> None:
    X, y = IRIS[classes > KINDS], KINDS[classes > KINDS]
    kind = "svm_one_vs_rest" if model == "svm" and classes == 3 else model
    fitted = DatabaseClassifier(connect, model=kind, random_state=0).fit(X, y)
    assert fitted.coef_.shape == ((1, 4) if classes == 2 else (3, 4))
    assert fitted.intercept_.shape == ((1,) if classes == 2 else (3,))
    expected = X @ fitted.coef_.T + fitted.intercept_
    np.testing.assert_allclose(fitted.decision_function(X), np.squeeze(expected), rtol=1e-4, atol=1e-4)


def test_coef_of_a_regression_is_of_one_dimension(connect: str) -> None:
    fitted = DatabaseRegressor(connect, random_state=0).fit(PATIENTS, PROGRESS)
    assert fitted.coef_.shape == (10,) and isinstance(fitted.intercept_, float)
    np.testing.assert_allclose(fitted.predict(PATIENTS), PATIENTS @ fitted.coef_ + fitted.intercept_, rtol=1e-4)


def test_sparse_rows_have_coefficients_of_all_columns(connect: str) -> None:
    X: Any = sparse.csr_matrix(
        np.random.default_rng(0).binomial(1, 0.2, (200, 30)) * np.random.default_rng(1).random((200, 30))
    )
    y = np.asarray(X[:, 3].todense()).ravel() > 0.1
    for given in (X, X.tocoo(), X.tocsc()):
        fitted = DatabaseClassifier(connect, random_state=0).fit(given, y)
        assert fitted.coef_.shape == (1, 30) and fitted.n_features_in_ == 30
        expected = np.asarray(X @ fitted.coef_.T + fitted.intercept_).ravel()
        np.testing.assert_allclose(fitted.decision_function(given), expected, rtol=1e-4, atol=1e-4)
        assert np.abs(fitted.coef_).argmax() == 3


def test_a_network_and_a_new_estimator_have_no_coef(connect: str) -> None:
    new = DatabaseClassifier(connect)
    assert not hasattr(new, "coef_") and not hasattr(new, "intercept_")
    with pytest.raises(NotFittedError):
        _ = new.coef_
    network = DatabaseClassifier(connect, model="mlp", hidden_layer_sizes=[3], max_epochs=2).fit(IRIS, KINDS)
    assert not hasattr(network, "coef_")


def test_attributes_say_what_was_fitted(connect: str, conn: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(IRIS, columns=list("abcd"))
    fitted = DatabaseClassifier(connect, max_epochs=4).fit(frame, KINDS)
    assert fitted.classes_.tolist() == [0, 1, 2] and fitted.n_features_in_ == 4
    assert fitted.feature_names_in_.tolist() == list("abcd")
    assert fitted.n_iter_ == 4 == len(fitted.loss_curve_)
    conn.execute("CREATE TABLE iris (a float8, b float8, name text, kind text)")
    with conn.cursor() as cursor:
        rows = [(*map(float, row[:2]), "x", f"kind {kind}") for row, kind in zip(IRIS, KINDS)]
        cursor.executemany("INSERT INTO iris VALUES (%s, %s, %s, %s)", rows)
    of_table = DatabaseClassifier(connect, features=["a", "b"], max_epochs=2).fit("iris", "kind")
    assert of_table.feature_names_in_.tolist() == ["a", "b"] and of_table.n_features_in_ == 2
    assert of_table.classes_.tolist() == ["kind 0", "kind 1", "kind 2"]
    # another fit leaves nothing of the one before
    assert not hasattr(of_table.fit(IRIS, KINDS), "feature_names_in_")
    assert of_table.n_features_in_ == 4 and of_table.predict(IRIS).dtype == KINDS.dtype


@pytest.mark.parametrize("form", ["matrix", "sparse", "frame"])
def test_whole_weights_are_repetitions(connect: str, form: str) -> None:
    pandas = pytest.importorskip("pandas")
    times = np.random.default_rng(1).integers(0, 4, len(KINDS))
    if form == "frame":
        X: Any = pandas.DataFrame({"a": IRIS[:, 2], "b": [f"text {kind % 2}" for kind in range(len(KINDS))]})
        repeated = X.iloc[np.repeat(np.arange(len(X)), times)]
    else:
        X = sparse.csr_matrix(IRIS) if form == "sparse" else IRIS
        repeated = X[np.repeat(np.arange(len(KINDS)), times)]
    new = lambda: DatabaseClassifier(connect, random_state=3, max_epochs=5)  # noqa: E731
    weighted = new().fit(X, KINDS, times)
    plain = new().fit(repeated, np.repeat(KINDS, times))
    np.testing.assert_array_equal(weighted.predict_proba(X), plain.predict_proba(X))
    halves = new().fit(X, KINDS, times / 2)
    assert halves.score(X, KINDS) > 0.6


def test_whole_weights_of_numbers_are_repetitions(connect: str) -> None:
    times = np.random.default_rng(1).integers(0, 4, len(PROGRESS))
    new = lambda: DatabaseRegressor(connect, random_state=3, max_epochs=5)  # noqa: E731
    weighted = new().fit(PATIENTS, PROGRESS, times)
    plain = new().fit(np.repeat(PATIENTS, times, axis=0), np.repeat(PROGRESS, times))
    np.testing.assert_array_equal(weighted.predict(PATIENTS), plain.predict(PATIENTS))


def test_a_class_that_does_not_count_is_still_a_class(connect: str) -> None:
    fitted = DatabaseClassifier(connect, random_state=0).fit(IRIS, KINDS, (KINDS != 1).astype(int))
    assert fitted.predict_proba(IRIS).shape == (150, 3) and set(fitted.predict(IRIS)) == {0, 2}
    # too many repetitions for a table: by weights
    assert DatabaseClassifier(connect, random_state=0).fit(IRIS, KINDS, 1000 * (1 + KINDS)).score(IRIS, KINDS) > 0.8


def test_rows_that_nulls_skip_have_no_prediction(connect: str, conn: Any) -> None:
    gaps = np.where(IRIS > 7, np.nan, IRIS)
    skipped = np.isnan(gaps).any(axis=1)
    assert 0 < skipped.sum() < 50
    query = "SELECT * FROM (VALUES ('setosa', 1.0), ('other', 2.0), ('other', NULL)) AS v (kind, x)"
    fitted = DatabaseClassifier(connect, nulls="skip", random_state=0, max_epochs=2)
    for labels in (KINDS, KINDS > 0, np.array(["a", "b", "c"])[KINDS]):
        predicted = fitted.fit(gaps, labels).predict(gaps)
        assert [label is None for label in predicted] == skipped.tolist()
        assert set(predicted[~skipped]) <= set(labels.tolist())
        assert (np.isnan(fitted.predict_proba(gaps)).any(axis=1) == skipped).all()
    for column, labels in (("kind", ["setosa", "other"]), ("kind = 'setosa'", [True, False])):
        source = f"SELECT x, {column} AS label FROM ({query}) AS q"
        predicted = fitted.fit(source).predict(source)
        assert set(predicted[:2]) <= set(labels) and predicted[2] is None
        assert np.isnan(fitted.predict_proba(source)).tolist() == [[False] * 2, [False] * 2, [True] * 2]
    assert (
        np.isnan(DatabaseRegressor(connect, nulls="skip").fit(gaps, KINDS).predict(gaps)).tolist() == skipped.tolist()
    )


@pytest.mark.parametrize("form", ["matrix", "sparse", "frame"])
def test_partial_fit_goes_on(connect: str, conn: Any, form: str) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = make_classification(600, 5, n_classes=3, n_informative=4, n_redundant=0, random_state=0)
    labels = np.array(["low", "mid", "high"])[y]
    order = np.argsort(y, kind="stable")  # the first step has rows of one class
    given: Any = {"matrix": X, "sparse": sparse.csr_matrix(X)}.get(form)
    if given is None:
        given = pandas.DataFrame(X, columns=list("abcde")).assign(text=["x", "y"] * 300)
    stepwise = DatabaseClassifier(connect, name=f"steps {form}", random_state=0)
    before = conn.execute("SELECT count(*) FROM corgipile.models").fetchone()[0]
    for epoch in range(4):
        for first in range(0, 600, 150):
            some = order[first : first + 150] if epoch == 0 and first == 0 else np.arange(first, first + 150)
            rows = given.iloc[some] if form == "frame" else given[some]
            stepwise.partial_fit(rows, labels[some], classes=["low", "mid", "high"])
    assert stepwise.classes_.tolist() == ["high", "low", "mid"]
    assert stepwise.score(given, labels) > 0.6
    assert stepwise.n_iter_ == len(stepwise.loss_curve_) == 16
    assert stepwise.loss_curve_[-1] < stepwise.loss_curve_[1]
    # of all steps, the last model is there
    assert conn.execute("SELECT count(*) FROM corgipile.models").fetchone()[0] == before + 1
    same = pickle.loads(pickle.dumps(stepwise)).partial_fit(given, labels)
    assert same.n_iter_ == 17
    with pytest.raises(ValueError, match="y has labels that are not among classes"):
        same.partial_fit(given, ["other"] * 600)
    with pytest.raises(ValueError, match=r"classes: .* are not those of the first call"):
        same.partial_fit(given, labels, classes=["low", "high"])


def test_steps_of_a_regression_come_to_what_a_fit_does(connect: str) -> None:
    stepwise = DatabaseRegressor(connect, name="steps of numbers", random_state=0)
    for _ in range(15):
        stepwise.partial_fit(PATIENTS, PROGRESS)
    fitted = DatabaseRegressor(connect, random_state=0).fit(PATIENTS, PROGRESS)
    assert stepwise.score(PATIENTS, PROGRESS) == pytest.approx(fitted.score(PATIENTS, PROGRESS), abs=0.05)


def test_partial_fit_says_what_it_needs(connect: str) -> None:
    assert not hasattr(DatabaseClassifier(connect), "partial_fit")  # without a name, no model is kept
    named = DatabaseClassifier(connect, name="n", class_weight="balanced")
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        named.partial_fit(IRIS, KINDS)
    with pytest.raises(ValueError, match="class_weight: 'balanced' needs all rows at once"):
        named.partial_fit(IRIS, KINDS, classes=[0, 1, 2])


def test_clones_and_pickles(connect: str) -> None:
    fitted = DatabaseClassifier(connect, random_state=0, model="mlp", hidden_layer_sizes=[4], max_epochs=5)
    fitted.fit(IRIS, KINDS)
    same = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(same.predict_proba(IRIS), fitted.predict_proba(IRIS))
    copied: Any = clone(fitted)
    assert copied.get_params() == fitted.get_params() and not hasattr(copied, "classes_")


def test_pipelines_column_transformers_and_grids(connect: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"width": IRIS[:, 3], "length": IRIS[:, 2], "site": ["a", "b", "c"] * 50})
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["width", "length"]), ("site", OneHotEncoder(), ["site"])]
    )
    steps: Any = Pipeline([("columns", columns), ("model", DatabaseClassifier(connect, random_state=0))])
    search = GridSearchCV(steps, {"model__l2": [100.0, 0.0]}, cv=3).fit(frame, KINDS)
    assert search.best_params_ == {"model__l2": 0.0} and search.best_score_ > 0.9
    assert search.best_estimator_[-1].coef_.shape == (3, 5)
    assert search.predict(frame).shape == (150,)


def test_selectors_use_coef(connect: str) -> None:
    X, y = make_classification(400, 8, n_informative=2, n_redundant=0, shuffle=False, class_sep=2, random_state=0)
    ours: Any = DatabaseClassifier(connect, random_state=0)
    selectors: list[Any] = [
        SelectFromModel(ours, max_features=2, threshold=-np.inf),
        RFE(ours, n_features_to_select=2, step=3),
    ]
    for selector in selectors:
        assert selector.fit(X, y).get_support().nonzero()[0].tolist() == [0, 1]
