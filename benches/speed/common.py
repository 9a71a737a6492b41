"""What the measurements of speed have in common: a clustered table, and times of epochs."""

from statistics import median

import numpy as np

from data import COPY_HEADER, COPY_TRAILER, REAL, fixed_array, fixed_rows

ROWS, FEATURES = 1_000_000, 28
TYPES = "label int, features_v real[]"


def clustered(rows=ROWS, features=FEATURES):
    """Features as float32, and labels -1 and 1, all of the first before those of the second."""
    random = np.random.default_rng(1)
    labels = np.repeat(np.array([-1, 1], np.int32), [rows - rows // 2, rows // 2])
    return random.random((rows, features), np.float32) + np.float32(0.05) * labels[:, None], labels


def load(connection, table, features, labels):
    """A table of these rows, frozen."""
    connection.execute(f"CREATE TABLE {table} ({TYPES})")
    with connection.cursor().copy(f"COPY {table} FROM STDIN BINARY") as copy:
        copy.write(COPY_HEADER)
        for start in range(0, len(labels), 50_000):
            part = slice(start, start + 50_000)
            copy.write(fixed_rows(labels[part], [fixed_array(REAL, features[part])]))
        copy.write(COPY_TRAILER)
    freeze(connection, table)


def freeze(connection, table):
    """Makes sure that the visibility map is full: what is measured depends on it.

    The first VACUUM after a load may leave pages that are not all-visible, hence two."""
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
    connection.execute(f"VACUUM (FREEZE) {table}")
    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_visibility")
    pages, visible = connection.execute(
        f"SELECT pg_relation_size('{table}') / 8192, all_visible FROM pg_visibility_map_summary('{table}')"
    ).fetchone()
    if pages != visible:
        raise SystemExit(f"only {visible} of {pages} pages of {table} are all-visible")


def epoch_seconds(connection, table, function="corgipile_train", **arguments):
    """Seconds of each epoch of a training, whose model is not kept."""
    named = "".join(f", {name} => %({name})s" for name in arguments)
    rows = connection.execute(f"SELECT model_id, seconds FROM {function}('{table}'{named})", arguments).fetchall()
    connection.execute("DELETE FROM corgipile.stored_models WHERE model_id = %s", [rows[0][0]])
    return [seconds for _, seconds in rows]


def headline(what, ours, other, times):
    """A line for the table that opens docs/results/speed.md: two times in words, and how many times as fast ours is."""
    print(f"HEADLINE {what} | {ours} | {other} | {times:.3g}", flush=True)


def figure(what, value, bound=""):
    """A line that benches/run collects: `bound` as in "<= 0.80"."""
    print(f"FIGURE {what} | {value:.3g} | {bound}", flush=True)


def table(title, columns, rows):
    """Prints rows of text below each other."""
    rows = [columns, *[[str(value) for value in row] for row in rows]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    print(f"\n{title}")
    for row in rows:
        print("  " + "  ".join(value.rjust(width) for value, width in zip(row, widths)))
    print(flush=True)


def ms(seconds):
    return f"{seconds * 1000:.1f}"


__all__ = [
    "FEATURES",
    "ROWS",
    "clustered",
    "epoch_seconds",
    "figure",
    "freeze",
    "headline",
    "load",
    "median",
    "ms",
    "table",
]
