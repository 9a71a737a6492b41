"""What a whole call of corgipile_train() costs in a new session, from 20,000 to 100,000,000 rows x 28, sorted by label,
and what fewer epochs of large tables are worth; writes target/results/calls.md.

    benches/speed/run calls [ROWS...]

The table of 100,000,000 rows takes 17 GB."""

import gzip
import os
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from common import freeze
from markdown import page
from server import connect

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "target" / "results" / "calls.md"
DATA = Path(os.environ.get("CORGIPILE_DATA", ROOT.parent / "shared" / "data"))
SEEDS = (1, 2, 3, 4, 5)
EPOCHS = """Sets that are repeated, sorted by label: the number of epochs that follows from their rows, with its decay,
and 20 epochs with the decay of a table of 50,000 rows. The test part of higgs has 500 rows, of which one is 0.002.

"""
ROWS = (20_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
BASE = 200_000  # rows that larger tables repeat
ROUNDS = {20_000: 9, 100_000: 9, 1_000_000: 7, 10_000_000: 3, 100_000_000: 1}
COUNT = "count(*)"
ONE = ", max_epochs => 1"
WAYS = {
    "one epoch": ONE,
    "prepare exact": ONE + ", statistics => 'exact'",
    "with a rate, unscaled, nulls skipped": ONE + ", learning_rate => 0.01, standardize => false, nulls => 'skip'",
    "worker": ONE + ", prefetch => 'on'",
    "no_shuffle, buffer 2MB": ONE + ", shuffle => 'no_shuffle', buffer_size => '2MB'",
    "buffer 10%": ONE + ", buffer_size => '10%'",
    "block 10MB": ONE + ", block_size => '10MB'",
    "plain": "",
}
# Sets that are repeated until 20 epochs are more than five million steps: label, model, copies.
REPEATED = (("protein", "linear", 20), ("skin", "logistic", 5), ("skin", "svm", 5), ("higgs", "logistic", 100))


def timed(sql):
    """Elapsed seconds of a statement in a session of its own, and its rows."""
    with connect() as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        connection.execute("SET jit = off")
        start = perf_counter()
        rows = connection.execute(sql).fetchall()
        return perf_counter() - start, rows


def base_table(connection):
    connection.execute("CREATE TABLE base (label int, x real[])")
    connection.execute(
        f"""INSERT INTO base SELECT (i > {BASE // 2})::int, (SELECT array_agg(
                ((hashint8extended(i * 64 + j, 7) & 1048575) / 1048576.0 - 0.5) * 5
                + CASE WHEN i > {BASE // 2} AND j < 15 THEN 0.25 ELSE -0.05 END)::real[]
              FROM generate_series(1, 28) j) FROM generate_series(1, {BASE}) i"""
    )


def large_table(connection, rows):
    connection.execute("DROP TABLE IF EXISTS calls")
    connection.execute("CREATE TABLE calls (label int, x real[])")
    for label in (0, 1):
        source = f"SELECT base.* FROM generate_series(1, {max(rows // BASE, 1)}), base WHERE label = {label}"
        connection.execute(f"INSERT INTO calls {source} LIMIT {rows // 2}")
    freeze(connection, "calls")
    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    connection.execute("SELECT pg_prewarm('calls')")
    connection.execute("CHECKPOINT")


def measure(rows):
    """By way, seconds of the whole call and of its epochs, and their number."""
    measured = {way: [] for way in (COUNT, *WAYS)}
    for _ in range(ROUNDS.get(rows, 3)):
        measured[COUNT].append((timed("SELECT count(*) FROM calls")[0], 0, 1))
        for way, arguments in WAYS.items():
            train = f"corgipile_train('calls', label => 'label', features => '{{x}}', seed => 1{arguments})"
            seconds, epochs = timed(f"SELECT seconds FROM {train}")
            measured[way].append((seconds, sum(epoch for (epoch,) in epochs), len(epochs)))
    return {way: [median(column) for column in zip(*times)] for way, times in measured.items()}


def times(all_rows):
    lines = [
        "rows | call | epochs | ns per row, whole call | times count(*) | ns per row, epochs alone",
        "--- | --- | --- | --- | --- | ---",
    ]
    for rows in all_rows:
        with connect() as connection:
            large_table(connection, rows)
        measured = measure(rows)
        for way, (call, epochs, number) in measured.items():
            per_row, of_count = call * 1e9 / rows, call / measured[COUNT][0]
            alone = "" if way == COUNT else f"{epochs * 1e9 / rows:.1f}"
            lines.append(f"{rows:,} | {way} | {number:.0f} | {per_row:.1f} | {of_count:.2f} | {alone}")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def load_set(connection, name, copies):
    for part, repeated in (("train", copies), ("test", 1)):
        table = f"set_{part}"
        connection.execute(f"DROP TABLE IF EXISTS {table}, read")
        connection.execute("CREATE TABLE read (label real, x real[])")
        with (
            gzip.open(DATA / f"{name}_{part}.csv.gz", "rt") as file,
            connection.cursor().copy("COPY read FROM STDIN") as copy,
        ):
            next(file)
            for line in file:
                label, rest = line.rstrip().split(",", 1)
                copy.write(f"{label}\t{{{rest}}}\n")
        connection.execute(
            f"CREATE TABLE {table} AS SELECT read.* FROM read, generate_series(1, {repeated}) ORDER BY label"
        )
        freeze(connection, table)


def scores():
    """What the automatic number of epochs and 20 of them score on the test part, by seed."""
    lines = [
        "set, copies | model | epochs | test score less that of 20 epochs, by seed | of 20 epochs",
        "--- | --- | --- | --- | ---",
    ]
    for name, model, copies in REPEATED:
        with connect() as connection:
            load_set(connection, name, copies)
            differences, of_twenty, number = [], [], 0
            for seed in SEEDS:
                score = {}
                for twenty in (False, True):
                    more = ", max_epochs => 20, options => '{\"decay\": 0.7943}'" if twenty else ""
                    arguments = f"label => 'label', features => '{{x}}', model => '{model}', seed => {seed}{more}"
                    train = f"corgipile_train('set_train', {arguments})"
                    model_id, epochs = connection.execute(f"SELECT max(model_id), max(epoch) FROM {train}").fetchone()
                    found = dict(
                        connection.execute(
                            f"SELECT metric, value FROM corgipile_evaluate({model_id}, 'set_test')"
                        ).fetchall()
                    )
                    score[twenty] = found["r2"] if model == "linear" else found["accuracy"]
                    number = number if twenty else epochs
                differences.append(f"{score[False] - score[True]:+.4f}")
                of_twenty.append(score[True])
        lines.append(f"{name}, {copies} | {model} | {number} | {', '.join(differences)} | {median(of_twenty):.4f}")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def machine():
    cpuinfo = Path("/proc/cpuinfo").read_text()
    return next(line.split(":", 1)[1].strip() for line in cpuinfo.splitlines() if line.startswith("model name"))


def main():
    all_rows = [int(rows) for rows in sys.argv[1:]] or ROWS
    with connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
        base_table(connection)
    sections = [
        ("Whole calls", times(all_rows)),
        (
            "Epochs of large tables",
            "Sets that are repeated, sorted by label. The decay of 20 epochs is that of tables of 50,000 rows.\n\n"
            + scores(),
        ),
    ]
    introduction = (
        f"What a call of corgipile_train() costs in a new session, medians, {machine()}: reading a sample of the "
        "pages, an epoch, storing the model. Tables of 28 features, sorted by label, as far as they fit in shared "
        "buffers. `plain` is a call without max_epochs. The extension is built as for the tests. "
        "`benches/speed/run calls` measures and writes this page."
    )
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(page("Whole calls", introduction, sections))


if __name__ == "__main__":
    main()
