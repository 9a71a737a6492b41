"""Measured in addition to the peers: our loader, the design of CorgiPile's authors, and pyarrow alone."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data import write_parquet
from peers import Again, Peer, Reading, loader_of_torch

GROUP_BYTES = 8 << 20


class Ours(Peer):
    """Our loader, on files of a kind; of arrays they are mapped."""

    by_row = False

    def __init__(self, shuffle: str, source: str) -> None:
        self.shuffle, self.source = shuffle, source

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        group = max(1, GROUP_BYTES // x[0].nbytes)
        if self.source == "arrow":
            write_arrow(directory / "rows.arrow", x, y, group)
        elif self.source == "arrays":
            np.save(directory / "x.npy", x)
            np.save(directory / "y.npy", y)
        else:
            write_parquet(directory / "rows.parquet", x, y, group)

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import corgipile

        if self.source == "arrays":
            source = corgipile.arrays({name: np.load(directory / f"{name}.npy", mmap_mode="r") for name in "xy"})
        else:
            source = getattr(corgipile, self.source)(str(directory / f"rows.{self.source}"))
        ds = corgipile.CorgiPileDataset(source, shuffle=self.shuffle, batch_size=how.batch)
        options = {"persistent_workers": True} if how.workers else {}
        return corgipile.Loader(ds, num_workers=how.workers, tensors="torch", **options)


class Authors(Peer):
    """CorgiPile as its authors wrote it for PyTorch: each worker shuffles the blocks and takes its part of them, fills
    a buffer row by row, shuffles it, and yields one row after the other, which DataLoader puts together."""

    by_row = False

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        Ours("none", "parquet").write(directory, x, y, block)

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import pyarrow.parquet
        from torch.utils.data import IterableDataset, get_worker_info

        class AuthorsDataset(IterableDataset):
            def __iter__(self) -> Iterator[tuple[np.ndarray, int]]:
                info = get_worker_info()
                index, of = (info.id, info.num_workers) if info else (0, 1)
                file = pyarrow.parquet.ParquetFile(directory / "rows.parquet")
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

        return loader_of_torch(AuthorsDataset(), how, batch_size=how.batch)

    def labels(self, batch: Any) -> np.ndarray:
        return np.asarray(batch[1])


class PyArrow(Peer):
    """Batches as they lie."""

    by_row = False

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        Ours("none", "parquet").write(directory, x, y, block)

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import pyarrow.parquet

        def batches() -> Iterator[Any]:
            for rows in pyarrow.parquet.ParquetFile(directory / "rows.parquet").iter_batches(how.batch):
                x = rows["x"].flatten().to_numpy().reshape(len(rows), -1)
                yield {"x": x, "y": rows["y"].to_numpy()}

        return Again(batches)


def write_arrow(path: Path, x: np.ndarray, y: np.ndarray, each: int) -> None:
    """An Arrow file, in record batches of this many rows."""
    import pyarrow
    import pyarrow.ipc

    values = pyarrow.array(x[:1].reshape(-1))
    schema = pyarrow.schema([("x", pyarrow.list_(values.type, x.shape[1])), ("y", pyarrow.int64())])
    with pyarrow.ipc.new_file(str(path), schema) as file:
        for start in range(0, len(y), each):
            part = slice(start, start + each)
            numbers = pyarrow.array(np.ascontiguousarray(x[part]).reshape(-1))
            lists = pyarrow.FixedSizeListArray.from_arrays(numbers, x.shape[1])
            file.write_batch(pyarrow.record_batch([lists, pyarrow.array(y[part])], schema=schema))


OWN: dict[str, Peer] = {
    "corgipile, Parquet": Ours("corgipile", "parquet"),
    "none, Parquet": Ours("none", "parquet"),
    "corgipile, Arrow": Ours("corgipile", "arrow"),
    "none, Arrow": Ours("none", "arrow"),
    "corgipile, arrays": Ours("corgipile", "arrays"),
    "none, arrays": Ours("none", "arrays"),
    "authors": Authors(),
    "pyarrow": PyArrow(),
}

# Those that read the files of others, and those that are measured without workers only.
SHARED = {name: name.replace("none", "corgipile") for name in OWN if name.startswith("none")}
SHARED |= {"authors": "corgipile, Parquet", "pyarrow": "corgipile, Parquet"}
ALONE = ("corgipile, Arrow", "none, Arrow", "corgipile, arrays", "none, arrays", "pyarrow")
