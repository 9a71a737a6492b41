"""`train`: corgipile_train() with Python's arguments, its notices, and a bar."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._checks import check_seed, check_text
from . import _epochs
from ._connections import Notice, check_connection, notices, quoted
from ._extension import argument_types, schema, select
from ._progress import Bar, is_wanted

if TYPE_CHECKING:
    import psycopg

_log = logging.getLogger("corgipile.db")


def train(
    conn: psycopg.Connection[Any],
    source: str,
    *,
    model: str = "logistic",
    progress: bool | None = None,
    **arguments: Any,
) -> Any:
    """Trains a model in the database and stores it there.

    The training is a transaction of its own, which is committed, unless the connection is already in a transaction:
    then it is a part of that. If it fails or is interrupted, it is rolled back, no model is stored, and the connection
    remains usable. Ctrl-C cancels it in the server.

    Args:
        conn: a connection of psycopg 3.
        source: a table or view, as in SQL, or a query.
        model: 'logistic', 'svm', 'linear', 'softmax', 'poisson', 'quantile', 'epsilon_insensitive', 'huber',
            'svm_one_vs_rest', 'mlp' or 'mlp_regression', or another name that SQL accepts.
        progress: show a bar with tqdm on standard error. None: in terminals and notebooks, if tqdm is installed. It
            needs a second connection.
        **arguments: all arguments and options of `corgipile_train`, by name: `label`, `features`, `name`, `max_epochs`,
            `validation_fraction`, `hidden_layer_sizes`, `date_parts` and so on. None is the default.

    Returns:
        A table with one row per epoch: a data frame if pandas is installed, else `Epochs`. Both have `model_id`,
            `name`, `notices`, `model(conn)` and `plot()`.

    Raises:
        psycopg.Error: the server refused the training; its `diag` has message and hint.
        KeyboardInterrupt: the training was cancelled.
    """
    if not isinstance(source, str):
        raise TypeError(f"source is the name of a table or a query, not {type(source).__name__}")
    check_text("source", source, "my_table")
    check_connection(conn)
    for given in (arguments, arguments.get("options")):
        # the server's own message about a number that is not a bigint lacks the bounds
        seed = given.get("seed") if isinstance(given, Mapping) else None
        if isinstance(seed, int) and not isinstance(seed, bool):
            check_seed(seed)
    told: list[Notice] = []
    bar = Bar(conn) if is_wanted(progress) else None

    def tell(notice: Notice) -> None:
        told.append(notice)
        _log.info("%s", notice)
        if bar is not None:
            bar.write(f"{notice.severity}: {notice}")

    with conn.transaction(), notices(conn, tell):
        statement, values = call_of(conn, "corgipile_train", source, {"model": model, **arguments})
        if bar is None:
            columns, rows = select(conn, statement, values)
        else:
            with bar:
                columns, rows = select(conn, statement, values)
                bar.done(max((row[columns.index("epoch")] for row in rows), default=0))
        ids = list(dict.fromkeys(row[columns.index("model_id")] for row in rows))
        names = _names(conn, ids)
    return _epochs.table(columns, rows, names=names, notices=told, source=source)


def _names(conn: Any, ids: list[int]) -> dict[int, str | None]:
    _, rows = select(conn, "SELECT model_id, name FROM corgipile.models WHERE model_id = ANY (%s)", [ids])
    known = dict(rows)
    return {model_id: known.get(model_id) for model_id in ids}


def call_of(conn: Any, function: str, source: str, arguments: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The call of a function that has a source, and options. What the function has no argument for, or none of that
    type, goes into its options, where the server says by name what is wrong with it."""
    types = argument_types(conn, function, "text")
    given = {name: _plain(name, value) for name, value in arguments.items() if value is not None}
    options = given.pop("options", {})
    if not isinstance(options, Mapping):
        raise TypeError(f"options is a dict, not {type(options).__name__}")
    typed = {name for name, value in given.items() if _fits(value, types.get(name)) and name != "source"}
    options = {**options, **{name: value for name, value in given.items() if name not in typed}}
    calls, values = ["source => %s::pg_catalog.text"], [source]
    for name in sorted(typed):
        calls.append(f"{quoted(name)} => %s::{types[name]}")
        values.append(
            json.dumps(given[name]) if types[name] == "jsonb" or isinstance(given[name], dict) else given[name]
        )
    if options:
        calls.append("options => %s::pg_catalog.jsonb")
        values.append(json.dumps(options))
    return f"SELECT * FROM {schema(conn)}.{function}({', '.join(calls)})", values


def _fits(value: Any, kind: str | None) -> bool:
    """Whether a value is of SQL's type as it is."""
    if kind is None:
        return False
    if kind.endswith("[]"):
        return isinstance(value, list) and all(_fits(element, kind[:-2]) for element in value)
    if kind == "boolean" or isinstance(value, bool):
        return kind in ("boolean", "jsonb") and isinstance(value, bool | dict | list)
    if kind == "text":
        return isinstance(value, str | dict)
    if kind in ("integer", "bigint"):
        return isinstance(value, int) and abs(value) < (2**31 if kind == "integer" else 2**63)
    return kind == "jsonb" or isinstance(value, int | float)


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it: arrays of numpy, tuples and sets are lists, and one name is a list of it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple | set | frozenset):
        value = list(value)
    if name == "features" and isinstance(value, str):
        return [value]
    try:
        return json.loads(json.dumps(value, default=lambda part: part.tolist(), allow_nan=False))
    except (TypeError, ValueError, AttributeError):
        what = repr(value) if isinstance(value, float) else type(value).__name__
        raise TypeError(f"{name} is {what}, which is nothing that JSON knows") from None
