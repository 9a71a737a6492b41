"""Where rows come from.

A source is opened when it is made, so that what is wrong with it is said at once. It can be given to another process,
which opens it again and makes sure that it is still the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from corgipile import _native


class Source:
    """Rows that can be read in blocks, from any process. Made by `corgipile.parquet`, `corgipile.arrays`, and so on."""

    def __init__(self, opener: Callable[..., _native.Source], *arguments: Any) -> None:
        self._opener = opener
        self._arguments = arguments
        self._opened: _native.Source | None = opener(*arguments)
        self._fingerprint = self._opened.fingerprint

    @property
    def native(self) -> _native.Source:
        """The open source."""
        if self._opened is None:
            opened = self._opener(*self._arguments)
            if opened.fingerprint != self._fingerprint:
                raise _native.SourceError("the source changed since it was given to another process")
            self._opened = opened
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __len__(self) -> int:
        """How many rows there are."""
        return self.native.rows

    @property
    def columns(self) -> dict[str, str]:
        """Names of the columns, and what Arrow calls their types."""
        return dict(self.native.columns)

    @property
    def fingerprint(self) -> int:
        """What the rows, their number and order, depend on."""
        return self._fingerprint

    @property
    def skipped(self) -> int:
        """How many damaged rows were skipped so far in this process, where that was asked for."""
        return self.native.skipped


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def paths_of(paths: Paths) -> list[str]:
    """Paths, or patterns for them, as a list of text."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    return [os.fspath(path) for path in paths]


def parquet(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    on_error: str = "raise",
    fixed_lists: bool = True,
) -> Source:
    """Rows of Parquet files.

    `paths` are files, folders or patterns such as "train/*.parquet"; `columns` are those to read, all without.
    `on_error="skip"` leaves out damaged rows and counts them (`Source.skipped`). With `fixed_lists`, a column whose lists
    all have the same length is one array of two dimensions; else, and without, each list is an array of its own.
    """
    names = None if columns is None else list(columns)
    return Source(_native.parquet, paths_of(paths), names, on_error, fixed_lists)


def arrays(columns: Mapping[str, Any], *, fingerprint: int | None = None) -> Source:
    """Rows of arrays in memory, all of the same length; their numbers are not copied.

    Arrays may have any number of dimensions, the first being the rows. They must not be changed while they are read.
    The fingerprint by which `load_state_dict` tells this source from others is made of names, types, lengths and a
    sample of the values, unless one is given.
    """
    if not columns:
        raise ValueError("columns: there are none")
    taken = {name: _array(values) for name, values in columns.items()}
    lengths = {name: len(values) if values.ndim else -1 for name, values in taken.items()}
    if -1 in lengths.values() or len(set(lengths.values())) > 1:
        raise ValueError(f"columns: all must have the same length, but they have {lengths}")
    return Source(_memory, taken, _sampled(taken) if fingerprint is None else fingerprint)


def _array(values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind == "S" and not isinstance(values, np.ndarray):
        # numpy's own strings of bytes end before their last zeros
        return np.array(values, dtype=object)
    return array


def _memory(columns: dict[str, np.ndarray], fingerprint: int) -> _native.Source:
    return _native.memory([_column(name, values) for name, values in columns.items()], fingerprint)


def _column(name: str, values: np.ndarray) -> tuple[str, str, list[int], Any]:
    """What the native part makes a column of."""
    kind, shape = values.dtype.kind, list(values.shape[1:])
    if kind in "US" or kind == "O":
        if shape:
            raise TypeError(f"column {name!r}: arrays of objects have one dimension")
        items = values.tolist()
        first = next((item for item in items if item is not None), "")
        if not isinstance(first, str | bytes):
            raise TypeError(f"column {name!r}: objects must be text or bytes, not {type(first).__name__}")
        return name, "str" if isinstance(first, str) else "bytes", shape, items
    if kind not in "biufmM":
        raise TypeError(f"column {name!r}: arrays of type {values.dtype} cannot be read")
    values = np.require(values.astype(values.dtype.newbyteorder("<"), copy=False), requirements=["C", "A"])
    code = values.dtype.str[1:] if kind in "mM" else kind + str(values.dtype.itemsize)
    return name, code, shape, values.reshape(-1).view(np.uint8)


def _sampled(columns: Mapping[str, np.ndarray]) -> int:
    """A number that other columns hardly have, without looking at every value."""
    digest = hashlib.blake2b(digest_size=8)
    for name, values in columns.items():
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        some = values[:: max(1, len(values) // 64)][:64]
        digest.update(repr(some.tolist()).encode() if some.dtype.kind == "O" else np.ascontiguousarray(some).tobytes())
    return int.from_bytes(digest.digest(), "little")


# What a path's last part says about its format.
_FORMATS: dict[str, Callable[[Paths], Source]] = {".parquet": parquet}


def open_path(path: str | os.PathLike[str], block_index: str | os.PathLike[str] | None) -> Source:
    """The source that a path names by its ending, as in the paper's `CorgiPileDataset(dataset_path, block_index)`."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    opener = _FORMATS.get(ending)
    if opener is None:
        known = ", ".join(sorted(_FORMATS))
        raise ValueError(f"dataset_path: {os.fspath(path)!r} ends with none of {known}; open it yourself")
    if block_index is not None:
        raise ValueError(f"block_index: files that end with {ending} have an index of their own: leave it out")
    return opener(path)
