"""The database part of `corgipile.sklearn`; it does not need scikit-learn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._connections import quoted
from ._extension import only, schema, select
from ._loading import SOURCE, load_arrays, load_columns, load_sparse
from ._model import Model
from ._training import train
from .reporting.sample import literal, subquery


@dataclass(frozen=True)
class Trained:
    """A model, and what the server said while it was trained."""

    model: Model
    notices: list[str]


class _NothingStaysError(Exception):
    """Ends a transaction of which nothing is to stay."""


def fit_table(
    conn: Any, source: str, label: Any, weight: Any, kind: str, features: list[str] | None, arguments: dict[str, Any]
) -> Trained:
    """Trains on a table, whose rows stay where they are."""
    for what, column in (("y", label), ("sample_weight", weight)):
        if column is not None and not isinstance(column, str):
            raise TypeError(f"{what} is the name of a column if X is a table, not {type(column).__name__}")
    label = label or "label"
    if kind == "auto":
        kind = "logistic" if _has_two_values(conn, source, label) else "softmax"
    found = {"label": label, "features": features, "weight": weight, **arguments}
    return _trained(conn, source, kind, found, lambda: None)


def _has_two_values(conn: Any, source: str, label: str) -> bool:
    name = literal(quoted(label))
    distinct = f"SELECT DISTINCT {name} AS v FROM {_from(source)} AS s WHERE {name} IS NOT NULL"
    with conn.transaction():
        return only(select(conn, f"SELECT count(*) FROM ({distinct} LIMIT %s) AS v", [3])[1]) <= 2


def fit_matrix(
    conn: Any,
    matrix: NDArray[np.float64],
    label: NDArray[Any],
    weight: Any,
    kind: str | None,
    arguments: dict[str, Any],
) -> Trained:
    """Trains on a matrix, by way of a temporary table."""
    found = {"label": "label", "features": ["features"], "weight": None if weight is None else "weight", **arguments}
    return _trained(conn, SOURCE, kind, found, lambda: load_arrays(conn, matrix, label, weight))


def fit_sparse(
    conn: Any, matrix: Any, label: NDArray[Any], weight: Any, kind: str | None, arguments: dict[str, Any]
) -> Trained:
    """Trains on a CSR matrix of scipy's, by way of a temporary table."""
    found = {"label": "label", "features": ["indices", "vals"], "weight": None if weight is None else "weight"}
    found |= {"index_base": 0, "dimensions": matrix.shape[1], **arguments}
    return _trained(conn, SOURCE, kind, found, lambda: load_sparse(conn, matrix, label, weight))


def fit_columns(
    conn: Any,
    columns: Sequence[tuple[str, Sequence[Any]]],
    label: NDArray[Any],
    weight: Any,
    kind: str | None,
    arguments: dict[str, Any],
) -> Trained:
    """Trains on columns of several types, by way of a temporary table. Dates are taken by their parts."""
    found: dict[str, Any] = {"label": "label", "weight": None if weight is None else "weight", "date_parts": True}
    found |= arguments

    def load() -> None:
        found["features"] = load_columns(conn, columns, label, weight)
        own = {name: own for own, (name, _) in zip(found["features"], columns)}
        if isinstance(found.get("options"), Mapping):
            found["options"] = dict(found["options"])
        for options in (found, found.get("options") or {}):
            for option in {"hash", "transform"} & options.keys():  # which may name columns
                options[option] = _renamed(options[option], own)

    trained = _trained(conn, SOURCE, kind, found, load)
    trained.model.call_columns({own: name for own, (name, _) in zip(found["features"], columns)})
    return trained


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """An option in which columns are called by other names."""
    if isinstance(value, Mapping):
        return {key: _renamed(part, names) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [names.get(name, name) if isinstance(name, str) else name for name in value]
    return value


def _trained(conn: Any, source: str, kind: str | None, arguments: dict[str, Any], load: Any) -> Trained:
    """Trains in a transaction that is rolled back unless the model has a name: nothing is left then. A model that it
    replaces is dropped."""
    found: list[Trained] = []
    replaced = arguments.pop("replaces", None)
    try:
        with conn.transaction():
            load()
            given: dict[str, Any] = {"model": kind, **arguments}
            epochs = train(conn, source, **given)
            model = epochs.model(conn)
            found.append(Trained(model, [str(notice) for notice in epochs.notices]))
            if arguments.get("name") is None:
                raise _NothingStaysError
            if replaced is not None:
                select(conn, f"SELECT {schema(conn)}.corgipile_drop(%s::bigint)", [replaced])
    except _NothingStaysError:
        found[0].model.model_id = found[0].model.version = None
    return found[0]


def _document(model: Model) -> str:
    document = model.to_dict()
    document.pop("history", None)
    return json.dumps(document)


def predictions_of_table(conn: Any, model: Model, source: str, what: str) -> list[Any]:
    """Answers for the rows of a table, computed in the server, in the order in which its rows come."""
    functions = {
        "label": "corgipile_predict_label",
        "probabilities": "corgipile_predict_proba",
        "number": "corgipile_predict",
    }
    rows = _from(source, model)
    query = f"SELECT {schema(conn)}.{functions[what]}(%s::jsonb, corgipile_row) FROM {rows} AS corgipile_row"
    return [row[0] for row in select(conn, query, [_document(model)])[1]]


def _from(source: str, model: Model | None = None, label: str | None = None) -> str:
    """A source in FROM; of a model with own names of columns, these, and the label as `corgipile_label`."""
    names = {} if model is None else model.called_columns
    if label is not None and names:
        names["corgipile_label"] = label
    own = ", ".join(f"corgipile_given.{quoted(name)} AS {quoted(own)}" for own, name in names.items())
    rows = subquery(source)
    return literal(f"(SELECT {own} FROM {rows} AS corgipile_given)" if own else rows)


def score_of_table(conn: Any, model: Model, source: str, label: str | None) -> float:
    """Accuracy or R² over the rows of a table that have an answer, computed in the server."""
    functions = schema(conn)
    label = label or model.label
    name = "corgipile_label" if model.called_columns else literal(quoted(label))
    rows = f"FROM {_from(source, model, label)} AS corgipile_row WHERE corgipile_row.{name} IS NOT NULL"
    is_number = model.classes is None or model.classes.dtype.kind in "biuf"
    function = "corgipile_predict" if is_number else "corgipile_predict_label"
    actual = f"corgipile_row.{name}::text"
    if is_number:
        is_boolean = model.classes is not None and model.classes.dtype.kind == "b"
        actual = f"corgipile_row.{name}{'::int' if is_boolean else ''}::float8"
    inner = f"SELECT {actual} AS y, {functions}.{function}(%s::jsonb, corgipile_row) AS p {rows} OFFSET 0"
    score = "avg((y = p)::int)" if model.is_classifier else "1 - avg((y - p) ^ 2) / nullif(var_pop(y), 0)"
    query = f"SELECT ({score})::float8 FROM ({inner}) AS r WHERE p IS NOT NULL"
    found = only(select(conn, query, [_document(model)])[1])
    return float("nan") if found is None else found
