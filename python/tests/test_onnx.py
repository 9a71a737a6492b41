"""Graphs of ONNX, computed by onnxruntime. The oracle is what corgipile_predict() says of the same rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.rows import dict_row

from corgipile.db._hashing import bucket

onnxruntime = pytest.importorskip("onnxruntime")

NULL_TEXT = "\uffff"

#: In addition to what the extension sees, parts of dates, which a graph wants from outside.
TABLE = """
CREATE TYPE sizes AS ENUM ('small', 'medium', 'large');
CREATE TABLE mixed AS
SELECT i AS id,
       CASE WHEN random() < 0.05 THEN NULL ELSE random() * 10 - 5 END AS a,
       CASE WHEN random() < 0.05 THEN NULL ELSE (exp(random() * 18) * sign(random() - 0.3))::real END AS b,
       1.7e9 + 1e6 * random() AS far,
       (random() * 1e6)::bigint AS c,
       (random() * 100)::numeric(10, 3) AS n,
       CASE WHEN random() < 0.02 THEN NULL ELSE random() < 0.3 END AS flag,
       CASE WHEN random() < 0.05 THEN NULL
            ELSE (ARRAY['red', 'green', '', 'a,"b"', 'ñandú'])[1 + floor(random() * 5)::int] END AS colour,
       (ARRAY['small', 'medium', 'large'])[1 + floor(random() * 3)::int]::sizes AS size,
       CASE WHEN random() < 0.05 THEN NULL ELSE repeat('é', (random() * 30)::int) || (random() * 50)::int END AS url,
       timestamp '1999-01-01' + random() * interval '9000 days' AS at,
       ARRAY[random(), CASE WHEN random() < 0.1 THEN NULL ELSE random() * 1e4 END, 3 - random()] AS x,
       ARRAY[random() < 0.5, random() < 0.1] AS flags,
       ARRAY[1 + i % 5, 6 + i % 4, 10 + i % 3] AS k,
       ARRAY[random(), CASE WHEN random() < 0.03 THEN NULL ELSE random() - 0.5 END, 100 * random()] AS v,
       random() AS noise
  FROM generate_series(1, 2000) AS i;
ALTER TABLE mixed ADD two int, ADD yes boolean, ADD word text, ADD five int, ADD half real, ADD number float8,
                  ADD "at.month" text, ADD "at.year" float8;
UPDATE mixed SET two = 7 + (coalesce(a, 0) + 2 * noise > 1)::int, yes = coalesce(a, 0) + noise > 0,
                 word = (ARRAY['no', 'yes'])[1 + (colour = 'red' OR a > 2 OR a IS NULL)::int],
                 five = (c / 200000)::int * 10, half = (floor(n / 25) / 2)::real, number = coalesce(a, 0) * 3 + noise;
