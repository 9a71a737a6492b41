"""A session of the server: trains, evaluates, and says what a model came to."""

import json
from dataclasses import dataclass, field

import numpy as np
import psycopg

from data import CALIFORNIA_COLUMNS
from sets import Set

STRATEGIES = ("no_shuffle", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs", "block_only", "corgipile")
L2 = 1e-4  # of every training of the study, so that each has one optimum


class DivergedError(Exception):
    """The learning rate was too large."""


@dataclass(frozen=True)
class Run:
    """What is trained and how. What is None is left to the extension's defaults."""

    data_set: Set
    model: str
    batch_size: int
    strategy: str
    epochs: int
    rate: float | None
    decay: float | None = None
    seed: int = 1
    block_size: str | None = None
    function: str = "corgipile_train"
    more: dict = field(default_factory=dict, hash=False)  # options in addition to those

    @property
    def source(self):
        return self.data_set.table("train")

    @property
    def seed_matters(self):
        """no_shuffle has but one order, and only networks begin with weights that depend on the seed."""
        return self.strategy != "no_shuffle" or self.data_set.network

    @property
    def cell(self):
        return self.data_set.name, self.model, self.batch_size

    def __str__(self):
        return f"{self.data_set.name} {self.model} batch {self.batch_size} {self.strategy} seed {self.seed}"


def thousandth(epochs):
    """The decay that makes the last epoch's rate a thousandth of the first's."""
    return 1000 ** (-1 / (epochs - 1))


@dataclass
class Epoch:
    """A row of corgipile.training_history."""

    loss: float
    score: float  # accuracy, or R2
    seconds: float
    shuffle_seconds: float


@dataclass
class Model:
    """What training has stored."""

    model_id: int
    epochs: list[Epoch] = field(default_factory=list)
    preparation_seconds: float = 0.0
    shuffle_bytes: int | None = None


def connect():
    """To the server of the environment, which is this study's own."""
    connection = psycopg.connect(autocommit=True)
    connection.execute("SET client_min_messages = warning")
    connection.execute("SET max_parallel_workers_per_gather = 0")
    return connection


def train(connection, run):
    options = {"batch_size": run.batch_size, "l2": L2, "decay": run.decay} | run.data_set.options | run.more
    arguments = {
        "source": run.source,
        "model": run.model,
        "features": features_of(run.data_set),
        "learning_rate": run.rate,
        "max_epochs": run.epochs,
        "shuffle": run.strategy,
        "seed": run.seed,
        "block_size": run.block_size,
        # the papers' share, also of tables so small that the default is a single buffer
        "buffer_size": "10%" if run.function == "corgipile_train" else None,
        "options": json.dumps({key: value for key, value in options.items() if value is not None}),
    }
    arguments = {name: value for name, value in arguments.items() if value is not None}
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    try:
        model_id = connection.execute(f"SELECT max(model_id) FROM {run.function}({named})", arguments).fetchone()[0]
    except psycopg.errors.NumericValueOutOfRange as error:
        if "diverged" in str(error):
            raise DivergedError from error
        raise
    history = connection.execute(
        "SELECT loss, coalesce(accuracy, r2), seconds, coalesce(shuffle_seconds, 0) FROM corgipile.all_training_history"
        " WHERE model_id = %s ORDER BY epoch",
        [model_id],
    )
    epochs = [Epoch(*row) for row in history]
    rest = connection.execute(
        "SELECT preparation_seconds, shuffle_bytes FROM corgipile.models WHERE model_id = %s", [model_id]
    )
    return Model(model_id, epochs, *rest.fetchone())


def features_of(data_set):
    """Argument `features`: NULL where the defaults find them."""
    return [*CALIFORNIA_COLUMNS, "ocean_proximity"] if data_set.columns else None


def evaluate(connection, model, table):
    """Loss and score (accuracy or R2) of the rows of a table."""
    rows = connection.execute("SELECT metric, value FROM corgipile_evaluate(%s::bigint, %s)", [model.model_id, table])
    metrics = dict(rows.fetchall())
    return metrics["loss"], metrics.get("accuracy", metrics.get("r2"))


def penalty(connection, model):
    """What l2 adds to the loss."""
    return connection.execute(
        "SELECT %s::float8 / 2 * sum(weight::float8 ^ 2) FROM corgipile.models, unnest(weights) AS weight"
        " WHERE model_id = %s",
        [L2, model.model_id],
    ).fetchone()[0]


def coefficients(connection, model):
    """Weights (outputs x features), intercepts, and means and scales or None, as float64."""
    weights, intercepts, mean, scale = connection.execute(
        "SELECT weights, intercepts, feature_mean, feature_scale FROM corgipile.models WHERE model_id = %s",
        [model.model_id],
    ).fetchone()
    weights, intercepts = np.array(weights, np.float64), np.array(intercepts, np.float64)
    standardized = (None, None) if mean is None else (np.array(mean), np.array(scale))
    return weights.reshape(len(intercepts), -1), intercepts, *standardized


def forget(connection, model):
    connection.execute("DELETE FROM corgipile.stored_models WHERE model_id = %s", [model.model_id])


def reclaim(connection):
    """The space of all models. (Deleted ones leave theirs; some have a million weights.)"""
    connection.execute("TRUNCATE corgipile.stored_models")
