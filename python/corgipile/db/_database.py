"""`Database`: every function of the extension as a method."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._checks import check_text
from . import _columns, _progress, _report, _training, _watch
from ._calls import checked, in_database, run
from ._connections import connected, quoted
from ._epochs import Epochs
from ._extension import only, schema, select
from ._given import sourced
from ._model import Model
from ._models import find, read
from ._table import Table
from .reporting.sample import literal, subquery


class Database:
    """A database with the extension: each of its functions is a method.

    A model is a name, an id, a pair (name, version), a `Model` or the result of `train`. A source is a table or a
    query, what SQLAlchemy selects, or a frame of pandas, polars or pyarrow. Arguments by name are those of the
    function in SQL.
    `progress` shows a bar; by default in terminals and notebooks, if tqdm is installed. Ctrl-C ends the server's
    statement. Each call is a transaction of its own, or a part of that of the connection.

    Args:
        conn: a connection of psycopg 3 or 2, an engine or a connection of SQLAlchemy, or a connection string. None:
            libpq's environment variables.
    """

    def __init__(self, conn: Any = None) -> None:
        self._given = conn

    def __repr__(self) -> str:
        what = "connection string" if isinstance(self._given, str) else type(self._given).__name__
        return f"<corgipile.db.Database by {what if self._given is not None else 'environment variables'}>"

    # --- training

    def train(self, source: Any, *, model: str = "logistic", progress: bool | None = None, **arguments: Any) -> Epochs:
        """`corgipile_train`: trains a model and stores it; see `corgipile.db.train`."""
        return _training.train(self._given, source, model=model, progress=progress, **arguments)

    def search(self, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_search`: cross-validation of many settings, and the best model."""
        return self._of_source("corgipile_search", source, arguments, progress)

    def columns(self, source: Any, **arguments: Any) -> Table:
        """`corgipile_columns`: what a training would make of each column."""
        return _columns.columns(self._given, source, **arguments)

    def options(self, model: str | None = None) -> Table:
        """`corgipile_options`: the options of all models, or of one kind of model."""
        return self._call("corgipile_options", [("text", model)], {}, False)

    # --- of a model on rows

    def evaluate(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_evaluate`: metrics of a model on rows."""
        return self._of_model("corgipile_evaluate", model, source, arguments, progress)

    def confusion(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_confusion`: how often each label was predicted as each."""
        return self._of_model("corgipile_confusion", model, source, arguments, progress)

    def curves(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_curves`: points of the ROC and precision-recall curves, and of calibration."""
        return self._of_model("corgipile_curves", model, source, arguments, progress)

    def importance(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_importance`: what the predictions lose if a column is permuted."""
        return self._of_model("corgipile_importance", model, source, arguments, progress)

    def coefficients(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_coefficients`: weights with standard errors, tests and intervals."""
        return self._of_model("corgipile_coefficients", model, source, arguments, progress)

    def calibrate(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_calibrate`: makes intervals and sets of predictions possible."""
        return self._of_model("corgipile_calibrate", model, source, arguments, progress)

    def drift(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_drift`: which features of these rows are not as they were."""
        return self._of_model("corgipile_drift", model, source, arguments, progress)

    def profile(self, model: Any, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_profile`: keeps how the features are in these rows, for `drift`."""
        return self._of_model("corgipile_profile", model, source, arguments, progress)

    def predict(
        self, model: Any, source: Any, *, keep: Sequence[str] = (), proba: bool = False, progress: bool | None = None
    ) -> Table:
        """The label or number that a model predicts for each row, computed in the server.

        Args:
            model, source: see above. Rows come in the order of the source.
            keep: columns of the source that are returned, too, such as a key.
            proba: also a column `probabilities`, with one for each class.
        """
        with self._connected(progress, "predictions") as (conn, told), sourced(conn, source) as name:
            kind, value = self._resolved(conn, model)
            functions = schema(conn)
            is_classifier = (
                Model.from_dict(json.loads(value)).is_classifier
                if kind == "jsonb"
                else bool(
                    only(
                        select(conn, "SELECT classes IS NOT NULL FROM corgipile.models WHERE model_id = %s", [value])[1]
                    )
                )
            )
            what = "corgipile_predict_label" if is_classifier else "corgipile_predict"
            chosen = [f"corgipile_row.{literal(quoted(check_text('keep', column, 'id')))}" for column in keep]
            chosen.append(f"{functions}.{what}(%s::{kind}, corgipile_row) AS prediction")
            values = [value]
            if proba:
                chosen.append(f"{functions}.corgipile_predict_proba(%s::{kind}, corgipile_row) AS probabilities")
                values.append(value)
            query = f"SELECT {', '.join(chosen)} FROM {literal(subquery(name))} AS corgipile_row"
            return Table(*select(conn, query, values), told.notices)

    def explain(self, model: Any, source: Any, *, progress: bool | None = None) -> Table:
        """`corgipile_explain` of each row: what each column contributes to its prediction. Column `row` counts the rows
        of the source from 1."""
        with self._connected(progress, "explanations") as (conn, told), sourced(conn, source) as name:
            kind, value = self._resolved(conn, model)
            rows = (
                f"SELECT row_number() OVER () AS number, corgipile_row FROM {literal(subquery(name))} AS corgipile_row"
            )
            query = f"""SELECT r.number AS row, e.* FROM ({rows}) AS r,
                        LATERAL {schema(conn)}.corgipile_explain(%s::{kind}, r.corgipile_row) AS e ORDER BY r.number"""
            return Table(*select(conn, query, [value]), told.notices)

    def report(
        self, model: Any, source: str | None = None, path: str | os.PathLike[str] = "report.html", **options: Any
    ) -> Path:
        """Models as one page of HTML; see `corgipile.db.report`."""
        return _report.report(self._given, model, source, path, **options)

    # --- models

    def model(self, model: str | int, version: int | None = None) -> Model:
        """The model, for predictions without the database."""
        return Model.from_database(self._given, model, version)

    def list(self) -> Table:
        """The models that you may see, the latest first."""
        with self._connected(False, "") as (conn, told):
            columns = "model_id, name, version, deployed, owner, model, label, source, comment, created_at"
            query = f"SELECT {columns} FROM corgipile.models ORDER BY model_id DESC"
            return Table(*select(conn, query), told.notices)

    def deploy(self, name: str, version: int | None = None) -> int:
        """`corgipile_deploy`: the name means this version from now on; None: the latest. Returns its id."""
        return self._one("corgipile_deploy", [("text", name), ("integer", version)])

    def drop(self, model: Any, version: int | None = None) -> int:
        """`corgipile_drop`: drops a model, or all versions of a name, or one. Returns how many."""
        if isinstance(model, str):
            return self._one("corgipile_drop", [("text", model), ("integer", version)])
        return self._one_of_model("corgipile_drop", model)

    def rename(self, model: Any, name: str) -> None:
        """`corgipile_rename`: gives a model, with all its versions, another name."""
        self._one_of_model("corgipile_rename", model, ("text", name))

    def comment(self, model: Any, comment: str | None) -> None:
        """`corgipile_comment`: describes a model."""
        self._one_of_model("corgipile_comment", model, ("text", comment))

    def grant(self, model: Any, role: str, privilege: str = "all") -> None:
        """`corgipile_grant`: lets a role use a model; with privilege "predict", only predict with it."""
        self._one_of_model("corgipile_grant", model, ("text", role), ("text", privilege))

    def revoke(self, model: Any, role: str) -> None:
        """`corgipile_revoke`: takes that back."""
        self._one_of_model("corgipile_revoke", model, ("text", role))

    def publish(self, model: Any, servers: Sequence[str] | None = None) -> Table:
        """`corgipile_publish`: copies a model to other servers."""
        with self._connected(None, "publishing") as (conn, told):
            first = [self._of_id(conn, model), ("text[]", None if servers is None else list(servers))]
            return Table(*run(conn, "corgipile_publish", first, {}), told.notices)

    def export(self, model: Any) -> dict[str, Any]:
        """`corgipile_export`: the document of a model."""
        return read(self._one_of_model("corgipile_export", model))

    def export_onnx(self, model: Any) -> bytes:
        """`corgipile_export_onnx`: a model as a graph of ONNX."""
        return bytes(self._one_of_model("corgipile_export_onnx", model))

    def import_model(self, document: Model | dict[str, Any], name: str | None = None) -> int:
        """`corgipile_import`: stores a document. Returns the id of the model."""
        of = document.to_dict() if isinstance(document, Model) else document
        return self._one("corgipile_import", [("jsonb", json.dumps(of)), ("text", name)])

    # --- tables and the server

    def compress(self, source: str, destination: str, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_compress`: a table of repeated values in less space, which can be trained on."""
        return self._call("corgipile_compress", [("text", source), ("text", destination)], arguments, progress)

    def compression_report(self, source: Any, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_compression_report`: how small each encoding would make a source."""
        return self._of_source("corgipile_compression_report", source, arguments, progress)

    def cluster_factor(self, source: Any, *, progress: bool | None = None, **arguments: Any) -> float:
        """`corgipile_cluster_factor`: how much the blocks of a table differ."""
        return self._of_source("corgipile_cluster_factor", source, arguments, progress).rows[0][0]

    def io_profile(self, table: str, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_io_profile`: how fast blocks of several sizes are read."""
        return self._call("corgipile_io_profile", [("regclass", table)], arguments, progress)

    def advise(self, table: str, *, progress: bool | None = None, **arguments: Any) -> Table:
        """`corgipile_advise`: how long a training from disk is expected to take, for several block sizes."""
        return self._call("corgipile_advise", [("regclass", table)], arguments, progress)

    def running(self) -> Sequence[_progress.Progress]:
        """The running trainings of the server."""
        return _progress.running(self._given)

    def watch(self, **options: Any) -> None:
        """Shows the running trainings until it is interrupted; see `corgipile.db.watch`."""
        _watch.watch(self._given, **options)

    # --- how

    @contextmanager
    def _connected(self, progress: bool | None, what: str) -> Generator[tuple[Any, Any], None, None]:
        with connected(self._given) as conn, in_database(conn, progress, what) as told:
            yield conn, told

    def _resolved(self, conn: Any, model: Any) -> tuple[str, Any]:
        """A model as the argument of a function: its id, or its document if it is not in the database."""
        if isinstance(model, Model):
            return ("jsonb", json.dumps(model.to_dict())) if model.model_id is None else ("bigint", model.model_id)
        if isinstance(model, Epochs):
            return "bigint", model.model_id
        if isinstance(model, tuple):
            return "bigint", find(conn, *model)
        return "bigint", find(conn, model)

    def _of_id(self, conn: Any, model: Any) -> tuple[str, Any]:
        kind, value = self._resolved(conn, model)
        if kind == "jsonb":
            raise ValueError("model: is not in the database: import_model() stores it")
        return kind, value

    def _call(
        self, function: str, first: Sequence[tuple[str, Any]], arguments: dict[str, Any], progress: bool | None
    ) -> Table:
        with self._connected(progress, function.removeprefix("corgipile_")) as (conn, told):
            return Table(*run(conn, function, first, checked(arguments)), told.notices)

    def _of_source(self, function: str, source: Any, arguments: dict[str, Any], progress: bool | None) -> Table:
        with (
            self._connected(progress, function.removeprefix("corgipile_")) as (conn, told),
            sourced(conn, source) as name,
        ):
            return Table(*run(conn, function, [("text", name)], checked(arguments)), told.notices)

    def _of_model(
        self, function: str, model: Any, source: Any, arguments: dict[str, Any], progress: bool | None
    ) -> Table:
        with (
            self._connected(progress, function.removeprefix("corgipile_")) as (conn, told),
            sourced(conn, source) as name,
        ):
            first = [self._of_id(conn, model), ("text", name)]
            return Table(*run(conn, function, first, checked(arguments)), told.notices)

    def _one(self, function: str, first: Sequence[tuple[str, Any]]) -> Any:
        with self._connected(False, "") as (conn, _):
            return only(run(conn, function, first, {})[1])

    def _one_of_model(self, function: str, model: Any, *more: tuple[str, Any]) -> Any:
        with self._connected(False, "") as (conn, _):
            # a name means all of its versions where a function is about names
            first = (
                ("text", check_text("model", model, "faults")) if isinstance(model, str) else self._of_id(conn, model)
            )
            return only(run(conn, function, [first, *more], {})[1])
