"""What the type of the features costs: nanoseconds of processor time per row of 28 features, and per value of rows that
are stored out of line, each epoch read from the table's pages, in one process, all in memory.

The numbers are the same everywhere but for rounding: those of the types without fractions are a thousand times as
large. All take turns."""

import json

from common import FEATURES, clustered, figure, freeze, headline, load, median, table
from processor import Backend, Times
from server import connect

ROWS, ROUNDS, EPOCHS = 400_000, 3, 12
PLACES = range(1, FEATURES + 1)


def array(kind, factor=1):
    elements = ", ".join(f"(features_v[{i}] * {factor})::{kind}" for i in PLACES)
    return f"ARRAY[{elements}]::{kind}[] AS x"


def columns(kind, factor=1, value="{}"):
    return ", ".join(f"{value.format(f'(features_v[{i}] * {factor})::{kind}')} AS f{i}" for i in PLACES)


# A number with six decimals, as tables have them.
NUMERIC = "numeric(12, 6)"
# One value in a hundred is NULL: a quarter of the rows have one.
WITH_NULLS = "CASE WHEN random() > 0.01 THEN {} END"
KINDS = ("real", "double precision", "integer", NUMERIC)

# Name: columns, and options of the training.
CASES = {
    **{f"{kind}[]": (array(kind, 1000 if kind == "integer" else 1), {}) for kind in KINDS},
    **{f"28 x {kind}": (columns(kind, 1000 if kind == "integer" else 1), {}) for kind in KINDS},
    "28 x double precision, NULLs in a quarter of the rows": (
        columns("double precision", value=WITH_NULLS),
        {"nulls": "impute"},
    ),
    "28 x double precision, and a text": (
        columns("double precision") + ", (ARRAY['red', 'green', 'blue'])[1 + (features_v[1] * 1e6)::int % 3] AS colour",
        {},
    ),
}

# Rows that PostgreSQL stores out of line, since they do not fit a page otherwise: their types, and 4,000 rows of them.
WIDE, WIDE_ROWS = 2_000, 4_000
WIDE_KINDS = ("real", "double precision", "integer", NUMERIC)


def make(connection, number, name):
    """The table of a case."""
    relation = f"types{number}"
    connection.execute(f"CREATE TABLE {relation} AS SELECT label, {CASES[name][0]} FROM base")
    freeze(connection, relation)
    return relation


def make_wide(connection, number, kind):
    """A table of wide rows, out of line and not compressed."""
    relation = f"wide{number}"
    connection.execute(f"CREATE TABLE {relation} (label int, x {kind}[])")
    connection.execute(f"ALTER TABLE {relation} ALTER x SET STORAGE external")
    connection.execute(
        f"INSERT INTO {relation} SELECT i * 2 / {WIDE_ROWS},"
        f" ARRAY(SELECT (random() * 1000 + 0 * i)::{kind} FROM generate_series(1, {WIDE}))"
        f" FROM generate_series(0, {WIDE_ROWS - 1}) i"
    )
    freeze(connection, relation)
    return relation


def call(relation, options):
    options = json.dumps({"cache": "off", "verbose": True, **options}).replace("'", "''")
    return (
        f"corgipile_train('{relation}', model => 'logistic', learning_rate => 0.01, max_epochs => %(epochs)s,"
        f" seed => 1, prefetch => 'off', standardize => false, options => '{options}')"
    )


def explain(backend, statement):
    """Nanoseconds per row of reading, decoding, shuffling and learning, as EXPLAIN ANALYZE shows them."""
    plan = backend.connection.execute(
        f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {statement}", {"epochs": EPOCHS}
    ).fetchone()[0]
    backend.connection.execute("TRUNCATE corgipile.stored_models")
    return [
        find(plan, name) * 1e6 / EPOCHS / ROWS for name in ("Scan Time", "Decode Time", "Shuffle Time", "Compute Time")
    ]


def find(plan, name):
    """The first number of this name."""
    if isinstance(plan, dict) and name in plan:
        return plan[name]
    parts = plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ()
    return next((found for part in parts if (found := find(part, name)) is not None), None)


def main():
    with connect() as connection:
        connection.execute("CREATE EXTENSION corgipile")
        connection.execute("SELECT setseed(0.5)")
        load(connection, "base", *clustered(ROWS))
        relations = {name: make(connection, number, name) for number, name in enumerate(CASES)}
        wide = {f"{kind}[]": make_wide(connection, number, kind) for number, kind in enumerate(WIDE_KINDS)}
    backend = Backend("SET max_parallel_workers_per_gather = 0")
    counts, epochs = ({name: Times() for name in CASES} for _ in range(2))
    wide_epochs = {name: Times() for name in wide}
    for round_ in range(-1, ROUNDS):
        for name, relation in relations.items():
            warms_up = round_ < 0
            backend.count(relation, Times() if warms_up else counts[name])
            backend.train(call(relation, CASES[name][1]), EPOCHS, Times() if warms_up else epochs[name])
        for name, relation in wide.items():
            backend.train(call(relation, {}), EPOCHS, Times() if warms_up else wide_epochs[name])
    parts = {name: explain(backend, call(relation, CASES[name][1])) for name, relation in relations.items()}
    per_row = 1e9 / ROWS
    best = {name: times.best() * per_row for name, times in epochs.items()}
    table(
        f"Epoch of {ROWS:,} rows with 28 features, ns per row; the parts are those of EXPLAIN ANALYZE",
        ["type", "processor, best", "elapsed, median", "count(*)", "scan", "decode", "shuffle", "compute"],
        [
            [
                name,
                f"{best[name]:.1f}",
                f"{median(epochs[name].elapsed) * per_row:.1f}",
                f"{counts[name].best() * per_row:.1f}",
                *(f"{part:.1f}" for part in parts[name]),
            ]
            for name in CASES
        ],
    )
    per_value = 1e9 / WIDE_ROWS / WIDE
    table(
        f"Epoch of {WIDE_ROWS:,} rows with {WIDE:,} features out of line, ns per value",
        ["type", "processor, best", "elapsed, median"],
        [
            [name, f"{times.best() * per_value:.2f}", f"{median(times.elapsed) * per_value:.2f}"]
            for name, times in wide_epochs.items()
        ],
    )
    reals, doubles = best["real[]"], best["double precision[]"]
    figure("double precision[] / real[]", doubles / reals, "<= 1.3")
    figure("28 columns of double precision / double precision[]", best["28 x double precision"] / doubles, "<= 1.3")
    for name, time in best.items():
        figure(f"{name} / real[]", time / reals)
        figure(f"{name} / count(*)", time / (counts[name].best() * per_row))
    headline(
        "Epoch of 28 columns of double precision, per row, without the cache",
        f"{best['28 x double precision']:.0f} ns",
        f"{counts['28 x double precision'].best() * per_row:.0f} ns, SELECT count(*) of the table",
        counts["28 x double precision"].best() * per_row / best["28 x double precision"],
    )


if __name__ == "__main__":
    main()
