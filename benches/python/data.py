"""Sorted rows to read: generated ones, and pictures of cifar10 and mnist, sorted by label."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

CLASSES = 10


def generated(rows: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """As many rows of each label, which have nothing but their number."""
    x = np.repeat(np.arange(rows, dtype=np.float32)[:, None], 4, axis=1)
    return x, np.arange(rows) // (rows // CLASSES)


def pictures(directory: Path, name: str, part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Bytes of pictures and their labels, those for training sorted by label."""
    with gzip.open(directory / f"{name}_{part}.csv.gz") as file:
        columns = len(file.readline().split(b","))
        text = file.read().replace(b"\n", b",").rstrip(b",")
    table = np.array(text.split(b","), dtype="S3").astype(np.uint8).reshape(-1, columns)
    labels = table[:, 0].astype(np.int64)
    order = np.argsort(labels, kind="stable") if part == "train" else np.arange(len(labels))
    return np.ascontiguousarray(table[order, 1:]), labels[order]


def write_parquet(path: Path, x: np.ndarray, y: np.ndarray, group: int) -> None:
    """A Parquet file of columns x and y, in row groups of this many rows."""
    import pyarrow
    import pyarrow.parquet

    values = pyarrow.array(x.reshape(-1))
    schema = pyarrow.schema([("x", pyarrow.list_(values.type, x.shape[1])), ("y", pyarrow.int64())])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, len(y), group):
            part = slice(start, start + group)
            numbers = pyarrow.array(np.ascontiguousarray(x[part]).reshape(-1))
            lists = pyarrow.FixedSizeListArray.from_arrays(numbers, x.shape[1])
            labels = pyarrow.array(np.asarray(y[part], np.int64))
            file.write_table(pyarrow.table([lists, labels], schema=schema), row_group_size=group)
