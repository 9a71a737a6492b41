"""Processor time of a backend, beside elapsed time: neighbours on the machine disturb the latter."""

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
    # of trainings: the processor time of whole ones, and of others that are so many epochs shorter
    whole: list = field(default_factory=list)
    short: list = field(default_factory=list)
    epochs_between: int = 0

    def best(self):
        """Least processor time of an epoch. The least of differences would be one whose shorter part was disturbed:
        it is the difference of the least."""
        return self._of_processor(min)

    def median_processor(self):
        return self._of_processor(median)

    def _of_processor(self, pick):
        if self.whole:
            return (pick(self.whole) - pick(self.short)) / self.epochs_between
        return pick(self.processor)


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
        """Times epochs from the second on of a training `call`, which says %(epochs)s.

        Elapsed times are those of the epochs; their processor time is the difference between two trainings, of which
        one has only two epochs: the first fills the cache, if there is another."""
        query = f"SELECT model_id, epoch, seconds FROM {call}"
        _, _, two = self.timed(query, {"epochs": 2})
        rows, _, all_ = self.timed(query, {"epochs": epochs})
        times.elapsed += [seconds for _, epoch, seconds in rows if epoch > 1]
        times.whole.append(all_)
        times.short.append(two)
        times.epochs_between = epochs - 2
        self.connection.execute("TRUNCATE corgipile.stored_models")


def own_time(times, work):
    """Times work of this process, with all of its threads."""
    before, start = process_time(), perf_counter()
    work()
    times.elapsed.append(perf_counter() - start)
    times.processor.append(process_time() - before)
