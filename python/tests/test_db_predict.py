"""Predictions of `Model` against those of SQL, for every kind of model and all that a document can have."""

from __future__ import annotations

import json
import math
import random
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from corgipile.db import Model
from corgipile.db._document import SVMS

ROWS = 3000

COLUMNS = ["a", "b", "c", "n", "flag", "colour", "size", "url", "day", "at", "zoned"]

TABLE = """
CREATE TYPE sizes AS ENUM ('small', 'medium', 'large');
CREATE TABLE mixed AS
SELECT i AS id,
       CASE WHEN random() < 0.05 THEN NULL ELSE random() * 10 - 5 END AS a,
       CASE WHEN random() < 0.05 THEN NULL ELSE (exp(random() * 18) * sign(random() - 0.3))::real END AS b,
       (random() * 1e6)::bigint AS c,
       (random() * 100)::numeric(10, 3) AS n,
       CASE WHEN random() < 0.02 THEN NULL ELSE random() < 0.3 END AS flag,
       CASE WHEN random() < 0.05 THEN NULL
            ELSE (ARRAY['red', 'green', 'blue', 'a,"b"', 'ñandú'])[1 + floor(random() * 5)::int] END AS colour,
       (ARRAY['small', 'medium', 'large'])[1 + floor(random() * 3)::int]::sizes AS size,
       CASE WHEN random() < 0.05 THEN NULL ELSE repeat('x', (random() * 300)::int) || (random() * 50)::int END AS url,
       date '1960-01-01' + (random() * 40000)::int AS day,
       timestamp '1999-01-01' + random() * interval '9000 days' AS at,
       CASE WHEN random() < 0.05 THEN NULL ELSE timestamptz '2020-01-01' + random() * interval '900 days' END AS zoned,
       random() AS noise
  FROM generate_series(1, 3000) AS i;
ALTER TABLE mixed ADD PRIMARY KEY (id);
ALTER TABLE mixed ADD two int, ADD yes boolean, ADD word text, ADD five int, ADD half real, ADD number float8;
UPDATE mixed SET two = 7 + (coalesce(a, 0) + 2 * noise > 1)::int, yes = coalesce(a, 0) + noise > 0,
                 word = (ARRAY['no', 'yes'])[1 + (colour = 'red' OR a > 2 OR a IS NULL)::int],
                 five = (c / 200000)::int * 10, half = (floor(n / 25) / 2)::real, number = coalesce(a, 0) * 3 + noise;
UPDATE mixed SET word = 'no' WHERE word IS NULL;
"""


@pytest.fixture(scope="module")
def mixed(database: str) -> list[dict[str, Any]]:
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(dbname=database, autocommit=True) as connection:
        connection.execute("SELECT setseed(0.25)")
        connection.execute(TABLE)
        return connection.cursor(row_factory=dict_row).execute("SELECT * FROM mixed ORDER BY id").fetchall()


def train(conn: Any, label: str, **arguments: Any) -> Model:
    options = {"max_epochs": 3, "seed": 1, "learning_rate": 0.01, **arguments}
    source = options.pop("source", "mixed")
    features = options.pop("features", COLUMNS)
    model = options.pop("model", "logistic")
    row = conn.execute(
        "SELECT model_id FROM corgipile_train(%s, %s, %s, %s, options => %s)",
        [source, model, label, features, json.dumps(options)],
    ).fetchone()
    return Model.from_database(conn, row[0])


def in_sql(conn: Any, function: str, model: Model, source: str = "mixed", **policies: str) -> list[Any]:
    arguments = "".join(f", {name} => '{word}'" for name, word in policies.items())
    return [
        row[0]
        for row in conn.execute(
            f"SELECT {function}(%s::bigint, t{arguments}) FROM (SELECT * FROM {source} ORDER BY id) AS t",
            [model.model_id],
        )
    ]


def decisions_in_sql(conn: Any, model: Model, source: str = "mixed") -> list[float | None] | None:
    """The only decision of a model with one, which SQL gives if the model is said to predict numbers."""
    if not model.is_classifier:
        return None
    document = model.to_dict()
    for key in ("sigmoid_slopes", "sigmoid_offsets"):
        document.pop(key, None)
    if len(document.pop("classes", ["one"])) > 2 or model.kind == "softmax" or document.get("output") == "softmax":
        return None
    document["label_type"] = "pg_catalog.float8"
    document["model"] = "mlp_regression" if model.kind == "mlp" else "linear"
    if model.kind == "mlp":
        document["output"] = "identity"
    query = f"SELECT corgipile_predict(%s::jsonb, t) FROM (SELECT * FROM {source} ORDER BY id) AS t"
    return [row[0] for row in conn.execute(query, [json.dumps(document)])]