UPDATE mixed SET word = 'no' WHERE word IS NULL;
UPDATE mixed SET k = k[1:2], v = v[1:2] WHERE id % 3 = 0;
"""

COLUMNS = ["a", "b", "c", "n", "flag", "colour", "size", "url"]


@pytest.fixture(scope="module")
def mixed(database: str) -> list[dict[str, Any]]:
    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute("SELECT setseed(0.25)")
        connection.execute(TABLE)
        return rows_of(connection, "mixed")


def rows_of(conn: Any, source: str) -> list[dict[str, Any]]:
    return conn.cursor(row_factory=dict_row).execute(f"SELECT * FROM {source} AS t ORDER BY id").fetchall()


def train(conn: Any, label: str, **arguments: Any) -> int:
    options = {"max_epochs": 3, "seed": 1, **arguments}
    source, features = options.pop("source", "mixed"), options.pop("features", COLUMNS)
    row = conn.execute(
        "SELECT model_id FROM corgipile_train(%s, %s, %s, %s, options => %s)",
        [source, options.pop("model", "logistic"), label, features, json.dumps(options)],
    ).fetchone()
    return row[0]


def session_of(conn: Any, model: int) -> Any:
    graph = conn.execute("SELECT corgipile_export_onnx(%s::bigint)", [model]).fetchone()[0]
    return onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])


def said(session: Any, key: str) -> Any:
    return json.loads(session.get_modelmeta().custom_metadata_map[key])


def inputs(session: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows as the graph takes them."""
    given: dict[str, Any] = {}
    numbers = {"tensor(float)": (np.float32, np.nan), "tensor(int64)": (np.int64, -1)}
    for wanted in session.get_inputs():
        values = [row[wanted.name] for row in rows]
        if wanted.type == "tensor(string)":
            given[wanted.name] = np.array([NULL_TEXT if value is None else str(value) for value in values], object)
        elif len(wanted.shape) == 1 and wanted.type == "tensor(int64)":
            buckets = said(session, "buckets")
            found = [-1 if value is None else bucket(wanted.name, value, buckets) for value in values]
            given[wanted.name] = np.array(found, np.int64)
        else:
            kind, null = numbers[wanted.type]
            if len(wanted.shape) == 2:
                width = max(len(value) for value in values if value is not None)
                padding = -1 if kind == np.int64 else 0
                values = [[null] * width if v is None else [*v, *[padding] * (width - len(v))] for v in values]
                values = [[null if element is None else element for element in value] for value in values]
            else:
                values = [null if value is None else value for value in values]
            given[wanted.name] = np.array(values, np.float64 if kind == np.float32 else kind).astype(kind)
    return given


def in_sql(conn: Any, function: str, model: int, source: str, one_by_one: bool) -> list[Any] | None:
    """The answers to all rows, None without one; None if the model has no such answers."""
    ask = f"SELECT {function}(%s::bigint, t) FROM (SELECT * FROM {source} AS s ORDER BY id) AS t"
    if not one_by_one:
        try:
            return [row[0] for row in conn.execute(ask, [model])]
        except psycopg.errors.FeatureNotSupported:
            return None
    ids = [row[0] for row in conn.execute(f"SELECT id FROM {source} AS s ORDER BY id")]
    try:
        return [answer_to(conn, f"{ask} WHERE id = {i}", model) for i in ids]
    except psycopg.errors.FeatureNotSupported:
        return None


def answer_to(conn: Any, ask: str, model: int) -> Any:
    """The answer to one row; None if it is refused."""
    try:
        return conn.execute(ask, [model]).fetchone()[0]
    except psycopg.errors.FeatureNotSupported:
        raise
    except psycopg.Error:
        return None


def assert_same(conn: Any, model: int, source: str = "mixed", one_by_one: bool = False) -> int:
    """All answers are the same; gives how many rows have one."""
    session = session_of(conn, model)
    rows = rows_of(conn, source)
    given = inputs(session, rows)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, given)))
    answered = None
    for name, function in [("value", "predict"), ("label", "predict_label"), ("probabilities", "predict_proba")]:
        expected = in_sql(conn, f"corgipile_{function}", model, source, one_by_one)
        assert (expected is None) == (name not in names), name
        if expected is None:
            continue
        if name == "label":
            assert found[name].tolist() == ["" if label is None else label for label in expected]
        else:
            nothing = [np.nan] * found[name].shape[1] if found[name].ndim == 2 else np.nan
            numbers = np.array([nothing if value is None else value for value in expected])
            np.testing.assert_allclose(found[name], numbers, rtol=1e-5, atol=1e-5)
        is_there = np.array([value is not None for value in expected])
        assert answered is None or (answered == is_there).all()
        answered = is_there
    assert answered is not None
    if "decisions" in names:
        assert (np.isfinite(found["decisions"]).all(axis=1) == answered).all()
    # a row for itself has the answer that it has among others
    alone = dict(zip(names, session.run(None, {name: value[:1] for name, value in given.items()})))
    for name, value in alone.items():
        assert value.tolist() == found[name][:1].tolist() or np.allclose(value, found[name][:1], equal_nan=True)
    return int(answered.sum())


