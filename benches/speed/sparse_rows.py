"""An epoch on sparse rows, per value: here from the cache and from the table's pages, in scikit-learn with the rows in
memory, and in Vowpal Wabbit from its cache, in one process each.

The rows are those of two real sets, many times over: text (rcv1_small, 78 values a row, 47,236 features) and hashed
categories (criteo10k_hashed, 39 values a row, 1,048,576 features). All take turns."""

import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from common import figure, freeze, headline, median, ms, table
from data import Data, create_table
from processor import Backend, Times, own_time
from server import connect
from sets import BINARY, Set

ROUNDS, EPOCHS = 4, 8
RATE = 0.01  # time does not depend on it
SETS = {
    "rcv1": (Set("rcv1", "rcv1_small", BINARY, "natural", "rcv1", dimensions=47_236), 500, 18),
    "criteo": (Set("criteo", "criteo10k_hashed", BINARY, "natural", "criteo", dimensions=1 << 20), 62, 20),
}
# With a cache that holds all rows of either set.
OURS = {
    "corgipile, cached": (f"learning_rate => {RATE}", {"l2": 1e-4, "cache": "on", "verbose": True}),
    "corgipile, uncached": (f"learning_rate => {RATE}", {"l2": 1e-4, "cache": "off", "verbose": True}),
    "corgipile, cached, automatic rate": ("learning_rate => NULL", {"l2": 1e-4, "cache": "on", "verbose": True}),
}


def call(name, dimensions):
    """The training, as SQL."""
    rate, options = OURS[name]
    settings = ", ".join(f"'{key}', {value!r}" for key, value in (options | {"dimensions": dimensions}).items())
    return (
        f"corgipile_train('{{table}}', model => 'logistic', {rate}, max_epochs => %(epochs)s, seed => 1,"
        " prefetch => 'off',"
        f" options => jsonb_build_object({settings}))"
    )


def scikit_learn(features, labels):
    """An epoch of partial_fit(), which shuffles as SGD should."""
    model = SGDClassifier(
        loss="log_loss", alpha=1e-4, learning_rate="constant", eta0=RATE, shuffle=True, random_state=1
    )
    model.partial_fit(features[:1000], labels[:1000], classes=[-1, 1])
    return lambda: model.partial_fit(features, labels)


class VowpalWabbit:
    """Passes over its own cache, which the first one has written from text."""

    def __init__(self, rows, repeats, bits):
        from vowpalwabbit import Workspace  # only if it could be installed

        self.workspace = Workspace
        self.directory = tempfile.TemporaryDirectory()
        text = Path(self.directory.name) / "rows"
        lines = "".join(
            f"{label} | " + " ".join(f"{i}:{x:g}" for i, x in zip(row.indices, row.data)) + "\n"
            for label, row in zip(rows.labels, rows.features)
        )
        with open(text, "w") as file:
            for _ in range(repeats):
                file.write(lines)
        self.arguments = (
            f"--quiet -b {bits} --loss_function logistic --holdout_off --sgd -l {RATE} --l2 1e-8"
            f" --cache_file {text}.cache -d {text}"
        )
        self.run(1)
        text.write_text("")  # the cache is used all the same

    def run(self, passes):
        """Elapsed and processor time of this many passes."""
        before, start = process_time(), perf_counter()
        self.workspace(f"{self.arguments} --passes {passes}").finish()
        return np.array([perf_counter() - start, process_time() - before])

    def measure(self, times):
        one, all_ = self.run(1), self.run(EPOCHS)
        elapsed, processor = (all_ - one) / (EPOCHS - 1)
        times.elapsed.append(elapsed)
        times.processor.append(processor)


def load(connection, name, rows, repeats):
    """The table: the rows of the set, this many times."""
    create_table(connection, f"{name}_once", rows)
    connection.execute(f"CREATE TABLE {name} (LIKE {name}_once INCLUDING STORAGE)")
    connection.execute(f"INSERT INTO {name} SELECT once.* FROM generate_series(1, {repeats}), {name}_once AS once")
    freeze(connection, name)


def measure(name, data, with_vw):
    """Times of each peer, and how many rows and values there are."""
    data_set, repeats, bits = SETS[name]
    rows = data.part(data_set, "train")
    with connect() as connection:
        load(connection, name, rows, repeats)
    features = csr_matrix(
        (
            np.tile(rows.features.data, repeats),
            np.tile(rows.features.indices, repeats),
            np.concatenate([[0], np.tile(np.diff(rows.features.indptr), repeats).cumsum()]).astype(np.int32),
        ),
        shape=(len(rows) * repeats, data_set.dimensions),
    )
    labels = np.tile(rows.labels, repeats)
    backend = Backend("SET corgipile.cache_memory = '1GB'", "SET max_parallel_workers_per_gather = 0")
    work = {"count(*)": lambda times: backend.count(name, times)}
    for ours in OURS:
        statement = call(ours, data_set.dimensions).format(table=name)
        work[ours] = lambda times, statement=statement: backend.train(statement, EPOCHS, times)
    epoch = scikit_learn(features, labels)
    work["scikit-learn, in memory"] = lambda times: own_time(times, epoch)
    if with_vw:
        work["Vowpal Wabbit, from its cache"] = VowpalWabbit(rows, repeats, bits).measure
    measured = {peer: Times() for peer in work}
    for round_ in range(-1, ROUNDS):
        for peer, run in work.items():
            run(measured[peer] if round_ >= 0 else Times())  # the one before warms up
    return measured, features.shape[0], features.nnz


def has_vw():
    try:
        import vowpalwabbit  # noqa: F401
    except ImportError:
        print("Vowpal Wabbit could not be installed, and is left out.", file=sys.stderr)
        return False
    return True


def show(name, measured, rows, values):
    per_value = 1e9 / values
    table(
        f"Epoch of logistic regression on {name}: {rows:,} rows, {values:,} values,"
        f" {SETS[name][0].dimensions:,} features",
        ["peer", "processor, best, ns per value", "median", "elapsed, median, ns per value", "elapsed, median, ms"],
        [
            [
                peer,
                f"{times.best() * per_value:.2f}",
                f"{times.median_processor() * per_value:.2f}",
                f"{median(times.elapsed) * per_value:.2f}",
                ms(median(times.elapsed)),
            ]
            for peer, times in measured.items()
        ],
    )
    best = {peer: times.best() * per_value for peer, times in measured.items()}
    reference = best["scikit-learn, in memory"]
    for ours, bound in zip(OURS, (">= 4", ">= 2", "")):
        what = f"Epoch on {name}, processor time per value, {ours.split(', ', 1)[1]}"
        for peer in list(measured)[1 + len(OURS) :] if bound else ():
            headline(what, f"{best[ours]:.1f} ns", f"{best[peer]:.1f} ns, {peer}", best[peer] / best[ours])
        figure(f"{name}: scikit-learn / {ours}", reference / best[ours], bound)
        figure(f"{name}: {ours} / count(*)", best[ours] / best["count(*)"])


def main():
    root = Path(__file__).resolve().parents[2]
    directory = os.environ.get("CORGIPILE_DATA", root.parent / "shared" / "data")
    if not (Path(directory) / "rcv1_small_train.libsvm.gz").exists():
        raise SystemExit(f"no data sets in {directory}: say where they are with CORGIPILE_DATA")
    with connect() as connection:
        connection.execute("CREATE EXTENSION corgipile")
    data, with_vw = Data(directory), has_vw()
    for name in SETS:
        show(name, *measure(name, data, with_vw))


if __name__ == "__main__":
    main()