def assert_same(conn: Any, model: Model, rows: Any, source: str = "mixed", **policies: Any) -> None:
    """Labels and decisions are the same bits; probabilities differ by the rounding of e^x."""
    predicted = model.predict(rows, **policies)
    if model.is_classifier:
        expected: list[Any] = in_sql(conn, "corgipile_predict_label", model, source, **policies)
        as_text = {True: "t", False: "f"}
        texts = [
            None if p is None else as_text[bool(p)] if isinstance(p, bool | np.bool_) else str(p) for p in predicted
        ]
        if model.classes is not None and model.classes.dtype.kind == "f":
            texts = [None if t is None else f"{float(t):g}" for t in texts]
        assert texts == expected
    else:
        expected = [math.nan if z is None else z for z in in_sql(conn, "corgipile_predict", model, source, **policies)]
        np.testing.assert_array_equal(predicted, expected)
    if not policies and (decisions := decisions_in_sql(conn, model, source)) is not None:
        np.testing.assert_array_equal(model.decision_function(rows), [math.nan if z is None else z for z in decisions])
    is_fitted = "sigmoid_slopes" in model.to_dict()
    if model.is_classifier and (model.kind not in SVMS or is_fitted):
        classes = len(model.classes) if model.classes is not None else 0
        nothing = [math.nan] * classes
        probabilities = np.array(
            [p or nothing for p in in_sql(conn, "corgipile_predict_proba", model, source, **policies)]
        )
        # the smaller a probability is, the more of its digits the rounding of the exponent takes
        tolerance = 1e-13 if is_fitted else 1e-14
        np.testing.assert_allclose(model.predict_proba(rows, **policies), probabilities, rtol=tolerance, atol=5e-324)


KINDS = [
    ("two", {"model": "logistic"}),
    (
        "yes",
        {"model": "logistic", "standardize": False, "transform": "none", "features": ["a", "flag", "colour", "day"]},
    ),
    ("word", {"model": "svm"}),
    ("word", {"model": "svm", "probability": True}),
    ("five", {"model": "svm", "probability": True, "loss": "squared_hinge"}),
    ("number", {"model": "linear"}),
    ("number", {"model": "linear", "winsorize": None, "standardize": True, "transform": ["b", "c"]}),
    ("five", {"model": "softmax"}),
    ("half", {"model": "softmax", "transform": "log"}),
    ("colour", {"model": "softmax", "features": ["a", "b", "size", "at"]}),
    ("word", {"model": "mlp", "hidden_layer_sizes": [7]}),
    ("word", {"model": "mlp", "hidden_layer_sizes": [16, 5], "activation": "tanh", "output": "softmax"}),
    ("five", {"model": "mlp", "hidden_layer_sizes": [20], "activation": "sigmoid", "output": "sigmoid"}),
    ("five", {"model": "mlp", "hidden_layer_sizes": [33, 20], "winsorize": 2.5}),
    ("number", {"model": "mlp", "hidden_layer_sizes": [9], "objective": "regression"}),
]


@pytest.mark.parametrize(("label", "arguments"), KINDS, ids=lambda value: str(value)[:60])
def test_every_kind_of_model_predicts_what_sql_predicts(conn: Any, mixed: Any, label: str, arguments: Any) -> None:
    arguments = {key: value for key, value in arguments.items() if value is not None}
    model = train(conn, label, date_parts=["year", "month", "day", "dow", "doy", "epoch", "hour"], **arguments)
    assert_same(conn, model, mixed)
    by_column = {name: [row[name] for row in mixed] for name in mixed[0]}
    np.testing.assert_array_equal(model.predict(by_column), model.predict(mixed))


@pytest.mark.parametrize("model_kind", ["logistic", "mlp", "softmax"])
@pytest.mark.parametrize(
    "hashed", [{"buckets": 31, "columns": ["url", "colour", "size"]}, {"buckets": 1000, "columns": ["url"]}, "off"]
)
def test_hashed_columns_have_the_same_buckets(conn: Any, mixed: Any, model_kind: str, hashed: Any) -> None:
    model = train(conn, "two", model=model_kind, hash=hashed, features=["colour", "url", "a", "size"])
    assert_same(conn, model, mixed)


