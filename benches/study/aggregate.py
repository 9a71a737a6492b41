"""The operator path against the aggregate path: the same epochs over 28 dense features in one run."""

from statistics import median

import numpy as np

from data import Part, create_table
from progress import Progress
from server import Run, connect, forget, train
from sets import BINARY, Set
from timing import count_seconds

FEATURES = 28
GENERATED = Set("generated_dense", "", BINARY, "natural", "generated")
EPOCHS = 5
RATE = 0.001
ROUNDS = 3
FUNCTIONS = ("corgipile_train", "corgipile_train_uda")


def generate(connection, rows):
    random = np.random.default_rng(1)
    features = random.standard_normal((rows, FEATURES), np.float32)
    margins = features @ random.standard_normal(FEATURES, np.float32) + 2 * random.standard_normal(rows)
    create_table(connection, GENERATED.table("train"), Part(features, (margins > 0).astype(np.int32)))
    connection.execute("CHECKPOINT")


def aggregate(rows, results):
    """Writes aggregate.csv; `rows` is how many to generate. Both paths take turns."""
    print("[aggregate] generating ...", flush=True)
    cells = [
        (model, batch_size, strategy)
        for model in BINARY
        for batch_size in GENERATED.batch_sizes
        for strategy in ("no_shuffle", "shuffle_once")
    ]
    with connect() as connection:
        generate(connection, rows)
        count = count_seconds(connection, GENERATED.table("train"))
        progress = Progress("aggregate", ROUNDS * len(cells), ROUNDS * len(cells))
        trained = {(cell, function): [] for cell in cells for function in FUNCTIONS}
        for _ in range(ROUNDS):
            for cell in cells:
                for function in FUNCTIONS:
                    run = Run(GENERATED, *cell, EPOCHS, RATE, function=function)
                    model = train(connection, run)
                    forget(connection, model)
                    trained[cell, function].append(model)
                progress.step(" ".join(map(str, cell)))
    results.write(
        "aggregate",
        [comparison(rows, count, cell, *(trained[cell, function] for function in FUNCTIONS)) for cell in cells],
    )


def comparison(rows, count, cell, operator, uda):
    """A row for aggregate.csv: medians of all epochs but each training's first."""

    def epoch_seconds(models):
        return median(epoch.seconds for model in models for epoch in model.epochs[1:])

    def shuffle_seconds(models):
        return median(sum(epoch.shuffle_seconds for epoch in model.epochs) for model in models)

    model, batch_size, strategy = cell
    return {
        "model": model,
        "batch_size": batch_size,
        "strategy": strategy,
        "rows": rows,
        "features": FEATURES,
        "count_seconds": count,
        "operator_seconds": epoch_seconds(operator),
        "aggregate_seconds": epoch_seconds(uda),
        "ratio": epoch_seconds(uda) / epoch_seconds(operator),
        "operator_shuffle_seconds": shuffle_seconds(operator),
        "aggregate_shuffle_seconds": shuffle_seconds(uda),
        "operator_loss": operator[0].epochs[-1].loss,
        "aggregate_loss": uda[0].epochs[-1].loss,
    }
