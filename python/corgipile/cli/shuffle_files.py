"""`shuffle` of files: what CorgiPileDataset reads, as CSV or Parquet."""

from __future__ import annotations

import argparse
import contextlib
import csv
import secrets
import sys
from typing import Any

from ..db._optional import required
from .common import bar, written

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

    if arguments.epoch < 1:
        raise ValueError(f"--epoch {arguments.epoch} is not at least 1")
    sizes = {"block_size": arguments.block_size, "buffer_size": arguments.buffer_size}
    given: dict[str, Any] = {name: size for name, size in sizes.items() if size is not None}
    given["seed"] = secrets.randbits(32) if arguments.seed is None else arguments.seed
    to_parquet = arguments.output.endswith(".parquet")
    source = _source(arguments.source, as_text=not to_parquet)
    if to_parquet and not len(source):
        raise ValueError("there are no rows: an empty Parquet file would have no types")
    rows: Any = corgipile.CorgiPileDataset(
        source, shuffle=arguments.strategy, batch_size=4096, rank=0, world_size=1, **given
    )
    rows.set_epoch(arguments.epoch)
    kind = _Parquet if to_parquet else _Csv
    with contextlib.ExitStack() as stack:
        write = stack.enter_context(kind(stack.enter_context(written(arguments.output))))
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
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    return [" ".join(map(str, value)) if isinstance(value, list) else value for value in values]


class _Parquet:
    def __init__(self, output: str) -> None:
        self._pyarrow = required("pyarrow", "a Parquet file", "pyarrow")
        self._parquet = required("pyarrow.parquet", "a Parquet file", "pyarrow")
        self._output, self._writer = output, None

    def batch(self, batch: dict[str, Any]) -> None:
        columns = {name: self._pyarrow.array(list(column)) for name, column in batch.items()}
        rows = self._pyarrow.table(columns)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._output, rows.schema)
        self._writer.write_table(rows)

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()
