"""`Model` without a server: its hash, its documents, and how it refuses what does not fit."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from corgipile.db import Model
from corgipile.db._hashing import bucket, xxh3_64

DOCUMENT: dict[str, Any] = {
    "corgipile_model": 1,
    "model": "logistic",
    "label": "failed",
    "label_type": "text",
    "classes": ["no", "yes"],
    "features": ["hours", "site", "url", "at.month"],
    "feature_kind": "columns",
    "categories": {"site": ["mine", "quarry", None], "url": {"buckets": 5}, "at.month": ["01", "02"]},
    "weights": [1.0, 2.0, -2.0, 0.5, 0.25, -0.25, 0.1, 0.2, 0.3, 0.4, 0.5],
    "intercepts": [0.0],
    "feature_mean": [2.0, 0, 0, 0, 0, 0],
    "feature_scale": [4.0, 1, 1, 1, 1, 1],
    "feature_fill": [2.0, 0, 0, 0, 0, 0],
    "hyperparameters": {"nulls": "impute", "handle_unknown": "ignore"},
}

LINEAR: dict[str, Any] = {
    "corgipile_model": 1,
    "model": "linear",
    "label": "litres",
    "label_type": "float8",
    "features": ["km", "load"],
    "feature_kind": "columns",
    "weights": [0.0625, 0.5],
    "intercepts": [1],
}


def changed(document: dict[str, Any], **keys: Any) -> dict[str, Any]:
    made = {**copy.deepcopy(document), **keys}
    return {key: value for key, value in made.items() if value is not ...}


def test_the_hash_is_that_of_the_published_vectors() -> None:
    """The bytes and hashes of xxHash's own tests (tests/sanity_test.c)."""
    seed, data, generator = 11400714785074694797, bytearray(), 2654435761
    for _ in range(2400):
        data.append(generator >> 56)
        generator = generator * 11400714785074694797 & (2**64 - 1)
    vectors = [
        (0, 0, 0x2D06800538D394C2), (0, seed, 0xA8A6B918B2F0364A), (1, 0, 0xC44BDFF4074EECDB),
        (1, seed, 0x032BE332DD766EF8), (6, 0, 0x27B56A84CD2D7325), (6, seed, 0x84589C116AB59AB9),
        (12, 0, 0xA713DAF0DFBB77E7), (12, seed, 0xE7303E1B2336DE0E), (24, 0, 0xA3FE70BF9D3510EB),
        (24, seed, 0x850E80FC35BDD690), (48, 0, 0x397DA259ECBA1F11), (48, seed, 0xADC2CBAA44ACC616),
        (80, 0, 0xBCDEFBBB2C47C90A), (80, seed, 0xC6DD0CB699532E73), (195, 0, 0xCD94217EE362EC3A),
        (195, seed, 0xBA68003D370CB3D9),
    ]  # fmt: skip
    for length, own_seed, expected in vectors:
        assert xxh3_64(bytes(data[:length]), own_seed) == expected, (length, own_seed)


