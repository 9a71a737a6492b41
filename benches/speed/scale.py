"""Seconds per epoch and memory from 1,000,000 to 30,000,000 rows x 28 (5 GB), all in shared buffers, one process."""

import json

from common import clustered, figure, freeze, headline, load, median, ms, table
from processor import Backend, Times
from server import connect
from timing import MemoryPeak, memory

MILLIONS = (1, 3, 10, 30)
EPOCHS = 7
MB = 2**20


def measure(name, cache):
    """Times of a count(*) and of warm epochs, the buffer, memory of the backend, and the size of the table."""
    with connect() as connection:
        # a scan reads a table of this size through a small ring of buffers, and does not bring it into memory
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        pages = connection.execute(f"SELECT pg_prewarm('{name}')").fetchone()[0]
    backend, count, epochs = Backend("SET max_parallel_workers_per_gather = 0"), Times(), Times()
    before = memory(backend.pid, "RssAnon")
    options = json.dumps({"cache": cache, "verbose": True})
    call = (
        f"corgipile_train('{name}', model => 'logistic', max_epochs => %(epochs)s, seed => 1, learning_rate => 0.01,"
        f" standardize => false, nulls => 'skip', prefetch => 'off', options => '{options}')"
    )
    with MemoryPeak(backend.connection) as peak:
        backend.train(call, EPOCHS, epochs)
    for _ in range(EPOCHS):
        backend.count(name, count)
    plan = backend.connection.execute(
        f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM corgipile_train('{name}', max_epochs => 1, seed => 1)"
    ).fetchone()[0]
    backend.connection.execute("TRUNCATE corgipile.stored_models")
    backend.connection.close()
    return count, epochs, buffer_bytes(plan), peak.anonymous - before, pages * 8192


def buffer_bytes(plan):
    """What the fullest buffer took, as EXPLAIN ANALYZE says."""
    if isinstance(plan, list):
        return next((found for item in plan if (found := buffer_bytes(item))), None)
    if isinstance(plan, dict):
        for key, value in plan.items():
            if key == "Buffer Bytes" and value:
                return value
        return buffer_bytes(list(plan.values()))
    return None


def main():
    measured = []
    with connect() as connection:
        connection.execute("CREATE EXTENSION corgipile")
        features, labels = clustered()
        load(connection, "million", features, labels)
    for millions in MILLIONS:
        with connect() as connection:
            copies = " UNION ALL ".join(
                f"SELECT million.* FROM generate_series(1, {millions}), million WHERE label = {label}"
                for label in (-1, 1)
            )
            connection.execute(f"CREATE TABLE scale AS {copies}")
            freeze(connection, "scale")
        count, epochs, buffer, memory_used, size = measure("scale", "off")
        measured.append((millions, size, count, epochs, buffer, memory_used))
        with connect() as connection:
            connection.execute("DROP TABLE scale")
    table(
        "Epoch of logistic regression, 28 features, without a cache, ns per row",
        [
            "million rows",
            "table MB",
            "processor, best",
            "elapsed, median",
            "count(*), processor, best",
            "elapsed, median",
            "buffer MB",
            "memory MB",
            "beyond the buffer MB",
        ],
        [
            [
                n,
                size // MB,
                *(f"{times * 1e3 / n:.1f}" for times in (epochs.best(), median(epochs.elapsed))),
                *(f"{times * 1e3 / n:.1f}" for times in (count.best(), median(count.elapsed))),
                buffer // MB,
                used // MB,
                (used - buffer) // MB,
            ]
            for n, size, count, epochs, buffer, used in measured
        ],
    )
    report(measured)


def report(measured):
    """The figures and the headline."""
    _, _, first_count, first_epochs, *_ = measured[0]
    for n, _, count, epochs, *_ in measured[1:]:
        what = f"processor time per row at {n} million rows / at 1 million"
        figure(what, epochs.best() / n / first_epochs.best(), "<= 1.10")
        figure(f"{what}, count(*)", count.best() / n / first_count.best())
    millions, _, count, epochs, *_ = measured[-1]
    headline(
        f"Epoch of {millions} million rows x 28, without the cache",
        f"{ms(median(epochs.elapsed))} ms",
        f"{ms(median(count.elapsed))} ms, SELECT count(*) of the table",
        median(count.elapsed) / median(epochs.elapsed),
    )
    figure("memory beyond the buffer, MB, the most", max(used - buffer for *_, buffer, used in measured) / MB, "<= 64")


if __name__ == "__main__":
    main()
