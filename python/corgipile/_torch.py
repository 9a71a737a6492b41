"""What is needed of torch. Nothing else imports it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

# numbers of which old versions of torch have no tensors, and the smallest that hold them
_WIDER = {"<u2": np.int32, "<u4": np.int64, "<u8": np.int64}


@functools.cache
def dataset_class() -> type:
    """The data set as torch knows it."""
    from corgipile.dataset import CorgiPileDataset

    class TorchDataset(CorgiPileDataset, IterableDataset):
        __doc__ = CorgiPileDataset.__doc__

        def __reduce__(self) -> tuple[Any, ...]:
            return _restore, (self.__getstate__(),)

    TorchDataset.__name__ = CorgiPileDataset.__name__
    TorchDataset.__qualname__ = CorgiPileDataset.__qualname__
    return TorchDataset


def _restore(state: dict[str, Any]) -> Any:
    made = object.__new__(dataset_class())
    made.__dict__.update(state)
    return made


def to_tensors(batch: Any) -> Any:
    """Arrays of numbers as tensors, in whatever they are; they share their memory."""
    if isinstance(batch, np.ndarray):
        if batch.dtype.kind in "mM":
            # moments and durations as whole numbers of their unit
            if np.isnat(batch).any():
                raise ValueError("a date or a duration is missing, for which a tensor has no value")
            batch = batch.view(np.int64)
        if batch.dtype.kind not in "biuf":
            return batch
        if batch.dtype.str == "<u8" and batch.size and int(batch.max()) > np.iinfo(np.int64).max:
            raise ValueError(f"{batch.max()} does not fit a tensor of int64")
        return torch.from_numpy(batch.astype(_WIDER.get(batch.dtype.str, batch.dtype), copy=False))
    if isinstance(batch, Mapping):
        return {name: to_tensors(values) for name, values in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(to_tensors, batch))
    if isinstance(batch, list | tuple):
        return type(batch)(map(to_tensors, batch))
    return batch


def to_arrays(batch: Any) -> Any:
    """Tensors as arrays, in whatever they are; they share their memory."""
    if isinstance(batch, torch.Tensor):
        return batch.numpy()
    if isinstance(batch, Mapping):
        return {name: to_arrays(values) for name, values in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(to_arrays, batch))
    if isinstance(batch, list | tuple):
        return type(batch)(map(to_arrays, batch))
    return batch
