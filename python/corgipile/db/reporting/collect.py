"""What the report shows of a model: its row, its largest weights, and its predictions for a sample of rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._connections import Notice, quoted
from .._dates import split
from .._document import BINARY_SVMS, NETWORKS, REGRESSIONS, SVMS, Categories, Vector
from .._extension import schema, select
from .._model import Model
from .._models import find
from .._optional import required
from .._written import split as split_text
from .sample import Sample, draw, literal

#: Weights that are shown, and classes that have curves and a place in the table of confusions.
MOST_WEIGHTS, MOST_CURVES, MOST_CONFUSED = 30, 6, 20

#: Weights of a network whose first layer is looked at: 40 MB.
_MOST_NUMBERS = 10_000_000


@dataclass(frozen=True)
class Weight:
    """A weight and what its feature is like."""

    feature: str
    class_: str | None
    value: float
    mean: float | None
    scale: float | None
    per_unit: float | None


@dataclass
class Evaluation:
    """Predictions of rows that the report looks at."""

    told: str
    are_held_out: bool
    rows: int
    without_answer: int
    actual: NDArray[Any]
    predicted: NDArray[Any]
    #: of the classes in `scored` a column each: their probabilities, or decisions of an SVM
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    scored: list[int] = field(default_factory=list)
    #: the probability of the class that was predicted
    confidence: NDArray[np.float64] | None = None
    #: the probability of the actual class
    of_actual: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class SourceColumn:
    """A column of the training source, as the training used it, and what is known of its values."""

    name: str
    type: str
    role: str
    reason: str | None
    null_fraction: float | None
    distinct_values: int | None
    expression: str | None
    based_on: str | None


@dataclass
class Collected:
    """A model as the report shows it."""

    title: str
    facts: dict[str, Any]
    epochs: list[dict[str, Any]]
    weights: list[Weight]
    features: int | None
    notices: list[Notice]
    evaluation: Evaluation | None = None
    failure: str | None = None
    #: the columns of the source, as corgipile_columns() describes them
    columns: list[SourceColumn] = field(default_factory=list)

    @property
    def short(self) -> str:
        """The title as legends have room for it: the beginning and the end of a long one."""
        return self.title if len(self.title) <= 40 else f"{self.title[:25]}…{self.title[-14:]}"

    @property
    def kind(self) -> str:
        return self.facts["model"]

    @property
    def is_classifier(self) -> bool:
        return self.kind not in REGRESSIONS

    @property
    def classes(self) -> list[str]:
        return self.facts["classes"] or []


_FACTS = (
    *("model_id", "name", "version", "deployed", "owner", "created_at", "comment", "model", "source", "label"),
    *("label_type", "classes", "features", "feature_kind", "categories", "hyperparameters", "skipped", "imputed"),
    *("preparation_seconds", "shuffle_bytes", "history::text", "hidden_layer_sizes", "activation", "output"),
)


def identify(conn: Any, model: Any) -> tuple[list[int], list[Notice]]:
    """The ids of what a caller calls a model, and the notices of its training, if they are known."""
    if isinstance(model, Model):
        if model.model_id is None:
            raise ValueError("this Model comes from a file: name the one in the database")
        return [model.model_id], []
    if hasattr(model, "model_ids"):
        return model.model_ids, list(model.notices)
    if isinstance(model, tuple):
        if len(model) != 2:
            raise ValueError(f"model: must be a pair of name and version, and this one has {len(model)} parts")
        return [find(conn, *model)], []
    return [find(conn, model)], []


def collect(conn: Any, model_id: int, notices: list[Notice]) -> Collected:
    """All but the evaluation."""
    chosen = ", ".join(f"m.{fact}" for fact in _FACTS)
    own = "m.owner = current_user"
    _, rows = select(conn, f"SELECT {chosen}, {own} FROM corgipile.models AS m WHERE m.model_id = %s", [model_id])
    if not rows:
        raise LookupError(f"there is no model {model_id} that you may use")
    facts = {name.split("::")[0]: value for name, value in zip((*_FACTS, "is_own"), rows[0])}
    if facts["hyperparameters"] is None:
        raise PermissionError(f"model {model_id} was granted to you to predict with: a report shows more than that")
    epochs = json.loads(facts.pop("history") or "[]")
    version = f" (version {facts['version']})" if facts["version"] is not None else ""
    title = f"{facts['name']}{version}" if facts["name"] is not None else f"model {model_id}"
    is_network = facts["model"] in NETWORKS
    weights, features = _of_network(conn, model_id) if is_network else _of_linear(conn, model_id)
    return Collected(title, facts, epochs, weights, features, notices)


def _of_linear(conn: Any, model_id: int) -> tuple[list[Weight], int | None]:
    """The features with the largest weights, and of each the weights of the classes that it says most about."""
    _, rows = select(
        conn,
        """WITH largest AS MATERIALIZED (
             SELECT c.feature, c.feature_number, max(abs(c.standardized_coefficient)) AS size,
                    count(*) OVER () AS features
               FROM corgipile.all_coefficients AS c WHERE c.model_id = %(id)s AND c.feature_number > 0
              GROUP BY c.feature, c.feature_number ORDER BY size DESC, c.feature_number LIMIT %(most)s)
           SELECT r.feature, r.class, r.standardized_coefficient, r.mean, r.scale, r.coefficient, r.features
             FROM (SELECT c.*, l.size, l.features,
                          row_number() OVER (PARTITION BY c.feature_number
                                             ORDER BY abs(c.standardized_coefficient) DESC, c.class_number) AS rank
                     FROM corgipile.all_coefficients AS c JOIN largest AS l ON l.feature_number = c.feature_number
                    WHERE c.model_id = %(id)s) AS r
            WHERE r.rank <= %(classes)s
            ORDER BY r.size DESC, r.feature_number, r.rank""",
        {"id": model_id, "most": MOST_WEIGHTS, "classes": MOST_CONFUSED},
    )
    return [Weight(*row[:6]) for row in rows], rows[0][6] if rows else None


def _of_network(conn: Any, model_id: int) -> tuple[list[Weight], int | None]:
    """How far the first layer of a network listens to each feature: the root of the sum of its squared weights."""
    _, rows = select(
        conn, "SELECT pg_catalog.cardinality(m.weights) FROM corgipile.models AS m WHERE m.model_id = %s", [model_id]
    )
    if not rows or (rows[0][0] or 0) > _MOST_NUMBERS:
        return [], None
    model = Model.from_database(conn, model_id)
    document = model._document
    first = document.layers[0].weights.astype(np.float64)
    norms = np.sqrt((first**2).sum(axis=0))
    names = names_of_features(model)
    largest = np.argsort(-norms, kind="stable")[:MOST_WEIGHTS]

    def at(numbers: NDArray[np.float64] | None, i: int) -> float | None:
        return None if numbers is None or i >= len(numbers) else float(numbers[i])

    return [
        Weight(names(int(i)), None, float(norms[i]), at(document.mean, int(i)), at(document.scale, int(i)), None)
        for i in largest
    ], len(norms)


def names_of_features(model: Model) -> Any:
    """A function that gives the name of the feature at a place, as corgipile.coefficients calls it."""
    document = model._document
    if document.feature_kind != "columns":
        base = 1 if document.index_base is None else document.index_base
        return lambda i: f"{document.features[-1]}[{i + base}]"
    names: list[str] = []
    for feature, column in zip(document.features, document.columns):
        if column is None:
            names.append(feature)
        elif isinstance(column, Vector):
            names.extend(f"{feature}[{i + 1}]" for i in range(column.width))
        elif isinstance(column, Categories):
            names.extend(f"{feature}={value}" for value in column.places)
            names.extend([f"{feature} IS NULL"] * column.has_null)
    return lambda i: names[i] if i < len(names) else f"hash[{i - len(names)}]"


class _NoLabelError(Exception):
    """Rows lack what they are to be compared with."""


def evaluate(conn: Any, collected: Collected, source: str | None, wanted: int) -> None:
    """Predicts a sample of rows in the server; a source that cannot be read is reported, unless it was given."""
    psycopg = required("psycopg", "a report", "psycopg[binary]")
    condition, are_held_out, said = None, True, "of the source that the report was asked for"
    parameters = collected.facts["hyperparameters"] or {}
    if source is None:
        column = parameters.get("validation_column")
        condition = None if column is None else quoted(column)
        are_held_out = column is not None
        said = f"that column {column} holds out of training" if are_held_out else "that the model was trained on"
    own = source if source is not None else collected.facts["source"]
    if own is None:
        collected.failure = "The model does not say what it was trained on; give the report a source."
        return
    if source is None and not collected.facts["is_own"]:
        # it may be a query that calls whatever its owner wants, with the rights of the one that runs it
        collected.failure = (
            "What a model of another role was trained on is not read by itself; give the report a source."
        )
        return
    try:
        with conn.transaction():
            sample = draw(conn, own, wanted, condition)
            label = collected.facts["label"]
            if label not in sample.columns:
                raise _NoLabelError(f"has no column {label!r}, which the model predicts")
            # one more tells whether these are all
            found = _predictions(conn, collected, sample, wanted + 1)
            rows = found[:wanted]
            described = _columns(conn, own, label) if source is None else []
    except _NoLabelError as error:
        if source is not None:
            raise ValueError(f"source: {source!r} {error}: a report needs rows whose labels are known") from None
        collected.failure = f"The rows that the model was trained on cannot be read: the source {error}"
        return
    except psycopg.Error as error:
        if source is not None:
            raise
        collected.failure = f"The rows that the model was trained on cannot be read: {str(error).splitlines()[0]}"
        return
    told = f"{sample.told(len(rows), len(found))} {said}"
    unused = _left_out(collected, sample.columns)
    collected.columns = [replace(column, role="left out") if column.name in unused else column for column in described]
    collected.evaluation = (_of_classes if collected.is_classifier else _of_numbers)(
        collected, rows, told, are_held_out
    )


def _columns(conn: Any, source: str, label: str) -> list[SourceColumn]:
    chosen = "name, type, role, reason, null_fraction, distinct_values, expression, based_on"
    call = f"SELECT {chosen} FROM {schema(conn)}.corgipile_columns(%s::text, %s)"
    return [SourceColumn(*row) for row in select(conn, call, [source, label])[1]]


def _left_out(collected: Collected, columns: list[str]) -> set[str]:
    """Columns of the source that are neither features nor what they are predicted from."""
    used = {collected.facts["label"]}
    for feature in collected.facts["features"]:
        used.add(feature)
        used.update((split_text(feature) or split(feature) or ())[:1])
    return {column for column in columns if column not in used}


def _predictions(conn: Any, collected: Collected, sample: Sample, wanted: int) -> list[tuple[Any, ...]]:
    """Label and answers of each row, computed where the rows are."""
    functions, row = literal(schema(conn)), literal(sample.row)
    label = f"{row}.{literal(quoted(collected.facts['label']))}"
    values: dict[str, Any] = {"id": collected.facts["model_id"], "wanted": wanted}
    probabilities = "NULL"
    if not collected.is_classifier:
        chosen = f"{label}::float8 AS label, {functions}.corgipile_predict(%(id)s::bigint, {row}) AS answer"
    else:
        chosen = f"{label}::text AS label, {functions}.corgipile_predict_label(%(id)s::bigint, {row}) AS answer"
        if collected.kind not in SVMS:
            probabilities = f"{functions}.corgipile_predict_proba(%(id)s::bigint, {row})"
    if collected.kind in BINARY_SVMS:
        # an SVM has no probabilities; said to predict numbers, it gives its decisions
        values["decisions"] = json.dumps(_as_regression(Model.from_database(conn, collected.facts["model_id"])))
        probabilities = f"ARRAY[{functions}.corgipile_predict(%(decisions)s::jsonb, {row})]"
    relation, where, order = map(literal, (sample.relation, sample.where, sample.order))
    query = f"""SELECT r.label, r.answer, {_probabilities(collected, values)}
                  FROM (SELECT {chosen}, {probabilities} AS p, {order} AS place
                          FROM {relation} WHERE {label} IS NOT NULL AND {where} OFFSET 0) AS r
                 ORDER BY r.place LIMIT %(wanted)s"""
    return select(conn, query, values)[1]


def _probabilities(collected: Collected, values: dict[str, Any]) -> str:
    """Of few classes all probabilities; of many the largest, that of the row's own, and some classes'."""
    if not collected.is_classifier:
        return "NULL"
    if len(collected.classes) <= MOST_CONFUSED:
        return "r.p"
    values["classes"] = collected.classes
    own = "r.p[pg_catalog.array_position(%(classes)s::text[], r.label)]"
    some = ", ".join(f"r.p[{i + 1}]" for i in range(MOST_CURVES))
    return f"ARRAY[(SELECT max(p) FROM pg_catalog.unnest(r.p) AS p), {own}, {some}]"


def _as_regression(model: Model) -> dict[str, Any]:
    document = model.to_dict()
    for key in ("classes", "history", "sigmoid_slopes", "sigmoid_offsets"):
        document.pop(key, None)
    return {**document, "model": "linear", "label_type": "pg_catalog.float8"}


def _of_numbers(collected: Collected, rows: list[tuple[Any, ...]], told: str, are_held_out: bool) -> Evaluation:
    answered = [row for row in rows if row[1] is not None]
    actual, predicted = (np.array([row[i] for row in answered], np.float64) for i in (0, 1))
    there = np.isfinite(actual)
    return Evaluation(told, are_held_out, len(rows), len(rows) - int(there.sum()), actual[there], predicted[there])


def _of_classes(collected: Collected, rows: list[tuple[Any, ...]], told: str, are_held_out: bool) -> Evaluation:
    places = _Places(collected)
    kept = [(places(row[0]), places(row[1]), row[2]) for row in rows if row[1] is not None]
    known = [row for row in kept if row[0] is not None]
    actual = np.array([row[0] for row in known], np.int64)
    predicted = np.array([row[1] for row in known], np.int64)
    evaluation = Evaluation(told, are_held_out, len(rows), len(rows) - len(known), actual, predicted)
    if not known or (collected.kind in SVMS and collected.kind not in BINARY_SVMS):
        return evaluation
    numbers = np.array([row[2] for row in known], np.float64)
    if collected.kind in BINARY_SVMS:
        evaluation.scores, evaluation.scored = numbers, [1]
    elif len(collected.classes) <= MOST_CONFUSED:
        common = np.argsort(-np.bincount(actual, minlength=len(collected.classes)), kind="stable")[:MOST_CURVES]
        evaluation.scored = [1] if len(collected.classes) == 2 else sorted(int(i) for i in common)
        evaluation.scores = numbers[:, evaluation.scored]
        evaluation.confidence = numbers[np.arange(len(numbers)), predicted]
        evaluation.of_actual = numbers[np.arange(len(numbers)), actual]
    else:
        evaluation.confidence, evaluation.of_actual = numbers[:, 0], numbers[:, 1]
        evaluation.scores, evaluation.scored = numbers[:, 2:], list(range(MOST_CURVES))
    return evaluation


class _Places:
    """Which class a label's text is: boolean's text has two spellings, and numbers have several."""

    def __init__(self, collected: Collected) -> None:
        self._places = {text: i for i, text in enumerate(collected.classes)}
        if collected.facts["label_type"] == "boolean":
            self._places.update({"true": self._places.get("t", 1), "false": self._places.get("f", 0)})
        self._numbers: dict[float, int] = {}
        if collected.facts["label_type"] in ("real", "double precision", "numeric"):
            self._numbers = {float(text): i for i, text in enumerate(collected.classes)}

    def __call__(self, label: str) -> int | None:
        place = self._places.get(label)
        if place is None and self._numbers:
            place = self._numbers.get(float(label))
        return place