@pytest.mark.parametrize("nulls", ["impute", "skip"])
def test_nulls_and_unseen_categories_are_treated_as_in_sql(conn: Any, mixed: Any, nulls: str) -> None:
    source = "(SELECT id, a, b, c, n, flag, colour, size, day, at, zoned, url, two FROM mixed) AS m"
    seen = "SELECT * FROM mixed WHERE colour IN ('red', 'green') AND day IS NOT NULL"
    model = train(conn, "two", source=seen, nulls=nulls, date_parts=True, hash={"columns": ["url"], "buckets": 64})
    assert_same(conn, model, mixed, source)
    assert_same(conn, model, mixed, source, nulls="skip")
    assert_same(conn, model, mixed, source, handle_unknown="ignore")
    known = [row for row in mixed if row["colour"] in ("red", "green")]
    assert_same(
        conn, model, known, "(SELECT * FROM mixed WHERE colour IN ('red', 'green')) AS m", handle_unknown="error"
    )
    with pytest.raises(ValueError, match=r"feature 'colour', row \d+: category '.*' is unknown"):
        model.predict([row for row in mixed if row["colour"]], handle_unknown="error")
    with pytest.raises(ValueError, match=r"feature '.*', row \d+: NULL"):
        model.predict(mixed, nulls="error")


