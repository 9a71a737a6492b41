"""Sparse tuples of a million dimensions: seconds per epoch and memory."""

from statistics import median

import numpy as np

from data import COPY_HEADER, COPY_TRAILER, INTEGER, REAL, create_tables, fixed_array, fixed_rows
from progress import Progress
from server import Run, connect, forget, train
from sets import BINARY, SETS, Set
from timing import MemoryPeak, count_seconds, memory

DIMENSIONS, NONZEROS = 1_000_000, 39
GENERATED = Set("generated_sparse", "", BINARY, "natural", "generated", dimensions=DIMENSIONS)
CRITEO = next(data_set for data_set in SETS if data_set.name == "criteo10k_hashed")
EPOCHS = 5
RATE = 0.01  # time and memory do not depend on it


def generate(connection, rows):
    """Each row has a non-zero in each of 39 ranges of indices, drawn evenly. Labels: a hidden model with noise."""
    random = np.random.default_rng(1)
    table = GENERATED.table("train")
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} (label int, features_k int[], features_v real[])")
    hidden = random.standard_normal(DIMENSIONS, np.float32)
    width = DIMENSIONS // NONZEROS
    starts = np.arange(NONZEROS) * width
    with connection.cursor().copy(f"COPY {table} FROM STDIN BINARY") as copy:
        copy.write(COPY_HEADER)
        for start in range(0, rows, 50_000):
            size = min(50_000, rows - start)
            indices = starts + random.integers(0, width, (size, NONZEROS))
            values = random.standard_normal((size, NONZEROS), np.float32)
            margins = (hidden[indices] * values).sum(axis=1) + random.standard_normal(size)
            labels = (margins > 0).astype(np.int32)
            copy.write(fixed_rows(labels, [fixed_array(INTEGER, indices + 1), fixed_array(REAL, values)]))
        copy.write(COPY_TRAILER)
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
    connection.execute("CHECKPOINT")


def measure(run):
    """A row for sparse.csv: the training has a backend of its own."""
    with connect() as connection:
        count = count_seconds(connection, run.source)
        rows, nonzeros, table_bytes = connection.execute(
            f"SELECT count(*), sum(cardinality(features_k)), pg_relation_size('{run.source}') FROM {run.source}"
        ).fetchone()
    with connect() as connection:
        before = memory(connection.info.backend_pid, "RssAnon")
        with MemoryPeak(connection) as peak:
            model = train(connection, run)
        forget(connection, model)
    warm = median(epoch.seconds for epoch in model.epochs[1:])
    buffer = table_bytes // 10
    return {
        "set": run.data_set.name,
        "model": run.model,
        "batch_size": run.batch_size,
        "rows": rows,
        "dimensions": run.data_set.dimensions,
        "nonzeros": nonzeros,
        "first_epoch_seconds": model.epochs[0].seconds,
        "epoch_seconds": warm,
        "count_seconds": count,
        "bound_seconds": 3 * count + 60e-9 * nonzeros,
        "ns_per_nonzero": warm / nonzeros * 1e9,
        "vm_hwm": peak.resident,
        "rss_anon_before": before,
        "rss_anon_peak": peak.anonymous,
        "buffer": buffer,
        "beyond_buffer": peak.anonymous - buffer,
    }


def sparse(data, rows, results):
    """Writes sparse.csv; `rows` is how many to generate."""
    with connect() as connection:
        print("[sparse] loading and generating ...", flush=True)
        create_tables(connection, data, CRITEO)
        generate(connection, rows)
    runs = [
        Run(data_set, model, batch_size, "corgipile", EPOCHS, RATE)
        for data_set in (CRITEO, GENERATED)
        for model in BINARY
        for batch_size in data_set.batch_sizes
    ]
    progress = Progress("sparse", len(runs), len(runs))
    measured = []
    for run in runs:
        measured.append(measure(run))
        progress.step(str(run))
    results.write("sparse", measured)
