"""Measures what benches/nodes/run describes, fits a model of an epoch to it, and prints what the model says."""

import json
import os
import subprocess
import sys

import numpy as np
from scipy.optimize import nnls

# An epoch's figures are the difference of a longer and a shorter training.
SHORT, LONG = 1, 3
ROUNDS = int(os.environ.get("ROUNDS", "5"))
WIDTHS = {"narrow": 28, "wide": 2000}


def psql(sql):
    done = subprocess.run(
        ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", "SET client_min_messages = warning", "-c", sql],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def training(source, batch_size, epochs, nodes):
    call = (
        f"SELECT * FROM corgipile_train('{source}', features => '{{features_v}}', learning_rate => 0.1, seed => 1, "
        f"max_epochs => {epochs}, batch_size => {batch_size}, servers => '{nodes}')"
    )
    return json.loads(psql(f"EXPLAIN (ANALYZE, FORMAT json) {call}"))[0]["Plan"]


def trainings(source, batch_size, nodes):
    """Of a short training and a longer one, all that EXPLAIN says."""
    return [training(source, batch_size, epochs, nodes) for epochs in (SHORT, LONG)]


def least(one, other):
    """The same trainings in two rounds: the shorter times."""
    times = ("Preparation Time", "Epochs Time")
    return [{**a, **{time: min(a[time], b[time]) for time in times}} for a, b in zip(one, other)]


def epoch(short, long):
    """Seconds of the first epoch and all before it, and seconds, bytes and requests of a later one."""
    later = {}
    for name in ("Epochs Time", "Bytes Sent to Servers", "Bytes Received from Servers", "Node Requests"):
        later[name] = (long.get(name, 0) - short.get(name, 0)) / (LONG - SHORT)
    return {
        "first": (short["Preparation Time"] + short["Epochs Time"]) / 1000,
        "seconds": later["Epochs Time"] / 1000,
        "bytes": later["Bytes Sent to Servers"] + later["Bytes Received from Servers"],
        "requests": later["Node Requests"],
    }


SERVERS = (1, 2, 3)
SIZES = {"narrow": (256, 4096), "wide": (64, 256)}


def measure():
    """The least of some rounds, in which all take turns: what else the machine does makes each of them longer. What
    is fetched here over the network is measured once."""
    measured = {}
    places = [("here", "{}", "off"), ("on 3, fetched", "far_{}_3", "off")]
    places += [(f"on {n}", f"far_{{}}_{n}", "auto") for n in SERVERS]
    for i in range(ROUNDS):
        print(f"Round {i + 1} of {ROUNDS} ...", file=sys.stderr)
        for table, sizes in SIZES.items():
            for size in sizes:
                for where, source, nodes in places:
                    if where == "on 3, fetched" and i > 0:
                        continue
                    found = trainings(source.format(table), size, nodes)
                    key = (table, size, where)
                    measured[key] = least(measured.get(key, found), found)
    return {key: epoch(*found) for key, found in measured.items()}


def show(measured):
    for table, sizes in SIZES.items():
        rows = int(psql(f"SELECT count(*) FROM {table}"))
        print(
            f"\n{rows:,} rows x {WIDTHS[table]:,}: seconds of the first epoch with the pass before it and of a later "
            "one, megabytes of a later one over all connections, requests to each server, microseconds per request"
        )
        print(f"{'batch':>6} {'rows are':<22} {'first':>8} {'epoch':>8} {'MB':>8} {'requests':>9} {'µs':>8}")
        for size in sizes:
            for where in ("here", "on 3, fetched", *(f"on {n}" for n in SERVERS)):
                found = measured[table, size, where]
                each = f"{1e6 * found['seconds'] / found['requests']:8.0f}" if found["requests"] else ""
                figures = f"{found['first']:>8.2f} {found['seconds']:>8.2f} {found['bytes'] / 1e6:>8.1f}"
                print(f"{size:>6} {where:<22} {figures} {found['requests']:>9.0f} {each}".rstrip())


def solve(rows, values):
    """The numbers, none below 0, by which the rows come nearest to the values, relative to these."""
    scaled = np.array(rows) / np.array(values)[:, np.newaxis]
    return nnls(scaled, np.ones(len(values)))[0].tolist()


def model(measured):
    """A step on n servers, of d features, where an epoch of rows here takes c for each:

        n * (per server + d * per weight) + turns * (d * node's weight + c * rows / n) + sleep

    Where n servers share fewer processors, some nodes wait for others: there are n / min(n, processors) turns.
    Servers of their own do it all side by side. Where there are more processors than nodes, one sleeps while it
    waits, and takes a while to wake up, as servers of their own do.

    What a request takes by itself is all counted as if servers were asked one after the other: few servers on one
    machine do not tell what of it they do at the same time, so that it is rather too much for many.
    """
    processors = os.cpu_count() or 1
    rows, values, points = [], [], []
    per_row = {}
    for table, sizes in SIZES.items():
        count = int(psql(f"SELECT count(*) FROM {table}"))
        per_row[table] = min(measured[table, size, "here"]["seconds"] for size in sizes) / count
        for size in sizes:
            for n in SERVERS:
                found = measured[table, size, f"on {n}"]
                turns, weights = n / min(n, processors), WIDTHS[table]
                learning = turns * per_row[table] * count / n / found["requests"]
                step = found["seconds"] / found["requests"]
                points.append((table, size, n, learning, step))
                rows.append([n, n * weights, turns * weights, float(n < processors)])
                values.append(max(step - learning, step / 10))
    numbers = solve(rows, values)
    names = (" for each server", " for each server and weight", " of a node for each weight", " to wake up")
    print("\nMicroseconds per step by the model:")
    for name, number in zip(names, numbers):
        print(f"{1e6 * number:10.3f}{name}")
    print(f"{'':22} {'measured':>9} {'by the model':>13} {'quotient':>9}")
    for (table, size, n, learning, step), row in zip(points, rows):
        said = learning + sum(a * b for a, b in zip(row, numbers))
        what = f"{table}, {size}, on {n}"
        print(f"{what:<22} {1e6 * step:>9.0f} {1e6 * said:>13.0f} {said / step:>9.2f}")
    project(per_row["narrow"] / WIDTHS["narrow"], numbers)
    figures = f"{1e6 * numbers[3]:.0f}, {1e6 * numbers[0]:.0f}"
    print(f"FIGURE microseconds per step of nodes, and more per server | {figures} | none")


def project(c, numbers):
    """Servers of their own, 100 million rows, gigabits per second, and 100 µs there and back."""
    rows, trip = 100_000_000, 100e-6
    server, weight, node_weight, sleep = numbers
    print(
        "\nSeconds of an epoch on 100 million rows by the model, servers with a processor each, 100 µs there and back; "
        "in brackets how often faster than one server with all rows in memory. A weight is 16 bytes, there and back."
    )
    print(f"{'features':>8} {'batch':>7} {'Gbit/s':>7} {'1 server':>9} {'10':>16} {'100':>16}")
    for width in (28, 2000):
        per_row = c * width
        for size in (256, 4096, 65536):
            for gigabits in (1, 10):
                cells = []
                for n in (10, 100):
                    message = 16 * (width + 2) + 600
                    step = n * (server + width * weight) + width * node_weight
                    step += sleep + trip + n * message / (gigabits * 1e9 / 8)
                    seconds = rows * per_row / n + rows / size * step
                    cells.append(f"{seconds:8.1f} ({rows * per_row / seconds:5.2f})")
                print(f"{width:>8} {size:>7} {gigabits:>7} {rows * per_row:>9.1f} {cells[0]:>16} {cells[1]:>16}")


if __name__ == "__main__":
    found = measure()
    show(found)
    model(found)
