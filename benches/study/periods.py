"""Tables whose classes alternate, with default trainings: 185 rows a page, two features."""

from progress import Progress
from server import connect

# Of 500 pages the default buffer holds all, of 2560 as few as of any table: 256.
PAGES, ROWS_PER_PAGE, SHIFT = (500, 2560), 185, 0.975
# In blocks, which are pages here.
PERIODS = {
    "2": 2,
    "3": 3,
    "3 1/3": 10 / 3,
    "5": 5,
    "7": 7,
    "10": 10,
    "13": 13,
    "100": 100,
}
SEEDS = range(1, 11)
STRATEGIES = ("no_shuffle", "shuffle_once", "corgipile")
SHARE = "10%"  # the papers' buffer, to compare


def create(connection, pages, period):
    """The first half of each period is of one class. The features are normal, a distance of 2.76 deviations between the
    classes."""
    connection.execute("DROP TABLE IF EXISTS periods")
    connection.execute("CREATE TABLE periods (label int, a real, b real)")
    connection.execute("SELECT setseed(0.5)")
    connection.execute(
        "INSERT INTO periods SELECT y, (2 * y - 1) * %(shift)s + sqrt(-2 * ln(1 - u)) * cos(2 * pi() * v),"
        " (2 * y - 1) * %(shift)s + sqrt(-2 * ln(1 - u)) * sin(2 * pi() * v)"
        " FROM (SELECT i, floor(i * 2.0 / %(page)s / %(period)s::float8)::int %% 2 AS y, random() AS u, random() AS v"
        " FROM generate_series(0, %(rows)s - 1) AS i) AS rows ORDER BY i",
        {"shift": SHIFT, "page": ROWS_PER_PAGE, "period": period, "rows": pages * ROWS_PER_PAGE},
    )
    connection.execute("VACUUM (FREEZE, ANALYZE) periods")
    found = connection.execute("SELECT pg_relation_size('periods') / 8192").fetchone()[0]
    if found != pages:
        raise RuntimeError(f"{pages * ROWS_PER_PAGE} rows are on {found} pages, not on {pages}")


def accuracy(connection, model, strategy, buffer, seed):
    model_id = connection.execute(
        "SELECT max(model_id) FROM corgipile_train('periods', model => %s, features => ARRAY['a', 'b'], shuffle => %s,"
        " buffer_size => %s, seed => %s, learning_rate => 0.01, standardize => false)",
        [model, strategy, buffer, seed],
    ).fetchone()[0]
    return connection.execute(
        "SELECT value FROM corgipile_evaluate(%s::bigint, 'periods') WHERE metric = 'accuracy'", [model_id]
    ).fetchone()[0]


def periods(quick, results):
    """Writes periods.csv: a row per table, model, strategy, buffer and seed."""
    seeds = SEEDS[:1] if quick else SEEDS
    tables = [(pages, name, period) for pages in PAGES for name, period in PERIODS.items()]
    progress = Progress("periods", len(tables), sum(pages for pages, _, _ in tables))
    rows = []
    with connect() as connection:
        for pages, name, period in tables:
            create(connection, pages, period)
            rows += [
                {"pages": pages, "period": name, "model": model, "strategy": strategy, "buffer": buffer, "seed": seed}
                | {"accuracy": accuracy(connection, model, strategy, None if buffer == "default" else buffer, seed)}
                for model in ("logistic", "svm")
                for strategy in STRATEGIES
                for buffer in (("default", SHARE) if strategy == "corgipile" else ("default",))
                for seed in (seeds[:1] if strategy == "no_shuffle" else seeds)
            ]
            progress.step(f"{pages} pages, period {name}", pages)
    results.write("periods", rows)
