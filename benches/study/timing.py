"""Time and memory of a backend."""

import os
import threading
from statistics import median
from time import monotonic

COUNTS = 5


def count_seconds(connection, table):
    """Median of the times of count(*), after one that warms up."""
    seconds = []
    for _ in range(1 + COUNTS):
        start = monotonic()
        connection.execute(f"SELECT count(*) FROM {table}")
        seconds.append(monotonic() - start)
    return median(seconds[1:])


def memory(pid, key):
    """Bytes that /proc says of a process."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def processor_seconds(pid):
    """Time that a process has had a processor."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def page_faults(pid):
    """Pages that a process has touched for the first time, each huge one as one."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[7])


class MemoryPeak:
    """The most anonymous memory of a backend while the block runs, sampled, and the most of all its resident memory.

    The latter (VmHWM) also counts the pages of shared buffers that it has touched; the former does not."""

    def __init__(self, connection):
        self.pid = connection.info.backend_pid
        self.anonymous = 0
        self.resident = 0
        self.done = threading.Event()
        self.sampler = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self):
        # a server that runs as root's friend can only be looked at by root: fail now rather than in the thread
        os.stat(f"/proc/{self.pid}/status")
        self.sampler.start()
        return self

    def _sample(self):
        while not self.done.wait(0.002):
            self.anonymous = max(self.anonymous, memory(self.pid, "RssAnon"))

    def __exit__(self, *_):
        self.done.set()
        self.sampler.join()
        self.resident = memory(self.pid, "VmHWM")
