"""`shuffle` of files: what CorgiPileDataset reads, as CSV or Parquet."""

from __future__ import annotations

import argparse
import contextlib
import csv
import re
import secrets
import sys
from typing import Any

import numpy as np

from .common import ParquetWriter, bar, written

#: What files are by the end of their names, and the function that opens them.
KINDS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
    ".tar": "webdataset",
}


def shuffle_files(arguments: argparse.Namespace) -> int:
    """Writes one epoch of the rows of files."""
    import corgipile

    sizes = {"block_size": arguments.block_size, "buffer_size": arguments.buffer_size}
    given: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    given["seed"] = secrets.randbits(32) if arguments.seed is None else arguments.seed
    to_parquet = arguments.output.endswith(".parquet")
    source = _source(arguments.source, as_text=not to_parquet)
    if to_parquet and not len(source):
        raise ValueError("there are no rows: an empty Parquet file would have no types")
    rows: Any = corgipile.CorgiPileDataset(
        source, shuffle=arguments.shuffle, batch_size=4096, rank=0, world_size=1, **given
    )
    rows.set_epoch(arguments.epoch - 1)
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(written(arguments.output))
        write = stack.enter_context(_Parquet(output, source.columns) if to_parquet else _Csv(output))
        progress = stack.enter_context(bar("shuffle", len(source), " rows"))
        for batch in rows:
            write.batch(batch)
            progress.update(len(next(iter(batch.values()))))
    return 0


def _source(paths: list[str], as_text: bool) -> Any:
    """The source for files, by what their names end with; values of CSV may stay the text that they are."""
    import corgipile

    found = {kind for path in paths for end, kind in KINDS.items() if path.endswith(end)}
    if len(found) != 1:
        raise ValueError(f"files have to be of one kind, and end with one of {', '.join(KINDS)}")
    kind, files = found.pop(), paths[0] if len(paths) == 1 else paths
    if kind == "csv" and as_text:
        return corgipile.csv(files, types=dict.fromkeys(corgipile.csv(files).columns, "str"))
    return getattr(corgipile, kind)(files)


class _Csv:
    def __init__(self, output: str) -> None:
        self._own = output != "-"
        self._file = open(output, "w", newline="", encoding="utf-8") if self._own else sys.stdout  # noqa: SIM115 - closed at the end
        self._writer = csv.writer(self._file)
        self._has_header = False

    def batch(self, batch: dict[str, Any]) -> None:
        if not self._has_header:
            self._writer.writerow(batch)
            self._has_header = True
        columns = [_values(column) for column in batch.values()]
        self._writer.writerows(zip(*columns))

    def __enter__(self) -> _Csv:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.flush()
        if self._own:
            self._file.close()


def _values(column: Any) -> list[Any]:
    if column.dtype.kind == "M":  # of nanoseconds, tolist() would make numbers
        return ["" if text == "NaT" else text for text in np.datetime_as_string(column).tolist()]
    values = column.tolist()
    return [" ".join(map(str, value)) if isinstance(value, list) else value for value in values]


class _Parquet(ParquetWriter):
    """Batches as Parquet."""

    def __init__(self, output: str, columns: dict[str, str]) -> None:
        super().__init__(output)
        self._types = {name: self._type(kind) for name, kind in columns.items()}

    def _type(self, kind: str) -> Any:
        """The type of a column of objects, as the source calls it: a batch may have nothing but missing values."""
        if (of := re.fullmatch(r"(?:Large)?List\((.*)\)", kind)) is not None:
            inner = self._type(of[1])
            return None if inner is None else self.pyarrow.list_(inner)
        name = {"utf8": "string", "boolean": "bool_"}.get(kind.lower().removeprefix("large"), kind.lower())
        return getattr(self.pyarrow, name)() if name in _PLAIN else None

    def batch(self, batch: dict[str, Any]) -> None:
        self.write({name: self._array(column, self._types[name]) for name, column in batch.items()})

    def _array(self, column: Any, kind: Any) -> Any:
        if column.dtype.kind == "O":
            return self.pyarrow.array(list(column), kind)
        return self.pyarrow.array(column if column.ndim == 1 else list(column))


#: Functions of pyarrow that make types, of what objects may be or have.
_PLAIN = ("string", "binary", "bool_", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
          "float32", "float64")  # fmt: skip
