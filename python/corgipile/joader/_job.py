"""A job: batches from a server, in random order, each row once in each epoch."""

from __future__ import annotations

import copy
import operator
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corgipile import _native
from corgipile.dataset import Tensors, check_number, check_tensors, to_torch, worker_of_torch

from . import _admin, _recipe, _sources

if TYPE_CHECKING:
    from torch.utils.data import IterableDataset

    Base = IterableDataset[Any]
else:
    # see __new__
    Base = object

_MANY = 2**62

# what a state must agree on with the job that it is loaded into
_CHOICES = ("dataset", "columns", "where", "prepare", "seed", "batch_size", "drop_last")


class Job(Base):
    """Batches of a server's data set, as dictionaries of column name to array.

    Iterating over it yields the batches of all epochs, one after another; `by_epoch` separates the epochs. Orders are
    random, each row comes once per epoch, and the order depends on the other jobs. If the server ends, the job
    continues to read by itself, and returns to a server that has the same data set again.

    If torch was imported first, it is an iterable data set for PyTorch's `DataLoader(job, batch_size=None)`, with at
    most one worker. It registers when its first batch is requested.

    Args:
        address: address of the server, such as "unix:/run/user/1000/joader".
        dataset: a name given to `create`.
        columns: the columns to return; by default all.
        where: an SQL condition over any columns of the source, such as "label < 100".
        prepare: steps that the server computes once for all jobs with the same steps: `joader.decode`,
            `joader.function`.
        name: the name that others see.
        seed: determines the order of rows in buffers.
        epochs: number of epochs.
        batch_size: rows per batch.
        buffer_size: elements whose rows are shuffled together: a number, or a share ("10%"). The server may give less,
            at most a quarter of its memory.
        drop_last: leave out batches that are not full.
        rank, world_size: for a data-parallel job, the rank of this process and the number of processes, on this machine
            or several. All have the same name; each gets its share of the rows, and all get the same number of batches.
            From torch.distributed if it is initialized, else 0 of 1.
        timeout: seconds that a rank waits for the others.
        tensors: "numpy" or "torch".
    """

    def __new__(cls, *_args: Any, **_options: Any) -> Job:
        """If torch is imported, returns an object that DataLoader accepts as an iterable data set."""
        if cls is Job and "torch" in sys.modules:
            return object.__new__(_torch_class())
        return object.__new__(cls)

    def __init__(
        self,
        address: str | os.PathLike[str],
        *,
        dataset: str,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        prepare: Sequence[_recipe.Step] = (),
        name: str | None = None,
        seed: int = 0,
        epochs: int = 1,
        batch_size: int = 64,
        buffer_size: int | str = "10%",
        drop_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        timeout: int = 600,
        tensors: Tensors = "numpy",
    ) -> None:
        columns = _admin.names_of_columns(columns)
        for argument, text in (("dataset", dataset), ("where", where or ""), ("name", name or "")):
            if not isinstance(text, str):
                raise TypeError(f"{argument}: {text!r} is not a string")
        check_number("seed", seed, -(2**63), 2**63 - 1)
        check_number("epochs", epochs, 0, _MANY)
        check_number("batch_size", batch_size, 1)
        check_number("timeout", timeout, 1, 2**31)
        check_tensors(tensors)
        self._path = _admin.socket_of(address)
        self._choices = {
            "dataset": dataset,
            "columns": columns,
            "where": where or "",
            "prepare": _recipe.as_text(prepare),
            "seed": operator.index(seed),
            "batch_size": operator.index(batch_size),
            "drop_last": _flag("drop_last", drop_last),
        }
        self._rank, self._world_size = _rank(rank, world_size)
        if self._world_size > 1 and not name:
            raise ValueError("name: a data-parallel job needs one, by which its processes find each other")
        self._timeout = operator.index(timeout)
        self._epochs = operator.index(epochs)
        self._buffer = _buffer(buffer_size)
        self._counts: dict[str, int] = dict.fromkeys(("shared", "outside", "direct", "errors", "registered"), 0)
        self._name = name or f"{os.path.basename(sys.argv[0]) or 'python'} {os.getpid()}"
        self._tensors: Tensors = tensors
        self._state: dict[str, Any] | None = None
        self._native: _native.JoaderJob | None = None
        # threads of the native part are in the process that has begun it
        self._process = os.getpid()

    def __iter__(self) -> Iterator[Any]:
        for _, batches in self.by_epoch():
            yield from batches

    def by_epoch(self) -> Iterator[tuple[int, Iterator[Any]]]:
        """The remaining epochs, each as its number and its batches.

        If not all batches of an epoch are taken, it continues in the next step. Raises ValueError if no batch was
        taken: the loop would never end.
        """
        worker, workers = worker_of_torch()
        if workers > 1:
            raise ValueError(f"num_workers: {workers} workers would each be a job of their own: use 1 or none")
        del worker
        job = self._begun()
        while job is self._native and not self._ended and job.epoch < self._epochs:
            epoch, before = job.epoch, self._taken
            yield epoch, self._batches(job)
            if job is self._native and not self._ended and self._taken == before:
                raise ValueError(f"by_epoch: no batch of epoch {epoch} was taken: take some, or break")

    def _batches(self, job: _native.JoaderJob) -> Iterator[Any]:
        epoch = job.epoch
        while (batch := job.next()) is not None:
            self._taken += 1
            yield to_torch(batch) if self._tensors == "torch" else batch
        self._taken += 1
        if job is self._native:
            self._ended = epoch + 1 >= self._epochs

    _ended = False
    # batches and ends of epochs
    _taken = 0
    _closed = False

    def _begun(self) -> _native.JoaderJob:
        if self._closed:
            raise ValueError("the job was closed: load_state_dict() makes it go on")
        if self._native is None:
            choices = dict(self._choices)
            self._ended = self._epochs == 0
            self._process = os.getpid()
            self._native = _native.JoaderJob(
                self._path,
                name=self._name,
                rank=self._rank,
                world_size=self._world_size,
                timeout=self._timeout,
                data_set=choices["dataset"],
                columns=choices["columns"],
                filter=choices["where"],
                recipe=choices["prepare"],
                seed=choices["seed"],
                epochs=self._epochs,
                batch_size=choices["batch_size"],
                buffer_elements=self._buffer if isinstance(self._buffer, int) else None,
                buffer_share=self._buffer if isinstance(self._buffer, float) else 0.1,
                drop_last=choices["drop_last"],
                place=None if self._state is None else _place(self._state),
                opener=_sources,
                **_admin.python_of_processes(),
            )
        return self._native

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        if self._native is not None:
            return self._native.epoch
        return 0 if self._state is None else self._state["epoch"]

    @property
    def rows(self) -> int | None:
        """Rows per epoch, known after the first batch."""
        return None if self._native is None else self._native.rows

    @property
    def mode(self) -> str:
        """How the job gets its rows: "connected" to the server, "direct" (by itself), "connecting", or "closed"."""
        if self._native is None:
            return "closed" if self._closed else "connecting"
        return self._native.mode[0]

    @property
    def last_error(self) -> str | None:
        """The reason why it reads by itself, if it does."""
        return None if self._native is None else self._native.mode[1]

    @property
    def counts(self) -> dict[str, int]:
        """Elements by origin, and the number of registrations ("registered").

        Origins: "shared" memory, "outside" of it because it was full, read by itself ("direct"), and "errors".
        """
        return self._counts if self._native is None else self._native.counts

    def state_dict(self) -> dict[str, Any]:
        """The position of the job: plain data for pickle and JSON. Its size grows with the number of elements."""
        place = None if self._native is None else self._native.place
        if place is None:
            if self._state is not None:
                return copy.deepcopy(self._state)
            return {"version": 1, **self._choices, "epoch": 0, "begun": False}
        epoch, left, buffer, number, given, batches, fingerprint = place
        return {
            "version": 1,
            **self._choices,
            "begun": True,
            "epoch": epoch,
            "left": [list(run) for run in left],
            "buffer": buffer,
            "number": number,
            "given": given,
            "batches": batches,
            "fingerprint": f"{fingerprint:016x}",
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration continue from a state with the rest of its epoch.

        The rows of the current buffer come in the same order, the others in another one. Raises ValueError if the state
        belongs to another data set or to other settings.
        """
        if not isinstance(state, dict):
            raise TypeError(f"state: must be a dictionary, as state_dict() gives it, not {type(state).__name__}")
        if state.get("version") != 1:
            raise ValueError(f"state: version {state.get('version')!r} is not known to this corgipile")
        for name in _CHOICES:
            if state.get(name) != self._choices[name]:
                raise ValueError(f"{name}: the state has {state.get(name)!r}, the job {self._choices[name]!r}")
        if state.get("begun"):
            try:
                _place(state)
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"state: it is not what state_dict() gives: {error!r}") from error
        state = copy.deepcopy(state)
        self.close()
        self._ended = self._closed = False
        self._state = state if state.get("begun") else None

    def close(self) -> None:
        """Leaves the server. Afterwards the job has no more batches; `state_dict` still returns its position."""
        if self._native is not None and self._process != os.getpid():
            # the job of another process, which is not this one's to close
            self._native = None
        elif self._native is not None:
            # an iteration that is under way still has it, and hears that it is closed
            native, state = self._native, self.state_dict()
            self._counts = native.counts
            self._native, self._state = None, state if state["begun"] else None
            native.close()
        self._closed = True

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # another process registers by itself
        state = self.state_dict() if self._native else self._state
        return {**self.__dict__, "_native": None, "_state": state if state and state["begun"] else None}

    def __repr__(self) -> str:
        if self._process != os.getpid():
            return f"Job({self._choices['dataset']!r}, of another process)"
        return f"Job({self._choices['dataset']!r}, {self.mode}, epoch {self.epoch} of {self._epochs})"


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: {value!r} is neither True nor False")
    return bool(value)


def _buffer(size: int | str) -> int | float:
    """A number of elements, or a share of them."""
    if isinstance(size, str) and size.endswith("%"):
        try:
            share = float(size[:-1]) / 100
        except ValueError:
            share = 0.0
        if 0 < share <= 1:
            return share
    elif isinstance(size, str) and size.isdecimal() and int(size) > 0:
        size = int(size)
    if isinstance(size, str):
        raise ValueError(f"buffer_size: {size!r} is neither a number of elements nor a share of them such as '10%'")
    check_number("buffer_size", size, 1)
    return size


def _rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size: give both, or none to ask torch.distributed")
    if rank is None or world_size is None:
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
        return 0, 1
    check_number("world_size", world_size, 1)
    check_number("rank", rank, 0, world_size - 1)
    return rank, world_size


def _place(state: dict[str, Any]) -> tuple[int, list[tuple[int, int]], list[int], int, int, int, int]:
    left = [(int(start), int(end)) for start, end in state["left"]]
    if any(not 0 <= start < end < 2**32 for start, end in left):
        raise ValueError("left: no ranges of elements")
    numbers = [int(state[name]) for name in ("epoch", "number", "given", "batches")]
    buffer = [int(element) for element in state["buffer"]]
    fingerprint = int(state["fingerprint"], 16)
    if any(not 0 <= number < 2**62 for number in numbers) or not 0 <= fingerprint < 2**64:
        raise ValueError("a number is out of range")
    if any(not 0 <= element < 2**32 for element in buffer):
        raise ValueError("buffer: no elements")
    return numbers[0], left, buffer, numbers[1], numbers[2], numbers[3], fingerprint


def _torch_class() -> type:
    """The job as torch knows it."""
    global _of_torch
    if _of_torch is None:
        from torch.utils.data import IterableDataset

        _of_torch = type("Job", (Job, IterableDataset), {"__doc__": Job.__doc__, "__reduce__": _reduce})
    return _of_torch


_of_torch: type | None = None


def _reduce(job: Job) -> tuple[Any, ...]:
    return _restore, (job.__getstate__(),)


def _restore(state: dict[str, Any]) -> Job:
    job = object.__new__(_torch_class())
    job.__dict__.update(state)
    return job
