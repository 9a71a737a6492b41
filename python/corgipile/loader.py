"""The loader: a data set's batches, transformed in worker processes if asked, and exact resumption."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corgipile._checks import check_function, check_number
from corgipile._collate import collate
from corgipile._shared import MAX_WORKERS, Counting, Position
from corgipile.dataset import CorgiPileDataset, Tensors, check_tensors, to_torch

Transform = Callable[[Any], Any]


class Loader(Counting):
    """Iterates over the batches of a data set, each epoch in its own order.

    The sequence of batches does not depend on the number of workers if the data set has `lanes`.

    Args:
        dataset: the data set; the loader yields the batches of its rank.
        transform: a function that is called with each batch; its result replaces the batch.
        sample_transform: a function that is called with each row of a batch, as a dictionary, before `transform`; the
            results are put together into a batch again.
        num_workers: number of processes that read and transform batches; 0 uses this process. Workers need torch.
        tensors: "numpy" or "torch"; by default that of the data set.
        **options: `persistent_workers`, `prefetch_factor`, `multiprocessing_context`, `pin_memory`, `timeout` and
            `worker_init_fn` of torch's DataLoader, for workers.
    """

    def __init__(
        self,
        dataset: CorgiPileDataset,
        *,
        transform: Transform | None = None,
        sample_transform: Transform | None = None,
        num_workers: int = 0,
        tensors: Tensors | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(dataset, CorgiPileDataset):
            raise TypeError(f"dataset: {type(dataset).__name__} is not a CorgiPileDataset")
        if sample_transform is not None and dataset.gives_rows:
            raise ValueError("sample_transform: the data set gives rows, which transform is given")
        check_function("transform", transform)
        check_function("sample_transform", sample_transform)
        check_number("num_workers", num_workers, 0, MAX_WORKERS)
        known = ("persistent_workers", "prefetch_factor", "multiprocessing_context", "pin_memory", "timeout")
        for name in options:
            if name not in (*known, "worker_init_fn"):
                raise TypeError(f"{name}: Loader knows no such option")
        self.dataset = dataset
        self._tensors: Tensors = tensors or dataset.tensors
        check_tensors(self._tensors)
        self._steps = _Steps(transform, sample_transform, self._tensors)
        self._workers = num_workers
        self._options = options if num_workers else {}
        self._persistent: Any = None
        active = dataset.plan(num_workers).active_workers(max(1, num_workers))
        if active < num_workers:
            warnings.warn(
                f"{active} of {num_workers} workers have something to do: make lanes a multiple of ranks times workers",
                stacklevel=2,
            )

    def __repr__(self) -> str:
        steps = [f"{name}={value!r}" for name, value in vars(self._steps).items() if value is not None]
        options = "".join(f", {name}={value!r}" for name, value in self._options.items())
        return f"Loader({self.dataset!r}, {', '.join(steps)}, num_workers={self._workers}{options})"

    def __len__(self) -> int:
        """Number of batches per epoch."""
        return len(self.dataset)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration. After `load_state_dict`, the same epoch continues where the state was
        saved.
        """
        self.dataset.set_epoch(epoch)
        self._position = None

    def __iter__(self) -> Iterator[Any]:
        position = self._position = self.dataset.progress.begin(None)
        items = self._iterate(position)
        return items if self._workers else map(self._steps, items)

    def _iterate(self, position: Position) -> Iterator[Any]:
        batches = self._by_workers(position) if self._workers else self.dataset.read(*position[:2])
        yield from self._counted(batches, position)
        self._position = (position[0] + 1, 0, 0)

    def _by_workers(self, position: Position) -> Iterator[Sequence[Any]]:
        from corgipile import _workers

        self.dataset.progress.tell_workers(*position[:2])
        if not self._options.get("persistent_workers"):
            loader = _workers.data_loader(self.dataset, self._steps, position, self._workers, self._options)
        else:
            if self._persistent is None:
                self._persistent = _workers.data_loader(self.dataset, self._steps, None, self._workers, self._options)
            loader = self._persistent
        return _workers.in_turns(loader, self._workers)

    def state_dict(self) -> dict[str, Any]:
        """The position of the iteration, counted in batches that were returned: less than 1 kB of numbers and text."""
        position = self._position or self.dataset.progress.pending_position()
        return self.dataset.state_at(position, workers=max(1, self._workers))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration return the rest of the state's epoch; see the data set's method."""
        self.dataset.load_state_dict(state)
        self._position = None


class _Steps:
    """What is done to a batch of arrays."""

    def __init__(self, transform: Transform | None, sample_transform: Transform | None, tensors: Tensors) -> None:
        self.transform = transform
        self.sample_transform = sample_transform
        self.tensors: Tensors = tensors

    def __call__(self, batch: Any) -> Any:
        if self.tensors == "torch":
            batch = to_torch(batch)
        if self.sample_transform is not None:
            rows = range(len(next(iter(batch.values()))))
            batch = collate([self.sample_transform({name: of[row] for name, of in batch.items()}) for row in rows])
            if self.tensors == "torch":
                batch = to_torch(batch)
        return batch if self.transform is None else self.transform(batch)