@pytest.mark.parametrize(
    ("label", "kind"), [("two", "logistic"), ("five", "softmax"), ("five", "mlp"), ("number", "linear")]
)
@pytest.mark.parametrize("width", [1, 15, 16, 17, 63, 64, 200])
def test_arrays_of_any_length_give_the_same_bits(conn: Any, mixed: Any, label: str, kind: str, width: int) -> None:
    generator = random.Random(width)
    rows = [[generator.gauss(0, 3) for _ in range(width)] for _ in range(400)]
    conn.execute("DROP TABLE IF EXISTS arrays")
    conn.execute("CREATE TABLE arrays (id int, x float8[], two int, five int, number float8)")
    with conn.cursor().copy("COPY arrays FROM STDIN") as copy:
        for i, x in enumerate(rows):
            copy.write_row([i, x, int(sum(x) > 0), int(abs(x[0])), x[-1]])
    model = train(conn, label, model=kind, source="arrays", features=["x"], transform="log" if width == 17 else "none")
    assert_same(conn, model, np.array(rows), "arrays")
    assert_same(conn, model, {"x": rows}, "arrays")
    assert_same(conn, model, {"x": np.array(rows)}, "arrays")
    np.testing.assert_allclose(
        model.decision_function(rows, exact=False), model.decision_function(rows), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize(("label", "kind"), [("two", "logistic"), ("five", "mlp"), ("number", "linear")])
@pytest.mark.parametrize("features", [["x", "a"], ["b", "x", "colour"], ["x", "url", "a"]])
@pytest.mark.parametrize("transform", ["none", "log", ["a", "b"]])
def test_vectors_next_to_other_columns_are_features(
    conn: Any, mixed: Any, label: str, kind: str, features: list[str], transform: Any
) -> None:
    generator = random.Random(9)
    vector = [
        None if i % 9 == 0 else [generator.gauss(0, 3), None if i % 7 == 0 else i % 3 + 0.5, 1e4] for i in range(400)
    ]
    rows = [{**row, "x": x} for row, x in zip(mixed, vector)]
    conn.execute("DROP TABLE IF EXISTS vectors")
    conn.execute("CREATE TABLE vectors (id int, x float8[])")
    with conn.cursor().copy("COPY vectors FROM STDIN") as copy:
        for row in rows:
            copy.write_row([row["id"], row["x"]])
    source = "SELECT m.*, v.x FROM mixed m JOIN vectors v USING (id)"
    if isinstance(transform, list):
        transform = [name for name in transform if name in features]
    hashed = {"hash": {"columns": ["url"], "buckets": 32}} if "url" in features else {}
    model = train(conn, label, model=kind, source=source, features=features, transform=transform, **hashed)
    assert_same(conn, model, rows, f"({source}) AS s")
    assert_same(conn, model, {name: [row[name] for row in rows] for name in features}, f"({source}) AS s")
    with pytest.raises(ValueError, match=r"feature 'x', row 1: 2, where the model has 3 numbers"):
        model.predict([rows[1], {**rows[2], "x": [1, 2]}])


def test_keys_of_json_are_those_that_sql_reads(conn: Any, mixed: Any) -> None:
    source = """SELECT id, two, number, jsonb_strip_nulls(jsonb_build_object('a', a, 'flag', flag, 'colour', colour,
                       'in', jsonb_build_object('b', b, 'size', size))) AS data FROM mixed"""
    rows = [{"id": i, "data": data} for i, data in conn.execute(f"SELECT id, data FROM ({source}) s ORDER BY id")]
    texts = [{"data": json.dumps(row["data"])} for row in rows]
    for label, kind in [("two", "logistic"), ("number", "linear")]:
        model = train(conn, label, model=kind, source=source, features=["data"], transform="none")
        assert sorted(model.to_dict()["features"]) == [
            "data->>colour", "data->a", "data->flag", "data->in->>size", "data->in->b",
        ]  # fmt: skip
        assert_same(conn, model, rows, f"({source}) AS s")
        assert_same(conn, model, texts, f"({source}) AS s")
    with pytest.raises(ValueError, match=r"feature 'data', row 0, key 'a': 'x', where the model has a number"):
        model.predict([{"data": {"a": "x"}}])
    with pytest.raises(ValueError, match=r"feature 'data', row 0: no JSON"):
        model.predict([{"data": "{"}])


def test_texts_say_what_they_say_in_sql(conn: Any, mixed: Any) -> None:
    texts = ["12.5", "NA", "$1,234", " 7 ", "46,47", "1 234 €", "1.234,5", "12 %", "1e400", "", "-$5", None]
    dates = [
        "2013-01-05",
        "05/01/2013 10:30",
        "Feb 30, 2012",
        "31-Dec-1999",
        "2013-01-05T23:10:11Z",
        "NA",
        "12/31/1999",
        None,
    ]
    conn.execute("DROP TABLE IF EXISTS written; CREATE TABLE written (id int, two int, amount text, at text)")
    for row in mixed:
        amount, at = texts[row["id"] % len(texts)], dates[row["id"] % len(dates)]
        conn.execute("INSERT INTO written VALUES (%s, %s, %s, %s)", [row["id"], row["two"], amount, at])
    rows = conn.execute("SELECT id, amount, at FROM written ORDER BY id").fetchall()
    given = [dict(zip(("id", "amount", "at"), row)) for row in rows]
    parts = ("year", "month", "day", "dow", "hour", "doy")
    features = ["amount::number", "amount::decimal_comma", "amount IS NULL"]
    features += [f"at::{order}.{part}" for order in ("ymd", "dmy", "mdy") for part in parts]
    # each row has a date in one order at most
    for nulls, chosen in (("impute", features), ("impute", features[:3]), ("skip", features[:1])):
        model = train(conn, "two", source="written", features=chosen, nulls=nulls)
        assert_same(conn, model, given, "written")


def test_models_of_words_predict_in_the_database_alone(conn: Any, mixed: Any) -> None:
    source = "SELECT two, to_tsvector('simple', coalesce(colour, '')) AS body, ARRAY[colour] AS tags FROM mixed"
    for features in (["body"], ["tags"]):
        model = train(conn, "two", source=source, features=features)
        with pytest.raises(ValueError, match=rf"feature '{features[0]}': the model was trained on the words"):
            model.predict([{"body": "'red':1", "tags": ["red"]}])


def test_bytes_and_vectors_as_texts_are_arrays(conn: Any, mixed: Any) -> None:
    generator = random.Random(5)
    rows = [generator.randbytes(12) for _ in range(200)]
    conn.execute("DROP TABLE IF EXISTS pictures")
    conn.execute("CREATE TABLE pictures (id int, picture bytea, two int)")
    with conn.cursor().copy("COPY pictures FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "bytea", "int4"])
        for i, row in enumerate(rows):
            copy.write_row([i, row, row[0] // 128])
    model = train(conn, "two", source="pictures", features=["picture"])
    assert_same(conn, model, {"picture": rows}, "pictures")
    assert_same(conn, model, {"picture": [memoryview(row) for row in rows]}, "pictures")
    assert_same(conn, model, {"picture": [str(list(row)) for row in rows]}, "pictures")
    assert_same(conn, model, {"picture": ["{" + ",".join(map(str, row)) + "}" for row in rows]}, "pictures")
    with pytest.raises(ValueError, match=r"feature 'picture', row 1: 3, where the model has 12 numbers"):
        model.predict({"picture": [rows[0], b"abc"]})


@pytest.mark.parametrize(("label", "kind"), [("two", "logistic"), ("five", "softmax"), ("five", "mlp"), ("two", "svm")])
@pytest.mark.parametrize(("base", "standardize"), [(0, False), (1, True)])
def test_sparse_features_give_the_same_bits(
    conn: Any, mixed: Any, label: str, kind: str, base: int, standardize: bool
) -> None:
    generator = random.Random(base)
    conn.execute("DROP TABLE IF EXISTS sparse")
    conn.execute("CREATE TABLE sparse (id int, k int[], v float8[], two int, five int)")
    indices, values = [], []
    with conn.cursor().copy("COPY sparse FROM STDIN") as copy:
        for i in range(500):
            k = generator.sample(range(base, 90), generator.randrange(40))
            v = [generator.gauss(0, 2) if generator.random() < 0.95 else 0.0 for _ in k]
            indices.append(k)
            values.append(v)
            copy.write_row([i, k, v, int(sum(v) > 0), len(k) // 10])
    few = "SELECT * FROM sparse WHERE NOT k && ARRAY[88, 89]"  # so that some indices are unseen
    model = train(
        conn,
        label,
        model=kind,
        source=few,
        features=["k", "v"],
        index_base=base,
        standardize=standardize,
        transform="log" if kind == "svm" else "none",
    )
    assert_same(conn, model, {"k": indices, "v": values}, "sparse")
    with pytest.raises(ValueError, match=r"row \d+: index 8[89] is beyond 87, the model's largest"):
        model.predict({"k": indices, "v": values}, handle_unknown="error")
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.lil_matrix((500, 90))
    for row, (k, v) in enumerate(zip(indices, values)):
        for index, value in zip(k, v):
            matrix[row, index - base] = value
    kept = matrix.tocsr()[:, : 88 - base]
    np.testing.assert_allclose(
        model.decision_function(kept), model.decision_function({"k": indices, "v": values}), rtol=1e-4, atol=1e-4
    )


def test_times_at_the_edges_have_the_parts_that_extract_gives(conn: Any, mixed: Any) -> None:
    zone = timezone(timedelta(hours=-5, minutes=-30))
    times = [
        datetime(1, 1, 1),
        datetime(1582, 10, 15),
        datetime(1899, 12, 31, 23, 59, 59, 999999),
        datetime(1969, 12, 31, 23),
        datetime(1970, 1, 1),
        datetime(2000, 2, 29, 12),
        datetime(2023, 12, 31, 0, 0, 0, 1),
        datetime(9999, 12, 31, 23, 59),
    ]
    conn.execute("DROP TABLE IF EXISTS edges")
    conn.execute("CREATE TABLE edges (id int, at timestamp, zoned timestamptz, day date, two int)")
    for i, time in enumerate(times):
        zoned = time.replace(tzinfo=zone) if 1 < time.year < 9999 else time.replace(tzinfo=timezone.utc)
        conn.execute("INSERT INTO edges VALUES (%s, %s, %s, %s, %s)", [i, time, zoned, time.date(), i % 2])
    parts = ["year", "month", "day", "dow", "doy", "hour", "epoch"]
    model = train(conn, "two", source="edges", features=["at", "zoned", "day"], date_parts=parts, standardize=True)
    given = conn.execute("SELECT at, zoned, day FROM edges ORDER BY id").fetchall()
    assert_same(
        conn, model, {name: [row[i] for row in given] for i, name in enumerate(["at", "zoned", "day"])}, "edges"
    )
    as_numpy = {
        "at": np.array([row[0] for row in given], "datetime64[us]"),
        "zoned": np.array([row[1].astimezone(timezone.utc).replace(tzinfo=None) for row in given], "datetime64[us]"),
        "day": np.array([row[2] for row in given], "datetime64[D]"),
    }
    assert_same(conn, model, as_numpy, "edges")
    as_text = {name: [row[i].isoformat() for row in given] for i, name in enumerate(["at", "zoned", "day"])}
    assert_same(conn, model, as_text, "edges")
    with pytest.raises(TypeError, match="column 'at' has dates, and the model was trained on hours"):
        model.predict({**as_numpy, "at": as_numpy["day"]})
    with pytest.raises(TypeError, match="column 'at' has dates, and the model was trained on hours"):
        model.predict({**as_numpy, "at": list(as_numpy["day"])})
    assert_same(conn, model, {**as_numpy, "day": list(as_numpy["day"])}, "edges")


def test_blanks_at_the_end_of_char_are_cut_off_in_a_query(conn: Any, mixed: Any) -> None:
    padded = "SELECT id, two, colour::char(9) AS colour FROM mixed"
    model = train(conn, "two", source=padded, features=["colour"], handle_unknown="ignore", nulls="impute")
    assert "red" in model.to_dict()["categories"]["colour"]
    given = [row[0] for row in conn.execute(f"SELECT colour::text FROM ({padded}) AS p ORDER BY id")]
    assert_same(conn, model, {"colour": given}, f"({padded}) AS p")
    as_they_come = [row[0] for row in conn.execute(f"SELECT colour FROM ({padded}) AS p ORDER BY id")]
    assert "red      " in as_they_come
    with pytest.warns(UserWarning, match="known without the blanks at its end"):
        model.predict({"colour": as_they_come})


def test_a_padded_char_is_refused_where_it_is_hashed(conn: Any, mixed: Any) -> None:
    padded = "SELECT id, two, colour::char(9) AS colour FROM mixed"
    model = train(conn, "two", source=padded, features=["colour"], hash={"columns": ["colour"], "buckets": 64})
    given = [row[0] for row in conn.execute(f"SELECT colour::text FROM ({padded}) AS p ORDER BY id")]
    assert_same(conn, model, {"colour": given}, f"({padded}) AS p")
    as_they_come = [row[0] for row in conn.execute(f"SELECT colour FROM ({padded}) AS p ORDER BY id")]
    for rows in (as_they_come, ["red      "]):
        with pytest.raises(ValueError, match=r"feature 'colour', row \d+: .* ends with blanks.*cut them off"):
            model.predict({"colour": rows})
    # texts of a column of type text have their blanks in SQL, too
    texts = "SELECT id, two, colour || CASE WHEN mod(id, 3) = 0 THEN ' ' ELSE '' END AS colour FROM mixed"
    model = train(conn, "two", source=texts, features=["colour"], hash={"columns": ["colour"], "buckets": 64})
    given = [row[0] for row in conn.execute(f"SELECT colour FROM ({texts}) AS p ORDER BY id")]
    assert_same(conn, model, {"colour": given}, f"({texts}) AS p")


def test_an_infinite_date_is_a_category_and_no_number(conn: Any, mixed: Any) -> None:
    infinite = "CASE WHEN mod(id, 5) = 0 THEN 'infinity' WHEN mod(id, 7) = 0 THEN '-infinity' ELSE at END"
    source = f"SELECT id, two, {infinite} AS at FROM mixed"
    model = train(conn, "two", source=source, features=["at.month", "at.dow"])
    texts = [row[0] for row in conn.execute(f"SELECT at::text FROM ({source}) AS s ORDER BY id")]
    assert "-infinity" in model.to_dict()["categories"]["at.dow"]
    assert_same(conn, model, {"at": texts}, f"({source}) AS s")


def test_a_model_of_pandas_polars_and_arrow_columns_predicts_the_same(conn: Any, mixed: Any) -> None:
    pandas = pytest.importorskip("pandas")
    model = train(conn, "two", date_parts=True)
    expected = model.decision_function(mixed)
    frame = pandas.DataFrame(mixed)
    np.testing.assert_array_equal(model.decision_function(frame), expected)
    np.testing.assert_array_equal(model.decision_function(frame.convert_dtypes()), expected)
    categorical = frame.astype({"colour": "category"})
    np.testing.assert_array_equal(model.decision_function(categorical), expected)
    polars = pytest.importorskip("polars")
    in_polars = polars.DataFrame({name: [row[name] for row in mixed] for name in COLUMNS}, strict=False)
    np.testing.assert_array_equal(model.decision_function(in_polars), expected)
    pyarrow = pytest.importorskip("pyarrow")
    kept = frame[COLUMNS].astype({"n": float, "size": str})
    np.testing.assert_array_equal(model.decision_function(pyarrow.Table.from_pandas(kept)), expected)