KINDS = [
    ("two", {}),
    ("yes", {"standardize": False, "transform": "none", "features": ["a", "flag", "colour"]}),
    ("word", {"model": "svm"}),
    ("number", {"model": "linear"}),
    ("number", {"model": "linear", "standardize": True, "transform": ["b", "c"]}),
    ("number", {"model": "linear", "features": ["far", "a"]}),
    ("five", {"model": "svm"}),
    ("word", {"model": "svm", "probability": True}),
    ("five", {"model": "svm", "probability": True, "loss": "squared_hinge"}),
    ("c", {"model": "poisson", "features": ["a", "b", "n", "colour"]}),
    ("number", {"model": "linear", "loss": "quantile", "quantile": 0.9}),
    ("five", {"model": "softmax"}),
    ("half", {"model": "softmax", "transform": "log", "standardize": True}),
    ("colour", {"model": "softmax", "features": ["a", "b", "size"]}),
    ("word", {"model": "logistic", "features": ["colour"]}),
    ("word", {"model": "mlp", "hidden_layer_sizes": [7]}),
    ("word", {"model": "mlp", "hidden_layer_sizes": [16, 5], "activation": "tanh", "output": "softmax"}),
    ("five", {"model": "mlp", "hidden_layer_sizes": [20], "activation": "sigmoid", "output": "sigmoid"}),
    ("five", {"model": "mlp", "hidden_layer_sizes": [33, 20], "winsorize": 1.5, "standardize": True}),
    ("number", {"model": "mlp", "hidden_layer_sizes": [9], "objective": "regression"}),
    ("two", {"features": ["x"], "standardize": True}),
    ("five", {"model": "softmax", "features": ["x"], "transform": "log"}),
    ("two", {"model": "mlp", "features": ["x"], "hidden_layer_sizes": [5], "winsorize": 0.5, "standardize": True}),
    ("two", {"features": ["flags"]}),
    ("two", {"features": ["a", "x"]}),
    ("five", {"model": "softmax", "features": ["x", "a", "colour", "flags"], "transform": "log"}),
    ("two", {"model": "mlp", "features": ["b", "x", "size"], "hidden_layer_sizes": [5], "winsorize": 0.5}),
    ("number", {"model": "linear", "features": ["x", "b", "url"], "hash": {"columns": ["url"], "buckets": 64}}),
    ("two", {"features": ["k", "v"]}),
    ("five", {"model": "softmax", "features": ["k", "v"], "standardize": True, "index_base": 0}),
    ("number", {"model": "linear", "features": ["k", "v"], "transform": "log"}),
    ("two", {"model": "mlp", "features": ["k", "v"], "hidden_layer_sizes": [4], "standardize": True, "winsorize": 1.5}),
]


@pytest.mark.parametrize(("label", "arguments"), KINDS, ids=lambda value: str(value)[:60])
def test_every_kind_of_model_predicts_what_sql_predicts(conn: Any, mixed: Any, label: str, arguments: Any) -> None:
    # sparse numbers that are NULL are all that has no answer
    least = 1800 if "v" in arguments.get("features", []) else 2000
    assert assert_same(conn, train(conn, label, **arguments)) >= least


@pytest.mark.parametrize("kind", ["logistic", "mlp", "softmax"])
@pytest.mark.parametrize(
    "hashed", [{"buckets": 31, "columns": ["url", "colour", "size"]}, {"buckets": 1000, "columns": ["url"]}, "off"]
)
def test_buckets_that_are_computed_outside_are_those_of_the_model(
    conn: Any, mixed: Any, kind: str, hashed: Any
) -> None:
    model = train(conn, "two", model=kind, hash=hashed, features=["colour", "url", "a", "size"], standardize=True)
    types = {wanted.name: wanted.type for wanted in session_of(conn, model).get_inputs()}
    assert types["url"] == ("tensor(string)" if hashed == "off" else "tensor(int64)")
    assert assert_same(conn, model) == 2000


