"""The state that a data set shares with its copies in workers: the next epoch, and where it begins.

Workers are forked or spawned with a copy of the data set, and persistent workers keep it. So the epoch is in memory
that the copies share. Each worker counts its own iterations: without `set_epoch`, the next one is the next epoch in
all.
"""

from __future__ import annotations

import multiprocessing.context
from collections.abc import Iterator
from multiprocessing.sharedctypes import RawArray
from typing import Any

# workers of one data set, at most
MAX_WORKERS = 1024

# places in the memory that is shared; behind them, iterations of each worker
_EPOCH, _START, _LANES, _TOGETHER, _TOLD_EPOCH, _TOLD_START, _OWN = range(7)


class Counting:
    """An object that knows how many batches of an epoch it has returned."""

    # of the iteration under way in this process: its epoch, and batches given out up to now
    _position: tuple[int, int] | None = None

    def _counted(self, batches: Iterator[Any], epoch: int, start: int) -> Iterator[Any]:
        for number, batch in enumerate(batches, start + 1):
            self._position = (epoch, number)
            yield batch
        self._position = (epoch + 1, 0)


class Progress:
    """The next epoch, its first batch, and the number of iterations since they were set."""

    def __init__(self) -> None:
        self._numbers: Any = RawArray("q", _OWN + 1 + MAX_WORKERS)

    def set(self, epoch: int, start: int, lanes: tuple[int, int] | None = None) -> None:
        """Sets what the next iteration of this process and of each worker begins with. What the lanes were holds as
        long as an epoch that goes on."""
        numbers = self._numbers
        numbers[_LANES], numbers[_TOGETHER] = lanes or (0, 0)
        numbers[_EPOCH], numbers[_START] = epoch, start
        for place in range(_OWN, len(numbers)):
            numbers[place] = 0

    def begin(self, worker: int | None) -> tuple[int, int]:
        """Begins an iteration: its epoch and first batch."""
        if worker is not None and worker >= MAX_WORKERS:
            raise ValueError(f"num_workers: {worker + 1} are more than {MAX_WORKERS}")
        place = _OWN if worker is None else _OWN + 1 + worker
        before = self._numbers[place]
        self._numbers[place] = before + 1
        return self._numbers[_EPOCH] + before, self._numbers[_START] if before == 0 else 0

    def tell_workers(self, epoch: int, start: int) -> None:
        """Tells the workers of a loader what to read next."""
        self._numbers[_TOLD_EPOCH], self._numbers[_TOLD_START] = epoch, start

    def told(self) -> tuple[int, int]:
        """What a worker of a loader has to read."""
        return self._numbers[_TOLD_EPOCH], self._numbers[_TOLD_START]

    def pending(self) -> tuple[int, bool]:
        """The epoch that was set last, and whether it is to go on in its middle."""
        begun = any(self._numbers[_OWN:])
        return self._numbers[_EPOCH], self._numbers[_LANES] > 0 and not begun

    def pending_position(self) -> tuple[int, int]:
        """The epoch and the first batch that the next iteration of this process begins with."""
        before = self._numbers[_OWN]
        return self._numbers[_EPOCH] + before, self._numbers[_START] if before == 0 else 0

    def read_by_workers(self) -> bool:
        """Whether workers have begun an iteration since these were set."""
        return any(self._numbers[_OWN + 1 :])

    def lanes(self) -> tuple[int, int] | None:
        """The numbers of lanes of an epoch that goes on."""
        lanes = self._numbers[_LANES]
        return (lanes, self._numbers[_TOGETHER]) if lanes else None

    def __getstate__(self) -> Any:
        # only a process that is being started can share memory with this one; any other copy is on its own
        if multiprocessing.context.get_spawning_popen() is not None:
            return self._numbers
        return list(self._numbers)

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, list):
            self._numbers = RawArray("q", state)
        else:
            self._numbers = state
