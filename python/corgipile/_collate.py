"""Samples put together into a batch, and batches of any structure taken apart."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def collate(samples: Sequence[Any]) -> Any:
    """A batch of samples with the same structure of tuples, lists and dictionaries.

    Numbers and arrays become arrays with one more dimension, tensors become tensors, anything else becomes an array of
    objects.
    """
    if not samples:
        return []
    first = samples[0]
    if isinstance(first, Mapping):
        return {name: collate([sample[name] for sample in samples]) for name in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(collate, zip(*samples, strict=True)))
    if isinstance(first, tuple | list):
        return type(first)(map(collate, zip(*samples, strict=True)))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(first, torch.Tensor):
        return torch.stack(list(samples))
    if isinstance(first, np.ndarray):
        return np.stack(samples)
    if isinstance(first, bool | int | float | complex | np.generic) and not isinstance(first, str | bytes):
        return np.asarray(samples)
    objects = np.empty(len(samples), dtype=object)
    objects[:] = samples
    return objects


def each_part(batch: Any, change: Callable[[Any], Any], whole: type | tuple[type, ...] = ()) -> Any:
    """A batch in any structure of tuples, lists and dictionaries with changed parts. Values of a type in `whole` are
    parts.
    """
    if isinstance(batch, whole):
        return change(batch)
    if isinstance(batch, Mapping):
        return {name: each_part(part, change, whole) for name, part in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(each_part(part, change, whole) for part in batch))
    if isinstance(batch, tuple | list):
        return type(batch)(each_part(part, change, whole) for part in batch)
    return change(batch)
