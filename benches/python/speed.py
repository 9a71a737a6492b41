"""Rows per second of an epoch, by loader, size of rows and number of workers: see `run`."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

WIDTHS = {100: 256, 3_000: 64, 100_000: 16}  # bytes of a row, and rows of a batch
WORKERS = (0, 1, 2, 4)
LOADERS = ("corgipile", "none", "authors", "pyarrow")
GROUP_BYTES = 8 << 20


def make(path: Path, width: int, megabytes: int) -> None:
    """A Parquet file of so much data, in row groups of 8 MB."""
    import pyarrow
    import pyarrow.parquet

    rows, columns = megabytes * 2**20 // width, width // 4
    schema = pyarrow.schema([("x", pyarrow.list_(pyarrow.float32(), columns)), ("y", pyarrow.int64())])
    draw = np.random.default_rng(1)
    each = max(1, GROUP_BYTES // width)
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, rows, each):
            n = min(each, rows - start)
            x = pyarrow.array(draw.random(n * columns, dtype=np.float32))
            y = pyarrow.array(np.arange(start, start + n))
            lists = pyarrow.FixedSizeListArray.from_arrays(x, columns)
            file.write_table(pyarrow.table([lists, y], schema=schema), row_group_size=n)


def ours(path: str, shuffle: str, batch: int, workers: int) -> Iterator[Any]:
    import corgipile

    ds = corgipile.CorgiPileDataset(corgipile.parquet(path), shuffle=shuffle, batch_size=batch)
    return iter(corgipile.Loader(ds, num_workers=workers, tensors="torch" if workers else None))


def authors(path: str, batch: int, workers: int) -> Iterator[Any]:
    """CorgiPile as its authors wrote it for PyTorch: each worker shuffles the blocks and takes its part of them,
    fills a buffer row by row, shuffles it, and yields one row after the other, which DataLoader puts together."""
    import pyarrow.parquet
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class AuthorsDataset(IterableDataset):
        def __iter__(self) -> Iterator[tuple[np.ndarray, int]]:
            info = get_worker_info()
            index, of = (info.id, info.num_workers) if info else (0, 1)
            file = pyarrow.parquet.ParquetFile(path)
            blocks = list(range(file.num_row_groups))
            random.Random(1).shuffle(blocks)
            blocks, held = blocks[index::of], max(1, file.num_row_groups // 10 // of)
            for start in range(0, len(blocks), held):
                buffer = []
                for block in blocks[start : start + held]:
                    table = file.read_row_group(block)
                    x = table["x"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
                    buffer += list(zip(x, table["y"].to_pylist()))
                random.shuffle(buffer)
                yield from buffer

    return iter(DataLoader(AuthorsDataset(), batch_size=batch, num_workers=workers))


def arrow_alone(path: str, batch: int) -> Iterator[Any]:
    """Batches as they lie."""
    import pyarrow.parquet

    for rows in pyarrow.parquet.ParquetFile(path).iter_batches(batch):
        x = rows["x"].flatten().to_numpy().reshape(len(rows), -1)
        yield {"x": x, "y": rows["y"].to_numpy()}


def epoch(loader: str, path: str, batch: int, workers: int) -> dict[str, float]:
    """One epoch in this process."""
    batches = {
        "authors": lambda: authors(path, batch, workers),
        "pyarrow": lambda: arrow_alone(path, batch),
    }.get(loader, lambda: ours(path, loader, batch, workers))()
    if workers or loader == "authors":
        import torch  # noqa: F401 - not measured
    begin, rows, first = time.perf_counter(), 0, 0.0
    for one in batches:
        y = one["y"] if isinstance(one, dict) else one[1]
        rows += len(y)
        first = first or time.perf_counter() - begin
    seconds = time.perf_counter() - begin
    own, children = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    memory = (own.ru_maxrss + workers * children.ru_maxrss) / 1024
    cpu = sum(of.ru_utime + of.ru_stime for of in (own, children))
    return {"rows": rows, "seconds": seconds, "first": first, "cpu": cpu, "megabytes": memory}


def main(directory: Path) -> None:
    rounds, megabytes = int(os.environ.get("ROUNDS", 3)), int(os.environ.get("MB", 400))
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {megabytes} MB of each data set, warm")
    print("row bytes  loader     workers     rows/s    MiB/s  first batch s  processor s  memory MB")
    for width, batch in WIDTHS.items():
        path = directory / f"{width}.parquet"
        make(path, width, megabytes)
        cases = [(loader, workers) for workers in WORKERS for loader in LOADERS]
        best: dict[tuple[str, int], dict[str, float]] = {}
        for _ in range(rounds):  # in turns, so that what else the machine does meets all
            for loader, workers in cases:
                if loader == "pyarrow" and workers:
                    continue
                command = [sys.executable, __file__, loader, str(path), str(batch), str(workers)]
                told = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
                if (loader, workers) not in best or told["seconds"] < best[loader, workers]["seconds"]:
                    best[loader, workers] = told
        for (loader, workers), told in best.items():
            speed = told["rows"] / told["seconds"]
            print(
                f"{width:9}  {loader:10} {workers:7} {speed:10.0f} {speed * width / 2**20:8.0f} {told['first']:14.2f}"
                f" {told['cpu']:12.2f} {told['megabytes']:10.0f}",
                flush=True,
            )
        path.unlink()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        name, file, size, count = sys.argv[1:]
        print(json.dumps(epoch(name, file, int(size), int(count))))
