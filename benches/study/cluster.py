"""The cluster factor of each set in its order, and of a copy in random order."""

from functools import partial

from jobs import run_jobs
from progress import Progress
from rates import COSTS
from server import features_of


def factor(data_set, connection):
    """A row for cluster.csv."""
    clustered, shuffled = data_set.table("train"), f"{data_set.name}_shuffled"
    connection.execute("SELECT setseed(0.5)")
    connection.execute(f"CREATE TEMP TABLE {shuffled} AS SELECT * FROM {clustered} ORDER BY random()")
    values = []
    for table in (clustered, shuffled):
        source = f"SELECT * FROM {table} WHERE total_bedrooms IS NOT NULL" if data_set.columns else table
        values += connection.execute(
            "SELECT corgipile_cluster_factor(%s, features => %s, model => %s)",
            [source, features_of(data_set), data_set.models[0]],
        ).fetchone()
    tuples = connection.execute(
        f"SELECT count(*) / ceil(pg_relation_size('{clustered}') / 8192.0) FROM {clustered}"
    ).fetchone()[0]
    connection.execute(f"DROP TABLE {shuffled}")
    return {
        "set": data_set.name,
        "order": data_set.order,
        "cluster_factor": values[0],
        "shuffled": values[1],
        "tuples_per_page": float(tuples),
    }


def cluster_factors(sets, results):
    """Writes cluster.csv."""
    sets = [data_set for data_set in sets if not data_set.tables]
    costs = [COSTS[data_set.files] for data_set in sets]
    progress = Progress("cluster", len(sets), sum(costs))
    jobs = [(partial(factor, data_set), data_set.name, cost) for data_set, cost in zip(sets, costs)]
    results.write("cluster", run_jobs(jobs, progress), replacing="set")
