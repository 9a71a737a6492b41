"""corgipile_drift() compared with scipy and numpy, on the histogram that is kept: see benches/conformal/drift.

numpy puts the new values into the kept bins; scipy.stats.ks_2samp compares the numbers of the bins, as many
of each as the shares say; the index is the sum of both of scipy.special.rel_entr.
"""

import os
import sys
from pathlib import Path

import numpy as np
import psycopg
from scipy.special import rel_entr
from scipy.stats import ks_2samp

from coverage import SETS, load

LEAST_SHARE = 1e-4


def expected(feature, values):
    """The index and the statistic of these values, of what is kept of a number."""
    edges, shares = np.array(feature["edges"]), np.array(feature["shares"])
    bins = np.where(values < edges[0], 0, 1 + np.searchsorted(edges[1:], values, side="left"))
    counts = np.bincount(bins, minlength=len(shares))
    old, new = np.maximum(shares, LEAST_SHARE), np.maximum(counts / counts.sum(), LEAST_SHARE)
    kept = np.repeat(np.arange(len(shares)), np.round(shares * feature["sampled"]).astype(int))
    return np.sum(rel_entr(old, new) + rel_entr(new, old)), ks_2samp(kept, bins, method="asymp").statistic


def compare(connection, source, features):
    """The greatest differences of index and statistic, and the features that are named."""
    profile = connection.execute(
        "SELECT profile FROM corgipile.models WHERE name = 'm' ORDER BY version DESC LIMIT 1"
    ).fetchone()[0]
    rows = connection.execute(
        "SELECT feature, verdict, psi, ks FROM corgipile_drift('m', %s::text)", [source]
    ).fetchall()
    apart, named = [0.0, 0.0], []
    for (name, verdict, psi, ks), kept in zip(rows, profile["features"]):
        if verdict:
            named.append(name)
        if ks is None or "edges" not in kept:
            continue
        values = connection.execute(f'SELECT "{name}" FROM ({source}) AS s WHERE "{name}" IS NOT NULL').fetchall()
        index, statistic = expected(kept, np.array(values, np.float32).astype(float)[:, 0])
        apart = [max(apart[0], abs(psi - index)), max(apart[1], abs(ks - statistic))]
    return apart, named


def measure(connection, data, name, read, model):
    load(connection, data, read)
    connection.execute(
        f"SELECT FROM corgipile_train('rows', '{model}', features => '{{*}}', name => 'm', max_epochs => 2, seed => 1)"
    )
    features = connection.execute(
        "SELECT features FROM corgipile.models WHERE name = 'm' ORDER BY version DESC LIMIT 1"
    ).fetchone()[0]
    numbers = [
        row[0]
        for row in connection.execute(
            "SELECT attname FROM pg_attribute "
            "WHERE attrelid = 'rows'::regclass AND attnum > 0 AND atttypid = 'real'::regtype"
        ).fetchall()
        if row[0] in features
    ]
    deviations = {name: connection.execute(f'SELECT stddev("{name}") FROM rows').fetchone()[0] for name in numbers}
    raised, deviation = next((name, deviation) for name, deviation in deviations.items() if deviation)
    others = ", ".join(f'"{feature}"' for feature in features if feature != raised)
    same, named_same = compare(connection, "SELECT * FROM rows", features)
    moved, named_moved = compare(
        connection, f'SELECT ("{raised}" + {deviation})::real AS "{raised}", {others} FROM rows', features
    )
    good = not named_same and named_moved == [raised] and max(same + moved) < 1e-3
    psi, ks = max(same[0], moved[0]), max(same[1], moved[1])
    named = f"{', '.join(named_same) or 'none'} | {', '.join(named_moved)}"
    line = f"{name} | {len(features)} | {named} | {psi:.1e} | {ks:.1e}"
    print(line, flush=True)
    return line, good


PAGE = """# Drift compared with scipy

This page is for readers who want to know whether [`corgipile_drift`](../deploy/explain.md#drift) counts rightly.
`benches/conformal/drift` writes it.

A model is trained on all rows of a set, and compared with the same rows, and with the same rows after the
first number that varies was raised by one deviation. *Index* and *statistic* are how far `psi` and `ks` of
all numbers are, at most, from those that numpy and scipy compute from the new rows and the histograms that
are kept.

Set | Features | Named of the same rows | Named of the raised | Index | Statistic
--- | --- | --- | --- | --- | ---
{lines}
"""


def main():
    data, page = Path(sys.argv[1]), Path(sys.argv[2])
    with psycopg.connect(os.environ.get("CORGIPILE_DSN", ""), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
        connection.execute("SET client_min_messages = error")
        done, measured = set(), []
        for name, _, read, model in SETS:
            if name.split(" ")[0] not in done:
                done.add(name.split(" ")[0])
                measured.append(measure(connection, data, name, read, model))
    page.write_text(PAGE.format(lines="\n".join(line for line, _ in measured)))
    sys.exit(0 if all(good for _, good in measured) else "not all is as it should be")


if __name__ == "__main__":
    main()
