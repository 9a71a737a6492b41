"""Estimators of scikit-learn that train in a PostgreSQL database with the extension corgipile.

`fit` takes the name of a table, whose rows stay in the server, or arrays, which are loaded into a temporary table.
`predict` takes arrays, for which no database is needed, or the name of a table, for which the server predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import _safe_indexing, check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        _check_y,
        _num_samples,
        check_consistent_length,
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise ImportError("corgipile.sklearn needs scikit-learn: pip install 'scikit-learn>=1.6'") from error

from ._checks import called
from ._estimating import at_places, columns_of, has_columns, like, repeated, shape_of
from .db._connections import connected
from .db._document import REGRESSIONS, SVMS
from .db._inputs import OwnColumns
from .db._model import Model
from .db._sklearn import Trained, fit_columns, fit_matrix, fit_sparse, fit_table, predictions_of_table, score_of_table

__all__ = ["DatabaseClassifier", "DatabaseRegressor"]


class _DatabaseEstimator(BaseEstimator):
    """The common parts of both estimators."""

    def __init__(
        self,
        connection: str | Callable[[], Any] | None = None,
        *,
        model: str = "auto",
        name: str | None = None,
        learning_rate: float | None = None,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        l1: float | None = None,
        l2: float | None = None,
        hidden_layer_sizes: list[int] | None = None,
        standardize: bool | None = None,
        nulls: str | None = None,
        features: list[str] | None = None,
        random_state: Any = None,
        options: dict[str, Any] | None = None,
        progress: bool = False,
    ) -> None:
        self.connection = connection
        self.model = model
        self.name = name
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.l1 = l1
        self.l2 = l2
        self.hidden_layer_sizes = hidden_layer_sizes
        self.standardize = standardize
        self.nulls = nulls
        self.features = features
        self.random_state = random_state
        self.options = options
        self.progress = progress

    @contextmanager
    def _connection(self) -> Generator[Any, None, None]:
        if self.connection is not None and not isinstance(self.connection, str) and not callable(self.connection):
            what = "connection: a connection string is needed, or a function that returns a connection, not"
            raise TypeError(f"{what} {called(self.connection)}")
        given: Any = self.connection() if callable(self.connection) else self.connection
        try:
            with connected(given) as conn:
                yield conn
        finally:
            if hasattr(given, "close"):
                given.close()

    def _arguments(self) -> dict[str, Any]:
        """Arguments of `train`."""
        names = (
            "name",
            "learning_rate",
            "max_epochs",
            "batch_size",
            "l1",
            "l2",
            "hidden_layer_sizes",
            "standardize",
            "nulls",
        )
        arguments = {name: getattr(self, name) for name in names}
        arguments["progress"] = self.progress
        if self.random_state is not None:
            arguments["seed"] = int(check_random_state(self.random_state).randint(2**31 - 1))
        return {**arguments, **(self.options or {})}

    def _set(self, trained: Trained) -> None:
        self.model_: Model = trained.model
        self.history_: list[dict[str, Any]] = trained.model.history
        self.n_iter_: int = self.history_[-1]["epoch"] if self.history_ else 0
        self.loss_curve_: list[float] = [epoch["loss"] for epoch in self.history_]
        self.notices_: list[str] = trained.notices

    def _set_of_table(self, trained: Trained) -> None:
        self._forget_columns()
        self._set(trained)
        self.feature_names_in_: Any = np.array(trained.model.input_columns, object)
        self.n_features_in_: int = len(self.feature_names_in_)
        self.is_of_table_ = True

    def _forget_columns(self) -> None:
        """What an earlier fit has left."""
        for attribute in ("n_features_in_", "feature_names_in_", "is_of_table_"):
            if attribute in vars(self):
                delattr(self, attribute)

    def _linear(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        check_is_fitted(self)
        return self.model_.linear()

    def _step(self, X: Any, label: Any, weight: Any, kind: str | None, more_labels: Sequence[Any] = ()) -> None:
        """Trains for one epoch more, or a first one, of which `more_labels` are known without counting."""
        weights = np.ones(len(label)) if weight is None else weight
        arguments = {**self._arguments(), "max_epochs": 1}
        curve: list[float] = []
        if hasattr(self, "model_"):
            if self.model_.model_id is None:
                raise ValueError("partial_fit: the model is not in the database any more: fit again, with a name")
            going_on = ("name", "seed", "progress", "max_epochs")
            arguments = {name: value for name, value in arguments.items() if name in going_on}
            arguments |= {"warm_start": str(self.model_.model_id), "recompute_statistics": False}
            arguments["replaces"] = self.model_.model_id
            curve, kind = self.loss_curve_, None
        elif len(more_labels):
            X = _safe_indexing(X, [*range(len(label)), *[0] * len(more_labels)])
            label = np.concatenate([label, more_labels])
            weights = np.concatenate([weights, np.zeros(len(more_labels))])
        self._fit_on(X, label, weights, kind, arguments)
        if len(self.loss_curve_) == 1:
            self.loss_curve_ = [*curve, *self.loss_curve_]

    def _check_partial(self) -> bool:
        """Whether this is the first step."""
        if hasattr(self, "is_of_table_"):
            raise ValueError("partial_fit: the estimator was fitted on a table; db.train(..., warm_start=...) goes on")
        return not hasattr(self, "model_")

    def _fit_on(self, X: Any, label: Any, weight: Any, kind: str | None, arguments: dict[str, Any]) -> None:
        """Trains on arrays whose labels are numbers."""
        with self._connection() as conn:
            if has_columns(X):
                self._set(fit_columns(conn, columns_of(X), label, weight, kind, arguments))
            elif hasattr(X, "indptr"):
                self._set(fit_sparse(conn, X, label, weight, kind, arguments))
            else:
                self._set(fit_matrix(conn, X, label, weight, kind, arguments))

    def _checked(self, X: Any, **arguments: Any) -> Any:
        """Arrays as numbers, sparse ones in rows with ascending indices; a data frame with other columns as it is."""
        if has_columns(X):
            if _num_samples(X) < 1:
                raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required")
            return validate_data(self, X, skip_check_array=True, **arguments)
        is_sparse = hasattr(X, "tocsr")
        allowed = self.nulls in (None, "impute", "skip") and not is_sparse
        if is_sparse:
            X = X.copy()
            for name in ("indices", "indptr", "row", "col"):
                if hasattr(X, name):  # scipy's own routines take integers of 32 or 64 bits, all of the same type
                    setattr(X, name, getattr(X, name).astype(np.int64))
            X = X.tocsr()
            X.sum_duplicates()
        finite = "allow-nan" if allowed else True
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite, **arguments)

    def _rows(self, X: Any) -> Any:
        """What the model is to predict, if it is not a table."""
        check_is_fitted(self)
        if not hasattr(self, "is_of_table_"):
            checked = self._checked(X, reset=False)
            if not has_columns(checked):
                return checked
            own = self.model_.called_columns
            columns = columns_of(checked)
            return OwnColumns(dict(zip(own, (values for _, values in columns)))) if own else dict(columns)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.nulls in (None, "impute")
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags


def _labels_are_kept(estimator: _DatabaseEstimator) -> bool:
    """Whether the classes are those of a table, and not numbers in their place."""
    return hasattr(estimator, "is_of_table_")


def _has_name(estimator: _DatabaseEstimator) -> bool:
    return estimator.name is not None  # under which the model is in the database between calls


def _has_probabilities(estimator: DatabaseClassifier) -> bool:
    """Whether the model has probabilities, which those of SVMs have by an option."""
    is_svm = estimator.model in (*SVMS, "support_vector_machine", "multiclass_svm")
    return not is_svm or bool((estimator.options or {}).get("probability"))


class DatabaseClassifier(ClassifierMixin, _DatabaseEstimator):
    """A classifier that is trained in the database.

    Args:
        connection: a connection string of libpq, or a function that returns a connection of psycopg 3, which is closed
            afterwards. None: libpq's environment variables.
        model: 'logistic', 'svm', 'softmax' or 'mlp'; 'auto' is logistic for two classes and softmax for more.
        name: store the model under this name. By default, the model is not stored in the database.
        class_weight: 'balanced', or a dict of label to weight.
        learning_rate, max_epochs, batch_size, l1, l2, hidden_layer_sizes, standardize, nulls: as for `corgipile_train`;
            None is its default.
        features: the feature columns, if `fit` is called with a table.
        random_state: the seed; None draws one.
        options: a dict of other arguments and options of `corgipile_train`.
        progress: show a bar with tqdm.

    Attributes:
        classes_: the labels, in ascending order.
        coef_, intercept_: of linear models, in the units of the features; as scikit-learn's linear models have them.
            With categories and dates, features are those of `model_`, and with `transform`, their logarithms.
        n_features_in_, feature_names_in_: number and names of the columns.
        model_: the `corgipile.db.Model`.
        n_iter_: number of epochs.
        loss_curve_: the loss of each epoch.
        history_: the rows that `corgipile_train` returned.
        notices_: notices of the server.
    """

    def __init__(
        self,
        connection: str | Callable[[], Any] | None = None,
        *,
        model: str = "auto",
        name: str | None = None,
        class_weight: str | dict[Any, float] | None = None,
        learning_rate: float | None = None,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        l1: float | None = None,
        l2: float | None = None,
        hidden_layer_sizes: list[int] | None = None,
        standardize: bool | None = None,
        nulls: str | None = None,
        features: list[str] | None = None,
        random_state: Any = None,
        options: dict[str, Any] | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            connection, model=model, name=name, learning_rate=learning_rate, max_epochs=max_epochs,
            batch_size=batch_size, l1=l1, l2=l2, hidden_layer_sizes=hidden_layer_sizes, standardize=standardize,
            nulls=nulls, features=features, random_state=random_state, options=options, progress=progress,
        )  # fmt: skip
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DatabaseClassifier:
        """Trains on the table X with the label in column y ('label' by default), or on arrays.

        Args:
            X: the name of a table or view, or a query; or an array, a sparse matrix of scipy, or a data frame. If a
                data frame has columns that are not numeric, the model in the database names its columns `column_1` and
                so on.
            y: the name of the label column; or the labels.
            sample_weight: the name of a column of weights; or an array of weights. Rows with whole numbers as weights
                are repeated if there are at most ten times as many then; other weights scale the steps.
        """
        arguments = self._arguments()
        if isinstance(X, str):
            weights = self.class_weight
            with self._connection() as conn:
                trained = fit_table(
                    conn, X, y, sample_weight, self.model, self.features, {"class_weight": weights, **arguments}
                )
                self._set_of_table(trained)
            self.classes_: Any = self.model_.classes
            return self
        self._forget_columns()
        X, y = _checked_pair(self, X, y)
        check_classification_targets(y)
        self.classes_, places = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}, and a classifier needs two")
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, shape_of(X))
        arguments["class_weight"] = self._weights_of_places()
        self._fit_on(*repeated(X, places, weight, self.classes_), self._kind(), arguments)
        return self

    @available_if(_has_name)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> DatabaseClassifier:
        """Goes on with one epoch over these arrays, by a warm start. The estimator needs a name, under which its latest
        model is in the database. Means and scales of the features are those of the first call.

        Args:
            X, y, sample_weight: as for `fit`, but no table.
            classes: all labels that will come; needed in the first call.
        """
        is_first = self._check_partial()
        X, y = _checked_pair(self, X, y, reset=is_first)
        check_classification_targets(y)
        if is_first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes: {classes!r} are not those of the first call, {self.classes_.tolist()}")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has labels that are not among classes: {unknown.tolist()}")
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, shape_of(X))
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight: 'balanced' needs all rows at once: give a dict, or sample_weight")
        if self.class_weight:
            of_class = [self.class_weight.get(label, 1.0) for label in self.classes_.tolist()]
            weight = np.take(of_class, np.searchsorted(self.classes_, y)) * (1.0 if weight is None else weight)
        self._step(X, np.searchsorted(self.classes_, y), weight, self._kind(), range(len(self.classes_)))
        return self

    def _kind(self) -> str:
        if self.model == "auto":
            return "logistic" if len(self.classes_) == 2 else "softmax"
        return self.model

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of the features: (1, features) for two classes, else (classes, features)."""
        weights, _ = self._linear()
        return weights[1:] - weights[:1] if len(weights) == 2 == len(self.classes_) else weights

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """The intercepts, one for each row of `coef_`."""
        _, intercepts = self._linear()
        return intercepts[1:] - intercepts[:1] if len(intercepts) == 2 == len(self.classes_) else intercepts

    def _weights_of_places(self) -> str | dict[str, float] | None:
        if not isinstance(self.class_weight, Mapping):
            return self.class_weight  # the server says what is wrong with others
        known = {label: str(place) for place, label in enumerate(self.classes_)}
        for label in self.class_weight:
            if label not in known:
                labels = ", ".join(map(repr, self.classes_.tolist()))
                raise ValueError(f"class_weight: no row has the label {label!r}; the labels are {labels}")
        return {known[label]: weight for label, weight in self.class_weight.items()}

    def predict(self, X: Any) -> Any:
        """The predicted label of each row of an array, or of a table in its own order; None where `nulls` skips it."""
        if isinstance(X, str):
            labels = self._of_table(X, "label")
            return (like if _labels_are_kept(self) else at_places)(labels, self.classes_)
        predicted = self.model_.predict(self._rows(X)) if self._is_fitted() else None
        return predicted if _labels_are_kept(self) else at_places(predicted, self.classes_)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """The probability of each class: rows by `classes_`. SVMs need the option `probability`."""
        if isinstance(X, str):
            without = [np.nan] * len(self.classes_)
            return np.array([row or without for row in self._of_table(X, "probabilities")], np.float64)
        return self.model_.predict_proba(self._rows(X)) if self._is_fitted() else None

    def decision_function(self, X: Any) -> Any:
        """The decisions: with two classes, above 0 for the second one; with more classes, one column per class."""
        z = self.model_.decision_function(self._rows(X)) if self._is_fitted() else np.zeros(0)
        if z.ndim == 2 and len(self.classes_) == 2:
            return np.subtract(z[:, 1], z[:, 0])
        return z

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy; for a table, with the label in column y."""
        if isinstance(X, str):
            return self._score_of_table(X, y)
        return super().score(X, y, sample_weight)

    def _is_fitted(self) -> bool:
        check_is_fitted(self)
        return True

    def _of_table(self, source: str, what: str) -> list[Any]:
        check_is_fitted(self)
        with self._connection() as conn:
            return predictions_of_table(conn, self.model_, source, what)

    def _score_of_table(self, source: str, label: str | None) -> float:
        check_is_fitted(self)
        if not _labels_are_kept(self):
            raise ValueError(
                "a model that was fitted on arrays knows classes by their places: predict the table instead"
            )
        with self._connection() as conn:
            return score_of_table(conn, self.model_, source, label)


class DatabaseRegressor(RegressorMixin, _DatabaseEstimator):
    """A regressor that is trained in the database.

    Args:
        model: 'linear', 'poisson', 'quantile', 'epsilon_insensitive', 'huber' or 'mlp'; 'auto' is linear. The other
            arguments are those of `DatabaseClassifier`.

    Attributes:
        coef_, intercept_: as in `DatabaseClassifier`, of one dimension less.
        model_, n_features_in_, feature_names_in_, n_iter_, loss_curve_, history_, notices_: as in `DatabaseClassifier`.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DatabaseRegressor:
        """Trains on the table X with the number in column y ('label' by default), or on arrays.

        Arguments are those of `DatabaseClassifier.fit`.
        """
        arguments, kind = self._arguments(), self._kind()
        if isinstance(X, str):
            with self._connection() as conn:
                self._set_of_table(fit_table(conn, X, y, sample_weight, kind, self.features, arguments))
            return self
        self._forget_columns()
        X, y = _checked_pair(self, X, y, y_numeric=True)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, shape_of(X))
        self._fit_on(*repeated(X, np.asarray(y, np.float64), weight), kind, arguments)
        return self

    @available_if(_has_name)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DatabaseRegressor:
        """Goes on with one epoch over these arrays, as `DatabaseClassifier.partial_fit`."""
        is_first = self._check_partial()
        X, y = _checked_pair(self, X, y, y_numeric=True, reset=is_first)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, shape_of(X))
        self._step(X, np.asarray(y, np.float64), weight, self._kind())
        return self

    def _kind(self) -> str:
        kinds = {"auto": "linear", **{kind: kind for kind in REGRESSIONS}, "mlp": "mlp_regression"}
        if self.model not in kinds:
            raise ValueError(
                f"model: {self.model!r} predicts no numbers; it can be one of {', '.join(map(repr, kinds))}"
            )
        return kinds[self.model]

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of the features."""
        return self._linear()[0][0]

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._linear()[1][0])

    def predict(self, X: Any) -> Any:
        """The predicted number of each row of an array, or of a table in its own order."""
        check_is_fitted(self)
        if isinstance(X, str):
            with self._connection() as conn:
                return np.array(predictions_of_table(conn, self.model_, X, "number"), np.float64)
        return self.model_.predict(self._rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R²; for a table, with the label in column y."""
        if isinstance(X, str):
            check_is_fitted(self)
            with self._connection() as conn:
                return score_of_table(conn, self.model_, X, y)
        return super().score(X, y, sample_weight)


def _checked_pair(estimator: _DatabaseEstimator, X: Any, y: Any, **arguments: Any) -> tuple[Any, Any]:
    if y is None:
        raise ValueError(f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None")
    if has_columns(X):
        estimator._checked(X, reset=arguments.get("reset", True))
        y = _check_y(y, y_numeric=arguments.get("y_numeric", False), estimator=estimator)
        check_consistent_length(X, y)
        return X, y
    return estimator._checked(X, y=y, **arguments)