def test_a_prediction_is_the_sum_that_the_document_says() -> None:
    model = Model.from_dict(DOCUMENT)
    rows = [
        {"hours": 6.0, "site": "quarry", "url": "a", "at": "2024-02-29 12:00"},
        {"hours": None, "site": None, "url": None, "at": None},
        {"hours": Decimal(-2), "site": "desert", "url": "b", "at": "2024-03-01"},
    ]
    weights = np.array(DOCUMENT["weights"], np.float32)
    expected = [
        1.0 - 2.0 - 0.25 + weights[6 + bucket("url", "a", 5)],
        0.5 + weights[6 + bucket("url", None, 5)],
        -1.0 + weights[6 + bucket("url", "b", 5)],
    ]
    np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-6)
    assert model.predict(rows).tolist() == ["no", "yes", "no"]
    assert model.input_columns == ["hours", "site", "url", "at"]
    as_lists = [[row[name] for name in model.input_columns] for row in rows]
    np.testing.assert_array_equal(model.decision_function(as_lists), model.decision_function(rows))
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)
    assert model.score(rows, ["no", "no", "no"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"corgipile_model": 2}, "'corgipile_model' of the model is 2, an unknown version"),
        ({"corgipile_model": ...}, "is not a model: key 'corgipile_model' is missing"),
        ({"surprise": 1}, "'surprise' of the model is unknown"),
        ({"model": "forest"}, "'model' of the model is 'forest'"),
        ({"classes": ["a"]}, "'classes' of the model has less than two"),
        ({"classes": ["a", "b", "c"]}, "'classes' of the model has 3 elements, and must have 2"),
        (
            {"weights": [1.0]},
            "'weights' of the model has numbers for 1 features, but there are 11 features and categories",
        ),
        ({"weights": "no base64!"}, "'weights' of the model is neither base64 nor"),
        ({"weights": [float("nan")] * 11}, "'weights' of the model has numbers that are not finite"),
        ({"weights": ...}, "'weights' of the model is missing"),
        ({"intercepts": [0, 1]}, "'intercepts' of the model has 2 numbers, but must have 1"),
        ({"feature_scale": ...}, "'feature_scale' of the model is missing"),
        ({"feature_scale": [0.0] * 6}, "'feature_scale' of the model has a number that is not above 0"),
        ({"feature_mean": [0.0] * 5}, "'feature_mean' of the model has 5 numbers, but the model 6"),
        ({"feature_kind": "sparse"}, "'feature_kind' of the model is 'sparse', which does not fit"),
        ({"categories": {"nowhere": ["a"]}}, "'categories' of the model does not fit"),
        ({"categories": {"site": ["a", None, "b"]}}, "'categories' of the model has a column that is not an array"),
        ({"categories": {"url": {"buckets": 0}}}, "'categories' of the model has no number of buckets"),
        ({"features": "hours"}, "'features' of the model is not an array of texts"),
        ({"hyperparameters": {"transform": {"log": ["x"]}}}, "'hyperparameters' of the model has a transform"),
    ],
)
def test_a_document_that_does_not_fit_together_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Model.from_dict(changed(DOCUMENT, **keys))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (
            {"km": [1.0]},
            ValueError,
            "no column 'load': the model's features are 'km', 'load'; the columns of X are 'km'",
        ),
        ({"km": [1.0], "load": [1.0, 2.0]}, ValueError, "columns of X differ in length: 1, 2 rows"),
        ([[1.0]], ValueError, "X has 1 features, and the model 2: 'km', 'load'"),
        ([1.0, 2.0], ValueError, "X has 1 dimension, and must have 2; give a row as [row]"),
        ([[1.0, 2.0], [1.0]], ValueError, "rows of X differ in length: 1, 2 values"),
        ({"km": ["far"], "load": [1.0]}, TypeError, "feature 'km', row 0: the model was trained on numbers"),
        ({"km": [1.0, 1e39], "load": [1.0, 1]}, ValueError, "feature 'km', row 1 is 1e+39, out of range for type real"),
        ({"km": [1.0], "load": [float("inf")]}, ValueError, "feature 'load', row 0 is infinite"),
        (np.array([[1.0, -np.inf]]), ValueError, "feature 'load', row 0 is infinite"),
        ({"km": [10**400], "load": [1.0]}, ValueError, "feature 'km', row 0 is infinite"),
        ({"km": [1.0], "load": [None]}, ValueError, "feature 'load', row 0: NULL"),
        ({"km": [3e38], "load": [3e38]}, None, ""),
        ({"km": "far", "load": "x"}, TypeError, "column 'km' of X is not a sequence"),
    ],
)
def test_rows_that_do_not_fit_are_refused_with_the_feature_and_the_row(rows: Any, error: Any, message: str) -> None:
    model = Model.from_dict(LINEAR)
    if error is None:
        assert np.isfinite(model.predict(rows)).all()
        return
    with pytest.raises(error) as caught:
        model.predict(rows)
    assert message in str(caught.value)


def test_a_decision_beyond_real_is_refused_as_in_sql() -> None:
    model = Model.from_dict(changed(LINEAR, weights=[3e38, 3e38]))
    with pytest.raises(ValueError, match="row 1: the decision is out of range for type real"):
        model.predict([[0.0, 0.0], [3.0, 3.0]])


def test_other_types_of_values_are_refused_where_texts_are_wanted() -> None:
    model = Model.from_dict(DOCUMENT)
    good = {"hours": [1.0], "site": ["mine"], "url": ["a"], "at": ["2024-01-01"]}
    for column, value, message in [
        ("site", 3, "feature 'site', row 0: the model was trained on text or an enum in this column, not on int"),
        ("at", "tomorrow", "column 'at', row 0: 'tomorrow' is not a date in ISO format"),
        ("at", 20240101, "column 'at', row 0: the model was trained on dates in this column, not on int"),
        ("site", "mine\ud800", "feature 'site', row 0: 'mine\\ud800' is not valid Unicode text"),
        ("url", "\udc00", "feature 'url', row 0: '\\udc00' is not valid Unicode text"),
        ("at", np.datetime64(300_000, "Y"), "column 'at': 301970 is out of range for a timestamp"),
    ]:
        with pytest.raises((TypeError, ValueError)) as caught:
            model.predict({**good, column: [value]})
        assert message in str(caught.value)


ARRAY = {
    "corgipile_model": 1, "model": "linear", "label": "y", "label_type": "float8", "features": ["v"],
    "feature_kind": "array", "weights": [1, 10], "intercepts": [0],
}  # fmt: skip
SPARSE = ARRAY | {"feature_kind": "sparse", "index_base": 1}


