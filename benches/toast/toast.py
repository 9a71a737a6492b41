"""See benches/toast/run."""

import io
from statistics import median
from time import perf_counter

import numpy as np
import psycopg
from sklearn.linear_model import SGDClassifier

ROWS = 20_000
FEATURES = 2_000
ROUNDS = 5  # after one that warms up
EPOCHS = 4  # of a training in each round, the first of which is not counted

TABLE = f"""
    CREATE TABLE toasted (label real, x real[]);
    ALTER TABLE toasted ALTER x SET STORAGE external;
    INSERT INTO toasted
    SELECT sign(random() - 0.5), ARRAY(SELECT (random() - 0.5 + 0 * i)::real FROM generate_series(1, {FEATURES}))
      FROM generate_series(1, {ROWS}) i
"""

# What is measured of corgipile: buffer_size, prefetch, and the option cache.
KINDS = {
    "streaming": ("10%", "off", "off"),
    "streaming, two": ("10%", "on", "off"),
    "cached": ("10%", "off", "on"),
    "in the buffer": ("100%", "off", "auto"),
}


def make_table(connection):
    print(f"Making a table of {ROWS:,} rows x {FEATURES:,} features, out of line ...", flush=True)
    connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
    connection.execute("SELECT setseed(0.5)")
    connection.execute(TABLE)
    for _ in range(2):
        connection.execute("VACUUM (FREEZE, ANALYZE) toasted")


def rows_in_memory(connection):
    """The table as arrays, by COPY: all rows are of one length there too."""
    element = np.dtype([("length", ">i4"), ("value", ">f4")])
    row = np.dtype(
        [("fields", ">i2"), ("label", element), ("length", ">i4"), ("header", ">i4", 5), ("x", element, FEATURES)]
    )
    data = io.BytesIO()
    with connection.cursor().copy("COPY toasted TO STDOUT (FORMAT binary)") as copy:
        for piece in copy:
            data.write(piece)
    rows = np.frombuffer(data.getbuffer(), row, count=ROWS, offset=19)
    return rows["x"]["value"].astype(np.float32), rows["label"]["value"].astype(np.float32)


def scikit_learn(x, y):
    """Seconds of an epoch."""
    model = SGDClassifier(loss="log_loss", alpha=1e-4, learning_rate="constant", eta0=0.01)
    model.partial_fit(x[:2], np.array([-1, 1], np.float32), classes=[-1, 1])
    start = perf_counter()
    model.partial_fit(x, y)
    return perf_counter() - start


def corgipile(connection, buffer_size, loader, cache):
    """Seconds of the epochs behind the first."""
    query = """SELECT seconds FROM corgipile_train('toasted', features => '{x}', learning_rate => 0.01, seed => 1,
                      standardize => false,
                      max_epochs => %s, buffer_size => %s, prefetch => %s,
                      options => jsonb_build_object('l2', 1e-4, 'cache', %s::text))
                ORDER BY epoch OFFSET 1"""
    return [row[0] for row in connection.execute(query, (EPOCHS, buffer_size, loader, cache))]


def main():
    connection = psycopg.connect(autocommit=True)
    connection.execute("SET client_min_messages = warning")
    make_table(connection)
    x, y = rows_in_memory(connection)
    seconds = {"scikit-learn": []} | {kind: [] for kind in KINDS}
    print(f"Measuring {ROUNDS} rounds ...", flush=True)
    for round in range(1 + ROUNDS):
        for name, taken in seconds.items():
            new = [scikit_learn(x, y)] if name == "scikit-learn" else corgipile(connection, *KINDS[name])
            if round > 0:
                taken += new
    reference = median(seconds["scikit-learn"])
    per_row = 1e6 / ROWS
    print(f"\n{'Epoch':<16}{'median, us/row':>16}{'best, us/row':>16}{'runs':>8}{'speed over scikit-learn':>26}")
    for name, taken in seconds.items():
        middle = median(taken)
        times = f"{middle * per_row:>16.2f}{min(taken) * per_row:>16.2f}"
        print(f"{name:<16}{times}{len(taken):>8}{reference / middle:>26.2f}")
    for name, bound in (("streaming", ">= 1"), ("streaming, two", ""), ("cached", ">= 8"), ("in the buffer", "")):
        ratio = reference / median(seconds[name])
        if bound:
            what = f"Epoch of {ROWS:,} rows x {FEATURES:,} out of line, per row, {name}"
            ours, other = (f"{of * per_row:.2f} µs" for of in (median(seconds[name]), reference))
            print(f"HEADLINE {what} | {ours} | {other}, scikit-learn in memory | {ratio:.2f}")
        print(f"FIGURE TOASTed 20,000 x 2,000: speed over scikit-learn in memory, {name} | {ratio:.2f} | {bound}")


main()
