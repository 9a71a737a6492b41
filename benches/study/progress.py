"""Says what is running, how much is done and how long the rest may take."""

import sys
import threading
import time


class Progress:
    """Of one part of the study: `total` is the sum of the weights (the costs, in any unit) of what is to come."""

    def __init__(self, part, count, total):
        self.part, self.count, self.total = part, count, total
        self.done, self.weight = 0, 0.0
        self.start = self.shown = time.monotonic()
        self.lock = threading.Lock()

    def step(self, what, weight=1.0):
        """One of `count` is done."""
        with self.lock:
            self.done += 1
            self.weight += weight
            now = time.monotonic()
            if now - self.shown < 2 and self.done < self.count:
                return
            self.shown = now
            elapsed = now - self.start
            rest = elapsed * (self.total - self.weight) / self.weight
            print(
                f"[{self.part}] {self.done} of {self.count}, {clock(elapsed)} so far, about {clock(rest)} left: {what}"
            )
            sys.stdout.flush()


def clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02}"
