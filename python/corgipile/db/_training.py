"""`train`: corgipile_train() with Python's arguments, its notices, and a bar."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _epochs
from ._connections import Notice, notices, quoted
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

    The training is a transaction of its own, which is committed, unless the connection is in one already: then it is a
    part of that. If it fails or is interrupted, it is rolled back, no model is stored, and the connection can be used
    as before. Ctrl-C cancels it in the server.

    Args:
        conn: a connection of psycopg 3.
        source: a table or view as SQL names it, or a query.
        model: 'logistic', 'svm', 'linear', 'softmax', 'mlp' or 'mlp_regression', or another name that SQL knows.
        progress: whether to show a bar with tqdm, on standard error. None: in terminals and notebooks, if tqdm is
            installed. It needs a second connection.
        **arguments: all arguments and options of `corgipile_train`, by name: `label`, `features`, `name`,
            `max_epochs`, `validation_fraction`, `hidden_layers`, `date_parts` and so on. None is the default.

    Returns:
        A table with a row per epoch: a data frame if pandas is installed, else `Epochs`. Both have `model_id`, `name`,
        `notices`, `model(conn)` and `plot()`.

    Raises:
        psycopg.Error: what the server refused; its `diag` has message and hint.
        KeyboardInterrupt: the training was cancelled.
    """
    if not isinstance(source, str):
        raise TypeError(f"source is the name of a table or a query, not {type(source).__name__}")
    told: list[Notice] = []
    bar = Bar(conn) if is_wanted(progress) else None

    def tell(notice: Notice) -> None:
        told.append(notice)
        _log.info("%s", notice)
        if bar is not None:
            bar.write(f"{notice.severity}: {notice}")

    with conn.transaction(), notices(conn, tell):
        statement, values = _statement(conn, source, {"model": model, **arguments})
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


def _statement(conn: Any, source: str, arguments: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The call: what the function has no argument for goes into its options."""
    types = argument_types(conn, "corgipile_train", "text")
    given = {name: value for name, value in arguments.items() if value is not None}
    options = given.pop("options", {})
    if not isinstance(options, Mapping):
        raise TypeError(f"options is a dict, not {type(options).__name__}")
    options = {**options, **{name: value for name, value in given.items() if name not in types}}
    calls, values = ["source => %s::pg_catalog.text"], [source]
    for name in types.keys() & given.keys() - {"source", "options"}:
        calls.append(f"{quoted(name)} => %s::{types[name]}")
        values.append(_value(given[name], types[name]))
    if options:
        calls.append("options => %s::pg_catalog.jsonb")
        values.append(json.dumps(options))
    return f"SELECT * FROM {schema(conn)}.corgipile_train({', '.join(calls)})", values


def _value(value: Any, kind: str) -> Any:
    if kind == "jsonb" or isinstance(value, Mapping):
        return json.dumps(value)
    if kind.endswith("[]"):
        return [value] if isinstance(value, str) else list(value)
    if kind == "text":
        return value if isinstance(value, str) else str(value)
    return value
