"""The data set: batches in CorgiPile's order, for one rank.

The order is a function of seed, epoch, number of lanes and batch size. To resume in the middle of an epoch, only the
position is needed, and the order does not depend on the number of ranks and workers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from corgipile import _native, _shared, offline
from corgipile._checks import check_number, check_path, check_seed, check_text
from corgipile.items import MapStyle
from corgipile.server import AHEAD, ShuffledByServer
from corgipile.sources import Source, open_path

if TYPE_CHECKING:
    from torch.utils.data import IterableDataset

    Base = IterableDataset[Any]
else:
    # see __class__
    Base = object

Size = int | str
Tensors = Literal["numpy", "torch"]

# more than any epoch, batch or byte has as its number
_MANY = 2**62

# rows that are read at once where single ones are given out: the order of rows depends on it where there are lanes
_ROWS_AT_ONCE = 128

# what a state must agree on with the data set that it is loaded into
_CHOICES = ("seed", "batch_size", "shuffle", "uneven_ranks", "drop_last", "fingerprint")


class CorgiPileDataset(_shared.Counting, Base):
    """Batches of a source's rows: blocks in random order, with the rows of a buffer of blocks shuffled.

    Iterating over it yields this rank's batches of the epoch set by `set_epoch`, or, without `set_epoch`, of one epoch
    after another, as dictionaries of column name to array. It is an iterable data set for PyTorch's
    `DataLoader(ds, batch_size=None, num_workers=...)`, too; `corgipile.torch.CorgiPileDataset` has the defaults and the
    arguments that PyTorch's users expect, and `corgipile.Loader` is faster with workers.

    Args:
        source: a source such as `corgipile.parquet(...)`; or a path, whose ending determines the format. Rows of
            `corgipile.postgres(..., server_shuffle=True)` are shuffled by the server, according to `shuffle` and the
            sizes, which must be bytes or shares then; "shuffle_once" needs no `cache_dir` there.
        block_index: if `source` is a path, the path of its index, as in CorgiPile's paper.
        block_size, buffer_size: a number of rows, bytes ("64MiB"), a share of the rows ("10%"), or "auto". Ranks
            and `lanes` divide the buffer among them; without `lanes`, each worker has one of the same size.
        shuffle: "corgipile", "block_only", "sliding_window", "block_window" (blocks in random order through a window)
            or "no_shuffle"; "corgipile_simple" draws a buffer's blocks as the paper does, "block_only_stratified" as
            "corgipile" does; "epoch_shuffle" has all rows in its buffer; "shuffle_once" and "corgi2" read a copy in the
            directory `cache_dir`, which is created if it does not exist.
        seed: determines the order.
        batch_size: rows per batch of one rank. None yields single rows, which a loader can put into batches:
            `DataLoader(ds, batch_size=128)`.
        lanes: number of parallel parts of an epoch. If it is a multiple of the number of ranks and workers, the
            sequence of batches does not depend on that number, except for the last batches of the ranks if the rows
            cannot be divided evenly and `uneven_ranks` is not "join". The rows of a batch are of one lane, which has
            its part of the buffer: with many lanes, they are of few blocks. By default, ranks times workers.
        rank, world_size: from torch.distributed if it is initialized, else 0 of 1.
        uneven_ranks: "pad" (a rank that is one row short repeats a row), "drop" (the last rows are left out) or "join"
            (the ranks' batches may differ in number and size).
        drop_last: leave out batches that are not full.
        tensors: "numpy" or "torch".
        threads: number of reading threads; 0 chooses it for the machine.
        memory: bytes for the buffers of this process; 0 for twice the buffer.
        cache_dir: the directory for copies.
        progress: show progress while a copy is made, as in `shuffle_once`.
    """

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What `isinstance` looks at: an IterableDataset as soon as torch is there, in which DataLoader is."""
        if type(self) is CorgiPileDataset and "torch.utils.data" in sys.modules:
            from corgipile import torch

            return torch.CorgiPileDataset
        return type(self)

    def __init__(
        self,
        source: Source | MapStyle | ShuffledByServer | str | os.PathLike[str],
        block_index: str | os.PathLike[str] | None = None,
        *,
        block_size: Size = "auto",
        buffer_size: Size = "10%",
        shuffle: str = "corgipile",
        seed: int = 0,
        batch_size: int | None = 64,
        lanes: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        uneven_ranks: Literal["pad", "drop", "join"] = "pad",
        drop_last: bool = False,
        tensors: Tensors = "numpy",
        threads: int = 0,
        memory: int = 0,
        cache_dir: str | os.PathLike[str] | None = None,
        progress: offline.Progress = False,
    ) -> None:
        if isinstance(source, str | os.PathLike):
            source = open_path(source, block_index)
        elif not isinstance(source, Source | MapStyle | ShuffledByServer):
            raise TypeError(
                f"source: {type(source).__name__} is neither a path nor made by corgipile.parquet and the like"
            )
        elif block_index is not None:
            raise TypeError("block_index: goes with a path only; give it to what opens the source")
        check_tensors(tensors)
        self._gives_rows = batch_size is None
        batch_size = _ROWS_AT_ONCE if batch_size is None else batch_size
        check_number("batch_size", batch_size, 1)
        check_number("threads", threads, 0)
        check_number("memory", memory, 0, _MANY)
        check_text("shuffle", shuffle, "corgipile")
        check_seed(seed)
        for name, number, least in (("lanes", lanes, 1), ("rank", rank, 0), ("world_size", world_size, 1)):
            if number is not None:
                check_number(name, number, least)
        if cache_dir is not None:
            check_path("cache_dir", cache_dir)
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size: give both, or none to ask torch.distributed")
        sizes = {"block_size": str(block_size), "buffer_size": str(buffer_size)}
        if isinstance(source, ShuffledByServer):
            source = source.shuffled(shuffle, seed, **sizes)
            shuffle, sizes = "no_shuffle", {"block_size": "auto", "buffer_size": AHEAD}
        elif shuffle == "epoch_shuffle":
            shuffle, sizes["buffer_size"] = "corgipile", "100%"
        elif shuffle == "mrs":
            raise ValueError(
                "shuffle: 'mrs' gives some rows twice and others never, which is for comparisons in SQL: "
                "corgipile_shuffle(..., shuffle => 'mrs') and corgipile_train have it"
            )
        elif shuffle in ("shuffle_once", "corgi2"):
            if cache_dir is None or not isinstance(source, Source):
                raise ValueError(
                    f"cache_dir: {shuffle} needs a directory for its copy, and a source that can be copied"
                )
            if shuffle == "shuffle_once":
                source = offline.shuffle_once(source, cache_dir, seed=seed, progress=progress)
                shuffle = "no_shuffle"
            else:
                source = offline.corgi2(source, cache_dir, seed=seed, progress=progress, **sizes)
                shuffle = "corgipile"
        self.source = source
        self._sizes = sizes
        self._options: dict[str, Any] = {
            "shuffle": shuffle,
            "seed": seed,
            "batch_size": batch_size,
            "uneven_ranks": uneven_ranks,
            "drop_last": drop_last,
        }
        self._lanes = lanes
        self._rank = None if rank is None or world_size is None else (rank, world_size)
        self._tensors: Tensors = tensors
        self._reading = (threads, memory)
        self._progress = _shared.Progress()
        #: where a worker goes on by itself
        self._own: _shared.Position | None = None
        rank, world_size = self.rank_and_world_size()
        if not 0 <= rank < world_size:
            raise ValueError(f"rank: {rank} of world_size {world_size}")
        self.plan()  # says what is wrong with the arguments

    def rank_and_world_size(self) -> tuple[int, int]:
        """The rank of this process, and the number of ranks."""
        if self._rank is not None:
            return self._rank
        return of_distributed()

    def plan(self, workers: int = 1, source: _native.Source | None = None) -> _native.Plan:
        """The assignment of rows to batches for this number of workers per rank; or that of a copy of the source."""
        world_size = self.rank_and_world_size()[1]
        if (kept := self._progress.lanes()) is not None:
            lanes, together = kept
        elif self._lanes is not None:
            lanes = together = self._lanes
        else:
            lanes, together = world_size * max(1, workers), world_size
        sizes = self._sizes
        if self._lanes is None and lanes > together:
            # each worker has as large a buffer as a process without workers, so that a batch is mixed as well
            buffers = self._plan(source, world_size, world_size, sizes).buffers
            sizes = {**sizes, "buffer_size": f"{min(100.0, 100.0 / buffers * (lanes // together))}%"}
        if isinstance(self.source, ShuffledByServer):
            self.source.check(world_size, workers, lanes)
        return self._plan(source, lanes, together, sizes)

    def _plan(self, source: _native.Source | None, lanes: int, together: int, sizes: dict[str, str]) -> _native.Plan:
        world_size = self.rank_and_world_size()[1]
        options: dict[str, Any] = {**sizes, **self._options}
        if self._gives_rows:
            # torch's DistributedSampler calls it so if rows are left out that ranks cannot share
            options["uneven_ranks"] = "drop" if options["drop_last"] else options["uneven_ranks"]
            options["drop_last"] = False
        native = source or self.source.native
        plan = _native.Plan(native, lanes=lanes, together=together, world_size=world_size, **options)
        if self._gives_rows and lanes > 1:
            # a divisor of a lane's part of the buffer: that is of whole blocks then if it can be, as in the paper
            part = plan.rows // plan.buffers // lanes
            divisors = [rows for rows in range(_ROWS_AT_ONCE // 8, _ROWS_AT_ONCE) if part % rows == 0]
            if divisors:
                options["batch_size"] = divisors[-1]
                plan = _native.Plan(native, lanes=lanes, together=together, world_size=world_size, **options)
        return plan

    def __len__(self) -> int:
        """Number of batches of this rank per epoch, or of rows if it gives rows."""
        rank, world_size = self.rank_and_world_size()
        if not self._gives_rows:
            return self.plan().batches(rank)
        rows, kind = len(self.source), "drop" if self._options["drop_last"] else self._options["uneven_ranks"]
        more = {"pad": world_size - 1, "drop": 0, "join": world_size - 1 - rank}[kind]
        return (rows + more) // world_size

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration, also in workers.

        After `load_state_dict`, the same epoch continues where the state was saved.

        The first epoch is 0, as for PyTorch's samplers. It is epoch 1 of `corgipile_shuffle` in SQL and of the command.
        """
        check_number("epoch", epoch, 0, _MANY)
        if self._progress.pending() != (epoch, True):
            self._progress.set((epoch, 0, 0))
        self._position = None

    def __iter__(self) -> Iterator[Any]:
        worker, workers = worker_of_torch()
        # at once, and not with the first batch: a state may be taken before that
        self._position = self._own or self._progress.pending_position(worker if workers else None)
        return self._iterate(worker, workers)

    def _iterate(self, worker: int, workers: int) -> Iterator[Any]:
        # with the first batch, and not at once: torchdata makes iterators of epochs that are over
        own, self._own = self._own, None
        position = self._progress.begin(worker if workers else None)
        if own is not None:
            position = own
        elif worker:
            position = (*position[:2], 0)  # the first worker has the batch of which rows were given out
        self._position = position
        stride = self.plan(workers).active_workers(workers) if workers else 1
        batches = self.read(*position[:2], worker, max(1, workers))
        yield from self._counted(batches, position, stride)
        if not workers:
            # a worker has come to the end of this epoch, whatever the others have
            self._position = (position[0] + 1, 0, 0)

    def read(self, epoch: int, start: int = 0, worker: int = 0, workers: int = 1) -> Iterator[Sequence[Any]]:
        """What batches of this rank give in an epoch, from batch number `start` on: one batch, or its rows. With
        several workers, those of one of them."""
        of = {
            "epoch": epoch,
            "rank": self.rank_and_world_size()[0],
            "start": start,
            "worker": worker,
            "workers": workers,
        }
        threads, memory = self._reading
        if isinstance(self.source, MapStyle):
            items = self._gives_rows
            yield from map(
                self._items if items else self._whole,
                self.source.read(lambda source: self.plan(workers, source), items=items, **of, memory=memory),
            )
            return
        if isinstance(self.source, ShuffledByServer):
            batches = self.source.read(lambda source: self.plan(workers, source), **of, memory=memory)
        else:
            batches = _closing(self.plan(workers).reader(**of, threads=threads, memory=memory))
        yield from map(self._rows if self._gives_rows else self._whole, batches)

    def _converted(self, batch: Any) -> Any:
        return to_torch(batch) if self._tensors == "torch" else batch

    def _whole(self, batch: Any) -> Sequence[Any]:
        return (self._converted(batch),)

    def _items(self, items: list[Any]) -> Sequence[Any]:
        return [self._converted(item) for item in items]

    def _rows(self, batch: Mapping[str, Any]) -> Sequence[Any]:
        """The rows of a batch of columns."""
        columns = self._converted(batch)
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    def state_dict(self) -> dict[str, Any]:
        """The position of the iteration: less than 1 kB of numbers and text, for pickle or JSON.

        In a worker of torchdata's `StatefulDataLoader`, that of the worker.
        """
        worker, workers = worker_of_torch()
        if workers:
            position = self._position or (*self._progress.pending()[:1], 0, 0)
            return {**self.state_at(position, workers), "worker": worker, "workers": workers}
        if self._position is None and self._progress.read_by_workers():
            raise RuntimeError(
                "the batches are read in DataLoader's workers, ahead of you: use corgipile.Loader, or torchdata's "
                "StatefulDataLoader"
            )
        return self.state_at(self._position or self._progress.pending_position())

    def state_at(self, position: _shared.Position, workers: int = 1) -> dict[str, Any]:
        """The state of a rank at a position, with this number of workers."""
        world_size = self.rank_and_world_size()[1]
        plan = self.plan(workers)
        together = self._progress.lanes() or (plan.lanes, self._lanes or world_size)
        epoch, batches, row = position
        return {
            "version": 1,
            "epoch": epoch,
            "batches": batches * world_size,
            "row": row,
            "ranks": world_size,
            "lanes": plan.lanes,
            "together": together[1],
            **self._options,
            # that of the sizes which were asked for, whatever the number of workers
            "fingerprint": f"{self._plan(None, together[1], together[1], self._sizes).fingerprint:016x}",
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration continue from a state, with the same or another number of ranks and workers.

        Raises ValueError if the state belongs to another source or to other settings.
        """
        if not isinstance(state, dict):
            raise TypeError(f"state: must be a dictionary, as state_dict() gives it, not {type(state).__name__}")
        if state.get("version") != 1:
            raise ValueError(f"state: version {state.get('version')!r} is not known to this corgipile")
        ours = self.state_at((0, 0, 0))
        for name in _CHOICES:
            if state.get(name) != ours[name]:
                what = "the state is that of another source, or of other sizes of blocks or buffers"
                if name != "fingerprint":
                    what = f"the state has {state.get(name)!r}, the data set {ours[name]!r}"
                raise ValueError(f"{name}: {what}")
        for name, least in (("epoch", 0), ("batches", 0), ("row", 0), ("ranks", 1), ("lanes", 1), ("together", 1)):
            check_number(f"state: {name}", state.get(name), least, _MANY)
        lanes, together, batches, row = state["lanes"], state["together"], state["batches"], state["row"]
        world_size = self.rank_and_world_size()[1]
        of_worker, here = (state.get("worker"), state.get("workers")), worker_of_torch()
        if of_worker != (here if here[1] else (None, None)):
            raise ValueError(
                f"state: is that of worker {of_worker[0]} of {of_worker[1]}, here is {here[0]} of {here[1]}"
            )
        if self._lanes is not None and (self._lanes, self._lanes) != (lanes, together):
            raise ValueError(f"lanes: the state has {lanes}, the data set {self._lanes}")
        if together % world_size:
            what = f"the state is that of {together} lanes, which {world_size} ranks cannot share equally"
            raise ValueError(f"world_size: {what}: choose lanes that the ranks you may have divide")
        if row and state["ranks"] != world_size:
            what = f"the state is that of {state['ranks']} ranks within rows that were read at once"
            raise ValueError(f"world_size: {what}, with which {world_size} ranks cannot go on")
        if batches % world_size:
            what = f"the state is that of {batches} batches of all ranks, in the middle of a step of {world_size} ranks"
            raise ValueError(f"world_size: {what}: save it after steps whose batches all numbers of ranks divide")
        position = (state["epoch"], batches // world_size, row)
        if here[1]:
            self._own = self._position = position
            self._progress.set_own(state["epoch"], here[0], (lanes, together))
        else:
            self._progress.set(position, (lanes, together))
            self._position = None

    @property
    def gives_rows(self) -> bool:
        """Whether it gives rows instead of batches."""
        return self._gives_rows

    @property
    def tensors(self) -> Tensors:
        """What batches are of."""
        return self._tensors

    @property
    def progress(self) -> _shared.Progress:
        """What workers gets."""
        return self._progress

    def __getstate__(self) -> dict[str, Any]:
        # torch.distributed is not initialized in a worker that was spawned
        return {**self.__dict__, "_rank": self.rank_and_world_size()}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.__getstate__())

    def __repr__(self) -> str:
        options: dict[str, Any] = {**self._sizes, **self._options}
        if self._gives_rows:
            options["batch_size"] = None
        return f"CorgiPileDataset({len(self.source)} rows, {', '.join(f'{k}={v!r}' for k, v in options.items())})"


def _restore(kind: type, state: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    made.__dict__.update(state)
    return made


def _closing(reader: _native.Reader) -> Iterator[Any]:
    """The batches of a reader, whose threads end with the iteration."""
    try:
        yield from reader
    finally:
        reader.close()


def of_distributed() -> tuple[int, int]:
    """The rank of this process in torch.distributed, and the number of ranks; 0 of 1 without it."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def worker_of_torch() -> tuple[int, int]:
    """The number of this DataLoader worker, and the number of workers; 0 of 0 outside of a worker."""
    data = sys.modules.get("torch.utils.data")
    info = None if data is None else data.get_worker_info()
    return (0, 0) if info is None else (info.id, info.num_workers)


def check_tensors(tensors: str) -> None:
    """Raises ValueError unless it is "numpy" or "torch"."""
    if tensors not in ("numpy", "torch"):
        raise ValueError(f"tensors: {tensors!r} is neither 'numpy' nor 'torch'")


def to_torch(batch: Any) -> Any:
    """Numeric arrays as tensors that share their memory; everything else unchanged."""
    from corgipile import torch

    return torch.to_tensors(batch)
