"""Processor time of a backend, compared with elapsed time: neighbours on the machine disturb the latter."""

from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, process_time

from server import connect
from timing import processor_seconds


@dataclass
class Times:
    """What was measured of one way to do the work, all of it in seconds per epoch."""

    elapsed: list = field(default_factory=list)
    processor: list = field(default_factory=list)

    def best(self):
        """Least processor time."""
        return min(self.processor)

    def median_processor(self):
        return median(self.processor)


class Backend:
    """A session of its own, whose trainings and queries are timed."""

    def __init__(self, *settings):
        self.connection = connect()
        self.pid = self.connection.info.backend_pid
        self.connection.execute("SET client_min_messages = warning")
        for setting in settings:
            self.connection.execute(setting)

    def timed(self, statement, arguments=()):
        """Rows of a statement, and its elapsed and processor time."""
        before, start = processor_seconds(self.pid), perf_counter()
        rows = self.connection.execute(statement, arguments).fetchall()
        return rows, perf_counter() - start, processor_seconds(self.pid) - before

    def count(self, table, times):
        """Times a count(*)."""
        _, elapsed, processor = self.timed(f"SELECT count(*) FROM {table}")
        times.elapsed.append(elapsed)
        times.processor.append(processor)

    def train(self, call, epochs, times):
        """Times epochs of a training `call`, which says %(epochs)s and has option verbose, without the first two: the
        first fills the cache, if there is one. What is looked at is the end of the second and that of the last."""
        ends = []

        def tell(diagnostic):
            if diagnostic.message_primary.startswith("epoch "):
                ends.append(processor_seconds(self.pid))

        self.connection.execute("SET client_min_messages = notice")
        self.connection.add_notice_handler(tell)
        rows = self.connection.execute(f"SELECT epoch, seconds FROM {call}", {"epochs": epochs}).fetchall()
        self.connection.remove_notice_handler(tell)
        self.connection.execute("SET client_min_messages = warning")
        times.elapsed += [seconds for epoch, seconds in rows if epoch > 2]
        times.processor.append((ends[-1] - ends[1]) / (epochs - 2))
        self.connection.execute("TRUNCATE corgipile.stored_models")


def own_time(times, work):
    """Times work of this process, with all of its threads."""
    before, start = process_time(), perf_counter()
    work()
    times.elapsed.append(perf_counter() - start)
    times.processor.append(process_time() - before)
