"""The parts that need torch. No other module imports it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from corgipile._collate import each_part

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
    return each_part(batch, lambda part: _tensor(part) if isinstance(part, np.ndarray) else part)


def _tensor(array: np.ndarray) -> Any:
    if array.dtype.kind in "mM":
        # moments and durations as whole numbers of their unit
        if np.isnat(array).any():
            raise ValueError("a date or a duration is missing, for which a tensor has no value")
        array = array.view(np.int64)
    if array.dtype.kind not in "biuf":
        return array
    if array.dtype.str == "<u8" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{array.max()} does not fit a tensor of int64")
    return torch.from_numpy(array.astype(_WIDER.get(array.dtype.str, array.dtype), copy=False))
