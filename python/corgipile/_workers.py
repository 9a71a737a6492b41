"""Batches from DataLoader's worker processes.

Arrays are sent as tensors, because torch passes these to another process in shared memory but would copy arrays through
a pipe. They become arrays again on arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from corgipile._collate import each_part
from corgipile.dataset import CorgiPileDataset, worker_of_torch


class Packed(NamedTuple):
    """An array on its way: as a tensor, and its type."""

    tensor: Any
    dtype: str


def pack(batch: Any) -> Any:
    """Arrays of numbers as tensors, in whatever they are."""
    return each_part(batch, lambda part: _packed(part) if isinstance(part, np.ndarray) else part)


def unpack(batch: Any) -> Any:
    """What was packed."""
    return each_part(
        batch, lambda part: part.tensor.numpy().view(part.dtype) if isinstance(part, Packed) else part, whole=Packed
    )


def _packed(array: np.ndarray) -> Any:
    if array.dtype.kind not in "biufmM" or not array.dtype.isnative or 0 in array.shape:
        return array
    # not every version of torch has every type: the bytes are what matters
    size = array.dtype.itemsize
    return Packed(torch.from_numpy(np.ascontiguousarray(array).view(f"i{size}")), array.dtype.str)


class _InWorkers(IterableDataset):
    """A data set as workers read it: from a place that they are given, or told of in the memory that they share."""

    def __init__(self, dataset: CorgiPileDataset, steps: Callable[[Any], Any], place: tuple[int, int] | None) -> None:
        self.dataset, self.steps, self.place = dataset, steps, place

    def __iter__(self) -> Iterator[Any]:
        worker, workers = worker_of_torch()
        epoch, start = self.place or self.dataset.progress.told()
        for batch in self.dataset.read(epoch, start, worker, workers):
            yield pack(self.steps(batch))


def data_loader(
    dataset: CorgiPileDataset,
    steps: Callable[[Any], Any],
    place: tuple[int, int] | None,
    workers: int,
    options: dict[str, Any],
) -> DataLoader[Any]:
    """torch's loader of the data set; without a place, one whose workers stay for the next epochs."""
    batches = _InWorkers(dataset, steps, place)
    return DataLoader(batches, batch_size=None, num_workers=workers, collate_fn=_as_it_is, **options)


def _as_it_is(batch: Any) -> Any:
    return batch
