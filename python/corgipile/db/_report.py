"""`report`: models as one page of HTML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._checks import check_number, check_path, check_text
from ._connections import check_connection
from ._extension import only, select

if TYPE_CHECKING:
    import psycopg


def report(
    conn: psycopg.Connection[Any],
    model: Any,
    source: str | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    max_rows: int = 20_000,
    title: str | None = None,
) -> Path:
    """Writes a report on a model, or on several to compare them, as one HTML file that needs nothing else.

    It says what was trained on what and with which choices, shows loss and validation by epoch, the largest weights
    with their features' means and deviations, and on a sample of rows ROC and precision-recall curves, calibration and
    confusion matrix, or predicted against actual numbers and residuals.

    Predictions are made in the server; only labels and answers of the sample leave it. Of a large table no more pages
    are read than the sample is on; of a large view or query the server goes over all rows. How many rows the sample
    has, of how many, is in the report.

    Nothing is written in the database: the report is a transaction that may only read, or a part of yours. What a model
    of another role says it was trained on is not read, because it may be a query that calls whatever that role wants;
    give a source then.

    Args:
        conn: a connection of psycopg 3.
        model: a name, an id, a pair (name, version), a `Model` or what `train` returned, with all models of a grid; or
            a list of these.
        source: the rows to predict: a table, a view or a query with the model's columns. By default those that
            `validation_column` held out of training; without one those of the training, which the report says, because
            a model looks better on rows that it has learned from.
        path: the file to write.
        max_rows: the largest sample.
        title: the page's title; by default the names of the models.

    Returns:
        The path of the file.
    """
    from .reporting import collect, page

    check_connection(conn)
    # one more than these is asked for
    check_number("max_rows", max_rows, 1, 2**31 - 2)
    target = Path(check_path("path", path))
    for name, text, example in (("source", source, "my_table"), ("title", title, "Faults")):
        if text is not None:
            check_text(name, text, example)
    if source is not None and not source.strip():
        raise ValueError("source: the text is empty: name a table or a view, or write a query")
    with conn.transaction(force_rollback=True):
        conn.execute("SET TRANSACTION READ ONLY")
        found = []
        for one in model if isinstance(model, list) else [model]:
            ids, notices = collect.identify(conn, one)
            found.extend(collect.collect(conn, model_id, notices) for model_id in ids)
        if not found:
            raise ValueError("model is an empty list: name at least one")
        for one in found:
            collect.evaluate(conn, one, source, max_rows)
        version = only(select(conn, "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'corgipile'")[1])
    document = page.page(found, title, conn.info.dbname, version)
    target.write_text(document, encoding="utf-8")
    return target
