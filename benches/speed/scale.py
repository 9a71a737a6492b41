"""Seconds per epoch and memory from 1,000,000 to 30,000,000 rows x 28 (5 GB), all in shared buffers, one process."""

import json
from time import perf_counter

from common import clustered, epoch_seconds, figure, freeze, headline, load, median, ms, table
from server import connect
from timing import MemoryPeak, memory

MILLIONS = (1, 3, 10, 30)
EPOCHS = 6
MB = 2**20


def measure(name, cache):
    """Rows for the table: seconds of a count(*) and of a warm epoch, and memory of a backend of its own."""
    with connect() as connection:
        # a scan reads a table of this size through a small ring of buffers, and does not bring it into memory
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        pages = connection.execute(f"SELECT pg_prewarm('{name}')").fetchone()[0]
        counts = []
        for _ in range(EPOCHS):
            start = perf_counter()
            connection.execute(f"SELECT count(*) FROM {name}")
            counts.append(perf_counter() - start)
    with connect() as connection:
        before = memory(connection.info.backend_pid, "RssAnon")
        with MemoryPeak(connection) as peak:
            seconds = epoch_seconds(
                connection, name, model="logistic", max_epochs=EPOCHS, seed=1, options=json.dumps({"cache": cache})
            )
        plan = connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM corgipile_train('{name}', max_epochs => 1, seed => 1)"
        ).fetchone()[0]
        connection.execute("TRUNCATE corgipile.stored_models")
    return median(counts), median(seconds[1:]), buffer_bytes(plan), peak.anonymous - before, pages * 8192


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
        count, seconds, buffer, memory_used, size = measure("scale", "off")
        measured.append(
            [millions, size, count, seconds, seconds * 1e3 / millions, buffer, memory_used, memory_used - buffer]
        )
        with connect() as connection:
            connection.execute("DROP TABLE scale")
    table(
        "Epoch of logistic regression, 28 features, without a cache",
        [
            "million rows",
            "table MB",
            "count(*) ms",
            "epoch ms",
            "ns/tuple",
            "over count(*)",
            "buffer MB",
            "memory MB",
            "beyond the buffer MB",
        ],
        [
            [n, size // MB, ms(c), ms(s), f"{ns:.1f}", f"{s / c:.2f}", buffer // MB, used // MB, beyond // MB]
            for n, size, c, s, ns, buffer, used, beyond in measured
        ],
    )
    first = measured[0]
    for row in measured[1:]:
        figure(f"ns/tuple at {row[0]} million rows / at 1 million", row[4] / first[4], "<= 1.10")
        figure(f"the same of count(*), {row[0]} million rows", row[2] / row[0] / first[2])
    millions, _, count, seconds, *_ = measured[-1]
    headline(
        f"Epoch of {millions} million rows x 28, without the cache",
        f"{ms(seconds)} ms",
        f"{ms(count)} ms, SELECT count(*) of the table",
        count / seconds,
    )
    figure("memory beyond the buffer, MB, the most", max(row[7] for row in measured) / MB, "<= 64")


if __name__ == "__main__":
    main()
