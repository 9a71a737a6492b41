"""Batches from DataLoader's worker processes.

What passes from one process to another costs about the same whether it is small or large. So a worker sends many
batches at once, all their arrays in one tensor, which torch passes in shared memory, and they are cut out of it on
arrival. All workers send as many batches at once as the first one says, so that none is ahead of the others.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from corgipile._collate import each_part
from corgipile._shared import Position
from corgipile.dataset import CorgiPileDataset, worker_of_torch

#: About how many bytes, and at most how many batches, a worker sends at once.
_BYTES, _BATCHES = 1 << 20, 64

#: Where an array may begin.
_ALIGNMENT = 64


class Message(NamedTuple):
    """Batches on their way: whose they are, and whether they are its last ones."""

    worker: int
    batches: list[Any]
    bytes: Any
    is_last: bool


class _Packed(NamedTuple):
    """Where an array or a tensor is in the bytes of a message."""

    first: int
    end: int
    dtype: Any
    shape: tuple[int, ...]


def pack(worker: int, batches: list[Any], is_last: bool) -> Message:
    """Batches as a message, with the arrays of numbers and the tensors in whatever they are."""
    parts: list[tuple[int, Any]] = []
    end = 0

    def take(part: Any) -> Any:
        nonlocal end
        if isinstance(part, torch.Tensor):
            if part.device.type != "cpu" or part.layout != torch.strided or part.requires_grad or not part.numel():
                return part
            kind, flat = part.dtype, part.detach().reshape(-1).view(torch.uint8).numpy()
        elif isinstance(part, np.ndarray) and part.dtype.kind in "biufcmM" and part.size:
            kind, flat = part.dtype.str, np.ascontiguousarray(part).reshape(-1).view(np.uint8)
        else:
            return part
        first = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = first + flat.size
        parts.append((first, flat))
        return _Packed(first, end, kind, tuple(part.shape))

    packed = [each_part(batch, take) for batch in batches]
    # torch makes it a shared one when it is sent
    whole = torch.empty(end, dtype=torch.uint8)
    into = whole.numpy()
    for first, flat in parts:
        into[first : first + flat.size] = flat
    return Message(worker, packed, whole, is_last)


def unpack(message: Message) -> list[Any]:
    """The batches of a message."""
    numbers = message.bytes.numpy()

    def cut(part: Any) -> Any:
        if not isinstance(part, _Packed):
            return part
        if isinstance(part.dtype, torch.dtype):
            return message.bytes[part.first : part.end].view(part.dtype).reshape(part.shape)
        return numbers[part.first : part.end].view(part.dtype).reshape(part.shape)

    return [each_part(batch, cut, whole=_Packed) for batch in message.batches]


class _InWorkers(IterableDataset[Message]):
    """A data set as workers read it: from a place that they are given, or told of in the memory that they share."""

    def __init__(self, dataset: CorgiPileDataset, steps: Callable[[Any], Any], place: tuple[int, int] | None) -> None:
        self.dataset, self.steps, self.place = dataset, steps, place

    def __iter__(self) -> Iterator[Message]:
        worker, workers = worker_of_torch()
        epoch, start = self.place or self.dataset.progress.told()
        held: list[Any] = []
        # the first one soon
        at_once = 1
        try:
            for items in self.dataset.read(epoch, start, worker, workers):
                held.append([self.steps(item) for item in items])
                if len(held) == at_once:
                    message = pack(worker, held, is_last=False)
                    yield message
                    at_once, held = self._at_once(worker, message), []
        except Exception:
            if held:
                yield pack(worker, held, is_last=False)
            raise
        finally:
            if worker == 0:
                # no other worker waits for one that has come to its end
                self.dataset.progress.say_at_once(self.dataset.progress.at_once() or 1)
        yield pack(worker, held, is_last=True)

    def _at_once(self, worker: int, message: Message) -> int:
        """How many batches are sent at once, by the size of the first one of the first worker."""
        progress = self.dataset.progress
        if worker == 0 and not progress.at_once():
            size = message.bytes.numel() + len(pickle.dumps(message.batches))
            progress.say_at_once(min(max(_BYTES // size, 1), _BATCHES))
        while not (said := progress.at_once()):
            time.sleep(0.001)
        return said


def in_turns(loader: DataLoader[Any], workers: int) -> Iterator[Sequence[Any]]:
    """What the workers of a loader give, what was a batch of each in turns."""
    there: list[deque[Any]] = [deque() for _ in range(workers)]
    left = set(range(workers))
    messages = iter(loader)
    turn = 0
    while left or any(there):
        while turn in left and not there[turn]:
            message = next(messages)
            there[message.worker].extend(unpack(message))
            if message.is_last:
                left.remove(message.worker)
        if there[turn]:
            yield there[turn].popleft()
        turn = (turn + 1) % workers
    # workers that stay learn of the end by it
    for _ in messages:
        pass


def data_loader(
    dataset: CorgiPileDataset,
    steps: Callable[[Any], Any],
    position: Position | None,
    workers: int,
    options: dict[str, Any],
) -> DataLoader[Any]:
    """torch's loader of the data set; without a position, one whose workers stay for the next epochs."""
    batches = _InWorkers(dataset, steps, None if position is None else position[:2])
    return DataLoader(batches, batch_size=None, num_workers=workers, collate_fn=_as_it_is, **options)


def _as_it_is(message: Any) -> Message:
    return message
