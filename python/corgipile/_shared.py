"""The state that a data set shares with its copies in workers: the next epoch, and where it begins.

Workers are forked or spawned with a copy of the data set, and persistent workers keep it. So the epoch is in memory
that the copies share. Each worker counts its own iterations: without `set_epoch`, the next one is the next epoch in
all.
"""

from __future__ import annotations

import multiprocessing.context
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.sharedctypes import RawArray
from typing import Any

# workers of one data set, at most
MAX_WORKERS = 1024

# places in the memory that is shared; behind them, iterations of each worker
_EPOCH, _START, _ROW, _LANES, _TOGETHER, _TOLD_EPOCH, _TOLD_START, _AT_ONCE, _OWN = range(9)

#: An epoch, the next batch that is read of it, and how many of its rows were given out, if rows are.
Position = tuple[int, int, int]


class Counting:
    """An object that knows what it has returned of an epoch."""

    # of the iteration under way in this process
    _position: Position | None = None

    def _counted(self, batches: Iterable[Sequence[Any]], position: Position, stride: int = 1) -> Iterator[Any]:
        """What is in the batches from a position on, which are every `stride`-th of the rank."""
        epoch, number, row = position
        for items in batches:
            for place in range(row, len(items)):
                self._position = (epoch, number, place + 1) if place + 1 < len(items) else (epoch, number + stride, 0)
                yield items[place]
            number, row = number + stride, 0


class Progress:
    """The next epoch, its first batch, and the number of iterations since they were set."""

    def __init__(self) -> None:
        self._numbers: Any = RawArray("q", _OWN + 1 + MAX_WORKERS)

    def set(self, position: Position, lanes: tuple[int, int] | None = None) -> None:
        """Sets what the next iteration of this process and of each worker begins with. What the lanes were holds as
        long as an epoch that goes on."""
        numbers = self._numbers
        numbers[_LANES], numbers[_TOGETHER] = lanes or (0, 0)
        numbers[_EPOCH], numbers[_START], numbers[_ROW] = position
        for place in range(_OWN, len(numbers)):
            numbers[place] = 0

    def set_own(self, epoch: int, worker: int, lanes: tuple[int, int]) -> None:
        """Sets the epoch in a worker that goes on by itself. All workers of an iteration set the same."""
        numbers = self._numbers
        numbers[_LANES], numbers[_TOGETHER] = lanes
        numbers[_EPOCH], numbers[_OWN + 1 + worker] = epoch, 0

    def begin(self, worker: int | None) -> Position:
        """Begins an iteration, at this position."""
        place = self._place(worker)
        before = self._numbers[place]
        self._numbers[place] = before + 1
        return self._at(before)

    @staticmethod
    def _place(worker: int | None) -> int:
        if worker is not None and worker >= MAX_WORKERS:
            raise ValueError(f"num_workers: {worker + 1} are more than {MAX_WORKERS}")
        return _OWN if worker is None else _OWN + 1 + worker

    def _at(self, before: int) -> Position:
        start, row = (self._numbers[_START], self._numbers[_ROW]) if before == 0 else (0, 0)
        return self._numbers[_EPOCH] + before, start, row

    def tell_workers(self, epoch: int, start: int) -> None:
        """Tells the workers of a loader what to read next."""
        self._numbers[_TOLD_EPOCH], self._numbers[_TOLD_START], self._numbers[_AT_ONCE] = epoch, start, 0

    def told(self) -> tuple[int, int]:
        """What a worker of a loader has to read."""
        return self._numbers[_TOLD_EPOCH], self._numbers[_TOLD_START]

    def say_at_once(self, batches: int) -> None:
        """Says how many batches each worker of a loader sends at once."""
        self._numbers[_AT_ONCE] = batches

    def at_once(self) -> int:
        """How many batches a worker of a loader sends at once; 0 until the first worker has said it."""
        return self._numbers[_AT_ONCE]

    def pending(self) -> tuple[int, bool]:
        """The epoch that was set last, and whether it is to go on in its middle."""
        begun = any(self._numbers[_OWN:])
        return self._numbers[_EPOCH], self._numbers[_LANES] > 0 and not begun

    def pending_position(self, worker: int | None = None) -> Position:
        """The position that the next iteration of this process begins with."""
        return self._at(self._numbers[self._place(worker)])

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
