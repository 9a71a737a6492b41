"""Measures what benches/nodes/run describes, fits a model of an epoch to it, and prints what the model says."""

import json
import os
import subprocess

# An epoch's figures are the difference of a longer and a shorter training.
SHORT, LONG = 1, 3
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
        f"max_epochs => {epochs}, batch_size => {batch_size}, nodes => '{nodes}')"
    )
    return json.loads(psql(f"EXPLAIN (ANALYZE, FORMAT json) {call}"))[0]["Plan"]


def epoch(source, batch_size, nodes="off"):
    """Seconds of the first epoch and all before it, and seconds, bytes and requests of a later one."""
    short, long = (training(source, batch_size, epochs, nodes) for epochs in (SHORT, LONG))
    first = (short["Preparation Time"] + short["Epochs Time"]) / 1000
    later = {}
    for name in (
        "Epochs Time",
        "Bytes Sent to Nodes",
        "Bytes Received from Nodes",
        "Node Requests",
        "Waited for Slowest Node",
    ):
        later[name] = (long.get(name, 0) - short.get(name, 0)) / (LONG - SHORT)
    return {
        "first": first,
        "seconds": later["Epochs Time"] / 1000,
        "bytes": later["Bytes Sent to Nodes"] + later["Bytes Received from Nodes"],
        "requests": later["Node Requests"],
        "slowest": later["Waited for Slowest Node"] / 1000,
    }


def measure():
    measured = {}
    for table, sizes in (("narrow", (256, 4096)), ("wide", (64, 256))):
        rows = int(psql(f"SELECT count(*) FROM {table}"))
        print(
            f"\n{rows:,} rows x {WIDTHS[table]:,}: seconds of the first epoch with the pass before it and of a later "
            "one, megabytes of a later one over all connections, requests to each server, microseconds per request"
        )
        print(f"{'batch':>6} {'rows are':<22} {'first':>8} {'epoch':>8} {'MB':>8} {'requests':>9} {'µs':>8}")
        for size in sizes:
            for where, source, nodes in (
                ("here", table, "off"),
                ("on 3, come here", f"far_{table}_3", "off"),
                ("on 1", f"far_{table}_1", "auto"),
                ("on 2", f"far_{table}_2", "auto"),
                ("on 3", f"far_{table}_3", "auto"),
            ):
                found = epoch(source, size, nodes)
                measured[table, size, where] = found
                each = f"{1e6 * found['seconds'] / found['requests']:8.0f}" if found["requests"] else ""
                figures = f"{found['first']:>8.2f} {found['seconds']:>8.2f} {found['bytes'] / 1e6:>8.1f}"
                print(f"{size:>6} {where:<22} {figures} {found['requests']:>9.0f} {each}", flush=True)
    return measured


def model(measured):
    """An epoch on n servers, of rows that take c seconds each: n servers learn from a share each, and every step takes
    a while, and a while more for each server: all of them answer to one, whose link carries all bytes.

        seconds = rows * c / n + steps * (o + n * p + round trip + n * bytes / bandwidth)
    """
    rows = int(psql("SELECT count(*) FROM narrow"))
    c = measured["narrow", 4096, "here"]["seconds"] / rows
    steps = {n: measured["narrow", 256, f"on {n}"]["requests"] for n in (1, 2, 3)}
    # on one machine all learn on the same two processors
    processors = os.cpu_count() or 1
    per_step = {
        n: (measured["narrow", 256, f"on {n}"]["seconds"] - rows * c / min(n, processors)) / steps[n] for n in (1, 2, 3)
    }
    p = (per_step[3] - per_step[1]) / 2
    o = per_step[1] - p
    print(f"\nPer step, by batches of 256: {1e6 * o:.0f} µs, and {1e6 * p:.0f} µs more for each server.")
    print(f"Per row: {1e9 * c:.0f} ns.")
    for n in (1, 2, 3):
        said = rows * c / min(n, processors) + steps[n] * (o + n * p)
        is_so = measured["narrow", 256, f"on {n}"]["seconds"]
        print(f"The model says {said:.2f} s of an epoch on {n}, which took {is_so:.2f} s.")
    for n in (1, 2, 3):
        found = measured["narrow", 4096, f"on {n}"]
        said = rows * c / min(n, processors) + found["requests"] * (o + n * p)
        print(f"By batches of 4096 it says {said:.2f} s on {n}, which took {found['seconds']:.2f} s.")
    project(c, max(o, 0), max(p, 0))
    print(f"FIGURE microseconds per step of nodes, and more per server | {1e6 * o:.0f}, {1e6 * p:.0f} | none")


def project(c, o, p):
    """Servers of their own, 100 million rows, gigabits per second, and 100 µs there and back."""
    rows, trip = 100_000_000, 100e-6
    print(
        "\nSeconds of an epoch on 100 million rows by the model, servers with a processor each, 100 µs there and back; "
        "in brackets how often faster than one server with all rows in memory. A weight is 16 bytes, there and back."
    )
    print(f"{'features':>8} {'batch':>7} {'Gbit/s':>7} {'1 server':>9} {'10':>16} {'100':>16}")
    for width in (28, 2000):
        per_row = c * width / 28
        for size in (256, 4096, 65536):
            for gigabits in (1, 10):
                cells = []
                for n in (10, 100):
                    message = 16 * (width + 2) + 600
                    step = o + n * p + trip + n * message / (gigabits * 1e9 / 8)
                    seconds = rows * per_row / n + rows / size * step
                    cells.append(f"{seconds:8.1f} ({rows * per_row / seconds:5.2f})")
                print(f"{width:>8} {size:>7} {gigabits:>7} {rows * per_row:>9.1f} {cells[0]:>16} {cells[1]:>16}")


if __name__ == "__main__":
    model(measure())
