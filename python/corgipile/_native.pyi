from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

MOST_DENSE: int

class SourceError(Exception): ...

class Opener(Protocol):
    def open_text(self, text: str) -> Any: ...
    def hold_text(self, text: str) -> Any: ...

class Source:
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def columns(self) -> list[tuple[str, str]]: ...
    @property
    def skipped(self) -> int: ...
    @property
    def messages(self) -> list[str]: ...

class Plan:
    def __init__(
        self,
        source: Source,
        *,
        block_size: str,
        buffer_size: str,
        shuffle: str,
        seed: int,
        batch_size: int,
        lanes: int,
        together: int,
        world_size: int,
        uneven_ranks: str,
        drop_last: bool,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def buffers(self) -> int: ...
    @property
    def lanes(self) -> int: ...
    @property
    def fingerprint(self) -> int: ...
    def batches(self, rank: int) -> int: ...
    def active_workers(self, workers: int) -> int: ...
    def reader(
        self,
        epoch: int,
        rank: int,
        start: int = 0,
        worker: int = 0,
        workers: int = 1,
        threads: int = 0,
        memory: int = 0,
    ) -> Reader: ...

class Reader:
    def __iter__(self) -> Iterator[dict[str, np.ndarray[Any, Any]]]: ...
    def __next__(self) -> dict[str, np.ndarray[Any, Any]]: ...
    def close(self) -> None: ...

class Items:
    @property
    def source(self) -> Source: ...
    def take(self, rows: np.ndarray[Any, Any]) -> list[Any]: ...
    def error(self) -> BaseException | None: ...

def memory(
    columns: Sequence[tuple[str, str, Sequence[int], Any]],
    fingerprint: int,
) -> Source: ...
def items(dataset: Any, rows: int, fingerprint: int) -> Items: ...
def parquet(
    paths: Sequence[str], columns: Sequence[str] | None, on_error: str, lists: str, fill_value: float | None
) -> Source: ...
def arrow(
    paths: Sequence[str], columns: Sequence[str] | None, on_error: str, lists: str, memory_map: bool, fill_value: float | None
) -> Source: ...
def tfrecord(
    paths: Sequence[str],
    columns: Sequence[str] | None,
    features: Sequence[tuple[str, str]] | None,
    raw: bool,
    on_error: str,
    lists: str,
    index: tuple[bool, str | None],
    fill_value: float | None,
) -> Source: ...
def webdataset(
    paths: Sequence[str], columns: Sequence[str] | None, on_error: str, index: tuple[bool, str | None], fill_value: float | None
) -> Source: ...
def csv(
    paths: Sequence[str],
    columns: Sequence[str] | None,
    header: bool,
    delimiter: int,
    quote: int,
    types: dict[str, str],
    nulls: Sequence[str],
    on_error: str,
    index: tuple[bool, str | None],
    fill_value: float | None,
) -> Source: ...
def libsvm(
    paths: Sequence[str],
    dense: int | None,
    zero_based: bool | None,
    on_error: str,
    index: tuple[bool, str | None],
    fill_value: float | None,
) -> Source: ...
def postgres(
    connection: str,
    table: str,
    columns: Sequence[str] | None,
    filter: str | None,
    snapshot: str | None,
    lists: str,
    fill_value: float | None,
) -> tuple[Source, str]: ...
def has_password(connection: str) -> bool: ...

class HeldSnapshot:
    def __init__(self, connection: str, snapshot: str) -> None: ...
    @property
    def name(self) -> str: ...

class Shuffled:
    @property
    def source(self) -> Source: ...
    @property
    def snapshot(self) -> str: ...
    def with_shuffle(self, strategy: str, block_size: str, buffer_size: str) -> Shuffled: ...
    def epoch(self, seed: int, epoch: int) -> Source: ...

def postgres_shuffled(
    connection: str,
    table: str,
    columns: Sequence[str] | None,
    filter: str | None,
    snapshot: str | None,
    lists: str,
    fill_value: float | None,
) -> Shuffled: ...
def build_index(
    path: str,
    format: str,
    header: bool,
    delimiter: int,
    quote: int,
    directory: str | None,
    force: bool,
    on_error: str,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]: ...
def shuffle_once(source: Source, path: str, seed: int, memory: int, progress: Any = None) -> None: ...
def corgi2(
    source: Source, path: str, seed: int, block_size: str, buffer_size: str, progress: Any = None
) -> None: ...

class JoaderError(RuntimeError): ...

class JoaderJob:
    def __init__(
        self,
        path: str,
        *,
        name: str,
        rank: int,
        world_size: int,
        timeout: int,
        data_set: str,
        columns: Sequence[str],
        filter: str,
        recipe: str,
        seed: int,
        epochs: int,
        batch_size: int,
        buffer_elements: int | None,
        buffer_share: float,
        drop_last: bool,
        place: tuple[int, Sequence[tuple[int, int]], Sequence[int], int, int, int, int] | None,
        opener: Opener,
        python: str,
        python_path: str,
    ) -> None: ...
    def next(self) -> dict[str, np.ndarray[Any, Any]] | None: ...
    @property
    def epoch(self) -> int: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def place(self) -> tuple[int, list[tuple[int, int]], list[int], int, int, int, int] | None: ...
    @property
    def mode(self) -> tuple[str, str | None]: ...
    @property
    def counts(self) -> dict[str, int]: ...
    def close(self) -> None: ...

def joader_serve(
    path: str,
    *,
    memory: int,
    threads: int,
    seed: int,
    data_sets: str | None,
    opener: Opener,
    python: str,
    python_path: str,
    processes: int,
    log: str,
    cluster: tuple[str, str, int, int, str, str, str | None, str] | None,
    ready: Callable[[], Any],
    stop: Callable[[], bool],
) -> None: ...
def joader_put(
    path: str,
    name: str,
    source: str,
    *,
    columns: Sequence[str],
    element_size: str,
    sampler: str,
    replaces: bool,
) -> dict[str, Any]: ...
def joader_drop(path: str, name: str) -> None: ...
def joader_data_sets(path: str) -> list[dict[str, Any]]: ...
def joader_status(path: str) -> dict[str, Any]: ...

# the column's name, numpy's type, lengths of the dimensions but the first, values, and the lengths of lists
_Column = tuple[str, str, list[int], Any, list[int] | None]

class Slot:
    def __len__(self) -> int: ...
    def write(self, to: np.ndarray[Any, Any]) -> None: ...

def dict_to_slot(columns: Sequence[_Column]) -> Slot: ...
def slot_to_dict(bytes: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]: ...

class Preparers:
    def __init__(
        self, python: str, number: int, *, seconds: float = 60.0, variables: Sequence[tuple[str, str]] = ()
    ) -> None: ...
    def call(self, callable: str, columns: Sequence[_Column]) -> dict[str, np.ndarray[Any, Any]]: ...
    def cancel(self) -> None: ...
