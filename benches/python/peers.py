"""Other loaders from PyPI, each with rows in its own format and its shuffling on, as its documentation shows it for
data on a local disk.

A row is an array x and a number y. `write` makes a loader's files, `read` gives what can be iterated over once for each
epoch: batches, of which `labels` are the y. Rows of a shard and rows of a buffer are None where the loader's own
defaults are wanted.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SHARD_BYTES = 64 << 20  # what streaming and litdata have by default


@dataclass(frozen=True)
class Reading:
    """How a data set is read."""

    batch: int
    workers: int = 0
    seed: int = 0
    block: int | None = None
    buffer: int | None = None


class Peer:
    """A loader."""

    package = ""  # on PyPI
    # how many rows a second go through it at most, about: rows are put together one by one
    by_row = True

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        raise NotImplementedError

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        raise NotImplementedError

    def labels(self, batch: Any) -> np.ndarray:
        return np.asarray(batch["y"])


def loader_of_torch(dataset: Any, how: Reading, **options: Any) -> Iterable[Any]:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, num_workers=how.workers, persistent_workers=how.workers > 0, **options)


# --------------------------------------------------------------------------------------------------------- shards


class Streaming(Peer):
    """mosaicml-streaming: shards in random order; where a row goes depends on the algorithm."""

    package = "mosaicml-streaming"

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        from streaming import MDSWriter

        columns = {"x": f"ndarray:{x.dtype.name}:{x.shape[1]}", "y": "int"}
        limit = SHARD_BYTES if block is None else 1 << 31
        with MDSWriter(out=str(directory), columns=columns, size_limit=limit) as writer:
            for row in range(len(y)):
                writer.write({"x": x[row], "y": int(y[row])})
                if block is not None and (row + 1) % block == 0:
                    writer.flush_shard()
                    writer._reset_cache()

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import streaming

        streaming.base.util.clean_stale_shared_memory()
        sizes = {} if how.buffer is None else {"shuffle_block_size": how.buffer}
        dataset = streaming.StreamingDataset(
            local=str(directory),
            shuffle=True,
            shuffle_algo=self.algorithm,
            shuffle_seed=how.seed,
            batch_size=how.batch,
            num_canonical_nodes=1,
            **sizes,
        )
        return loader_of_torch(dataset, how, batch_size=how.batch)


class LitData(Peer):
    """litdata: chunks in random order, the rows of a chunk shuffled."""

    package = "litdata"

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        from litdata.streaming.writer import BinaryWriter

        sizes = {"chunk_bytes": SHARD_BYTES} if block is None else {"chunk_size": block}
        writer = BinaryWriter(str(directory), **sizes)
        for row in range(len(y)):
            writer[row] = {"x": x[row], "y": int(y[row])}
        writer.done()
        writer.merge(1)

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        from litdata import StreamingDataLoader, StreamingDataset

        window = {} if how.block is None else {"item_shuffle_window": "full"}
        dataset = StreamingDataset(str(directory), shuffle=True, drop_last=False, seed=how.seed, **window)
        workers = {"num_workers": how.workers, "persistent_workers": how.workers > 0}
        return StreamingDataLoader(dataset, batch_size=how.batch, **workers)


# ---------------------------------------------------------------------------------------------- shards and a buffer


class WebDataset(Peer):
    """webdataset: shards in random order, their rows through a buffer."""

    package = "webdataset"

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        import webdataset

        each = block or max(1, len(y) // 16)
        for shard, start in enumerate(range(0, len(y), each)):
            with webdataset.TarWriter(str(directory / f"{shard:06}.tar")) as tar:
                for row in range(start, min(start + each, len(y))):
                    tar.write({"__key__": f"{row:09}", "x.npy": x[row], "y.cls": int(y[row])})

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import webdataset

        random.seed(how.seed)
        urls = sorted(str(path) for path in directory.glob("*.tar"))
        held = how.buffer or 1000
        dataset = (
            webdataset.WebDataset(urls, shardshuffle=len(urls), seed=how.seed)
            .shuffle(held, initial=held, rng=random.Random(how.seed))
            .decode()
            .to_tuple("x.npy", "y.cls")
            .batched(how.batch)
        )
        workers = {"num_workers": how.workers, "persistent_workers": how.workers > 0}
        return webdataset.WebLoader(dataset, batch_size=None, **workers)

    def labels(self, batch: Any) -> np.ndarray:
        return np.asarray(batch[1])


class HuggingFace(Peer):
    """datasets, as an iterable data set: shards in random order, their rows through a buffer."""

    package = "datasets"

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        import datasets
        import pyarrow

        lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(x.reshape(-1)), x.shape[1])
        table = pyarrow.table({"x": lists, "y": y})
        datasets.disable_progress_bars()
        datasets.Dataset(datasets.table.InMemoryTable(table)).save_to_disk(str(directory))

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import datasets

        dataset = datasets.load_from_disk(str(directory)).with_format("torch")
        shards = 128 if how.block is None else -(-len(dataset) // how.block)
        rows = dataset.to_iterable_dataset(num_shards=min(shards, len(dataset)))
        rows = rows.shuffle(seed=how.seed, buffer_size=how.buffer or 1000)
        return loader_of_torch(rows, how, batch_size=how.batch)


# ------------------------------------------------------------------------------------------- rows in any order


def write_arrays(directory: Path, x: np.ndarray, y: np.ndarray) -> None:
    np.save(directory / "x.npy", x)
    np.save(directory / "y.npy", y)


class Arrays:
    """Rows of arrays in files that are mapped, one at a time."""

    def __init__(self, directory: Path) -> None:
        self.x, self.y = (np.load(directory / f"{name}.npy", mmap_mode="r") for name in "xy")

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, row: int) -> dict[str, Any]:
        import torch

        return {"x": torch.from_numpy(np.array(self.x[row])), "y": int(self.y[row])}


class TorchData(Peer):
    """torchdata's nodes: any row at any time, from arrays that are mapped, by torch's random sampler."""

    package = "torchdata"

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        write_arrays(directory, x, y)

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import torch
        from torch.utils.data import RandomSampler, default_collate
        from torchdata import nodes

        rows = Arrays(directory)
        sampler = RandomSampler(rows, generator=torch.Generator().manual_seed(how.seed))
        batches = nodes.Batcher(nodes.SamplerWrapper(sampler), how.batch, drop_last=False)

        def fetch(indices: list[int]) -> Any:
            return default_collate([rows[row] for row in indices])

        if how.workers:
            options = {"num_workers": how.workers, "method": "process", "multiprocessing_context": "fork"}
            mapped = nodes.ParallelMapper(batches, fetch, in_order=True, **options)
        else:
            mapped = nodes.Mapper(batches, fetch)
        return nodes.Loader(nodes.Prefetcher(mapped, prefetch_factor=2) if how.workers else mapped)


class Grain(Peer):
    """grain: any row at any time, from an ArrayRecord file."""

    package = "grain"

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        from array_record.python.array_record_module import ArrayRecordWriter

        writer = ArrayRecordWriter(str(directory / "rows.array_record"), "group_size:1,uncompressed")
        for row in range(len(y)):
            writer.write(int(y[row]).to_bytes(8, "little") + x[row].tobytes())
        writer.close()
        (directory / "dtype").write_text(x.dtype.str)

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        import grain
        from grain.sources import ArrayRecordDataSource

        decode = Decode((directory / "dtype").read_text())
        source = ArrayRecordDataSource(str(directory / "rows.array_record"))
        epochs = iter(range(1 << 20))

        def batches() -> Iterator[Any]:
            rows = grain.MapDataset.source(source).shuffle(seed=how.seed + next(epochs)).map(decode)
            dataset = rows.to_iter_dataset().batch(how.batch)
            if how.workers:
                dataset = dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=how.workers))
            return iter(dataset)

        return Again(batches)


class Decode:
    """A row from its bytes. Grain sends it to other processes."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(self, row: bytes) -> dict[str, Any]:
        return {"x": np.frombuffer(row, self.dtype, offset=8), "y": int.from_bytes(row[:8], "little")}