@pytest.mark.parametrize("nulls", ["impute", "skip", "error"])
@pytest.mark.parametrize("handle_unknown", ["ignore", "error"])
@pytest.mark.parametrize("features", [["a", "colour", "url", "size"], ["x"], ["k", "v"]], ids=str)
def test_nulls_and_what_was_not_met_have_the_answer_that_sql_gives_or_none(
    conn: Any, mixed: Any, nulls: str, handle_unknown: str, features: list[str]
) -> None:
    met = "colour IN ('red', 'green') AND NOT k && ARRAY[12]"
    if nulls == "error":
        met += " AND a IS NOT NULL AND url IS NOT NULL AND array_position(x, NULL) IS NULL"
        met += " AND array_position(v, NULL) IS NULL"
    source = f"SELECT * FROM mixed WHERE {met}"
    arguments: dict[str, Any] = {"nulls": nulls, "features": features, "source": source}
    if "url" in features:
        arguments["hash"] = {"columns": ["url"], "buckets": 64}
    if features != ["x"]:
        arguments["handle_unknown"] = handle_unknown
    model = train(conn, "two", **arguments)
    count = assert_same(conn, model, "(SELECT * FROM mixed WHERE id <= 300)", one_by_one=True)
    assert count > 60
    # all but those are refused or left out
    assert count == 300 or nulls != "impute" or handle_unknown == "error" or features == ["k", "v"]


def test_what_sql_refuses_has_no_answer(conn: Any, mixed: Any) -> None:
    document = {
        "corgipile_model": 1, "model": "linear", "label": "y", "label_type": "float8", "features": ["k", "v"],
        "feature_kind": "sparse", "index_base": 1, "weights": [1, 10, 100], "intercepts": [0.5],
    }  # fmt: skip
    model = conn.execute("SELECT corgipile_import(%s)", [json.dumps(document)]).fetchone()[0]
    session = session_of(conn, model)
    cases = [
        ([1, 3], [1.0, 2.0], 201.5), ([3, 1], [2.0, 1.0], 201.5), ([2, -1], [1.0, 7.0], 10.5),
        ([-1, -1], [np.nan, 1.0], 0.5), ([1, 1], [1.0, 2.0], None), ([0, 1], [1.0, 1.0], None),
        ([4, 1], [1.0, 1.0], None), ([-2, 1], [1.0, 1.0], None), ([1, 2], [np.inf, 1.0], None),
        ([1, 2], [3e38, 3e38], None),
    ]  # fmt: skip
    given = {"k": np.array([k for k, _, _ in cases]), "v": np.array([v for _, v, _ in cases], np.float32)}
    found = session.run(["value"], given)[0].tolist()
    assert [None if np.isnan(value) else value for value in found] == [expected for _, _, expected in cases]
    for k, v, expected in cases[:2] + cases[4:]:
        ask = "SELECT corgipile_predict(%s::bigint, %s::int[], %s::float8[])"
        if expected is None:
            with pytest.raises(psycopg.Error):
                conn.execute(ask, [model, k, v])
        else:
            assert conn.execute(ask, [model, k, v]).fetchone()[0] == expected
    # one entry for each row, and no rows
    one = {"k": np.array([[2]]), "v": np.array([[1.0]], np.float32)}
    assert session.run(["value"], one)[0].tolist() == [10.5]
    none = {"k": np.zeros((0, 2), np.int64), "v": np.zeros((0, 2), np.float32)}
    assert session.run(["value"], none)[0].tolist() == []


