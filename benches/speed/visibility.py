"""What visibility costs: an epoch, and count(*), of tables whose pages are not all-visible, in nanoseconds of processor
time per row. Each epoch reads the table's pages, in one process, all in memory; all take turns."""

import json

from common import FEATURES, clustered, figure, freeze, headline, load, median, table
from processor import Backend, Times
from server import connect

ROWS, ROUNDS, EPOCHS = 400_000, 4, 12
KINDS = ("real", "double precision")
# How a table came to be as it is: statements after it was made.
HISTORIES = {
    "all-visible": (),
    # as after INSERT or COPY, before the first VACUUM
    "loaded": (),
    "loaded by 1,000 transactions": (),
    "every second row updated": ("UPDATE {table} SET label = -label WHERE number % 2 = 0",),
    "every tenth row deleted": ("DELETE FROM {table} WHERE number % 10 = 0",),
    "every row locked once": ("SELECT count(*) FROM (SELECT FROM {table} FOR SHARE) locked",),
}


def make(connection, name, kind, history):
    """The table of a case, in which everything has happened, and what its first scan sets is set."""
    features = ", ".join(f"features_v[{i}]::{kind}" for i in range(1, FEATURES + 1))
    connection.execute(f"CREATE TABLE {name} (label int, x {kind}[], number int)")
    steps = 1000 if history == "loaded by 1,000 transactions" else 1
    for step in range(steps):
        part = f"WHERE number >= {ROWS // steps * step} AND number < {ROWS // steps * (step + 1)}"
        connection.execute(f"INSERT INTO {name} SELECT label, ARRAY[{features}], number FROM base {part}")
    for statement in HISTORIES[history]:
        connection.execute(statement.format(table=name))
    if history == "all-visible":
        freeze(connection, name)
    return connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]


def call(name):
    options = json.dumps({"cache": "off", "verbose": True})
    return (
        f"corgipile_train('{name}', label => 'label', features => ARRAY['x'], model => 'logistic',"
        f" learning_rate => 0.01, max_epochs => %(epochs)s, seed => 1, prefetch => 'off', standardize => false,"
        f" nulls => 'skip', options => '{options}')"
    )


def main():
    with connect() as connection:
        connection.execute("CREATE EXTENSION corgipile")
        features, labels = clustered(ROWS)
        load(connection, "loaded", features, labels)
        connection.execute("CREATE TABLE base AS SELECT (row_number() OVER ())::int - 1 AS number, * FROM loaded")
        connection.execute("CREATE INDEX ON base (number)")
        names = {(kind, history): f"v{i}{j}" for i, kind in enumerate(KINDS) for j, history in enumerate(HISTORIES)}
        rows = {case: make(connection, name, *case) for case, name in names.items()}
    backend = Backend("SET max_parallel_workers_per_gather = 0")
    counts, epochs = ({case: Times() for case in names} for _ in range(2))
    for round_ in range(-1, ROUNDS):
        for case, name in names.items():
            warms_up = round_ < 0
            backend.count(name, Times() if warms_up else counts[case])
            backend.train(call(name), EPOCHS, Times() if warms_up else epochs[case])
    best = {case: epochs[case].best() * 1e9 / rows[case] for case in names}
    count = {case: counts[case].best() * 1e9 / rows[case] for case in names}
    table(
        f"Epoch of {ROWS:,} rows with {FEATURES} features, ns per row that is seen",
        ["type", "history", "rows", "processor, best", "elapsed, median", "of all-visible", "count(*)", "of count(*)"],
        [
            [
                f"{kind}[]",
                history,
                f"{rows[kind, history]:,}",
                f"{best[kind, history]:.1f}",
                f"{median(epochs[kind, history].elapsed) * 1e9 / rows[kind, history]:.1f}",
                f"{best[kind, history] / best[kind, 'all-visible']:.2f}",
                f"{count[kind, history]:.1f}",
                f"{best[kind, history] / count[kind, history]:.2f}",
            ]
            for kind, history in names
        ],
    )
    for kind in KINDS:
        for history in list(HISTORIES)[1:]:
            bound = "<= 1.25" if history == "loaded" else ""
            figure(f"{kind}[], {history} / all-visible", best[kind, history] / best[kind, "all-visible"], bound)
        figure(f"{kind}[], loaded / count(*)", best[kind, "loaded"] / count[kind, "loaded"], "<= 1")
    case = ("real", "loaded")
    headline(
        "Epoch of a table before its first VACUUM, 28 real[], per row, without the cache",
        f"{best[case]:.0f} ns",
        f"{count[case]:.0f} ns, SELECT count(*) of the table",
        count[case] / best[case],
    )


if __name__ == "__main__":
    main()
