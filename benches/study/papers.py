"""What the CorgiPile papers show with a linear model, by their protocol: initial rates by grid, a decay of 0.95 an
epoch, 20 epochs of single rows, a buffer of a tenth, and as many blocks as their tables have of 10 MB.

Tables are made with the shapes of the papers' data sets, and those of the data directory are whole. Their label depends
on the features so weakly that rows of one class in a row spoil the model, as in the papers.
"""

import json
from dataclasses import dataclass
from functools import partial
from math import ceil
from statistics import mean

import numpy as np
import psycopg

import page_papers
from data import Part, create_table
from jobs import run_jobs
from progress import Progress
from server import connect
from sets import SETS

STRATEGIES = (
    "no_shuffle", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs", "block_only", "block_only_stratified",
    "corgipile_simple", "corgipile",
)  # fmt: skip
DRAWS = ("corgipile", "corgipile_simple", "corgipile_one_buffer")
RATES = (0.1, 0.01, 0.001)
DECAY, EPOCHS, BUFFER = 0.95, 20, 10  # per cent
BLOCKS = 280  # of higgs: 2.8 GB in blocks of 10 MB
SEEDS = (1, 2, 3)
PLAIN = {"averaging": False, "bounded_steps": False, "l2": 0}
HEAT_BUFFERS = (1, 2, 5, 10)  # per cent
HEAT_BLOCKS = ("8kB", "64kB", "256kB", "1MB", "4MB", "10MB", "50MB")
THEOREM_BUFFERS = (1, 2, 5, 10, 20, 50)
THEOREM_ROWS = 2_000_000  # that a training of the check of Theorem 1 learns from, ten times the table
THEOREM_L2 = 0.01
REAL = {"skin": "logistic", "covtype": "svm", "kdd99_onehot": "svm", "mnist": "softmax", "protein": "linear"}


@dataclass(frozen=True)
class Shape:
    """A table of this many features, whose label a model of this kind predicts this well."""

    name: str
    model: str
    features: int
    rows: int
    signal: float
    classes: int = 2


SHAPES = (
    Shape("higgs", "logistic", 28, 200_000, 0.8),
    Shape("susy", "svm", 18, 200_000, 1.5),
    Shape("epsilon", "logistic", 2000, 4_000, 6.0),
    Shape("YearPrediction", "linear", 90, 60_000, 1.0, 0),
    Shape("mini8m", "softmax", 100, 40_000, 3.0, 10),
)
#: What Theorem 1 is checked with: rows of a class are more alike, so that h_D is large.
CLUSTERED = Shape("clustered", "logistic", 28, 200_000, 4.0)


def made(shape, rows, seed):
    """Rows of correlated normal features, with labels by a random linear model and noise."""
    rng = np.random.default_rng([seed, shape.features])
    truth = np.random.default_rng(shape.features)
    mixing = truth.normal(size=(shape.features, shape.features)) / shape.features**0.5
    mixing = 0.7 * np.eye(shape.features) + 0.3 * mixing
    features = rng.normal(size=(rows, shape.features)) @ mixing
    weights = truth.normal(size=(shape.features, max(1, shape.classes * (shape.classes > 2)))) / shape.features**0.5
    scores = shape.signal * features @ weights
    if shape.classes > 2:
        labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(np.int32)
    elif shape.classes == 2:
        labels = (scores[:, 0] + rng.logistic(size=rows) > 0).astype(np.int32)
    else:
        labels = (scores[:, 0] + rng.normal(size=rows)).astype(np.float32)
    return Part(features.astype(np.float32), labels)


@dataclass(frozen=True)
class Table:
    """A table of rows in some order, with one of test rows."""

    name: str  # of the data set
    table: str
    test: str
    model: str
    order: str
    standardize: bool = False
    dimensions: int | None = None


