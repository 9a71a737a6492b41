"""`report`: models as one page of HTML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._checks import check_number, check_path, check_text
from ._connections import connected
from ._extension import only, select


def report(
    conn: Any,
    model: Any,
    source: str | None = None,
    path: str | os.PathLike[str] = "report.html",
    *,
    max_rows: int = 20_000,
    title: str | None = None,
) -> Path:
    """Writes a report on a model, or on several for comparison, as one self-contained HTML file.

    It shows the training source and options, loss and validation by epoch, the largest weights with the means and
    deviations of their features, and, on a sample of rows, ROC and precision-recall curves, lift, calibration and
    confusion matrix, or predicted against actual numbers and residuals.

    Predictions are computed in the server; only labels and predictions of the sample are sent. Of a large table only
    the pages of the sample are read; a large view or query is read as a whole. The report contains the size of the
    sample.

    Nothing is written in the database: the report is a read-only transaction, or a part of yours. The training source
    of a model of another role is not read, because it may be a query that calls any function; pass a source in this
    case.

    Args:
        conn: as for `train`.
        model: a name, an id, a pair (name, version), a `Model` or the result of `train`, with all models of a grid; or
            a list of these.
        source: the rows to predict: a table, a view or a query with the model's columns. By default the rows that
            `validation_column` held out of training; without it the training rows, which the report mentions, because a
            model looks better on rows that it was trained on.
        path: the file to write.
        max_rows: the maximum size of the sample.
        title: the title of the page; by default the names of the models.

    Returns:
        The path of the file.
    """
    from .reporting import collect, page

    # one more than these is asked for
    check_number("max_rows", max_rows, 1, 2**31 - 2)
    target = Path(check_path("path", path))
    for name, text, example in (("source", source, "my_table"), ("title", title, "Faults")):
        if text is not None:
            check_text(name, text, example)
    if source is not None and not source.strip():
        raise ValueError("source: the text is empty: name a table or a view, or write a query")
    with connected(conn) as conn:
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
            version = only(
                select(conn, "SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'corgipile'")[1]
            )
        document = page.page(found, title, conn.info.dbname, version)
    target.write_text(document, encoding="utf-8")
    return target