def test_sparse_vectors_of_one_column_are_two_inputs(conn: Any, mixed: Any) -> None:
    document = {
        "corgipile_model": 1, "model": "linear", "label": "y", "label_type": "float8", "features": ["s"],
        "feature_kind": "sparse", "index_base": 1, "weights": [1, 10, 100], "intercepts": [0.5],
        "feature_mean": [0, 0, 1], "feature_scale": [1, 2, 4], "hyperparameters": {"handle_unknown": "ignore"},
    }  # fmt: skip
    model = conn.execute("SELECT corgipile_import(%s)", [json.dumps(document)]).fetchone()[0]
    session = session_of(conn, model)
    assert [wanted.name for wanted in session.get_inputs()] == ["s.indices", "s.values"]
    given = {"s.indices": np.array([[1, 3], [4, 2]]), "s.values": np.array([[2, 9], [5, 3]], np.float32)}
    assert session.run(["value"], given)[0].tolist() == [0.5 + 2 + 100 * 2, 0.5 + 10 * 1.5]


@pytest.mark.parametrize("features", [["x"], ["a", "colour", "size"]], ids=str)
def test_no_rows_have_no_answers(conn: Any, mixed: Any, features: list[str]) -> None:
    session = session_of(conn, train(conn, "five", model="softmax", features=features))
    none = {name: value[:0] for name, value in inputs(session, mixed[:1]).items()}
    label, probabilities = session.run(["label", "probabilities"], none)
    assert label.shape == (0,) and probabilities.shape[0] == 0


def test_parts_of_dates_are_inputs_of_their_own(conn: Any, mixed: Any) -> None:
    model = train(conn, "two", features=["at.month", "at.year"])
    session = session_of(conn, model)
    # what the extension computes of the column
    conn.execute('UPDATE mixed SET "at.month" = extract(month FROM at)::int::text, "at.year" = extract(year FROM at)')
    given = inputs(session, rows_of(conn, "mixed"))
    without = "(SELECT id, at FROM mixed)"
    expected = in_sql(conn, "corgipile_predict_proba", model, without, one_by_one=False)
    assert expected is not None
    np.testing.assert_allclose(session.run(["probabilities"], given)[0], expected, rtol=1e-5, atol=1e-5)


def test_a_column_may_be_called_as_an_output_is(conn: Any, mixed: Any) -> None:
    columns = 'id, two, a AS value, b AS label, n AS t1, colour AS "a b"'
    conn.execute(f"CREATE TABLE hostile AS SELECT {columns} FROM mixed")
    model = train(conn, "two", source="hostile", features=["value", "label", "t1", "a b"])
    session = session_of(conn, model)
    assert [wanted.name for wanted in session.get_inputs()] == ["value", "label", "t1", "a b"]
    assert [output.name for output in session.get_outputs()] == ["value_", "label_", "probabilities", "decisions"]
    found = session.run(["label_"], inputs(session, rows_of(conn, "hostile")))[0].tolist()
    assert found == in_sql(conn, "corgipile_predict_label", model, "hostile", one_by_one=False)


def test_what_is_given_in_another_type_is_refused(conn: Any, mixed: Any) -> None:
    model = train(conn, "two", hash={"columns": ["url"], "buckets": 64}, features=["a", "url"])
    session = session_of(conn, model)
    given = inputs(session, mixed)
    with pytest.raises(Exception, match=r"expected: \(tensor\(int64\)\)"):
        session.run(None, {**given, "url": np.array(["x"] * len(mixed), object)})
    # a bucket that there is not
    found = session.run(["label"], {**given, "url": np.full(len(mixed), 64)})[0]
    assert set(found) == {""}


def test_the_metadata_say_what_a_program_needs(conn: Any, mixed: Any) -> None:
    model = train(conn, "word", hash={"columns": ["url"], "buckets": 64}, features=["a", "url", "colour"])
    session = session_of(conn, model)
    assert said(session, "model") == "logistic"
    assert said(session, "classes") == ["no", "yes"]
    assert said(session, "features") == ["a", "url", "colour"]
    assert said(session, "buckets") == 64
    assert said(session, "null_text") == NULL_TEXT
    assert session.get_modelmeta().producer_name == "corgipile"
