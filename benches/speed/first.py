"""The first epoch of a new session, whose memory is fresh from the system, against count(*) of a new session.

Elapsed time and processor time of the backend: neighbours disturb the former more. Sessions take turns."""

import json
from time import perf_counter

from common import clustered, figure, headline, load, median, ms, table
from server import connect
from timing import page_faults, processor_seconds

SESSIONS = 10
EPOCHS = 3
TRAININGS = {
    "by default": {},
    "without a preparation pass": {"learning_rate": 0.01, "standardize": False, "nulls": "skip"},
    "without the cache": {"learning_rate": 0.01, "standardize": False, "nulls": "skip", "cache": "off"},
}


class Clock:
    """What has passed in a backend since the last look."""

    def __init__(self, connection):
        self.pid = connection.info.backend_pid
        self.last = self._now()

    def _now(self):
        return perf_counter(), processor_seconds(self.pid), page_faults(self.pid)

    def lap(self):
        """Seconds, seconds of the processor, page faults."""
        before, self.last = self.last, self._now()
        return tuple(now - then for now, then in zip(self.last, before))


def count(connection):
    clock = Clock(connection)
    laps = []
    for _ in range(2):
        connection.execute("SELECT count(*) FROM million")
        laps.append(clock.lap())
    return {"count(*), new session": laps[0], "count(*), again": laps[1]}


def train(connection, options):
    """What passed before the first epoch, in it, and in the next one. Notices come as each epoch ends."""
    laps = []
    connection.execute("SET client_min_messages = notice")
    clock = Clock(connection)

    def tell(diagnostic):
        # the rate follows from the preparation pass, and is reported where that ends
        if diagnostic.message_primary.startswith(("epoch ", "learning rate ")):
            laps.append(clock.lap())

    connection.add_notice_handler(tell)
    connection.execute(
        "SELECT count(*) FROM corgipile_train('million', max_epochs => %s, seed => 1, options => %s)",
        [EPOCHS, json.dumps(options | {"verbose": True})],
    )
    connection.remove_notice_handler(tell)
    connection.execute("SET client_min_messages = warning")
    connection.execute("TRUNCATE corgipile.stored_models")
    *before, first, second, _ = laps[: len(laps) - EPOCHS + 3]
    return ({"before the first epoch": before[0]} if before else {}) | {"first epoch": first, "second epoch": second}


def measure():
    """By what was measured: a row per session."""
    laps = {}

    def add(prefix, measured):
        for what, lap in measured.items():
            laps.setdefault(f"{prefix}{what}", []).append(lap)

    for _ in range(SESSIONS):
        with connect() as connection:
            add("", count(connection))
        for name, options in TRAININGS.items():
            with connect() as connection:
                add(f"{name}: ", train(connection, options))
                if not options:
                    add("by default, again: ", train(connection, options))
    return laps


def main():
    with connect() as connection:
        connection.execute("CREATE EXTENSION corgipile")
        connection.execute("CREATE EXTENSION pg_prewarm")
        features, labels = clustered()
        load(connection, "million", features, labels)
        connection.execute("SELECT pg_prewarm('million')")
    laps = measure()
    medians = {what: [median(column) for column in zip(*rows)] for what, rows in laps.items()}
    least = {what: min(processor for _, processor, _ in rows) for what, rows in laps.items()}
    elapsed, processor, _ = medians["count(*), new session"]
    table(
        f"1,000,000 rows x 28 real[], medians of {SESSIONS} sessions",
        ["what", "elapsed ms", "of count(*)", "processor ms", "of count(*)", "least processor ms", "page faults"],
        [
            [what, ms(e), f"{e / elapsed:.2f}", ms(p), f"{p / processor:.2f}", ms(least[what]), round(faults)]
            for what, (e, p, faults) in medians.items()
        ],
    )
    for name in TRAININGS:
        first = medians[f"{name}: first epoch"]
        bound = "<= 1.50" if name != "without the cache" else ""
        figure(f"first epoch / count(*), new sessions, {name}, elapsed", first[0] / elapsed, bound)
        figure(f"first epoch / count(*), new sessions, {name}, processor time", first[1] / processor, bound)
    again = medians["count(*), again"]
    first = medians["by default: first epoch"]
    figure("first epoch by default / count(*) of a session that has counted before, processor", first[1] / again[1])
    second = medians["by default, again: first epoch"]
    figure("first epoch of a session's second training / count(*) of such a session", second[1] / again[1])
    headline(
        "First epoch of a new session, 1,000,000 rows x 28",
        f"{ms(first[0])} ms",
        f"{ms(elapsed)} ms, SELECT count(*) of a new session",
        elapsed / first[0],
    )


if __name__ == "__main__":
    main()
