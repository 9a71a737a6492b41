"""What the estimators do with arrays before they are loaded. Only `corgipile.sklearn` imports it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

#: Rows are repeated as often as their weights say if that makes at most this many times as many rows.
_MOST_REPEATED = 10


def has_columns(X: Any) -> bool:
    """Whether X is a data frame with a column that is not of numbers."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return False
    return any(getattr(kind, "kind", "O") not in "biuf" for kind in X.dtypes)


def columns_of(X: Any) -> list[tuple[str, list[Any]]]:
    """The columns of a data frame with their names, which may be there twice."""
    by_place = getattr(X, "iloc", None)
    return [
        (str(name), list(X[name] if by_place is None else by_place[:, place])) for place, name in enumerate(X.columns)
    ]


def repeated(X: Any, y: Any, weight: Any, classes: Any = None) -> tuple[Any, Any, Any]:
    """Rows as often as their weights say, without weights, if these are whole and small. A class of which no row counts
    would be lost by it."""
    if weight is None:
        return X, y, None
    # no more than an index holds, and not NaN either
    times = np.where((weight >= 0) & (weight <= _MOST_REPEATED * len(weight)), weight, 0).astype(np.int64)
    is_whole = bool((times == weight).all()) and 0 < times.sum() <= _MOST_REPEATED * len(weight)
    if not is_whole or (classes is not None and len(np.unique(y[times > 0])) < len(classes)):
        return X, y, weight
    places = np.repeat(np.arange(len(weight)), times)
    return _safe_indexing(X, places), y[places], None


def shape_of(X: Any) -> Any:
    return np.zeros((len(X), 1)) if has_columns(X) else X


def like(labels: list[Any], classes: Any) -> Any:
    """Labels as texts of SQL, as the classes are; None where there is no label."""
    there = [label for label in labels if label is not None]
    if classes.dtype.kind == "b":
        return _with_gaps(labels, np.array([label in ("t", "true") for label in there], bool))
    return _with_gaps(labels, np.array(there, object).astype(classes.dtype))


def at_places(places: Any, classes: Any) -> Any:
    """The classes at these places; None where there is no place."""
    there = [int(float(place)) for place in places if place is not None]
    return _with_gaps(places, classes[np.array(there, np.int64)])


def _with_gaps(answers: Any, values: Any) -> Any:
    """The values of the answers that are there, with None, among objects, for those that `nulls` skips."""
    if len(values) == len(answers):
        return values
    found = np.full(len(answers), None, object)
    found[[answer is not None for answer in answers]] = values
    return found
