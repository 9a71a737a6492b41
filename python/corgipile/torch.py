"""The data set for PyTorch: arguments and defaults as PyTorch's users know them. It needs torch, and imports it.

    from torch.utils.data import DataLoader
    from corgipile.torch import CorgiPileDataset

    ds = CorgiPileDataset("train.parquet", seed=1)
    for batch in DataLoader(ds, batch_size=32):
        ...

Single rows are put into batches without a step of Python for each column of each row: a row knows the rows that it was
read with, and rows that come together are a part of these.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import torch
    from torch.utils.data import IterableDataset
    from torch.utils.data._utils.collate import collate as collate_by
    from torch.utils.data._utils.collate import default_collate_fn_map
except ImportError as error:
    raise ImportError("corgipile.torch needs torch: pip install torch") from error

from corgipile import dataset
from corgipile._collate import each_part

if TYPE_CHECKING:
    from corgipile.items import MapStyle
    from corgipile.server import ShuffledByServer
    from corgipile.sources import Source

__all__ = ["CorgiPileDataset", "Row", "to_tensors"]

# numbers of which old versions of torch have no tensors, and the smallest that hold them
_WIDER = {"<u2": np.int32, "<u4": np.int64, "<u8": np.int64}


class CorgiPileDataset(dataset.CorgiPileDataset, IterableDataset[Any]):
    """An iterable data set in CorgiPile's order: its rows, or batches that are ready.

    `DataLoader(ds, batch_size=32)` puts rows into batches. A data set that is made with `batch_size=32` gives batches,
    for `DataLoader(ds, batch_size=None)`, which is faster. torchdata's `StatefulDataLoader` resumes both exactly, with
    and without workers.

    Args:
        source, block_index, **options: as for `corgipile.CorgiPileDataset`.
        batch_size: rows per batch; None yields single rows.
        num_replicas, rank: as for `DistributedSampler`: each from torch.distributed unless it is given.
        seed: determines the order.
        drop_last: of rows, as for `DistributedSampler`: leave out the last ones that ranks cannot share, instead
            of repeating some. Of batches, as for `DataLoader`: leave out those that are not full.
        tensors: "torch" or "numpy".
    """

    def __init__(
        self,
        source: Source | MapStyle | ShuffledByServer | str | os.PathLike[str],
        block_index: str | os.PathLike[str] | None = None,
        *,
        batch_size: int | None = None,
        num_replicas: int | None = None,
        rank: int | None = None,
        seed: int = 0,
        drop_last: bool = False,
        tensors: dataset.Tensors = "torch",
        **options: Any,
    ) -> None:
        if "world_size" in options:
            if num_replicas is not None:
                raise TypeError("num_replicas: is the same as world_size: give one of them")
            num_replicas = options.pop("world_size")
        if (num_replicas is None) != (rank is None):
            its_rank, its_number = dataset.of_distributed()
            num_replicas = its_number if num_replicas is None else num_replicas
            rank = its_rank if rank is None else rank
        super().__init__(
            source, block_index, batch_size=batch_size, world_size=num_replicas, rank=rank, seed=seed,
            drop_last=drop_last, tensors=tensors, **options,
        )  # fmt: skip

    def _rows(self, batch: Mapping[str, Any]) -> Sequence[Any]:
        columns = self._converted(batch)
        rows = len(next(iter(columns.values()))) if columns else 0
        return [Row(columns, place) for place in range(rows)]

    def _whole(self, batch: Any) -> Sequence[Any]:
        batch = self._converted(batch)
        return (Batch(batch) if type(batch) is dict else batch,)


class Row(Mapping[str, Any]):
    """A row, by the names of its columns. `dict(row)` is one that can be changed."""

    __slots__ = ("columns", "place")

    def __init__(self, columns: Mapping[str, Any], place: int) -> None:
        self.columns, self.place = columns, place

    def __getitem__(self, name: str) -> Any:
        return self.columns[name][self.place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Row({dict(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # without the rows that it was read with
        return Row, (_alone(self), 0)


def _alone(row: Row) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, torch.Tensor):
            columns[name] = value[None].clone()  # a part has the memory of the whole
        else:
            columns[name] = np.asarray(value)[None] if isinstance(value, np.ndarray | np.generic) else [value]
    return columns


class Batch(dict[str, Any]):
    """A batch of columns, which is not to be put into another one."""


def _collate_rows(rows: Sequence[Row], *, collate_fn_map: Any = None) -> dict[str, Any]:
    """A batch of rows: parts of the columns that they were read with."""
    parts: list[tuple[Mapping[str, Any], int, int]] = []
    for row in rows:
        if parts and parts[-1][0] is row.columns and parts[-1][2] == row.place:
            parts[-1] = (row.columns, parts[-1][1], row.place + 1)
        else:
            parts.append((row.columns, row.place, row.place + 1))
    batch = {}
    for name in parts[0][0]:
        values = [columns[name][first:end] for columns, first, end in parts]
        if isinstance(values[0], np.ndarray) and values[0].dtype.kind in "biuf":
            values = [to_tensors(array) for array in values]
        if isinstance(values[0], torch.Tensor):
            batch[name] = values[0] if len(values) == 1 else torch.cat(values)
        else:
            batch[name] = collate_by([value for some in values for value in some], collate_fn_map=collate_fn_map)
    return batch


def _refuse_batches(batches: Sequence[Batch], *, collate_fn_map: Any = None) -> Any:
    raise ValueError(
        "the data set gives batches, which DataLoader would put together again: DataLoader(ds, batch_size=None) takes "
        "them as they are, and CorgiPileDataset(..., batch_size=None) gives rows"
    )


default_collate_fn_map[Row] = _collate_rows
default_collate_fn_map[Batch] = _refuse_batches


def to_tensors(batch: Any) -> Any:
    """Arrays of numbers as tensors, in whatever they are; they share their memory."""
    return each_part(batch, lambda part: _tensor(part) if isinstance(part, np.ndarray) else part)


def _tensor(array: np.ndarray[Any, Any]) -> Any:
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
