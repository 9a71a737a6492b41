"""Rows shuffled by the server: tables, views and queries, read as one stream per epoch.

Without it, `corgipile.postgres` reads ranges of pages, which only tables have. With the extension, the server itself
produces CorgiPile's order of any source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from corgipile import _native

#: The orders that `corgipile_shuffle` can send to a data set.
STRATEGIES = (
    "corgipile", "corgipile_simple", "block_only", "block_only_stratified", "sliding_window", "shuffle_once",
    "no_shuffle",
)  # fmt: skip

#: How much is received ahead while rows are in use.
AHEAD = "16MiB"


class ShuffledByServer:
    """Rows of PostgreSQL that the extension shuffles; returned by `corgipile.postgres(..., server_shuffle=True)`."""

    def __init__(self, *arguments: Any) -> None:
        opened = _native.postgres_shuffled(*arguments)
        #: The snapshot under which all epochs are read, by the one that opens the rows again.
        self.snapshot = opened.snapshot
        connection, table, columns, where, _, lists, fill_value = arguments
        self._arguments = connection, table, columns, where, self.snapshot, lists, fill_value
        self._opened: _native.Shuffled | None = opened
        self._choices: tuple[str, str, str] | None = None
        self._seed = 0

    def shuffled(self, shuffle: str, seed: int, block_size: str, buffer_size: str) -> ShuffledByServer:
        """These rows in the order of a data set."""
        if shuffle not in STRATEGIES:
            raise ValueError(f"shuffle: the server has no {shuffle!r}; there are {', '.join(STRATEGIES)}")
        made = object.__new__(ShuffledByServer)
        made.__dict__.update(self.__dict__)
        made._choices = shuffle, block_size, buffer_size
        made._seed = seed
        made._opened = self._reopened().with_shuffle(*made._choices)
        return made

    def _reopened(self) -> _native.Shuffled:
        if self._opened is None:
            self._opened = _native.postgres_shuffled(*self._arguments)
            if self._choices is not None:
                self._opened = self._opened.with_shuffle(*self._choices)
        return self._opened

    @property
    def native(self) -> _native.Source:
        """The rows, which are those of any epoch."""
        return self._reopened().source

    def __len__(self) -> int:
        """Number of rows."""
        return self.native.rows

    @property
    def columns(self) -> dict[str, str]:
        """Names and Arrow types of the columns."""
        return dict(self.native.columns)

    def __repr__(self) -> str:
        return f"postgres({self._arguments[1]!r}, server_shuffle=True): {len(self):,} rows, {', '.join(self.columns)}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def read(self, plan_of: Callable[[_native.Source], _native.Plan], *, epoch: int, **of: int) -> Iterator[Any]:
        """The batches of an epoch, whose rows the server sends in their order."""
        # one thread: rows come one after the other
        reader = plan_of(self._reopened().epoch(self._seed, epoch)).reader(epoch=epoch, **of, threads=1)
        try:
            yield from reader
        finally:
            reader.close()

    @staticmethod
    def check(world_size: int, workers: int, lanes: int | None) -> None:
        """Raises ValueError if more than one process would read."""
        for name, number in (("world_size", world_size), ("num_workers", workers), ("lanes", lanes or 1)):
            if number > 1:
                raise ValueError(
                    f"{name}: {number}, but the server sends an epoch as one stream, for one rank and one worker; "
                    "without server_shuffle, tables and materialized views are read by any number of them"
                )