@pytest.mark.parametrize("number", ["1_0", "\u0661", "1 0", "0x1p3", "", "1e", "."])
def test_text_is_a_number_where_it_is_one_in_sql(number: str) -> None:
    """Python's float() takes some of these."""
    message = re.escape(f"feature 'v', row 1: {number!r} is not a number")
    with pytest.raises(ValueError, match=message):
        Model.from_dict(ARRAY).predict({"v": ["{1,2}", f"{{{number},1}}"]})
    with pytest.raises(ValueError, match=message):
        Model.from_dict(SPARSE).predict({"v": ["{1:1}/2", f"{{2:{number}}}/2"]})
    for good, value in ((" 1. ", 1), ("+.5e1", 5), ("-1E0", -1)):
        assert Model.from_dict(ARRAY).predict({"v": [f"[{good},0]"]}).tolist() == [value]
    with pytest.raises(ValueError, match="feature 'v', row 0: '1_0' is not an integer"):
        Model.from_dict(SPARSE).predict({"v": ["{1_0:1}/2"]})
    with pytest.raises(ValueError, match="feature 'v', row 0: index 1 appears twice"):
        Model.from_dict(SPARSE).predict({"v": ["{1:1,1:2}/2"]})


def test_a_category_that_is_known_but_for_its_blanks_is_told() -> None:
    """Values of char(n) have blanks that are no part of them in SQL."""
    model = Model.from_dict(DOCUMENT)
    rows = {"hours": [1.0] * 2, "site": ["mine", "mine   "], "url": ["a"] * 2, "at": ["2024-01-01"] * 2}
    with pytest.warns(UserWarning, match=r"feature 'site': category 'mine   ' is unknown .* char\(n\)") as told:
        model.predict(rows, handle_unknown="ignore")
    assert [warning.filename for warning in told] == [__file__]
    with pytest.raises(ValueError, match=r"row 1: category 'mine   ' is unknown to the model; .* char\(n\)"):
        model.predict(rows, handle_unknown="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict({**rows, "site": ["mine", "elsewhere "]}, handle_unknown="ignore")


def test_what_a_model_has_not_is_a_type_error() -> None:
    for document in (LINEAR, changed(DOCUMENT, model="svm")):
        with pytest.raises(TypeError, match="has no probabilities"):
            Model.from_dict(document).predict_proba([])
    with pytest.raises(ValueError, match="nulls is 'drop', and must be one of impute, skip, error"):
        Model.from_dict(LINEAR).predict([[1.0, 2.0]], nulls="drop")
    with pytest.raises(ValueError, match="nulls='impute' needs a model that was trained so"):
        Model.from_dict(LINEAR).predict([[1.0, 2.0]], nulls="impute")


def test_rows_without_an_answer_are_none_or_nan() -> None:
    rows = {"km": [1.0, None, 2.0], "load": [1.0, 1.0, np.nan]}
    assert np.isnan(Model.from_dict(LINEAR).predict(rows, nulls="skip")).tolist() == [False, True, True]
    classifier = Model.from_dict(changed(LINEAR, model="logistic", label_type="integer", classes=["0", "1"]))
    assert classifier.predict(rows, nulls="skip").tolist() == [1, None, None]
    assert np.isnan(classifier.predict_proba(rows, nulls="skip")[1]).all()
    assert classifier.score(rows, [1, 1, 0], nulls="skip") == 1.0
    assert classifier.predict([[1.0, 1.0]]).dtype.kind == "i"


def test_no_rows_give_no_predictions() -> None:
    assert Model.from_dict(LINEAR).predict(np.zeros((0, 2))).shape == (0,)
    model = Model.from_dict(DOCUMENT)
    assert model.predict({"hours": [], "site": [], "url": [], "at": []}).shape == (0,)
    assert model.predict_proba({"hours": [], "site": [], "url": [], "at": []}).shape == (0, 2)


def test_a_model_goes_through_files_and_pickle(tmp_path: Any) -> None:
    model = Model.from_dict(DOCUMENT)
    model.save(tmp_path / "ñ.json")
    assert Model.load(tmp_path / "ñ.json").to_dict() == DOCUMENT
    assert pickle.loads(pickle.dumps(model)).to_dict() == DOCUMENT
    (tmp_path / "bad.json").write_text("[1")
    with pytest.raises(ValueError, match=r"bad\.json is not valid JSON"):
        Model.load(tmp_path / "bad.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"list\.json is not a model"):
        Model.load(tmp_path / "list.json")
    with pytest.raises(FileNotFoundError):
        Model.load(tmp_path / "nowhere.json")
    document = model.to_dict()
    document["features"].append("changed")
    assert model.to_dict() == DOCUMENT


def test_the_package_imports_nothing_but_numpy_until_it_is_asked() -> None:
    code = """
import sys, corgipile, corgipile.db
assert "numpy" not in sys.modules
corgipile.db.Model
loaded = {"psycopg", "pandas", "matplotlib", "tqdm", "sklearn", "pyarrow", "torch"} & sys.modules.keys()
assert not loaded, loaded
assert "train" in dir(corgipile.db) and "db" in dir(corgipile)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_package_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from corgipile.db._optional import optional, required

    assert optional("nowhere_to_be_found") is None
    with pytest.raises(ImportError, match="a plot needs matplotlib: pip install 'matplotlib'"):
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        required("matplotlib.pyplot", "a plot", "matplotlib")
