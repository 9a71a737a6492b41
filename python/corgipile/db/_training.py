"""`train`: corgipile_train() with Python's arguments, its notices, and a bar."""

from __future__ import annotations

from typing import Any

from ._calls import checked, in_database, run
from ._connections import connected
from ._epochs import Epochs
from ._extension import select
from ._given import sourced


def train(
    conn: Any,
    source: Any,
    *,
    model: str = "logistic",
    progress: bool | None = None,
    **arguments: Any,
) -> Epochs:
    """Trains a model in the database and stores it there.

    The training is a transaction of its own, which is committed, unless the connection is already in a transaction:
    then it is a part of that. If it fails or is interrupted, it is rolled back, no model is stored, and the connection
    remains usable. Ctrl-C cancels it in the server.

    Args:
        conn: a connection of psycopg 3 or 2, an engine or a connection of SQLAlchemy, or a connection string.
        source: a table or view, as in SQL, or a query; what SQLAlchemy selects; or a frame of pandas, polars or
            pyarrow, which is loaded into a temporary table.
        model: 'logistic', 'svm', 'linear', 'softmax', 'poisson', 'quantile', 'epsilon_insensitive', 'huber',
            'svm_one_vs_rest', 'mlp' or 'mlp_regression', or another name that SQL accepts.
        progress: show a bar with tqdm on standard error. None: in terminals and notebooks, if tqdm is installed. It
            needs a second connection.
        **arguments: all arguments and options of `corgipile_train`, by name: `label`, `features`, `name`, `max_epochs`,
            `validation_fraction`, `hidden_layer_sizes`, `date_parts` and so on. None is the default.

    Returns:
        A table with one row per epoch, with `model_id`, `name`, `notices`, `model(conn)` and `plot()`.

    Raises:
        psycopg.Error: the server refused the training; its `diag` has message and hint.
        KeyboardInterrupt: the training was cancelled.
    """
    arguments = checked({"model": model, **arguments})
    with connected(conn) as conn, in_database(conn, progress, "training") as told, sourced(conn, source) as name:
        columns, rows = run(conn, "corgipile_train", [("text", name)], arguments)
        told.done(max((row[columns.index("epoch")] for row in rows), default=0))
        ids = list(dict.fromkeys(row[columns.index("model_id")] for row in rows))
        names = _names(conn, ids)
    return Epochs(columns, rows, names=names, notices=told.notices, source=name)


def _names(conn: Any, ids: list[int]) -> dict[int, str | None]:
    _, rows = select(conn, "SELECT model_id, name FROM corgipile.models WHERE model_id = ANY (%s)", [ids])
    known = dict(rows)
    return {model_id: known.get(model_id) for model_id in ids}