class Again:
    """What a function gives again for each epoch."""

    def __init__(self, begin: Any) -> None:
        self.begin = begin

    def __iter__(self) -> Iterator[Any]:
        return self.begin()


# --------------------------------------------------------------------------------------------- blocks and a buffer


class ScDataset(Peer):
    """scDataset: blocks in random order, and the rows of many blocks shuffled, from arrays that are mapped."""

    package = "scDataset"
    by_row = False

    def write(self, directory: Path, x: np.ndarray, y: np.ndarray, block: int | None) -> None:
        write_arrays(directory, x, y)

    def read(self, directory: Path, how: Reading) -> Iterable[Any]:
        from scdataset import BlockShuffling, MultiIndexable, scDataset

        arrays = Arrays(directory)
        rows = MultiIndexable(x=arrays.x, y=arrays.y)
        block = how.block or 16
        factor = 256 if how.buffer is None else max(1, how.buffer // how.batch)
        strategy = BlockShuffling(block_size=block)
        dataset = scDataset(rows, strategy, batch_size=how.batch, fetch_factor=factor, seed=how.seed)
        return loader_of_torch(dataset, how, batch_size=None, collate_fn=as_tensors)


def as_tensors(batch: Any) -> Any:
    import torch

    return {name: torch.from_numpy(np.ascontiguousarray(batch[name])) for name in ("x", "y")}


PEERS: dict[str, Peer] = {
    "streaming py1e": Streaming("py1e"),
    "streaming py1br": Streaming("py1br"),
    "datasets": HuggingFace(),
    "webdataset": WebDataset(),
    "litdata": LitData(),
    "scDataset": ScDataset(),
    "torchdata": TorchData(),
    "grain": Grain(),
}

# those that read the same files
SHARED = {"streaming py1br": "streaming py1e", "torchdata": "scDataset"}