def load(data, quick):
    """Makes the tables: sorted by label, shuffled, and, of higgs, by each feature."""
    tables = []
    rng = np.random.default_rng(7)
    with connect() as connection:
        for shape in SHAPES[:2] if quick else SHAPES:
            rows = shape.rows // 10 if quick else shape.rows
            train, test = made(shape, rows, 1), made(shape, max(2_000, rows // 10), 2)
            name = f"paper_{shape.name.lower()}"
            create_table(connection, f"{name}_test", test)
            orders = {"label": np.argsort(train.labels, kind="stable"), "shuffled": rng.permutation(rows)}
            if shape.name == "higgs":
                features = range(2) if quick else range(shape.features)
                orders |= {f"feature {i + 1}": np.argsort(train.features[:, i], kind="stable") for i in features}
            for order, places in orders.items():
                table = f"{name}_{order.replace(' ', '_')}"
                create_table(connection, table, train.in_order(places))
                tables.append(Table(shape.name, table, f"{name}_test", shape.model, order))
        for data_set in SETS:
            if data_set.name in REAL and not quick:
                train, test = data.part(data_set, "train"), data.part(data_set, "test")
                name = f"paper_real_{data_set.name}"
                create_table(connection, f"{name}_test", test)
                orders = {"label": np.argsort(train.labels, kind="stable"), "shuffled": rng.permutation(len(train))}
                for order, places in orders.items():
                    create_table(connection, f"{name}_{order}", train.in_order(places))
                    tables.append(
                        Table(
                            f"{data_set.name} (whole)", f"{name}_{order}", f"{name}_test", REAL[data_set.name], order,
                            data_set.standardize, data_set.dimensions,
                        )
                    )  # fmt: skip
        connection.execute("CHECKPOINT")
    return tables


def block_of(connection, table, blocks=BLOCKS):
    """The size of a block of which the table has this many, and of at least a page."""
    return f"{8 * max(1, round(pages_of(connection, table) / blocks))}kB"


def pages_of(connection, table):
    return connection.execute("SELECT pg_relation_size(%s::regclass) / 8192", [table.table]).fetchone()[0]


def fit(connection, table, strategy, epochs, **given):
    """Trains by the papers' protocol. Returns the losses of its epochs, the seconds of the last, and loss and score of
    the model on the training and test rows; None if it has diverged."""
    options = PLAIN | {"standardize": table.standardize, "decay": DECAY} | given.pop("options", {})
    if table.dimensions:
        options["dimensions"] = table.dimensions
    arguments = {
        "source": table.table, "model": table.model, "max_epochs": epochs, "shuffle": strategy,
        "buffer_size": f"{BUFFER}%", "options": json.dumps(options), **given,
    }  # fmt: skip
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    try:
        epochs = connection.execute(
            f"SELECT model_id, loss, seconds, tuples FROM corgipile_train({named}) ORDER BY epoch", arguments
        ).fetchall()
    except psycopg.errors.NumericValueOutOfRange as error:
        if "diverged" in str(error):
            return None
        raise
    model_id = epochs[0][0]
    found = {"losses": [row[1] for row in epochs], "seconds": epochs[-1][2], "tuples": sum(row[3] for row in epochs)}
    for key, source in (("train", table.table), ("test", table.test)):
        metrics = dict(
            connection.execute("SELECT metric, value FROM corgipile_evaluate(%s::bigint, %s)", [model_id, source])
        )
        found |= {f"{key}_loss": metrics["loss"], f"{key}_score": metrics.get("accuracy", metrics.get("r2"))}
    connection.execute("DELETE FROM corgipile.stored_models WHERE model_id = %s", [model_id])
    return found


def rate_of(table, connection):
    """Of the grid, the one whose model has the least training loss after all epochs of a full shuffle."""
    losses = {rate: fit(connection, table, "shuffle_once", EPOCHS, learning_rate=rate, seed=100) for rate in RATES}
    return min((found["train_loss"], rate) for rate, found in losses.items() if found)[1]


def measure(table, strategy, rate, block, seed, connection):
    found = fit(connection, table, strategy, EPOCHS, learning_rate=rate, seed=seed, block_size=block)
    first = fit(connection, table, strategy, 1, learning_rate=rate, seed=seed, block_size=block)
    row = {
        "set": table.name,
        "model": table.model,
        "order": table.order,
        "strategy": strategy,
        "seed": seed,
        "rate": rate,
    }
    for key in ("train_loss", "train_score", "test_loss", "test_score", "seconds"):
        row[key] = found[key] if found else ""
        row[f"first_{key}"] = first[key] if first else ""
    return row


def strategies(tables, quick):
    """Final models, and those after one epoch, of all strategies. Of tables sorted by a feature, of three."""
    seeds = SEEDS[:1] if quick else SEEDS
    shuffled = {table.name: table for table in tables if table.order == "shuffled"}
    names = list(shuffled)
    progress = Progress("papers: rates", len(names), len(names))
    found = run_jobs([(partial(rate_of, shuffled[name]), name, 1) for name in names], progress)
    rates = dict(zip(names, found, strict=True))
    jobs = []
    with connect() as connection:
        for table in tables:
            block = block_of(connection, table)
            by_feature = table.order.startswith("feature")
            for strategy in ("no_shuffle", "corgipile", "shuffle_once") if by_feature else STRATEGIES:
                jobs += [
                    (partial(measure, table, strategy, rates[table.name], block, seed), table.table, 1)
                    for seed in (seeds[:1] if strategy == "no_shuffle" or by_feature else seeds)
                ]
    return run_jobs(jobs, Progress("papers: strategies", len(jobs), len(jobs))), rates


def draws(table, rate, quick):
    """Training loss by the rows that were learned from, of the product's draw, the paper's, and Algorithm 1."""

    def of(strategy, epochs, seed, connection):
        found = fit(
            connection, table, strategy, epochs * (1 if strategy != DRAWS[2] else 100 // BUFFER), learning_rate=rate,
            seed=seed, block_size=block, options={"decay": DECAY if strategy != DRAWS[2] else DECAY ** (BUFFER / 100)},
        )  # fmt: skip
        return {"strategy": strategy, "epochs": epochs, "seed": seed} | {
            key: found[key] for key in ("tuples", "train_loss", "test_score")
        }

    with connect() as connection:
        block = block_of(connection, table)
    jobs = [
        (partial(of, strategy, epochs, seed), strategy, epochs)
        for strategy in DRAWS
        for epochs in (1, 2, 5, 10)
        for seed in range(1, 3 if quick else 11)
    ]
    return run_jobs(jobs, Progress("papers: draws", len(jobs), sum(weight for *_, weight in jobs)))


def heat(table, rate, quick):
    """Buffer and block: score and seconds of an epoch. Alone on the machine, for the seconds."""

    def of(strategy, buffer, block, connection):
        given = {"learning_rate": rate, "block_size": block, "buffer_size": f"{buffer}%"}
        found = [
            fit(connection, table, strategy, 2, seed=seed, options={"cache": "off"}, **given)
            for seed in (SEEDS[:1] if quick else SEEDS)
        ]
        return {
            "strategy": strategy,
            "buffer": buffer,
            "block": block,
            "test_score": mean(one["test_score"] for one in found),
            "lowest": min(one["test_score"] for one in found),
            "seconds": min(one["seconds"] for one in found),
        }

    jobs = [
        (partial(of, strategy, buffer, block), strategy, 1)
        for strategy in ("corgipile", "block_only_stratified")
        for buffer in HEAT_BUFFERS
        for block in HEAT_BLOCKS
    ]
    return run_jobs(jobs, Progress("papers: buffer and block", len(jobs), len(jobs)), sessions=1)


def theorem(quick):
    """The excess of the objective over its minimum after as many rows, by (1 - alpha) h_D: Algorithm 1 with the rates
    of Theorem 1, on the sorted and the shuffled table."""
    rows, train = [], made(CLUSTERED, CLUSTERED.rows // (10 if quick else 1), 4)
    orders = {"label": np.argsort(train.labels, kind="stable"), "shuffled": np.arange(len(train))}
    with connect() as connection:
        for order, places in orders.items():
            table = Table(CLUSTERED.name, f"paper_clustered_{order}", "", CLUSTERED.model, order)
            create_table(connection, table.table, train.in_order(places))
            objective = partial(regularized, connection, table)
            best = objective("shuffle_once", 30, solver="newton", options={"l2": THEOREM_L2})
            count = connection.execute(f"SELECT count(*) FROM {table.table}").fetchone()[0]
            block, pages = block_of(connection, table), pages_of(connection, table)
            factor = connection.execute(
                "SELECT corgipile_cluster_factor(%s::text, model => 'logistic', block_size => %s)", [table.table, block]
            ).fetchone()[0]
            for buffer in THEOREM_BUFFERS:
                epochs = max(1, round(THEOREM_ROWS / (count * buffer / 100)))
                blocks = ceil(pages / (int(block.removesuffix("kB")) // 8))
                in_buffer = ceil(blocks / ceil(100 / buffer))  # as few buffers as do, filled evenly
                rest = 1 - (in_buffer - 1) / (blocks - 1)
                excess = [
                    objective(
                        DRAWS[2], epochs, seed=seed, block_size=block, buffer_size=f"{buffer}%", learning_rate=0.5,
                        options={"l2": THEOREM_L2, "schedule": "theorem1"},
                    )
                    - best
                    for seed in range(1, 3 if quick else 21)
                ]  # fmt: skip
                rows.append(
                    {"order": table.order, "buffer": buffer, "factor": factor, "rest": rest,
                     "bound": rest * factor, "excess": mean(excess), "least": min(excess), "most": max(excess)}
                )  # fmt: skip
                print(f"[papers: theorem] {rows[-1]}", flush=True)
    return rows


def regularized(connection, table, strategy, epochs, **given):
    """The mean loss of the training rows with the penalty."""
    options = {"standardize": False} | given.pop("options")
    arguments = {
        "source": table.table, "model": "logistic", "max_epochs": epochs, "shuffle": strategy,
        "options": json.dumps(options), "seed": 1, **given,
    }  # fmt: skip
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    model_id = connection.execute(f"SELECT max(model_id) FROM corgipile_train({named})", arguments).fetchone()[0]
    loss = connection.execute(
        "SELECT value FROM corgipile_evaluate(%s::bigint, %s) WHERE metric = 'loss'", [model_id, table.table]
    ).fetchone()[0]
    square = connection.execute(
        "SELECT sum(w::float8 ^ 2) FROM corgipile.models, unnest(weights) AS w WHERE model_id = %s", [model_id]
    ).fetchone()[0]
    connection.execute("DELETE FROM corgipile.stored_models WHERE model_id = %s", [model_id])
    return loss + THEOREM_L2 / 2 * square


def papers(data, quick, results, run):
    """Measures everything, and writes papers.md. Returns whether every bound holds."""
    tables = load(data, quick)
    by_order = {table.order: table for table in tables if table.name == "higgs"}
    rows, rates = strategies(tables, quick)
    results.write("papers_strategies", rows)
    results.write("papers_draws", draws(by_order["label"], rates["higgs"], quick))
    results.write("papers_theorem", theorem(quick))
    shape = SHAPES[0]
    large = made(shape, 100_000 if quick else 1_000_000, 3)
    with connect() as connection:
        create_table(connection, "paper_large", large.in_order(np.argsort(large.labels, kind="stable")))
    large = Table("higgs", "paper_large", by_order["label"].test, shape.model, "label")
    results.write("papers_heat", heat(large, rates["higgs"], quick))
    return page_papers.write(results, run, SHAPES)
