"""A trained model that predicts with numpy alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_path
from . import _arithmetic as arithmetic
from ._document import LOGARITHMIC, NETWORKS, SVMS, Document, Vector, width_of
from ._features import Dense, Policies, features, input_columns
from ._inputs import NamedColumns, OwnColumns, rows_of
from ._sparse import Entries

_INTEGERS = frozenset(("smallint", "integer", "bigint", "int2", "int4", "int8"))
_FLOATS = frozenset(("real", "double precision", "numeric", "float4", "float8"))

#: Numbers of dense rows that are transformed at once.
_AT_ONCE = 1 << 20


class Model:
    """A model of the database that predicts without the database.

    Its decisions are bit-identical to those of `corgipile_predict` in SQL, and its probabilities agree to the rounding
    of a double. Create one with `Model.from_database`, `Model.load` or `Model.from_dict`.

    The rows to predict, `X` below, are an array with a column for each of `input_columns`, in that order; columns by
    name in a dict, a pandas or polars data frame, a pyarrow table or a structured array; a list of rows, or of dicts;
    or, for a model of sparse features, a matrix of scipy.sparse. None, NaN and pandas' NA are NULL.

    Attributes:
        kind: 'logistic', 'svm', 'linear', 'softmax', 'poisson', 'quantile', 'epsilon_insensitive', 'huber',
            'svm_one_vs_rest', 'mlp' or 'mlp_regression'.
        name: the name under which it was stored, or None.
        model_id: its id in the database, if it was loaded from one.
        version: its version there.
        label: the column that it predicts.
        features: the names of its features.
        hyperparameters: the options of its training.
        history: the rows that `corgipile_train` returned, one dict per epoch.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = Document(document)
        self.model_id: int | None = None
        self.version: int | None = None
        self._labels = _labels(self._document)
        #: Columns that the user calls otherwise: names of the document, and the user's.
        self._called: dict[str, str] = {}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Model:
        """Creates a model from its document, as returned by `corgipile_export` and `to_dict`.

        Raises:
            ValueError: the document is inconsistent; the error names the key.
        """
        return cls(document)

    @classmethod
    def from_database(cls, conn: Any, model: str | int, version: int | None = None) -> Model:
        """Loads a model of the database by name or id: the version that the name refers to, or the given one.

        A name may be qualified with its owner, as in SQL: `'bob.faults'`.
        """
        from ._models import export

        found = export(conn, model, version)
        made = cls(found.document)
        made.model_id, made.version = found.model_id, found.version
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Reads a model from a file written by `save`, or by `psql -Atc "SELECT corgipile_export('name')"`."""
        file = check_path("path", path)
        try:
            document = json.loads(Path(file).read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is not text in UTF-8: {error}") from None
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{file} is not valid JSON: {error}") from None
        if not isinstance(document, dict):
            raise ValueError(f"{file} is not a model: it has no JSON object")
        return cls(document)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a file, as JSON that `load` and `corgipile_import` read."""
        Path(check_path("path", path)).write_text(json.dumps(self._document.raw, ensure_ascii=False), encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """The document of the model, for `corgipile_import`."""
        return json.loads(json.dumps(self._document.raw))

    def call_columns(self, names: Mapping[str, str]) -> None:
        """Lets the columns of the document have other names where rows and messages name them."""
        self._called = dict(names)

    @property
    def called_columns(self) -> dict[str, str]:
        """The columns of the document that have other names for the user, and these."""
        return dict(self._called)

    def _name(self, feature: str) -> str:
        own, dot, part = feature.partition(".")
        return self._called[own] + dot + part if own in self._called else feature

    @property
    def kind(self) -> str:
        return self._document.kind

    @property
    def name(self) -> str | None:
        return self._document.raw.get("name")

    @property
    def source(self) -> str | None:
        """What it was trained on."""
        return self._document.raw.get("source")

    @property
    def label(self) -> str:
        return self._document.label

    @property
    def features(self) -> list[str]:
        return [self._name(feature) for feature in self._document.features]

    @property
    def feature_kind(self) -> str:
        """'columns', or 'array' or 'sparse' if features are the elements of one column, or of one and its indices."""
        return self._document.feature_kind

    @property
    def categories(self) -> list[str]:
        """The columns of categories: texts and enums, and parts of dates that go round."""
        return [self._name(feature) for feature in self._document.raw.get("categories") or {}]

    @property
    def input_columns(self) -> list[str]:
        """The columns that rows must have: the features, with a date once instead of its parts."""
        return [self._name(column) for column in input_columns(self._document)]

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts classes instead of numbers."""
        return not self._document.is_regression

    @property
    def classes(self) -> NDArray[Any] | None:
        """The labels, in ascending order; None for a model that predicts numbers.

        They are numbers or booleans if the label has one of SQL's number types or type boolean, else strings.
        """
        return None if self._labels is None else self._labels.copy()

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self._document.hyperparameters)

    @property
    def history(self) -> list[dict[str, Any]]:
        return list(self._document.raw.get("history") or [])

    def decision_function(
        self, X: Any, *, nulls: str | None = None, handle_unknown: str | None = None, exact: bool = True
    ) -> NDArray[np.float64]:
        """The decisions: one number per row, or one per row and class (softmax, mlp).

        A logistic model, an SVM or a network with one output predicts the second class if it is above 0; for a model
        that predicts numbers it is the prediction, or its logarithm if the model is linear in that ('poisson'). NaN for
        rows without a prediction.

        Args:
            X: the rows.
            nulls: 'impute', 'skip' or 'error': overrides the model's treatment of NULLs.
            handle_unknown: 'ignore' or 'error': overrides the model's treatment of categories and indices that did not
                occur in training.
            exact: add in the order of the database, for identical bits. False uses BLAS, which is faster with many
                features and units.
        """
        z, answered = self._decisions(X, nulls, handle_unknown, exact)
        out = z.astype(np.float64)
        out[~answered] = np.nan
        return out[:, 0] if out.shape[1] == 1 else out

    def predict(
        self, X: Any, *, nulls: str | None = None, handle_unknown: str | None = None, exact: bool = True
    ) -> NDArray[Any]:
        """The predicted label or number of each row.

        Rows with NULLs that the model does not impute have no prediction: None, or NaN if the model predicts numbers.
        Arguments are as for `decision_function`.
        """
        z, answered = self._decisions(X, nulls, handle_unknown, exact)
        if self._labels is None:
            predicted = z[:, 0].astype(np.float64)
            if self.kind in LOGARITHMIC:
                with np.errstate(over="ignore"):
                    predicted = np.exp(predicted)
                if not np.isfinite(predicted[answered]).all():
                    raise ValueError("a prediction is out of range: e to the power of its decision")
            return np.where(answered, predicted, np.nan)
        places = (z[:, 0] > 0).astype(np.int64) if z.shape[1] == 1 else np.argmax(z, axis=1)
        labels = self._labels[places]
        if not answered.all():
            labels = labels.astype(object)
            labels[~answered] = None
        return labels

    def predict_proba(
        self, X: Any, *, nulls: str | None = None, handle_unknown: str | None = None, exact: bool = True
    ) -> NDArray[np.float64]:
        """The probability of each class: rows by `classes`. NaN for rows without a prediction.

        Arguments are as for `decision_function`.

        Raises:
            TypeError: the model has no probabilities: it is an SVM trained without them, or predicts numbers.
        """
        sigmoids = self._document.sigmoids
        if self._labels is None or (self.kind in SVMS and sigmoids is None):
            without = "an SVM that was trained without probability"
            what = without if self.kind in SVMS else "a model that predicts numbers"
            raise TypeError(f"{what} has no probabilities; use decision_function or predict")
        z, answered = self._decisions(X, nulls, handle_unknown, exact)
        doubles = z.astype(np.float64)
        if sigmoids is not None:
            slopes, offsets = sigmoids
            doubles = -(slopes * doubles + offsets)
        if doubles.shape[1] == 1:
            of_second = doubles[:, 0]
            out = np.stack([arithmetic.probability(-of_second), arithmetic.probability(of_second)], axis=1)
        elif sigmoids is not None or self._document.output == "sigmoid":
            out = arithmetic.separate_sigmoids(doubles)
        else:
            out = arithmetic.softmax(doubles)
        out[~answered] = np.nan
        return out

    def score(
        self, X: Any, y: Any, *, nulls: str | None = None, handle_unknown: str | None = None, exact: bool = True
    ) -> float:
        """Accuracy, or R² of predicted numbers, over the rows with a prediction.

        `y` has the labels in the form of `classes`. Arguments are as for `decision_function`.
        """
        predicted = self.predict(X, nulls=nulls, handle_unknown=handle_unknown, exact=exact)
        actual = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
        if actual.ndim != 1:
            raise ValueError(f"y has {actual.ndim} dimensions, and must be a sequence of labels, one for each row of X")
        if actual.shape != predicted.shape:
            raise ValueError(f"y has {len(actual)} labels, and X {len(predicted)} rows")
        if self._labels is None:
            if actual.dtype.kind not in "biufO" or any(isinstance(label, str | bytes) for label in actual.tolist()):
                raise TypeError("y: numbers are needed, which is what the model predicts")
            there = ~np.isnan(predicted)
            actual, predicted = actual[there].astype(np.float64), predicted[there]
            spread = ((actual - actual.mean()) ** 2).sum() if len(actual) else 0.0
            return float(1 - ((actual - predicted) ** 2).sum() / spread) if spread > 0 else float("nan")
        there = np.array([label is not None for label in predicted], bool)
        return float(np.mean(actual[there] == predicted[there])) if there.any() else float("nan")

    def linear(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weights of a linear model in the units of its features, one row per decision, and its intercepts.

        Raises:
            AttributeError: the model is a network.
        """
        document = self._document
        if document.kind in NETWORKS:
            raise AttributeError(f"a model of kind {document.kind!r} has no weights of features")
        weights = document.layers[0].weights.astype(np.float64)
        intercepts = document.layers[0].intercepts.astype(np.float64)
        if document.mean is not None and document.scale is not None:
            own = len(document.mean)  # columns that are hashed are behind these
            weights[:, :own] /= document.scale
            intercepts = intercepts - weights[:, :own] @ document.mean
        return weights, intercepts

    def _decisions(
        self, x: Any, nulls: str | None, handle_unknown: str | None, exact: bool
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The outputs of the last layer, and which rows have an answer."""
        document = self._document
        rows = self._features(rows_of(x), Policies.of(document, nulls, handle_unknown))
        outputs = len(document.layers[-1].intercepts)
        out = np.zeros((len(rows.answered), outputs), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(rows, Dense):
                step = max(1, _AT_ONCE // document.width)
                for first in range(0, len(out), step):
                    some = slice(first, first + step)
                    out[some] = self._of_dense(rows.values[some], exact)
            else:
                self._of_entries(rows, out, exact)
        finite = np.isfinite(out).all(axis=1) | ~rows.answered
        if not finite.all():
            raise ValueError(f"row {int(np.argmin(finite))}: the decision is out of range for type real")
        return out, rows.answered

    def _features(self, rows: Any, policies: Policies) -> Dense | Entries:
        """The features of rows that `rows_of` has read."""
        if self._called and isinstance(rows, NamedColumns) and not isinstance(rows, OwnColumns):
            given = rows.columns
            rows = NamedColumns({own: given[name] for own, name in self._called.items() if name in given})
        try:
            return features(self._document, rows, policies)
        except (TypeError, ValueError) as error:
            message = str(error)
            for own, name in self._called.items():
                message = message.replace(f"'{own}'", repr(name)).replace(f"'{own}.", f"'{name}.")
            raise type(error)(message) from None

    def _of_dense(self, values: NDArray[np.float32], exact: bool) -> NDArray[np.float32]:
        document = self._document
        if document.logs is True:
            values = arithmetic.signed_log(values)
        elif document.logs:
            chosen = self._logs_of_entries()
            values = values.copy()
            values[:, chosen] = arithmetic.signed_log(values[:, chosen])
        if document.mean is not None and document.scale is not None:
            values = arithmetic.standardized(values, document.mean, document.scale, document.clip)
        return self._behind_first(arithmetic.dense_products(values, document.layers[0].weights, exact), exact)

    def _of_entries(self, rows: Entries, out: NDArray[np.float32], exact: bool) -> None:
        document = self._document
        logs = self._logs_of_entries()
        for places, indices, values in rows.batches():
            if logs is not None:
                values = np.where(logs[indices], arithmetic.signed_log(values), values)
            if document.mean is not None and document.scale is not None:
                own = indices < len(document.mean)
                known = np.where(own, indices, 0)
                scaled = arithmetic.standardized(values, document.mean[known], document.scale[known], document.clip)
                # a row that is filled up has zeros, which must stay zeros
                padding = np.arange(indices.shape[1]) >= np.diff(rows.starts)[places][:, None]
                values = np.where(own & ~padding, scaled, values)
            products = arithmetic.sparse_products(indices, values, document.layers[0].weights)
            out[places] = self._behind_first(products, exact)

    def _logs_of_entries(self) -> NDArray[np.bool_] | None:
        """Which features are taken by their logarithms; of columns only numbers."""
        document = self._document
        if not document.logs:
            return None
        if document.feature_kind != "columns":
            return np.ones(document.width, bool)
        chosen: list[bool] = []
        for name, column in zip(document.features, document.columns):
            if column is None:
                chosen.append(document.logs is True or name in document.logs)
            else:
                # of vectors all numbers are, or none
                chosen.extend([isinstance(column, Vector) and document.logs is True] * width_of(column))
        return np.array(chosen + [False] * document.buckets, bool)

    def _behind_first(self, products: NDArray[np.float32], exact: bool) -> NDArray[np.float32]:
        document = self._document
        z = products + document.layers[0].intercepts
        if document.kind not in NETWORKS:
            return z
        activate = arithmetic.ACTIVATIONS[document.activation or "relu"]
        for layer in document.layers[1:]:
            z = arithmetic.dense_products(activate(z), layer.weights, exact) + layer.intercepts
        return z

    def __repr__(self) -> str:
        name = repr(self.name) if self.name is not None else "without a name"
        version = f", version {self.version}" if self.version is not None else ""
        return f"<Model {name}{version}: {self.kind} of {self._document.width} features, predicts {self.label!r}>"


def _labels(document: Document) -> NDArray[Any] | None:
    if document.is_regression:
        return None
    kind = document.label_type.removeprefix("pg_catalog.")
    if kind in ("boolean", "bool"):
        return np.array([text in ("t", "true") for text in document.classes], bool)
    if kind in _INTEGERS:
        return np.array([int(text) for text in document.classes], np.int64)
    if kind in _FLOATS:
        return np.array([float(text) for text in document.classes], np.float64)
    return np.array(document.classes, object)
