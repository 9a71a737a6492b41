"""Small networks: nanoseconds of processor time per row and epoch, compared with torch and scikit-learn on one thread.

All learn by plain SGD from the same rows in memory, sigmoid units and float32 (ours and torch's) or float64
(scikit-learn's). torch's epoch is the loop that everybody writes: a random order, batches by index, forward, backward,
step. All take turns."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier

from common import figure, headline, median, table
from data import COPY_HEADER, COPY_TRAILER, REAL, fixed_array, fixed_rows
from processor import Backend, Times, own_time
from server import connect

ROUNDS, EPOCHS = 3, 16
ROWS = {"small": 400_000, "large": 100_000}
# Features, hidden layers and classes.
SHAPES = {"small": (28, (16,), 2), "large": (54, (200, 50), 7)}
# The sizes of mini-batches that are measured; scikit-learn's own is 200.
BATCHES = {"small": (1, 200, 250), "large": (200, 250)}
SCIKIT_BATCH = 200


def rows_of(shape):
    """Rows in the order of their classes."""
    features, _, classes = SHAPES[shape]
    random = np.random.default_rng(2)
    labels = np.arange(ROWS[shape]) * classes // ROWS[shape]
    centres = random.normal(size=(classes, features)).astype(np.float32)
    return random.normal(size=(ROWS[shape], features)).astype(np.float32) + centres[labels], labels.astype(np.int32)


def store(connection, shape, features, labels):
    connection.execute(f"CREATE TABLE {shape} (label int, features_v real[])")
    with connection.cursor().copy(f"COPY {shape} FROM STDIN BINARY") as copy:
        copy.write(COPY_HEADER)
        copy.write(fixed_rows(labels, [fixed_array(REAL, features)]))
        copy.write(COPY_TRAILER)
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {shape}")


def call(shape, model, options, shuffle="corgipile"):
    options = json.dumps({"cache": "on", "verbose": True} | options)
    return (
        f"corgipile_train('{shape}', model => '{model}', learning_rate => 0.01, max_epochs => %(epochs)s, seed => 1,"
        f" prefetch => 'off', standardize => false, nulls => 'skip', shuffle => '{shuffle}',"
        f" buffer_size => '100%%', options => '{options}')"
    )


def network(shape, batch):
    hidden = list(SHAPES[shape][1])
    return call(
        shape, "mlp", {"hidden_layer_sizes": hidden, "batch_size": batch, "optimizer": "sgd", "activation": "sigmoid"}
    )


def scikit_learn(shape, features, labels):
    """An epoch of partial_fit() in batches of its own size, which shuffles as SGD should."""
    model = MLPClassifier(
        SHAPES[shape][1], activation="logistic", solver="sgd", batch_size=SCIKIT_BATCH, momentum=0, random_state=1
    )
    classes = np.arange(SHAPES[shape][2])
    model.partial_fit(features[:1000], labels[:1000], classes=classes)
    return lambda: model.partial_fit(features, labels)


class Torch:
    """A process that has torch: that of $TORCH_PYTHON, or Debian's."""

    INTERPRETERS = (os.environ.get("TORCH_PYTHON", sys.executable), "/usr/bin/python3")

    def __init__(self):
        self.version = None
        for interpreter in self.INTERPRETERS:
            try:
                found = subprocess.run(
                    [interpreter, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True
                )
            except FileNotFoundError:
                continue
            if found.returncode == 0:
                self.version = found.stdout.strip()
                self.process = subprocess.Popen(
                    [interpreter, Path(__file__).with_name("torch_epochs.py")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                return
        print("torch is not installed (apt install python3-torch), and is left out.", file=sys.stderr)

    def epoch(self, shape, batch, times):
        features, hidden, classes = SHAPES[shape]
        question = [ROWS[shape], features, list(hidden), classes, batch]
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        elapsed, processor = json.loads(self.process.stdout.readline())
        times.elapsed.append(elapsed)
        times.processor.append(processor)


def work_of(backend, torch):
    """What is measured: by peer and shape, a function that times an epoch."""
    work = {}
    for shape in SHAPES:
        features, labels = rows_of(shape)
        with connect() as connection:
            store(connection, shape, features, labels)
        for batch in BATCHES[shape]:
            statement = network(shape, batch)
            work[shape, batch, "corgipile"] = lambda times, statement=statement: backend.train(statement, EPOCHS, times)
            if torch.version:
                work[shape, batch, f"torch {torch.version}"] = (
                    (lambda times, shape=shape, batch=batch: torch.epoch(shape, batch, times)) if batch > 1 else None
                )
        epoch = scikit_learn(shape, features, labels)
        work[shape, SCIKIT_BATCH, "scikit-learn"] = lambda times, epoch=epoch: own_time(times, epoch)
    linear = call("small", "logistic", {}, "no_shuffle")
    work["small", 1, "corgipile, logistic in order"] = lambda times: backend.train(linear, EPOCHS, times)
    return {what: run for what, run in work.items() if run}


def main():
    with connect() as connection:
        connection.execute("CREATE EXTENSION corgipile")
    backend = Backend("SET corgipile.cache_memory = '1GB'", "SET max_parallel_workers_per_gather = 0")
    torch = Torch()
    work = work_of(backend, torch)
    measured = {what: Times() for what in work}
    for round_ in range(-1, ROUNDS):
        for what, run in work.items():
            run(measured[what] if round_ >= 0 else Times())  # the one before warms up
    best = {what: times.best() * 1e9 / ROWS[what[0]] for what, times in measured.items()}
    table(
        "Epoch of networks, ns per row",
        ["layers", "batch", "peer", "processor, best", "elapsed, median"],
        [
            [
                "-".join(map(str, [SHAPES[shape][0], *SHAPES[shape][1], SHAPES[shape][2]])),
                batch,
                peer,
                f"{best[shape, batch, peer]:.0f}",
                f"{median(measured[shape, batch, peer].elapsed) * 1e9 / ROWS[shape]:.0f}",
            ]
            for shape, batch, peer in sorted(work, key=lambda what: (what[0] == "large", what[1], what[2]))
        ],
    )
    report(best, torch)


def report(best, torch):
    linear = best["small", 1, "corgipile, logistic in order"]
    figure("28-16-2, batches of 1, ns per row", best["small", 1, "corgipile"], "<= 350")
    figure("28-16-2, batches of 250, ns per row", best["small", 250, "corgipile"], "<= 80")
    for batch in (1, 250):
        figure(f"28-16-2, batches of {batch} / logistic in order", best["small", batch, "corgipile"] / linear)
    peers = [("scikit-learn", SCIKIT_BATCH, ">= 3")]
    if torch.version:
        peers.append((f"torch {torch.version}", 250, ">= 0.9"))
    for peer, batch, bound in peers:
        for shape, layers in (("small", "28-16-2"), ("large", "54-200-50-7")):
            ours = best[shape, batch, "corgipile"]
            theirs = best[shape, batch, peer]
            figure(
                f"{layers}: {peer}, batches of {batch} / corgipile", theirs / ours, bound if shape == "large" else ""
            )
            headline(
                f"Epoch of a network {layers}, batches of {batch}, per row",
                f"{ours:.0f} ns",
                f"{theirs:.0f} ns, {peer} in memory, one thread",
                theirs / ours,
            )


if __name__ == "__main__":
    main()
