"""Ranks: equal numbers of batches for all, whatever the rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loading_fixtures import LEAVE_TOGETHER, Numbers, flat

import corgipile
from corgipile import CorgiPileDataset

HERE = Path(__file__).parent


@pytest.mark.parametrize("ranks", ["pad", "drop"])
@pytest.mark.parametrize("n", [0, 1, 2, 100, 1003])
def test_uneven_data_makes_equal_batches(n: int, ranks, numbers: Numbers) -> None:
    source = corgipile.arrays({"number": np.arange(n)})
    # 7 blocks for 3 ranks
    sets = [
        CorgiPileDataset(
            source, block_size=max(1, -(-n // 7)), batch_size=16, rank=rank, world_size=3, uneven_ranks=ranks
        )
        for rank in range(3)
    ]
    batches = [numbers(ds) for ds in sets]
    sizes = [[len(batch) for batch in of_rank] for of_rank in batches]
    assert sizes[0] == sizes[1] == sizes[2]
    assert [len(ds) for ds in sets] == [len(sizes[0])] * 3
    seen = sorted(flat(flat(batches)))
    if ranks == "pad":
        assert set(seen) == set(range(n))
        assert len(seen) - n < 3
    else:
        assert len(set(seen)) == len(seen)
        assert n - len(seen) < 3


def uneven_files(directory: Path, kind: str) -> corgipile.Source:
    """1003 rows in files of several lengths and empty ones, for 7 blocks of about 200 rows."""
    lengths = [0, 300, 3, 0, 200, 100, 150, 200, 50, 0]
    numbers = iter(range(sum(lengths)))
    pyarrow = pytest.importorskip("pyarrow")
    for at, length in enumerate(lengths):
        of_file = [next(numbers) for _ in range(length)]
        if kind == "csv":
            (directory / f"{at}.csv").write_text("number\n" + "".join(f"{number}\n" for number in of_file))
        else:
            table = pyarrow.table({"number": pyarrow.array(of_file, pyarrow.int64())})
            pytest.importorskip("pyarrow.parquet").write_table(table, directory / f"{at}.parquet")
    return corgipile.csv(directory, types={"number": "int64"}) if kind == "csv" else corgipile.parquet(directory)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("ranks", ["pad", "drop", "join"])
@pytest.mark.parametrize("workers", [0, 2])
def test_files_that_are_uneven_or_empty_are_shared(
    tmp_path: Path, kind: str, ranks: Any, workers: int, numbers: Numbers
) -> None:
    if workers:
        pytest.importorskip("torch")
    source = uneven_files(tmp_path, kind)
    assert len(source) == 1003
    sets = [
        CorgiPileDataset(source, block_size=200, batch_size=16, rank=rank, world_size=3, uneven_ranks=ranks)
        for rank in range(3)
    ]
    assert sets[0].plan().blocks == 7
    loaders = [corgipile.Loader(ds, num_workers=workers) for ds in sets]
    for epoch in range(2):
        for loader in loaders:
            loader.set_epoch(epoch)
        batches = [numbers(loader) for loader in loaders]
        seen = sorted(flat(flat(batches)))
        if ranks == "drop":
            assert len(set(seen)) == len(seen) >= 1003 - (3 * max(1, workers) - 1)
        else:
            assert set(seen) == set(range(1003))
            assert ranks == "pad" or len(seen) == 1003
        if ranks != "join":
            assert len({tuple(map(len, of_rank)) for of_rank in batches}) == 1
            assert not workers or len({len(of_rank) for of_rank in batches}) == 1


@pytest.mark.torch
def test_uneven_ranks_train_together_without_a_hang(tmp_path: Path) -> None:
    """Three processes of DistributedDataParallel: with equal batches by themselves, with unequal ones by Join."""
    import torch

    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    uneven_files(tmp_path, "parquet")
    code = """
import contextlib, json, sys, torch, torch.distributed as dist, corgipile
from torch.distributed.algorithms.join import Join
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=3)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
for ranks in ("pad", "drop", "join"):
    ds = corgipile.CorgiPileDataset(corgipile.parquet(sys.argv[3]), block_size=200, batch_size=1, uneven_ranks=ranks)
    seen = []
    for epoch in range(2):
        ds.set_epoch(epoch)
        with Join([model]) if ranks == "join" else contextlib.nullcontext():
            for batch in corgipile.Loader(ds, tensors="torch"):
                model(batch["number"].float()[:, None]).sum().backward()
                seen.append(batch["number"].item())
    print(json.dumps(seen))
leave_together(sys.argv[2], rank, 3)
"""
    arguments = [str(tmp_path / "meeting"), str(tmp_path)]
    processes = [
        subprocess.Popen([sys.executable, "-c", LEAVE_TOGETHER + code, str(rank), *arguments], stdout=subprocess.PIPE)
        for rank in range(3)
    ]
    printed = [process.communicate(timeout=300)[0].splitlines() for process in processes]
    expected = (("pad", [335] * 3), ("drop", [334] * 3), ("join", [334, 334, 335]))
    for (ranks, batches), of_ranks in zip(expected, zip(*printed, strict=True), strict=True):
        seen = [json.loads(line) for line in of_ranks]
        assert sorted(len(of_rank) // 2 for of_rank in seen) == batches
        of_epoch = [number for of_rank in seen for number in of_rank[: len(of_rank) // 2]]
        assert len(set(of_epoch)) == (1002 if ranks == "drop" else 1003)


def test_orders_of_ranks_together_are_that_of_one(rows: corgipile.Source, numbers: Numbers) -> None:
    def together(ranks: int) -> list[list[int]]:
        sets = [CorgiPileDataset(rows, lanes=4, batch_size=25, rank=rank, world_size=ranks) for rank in range(ranks)]
        return [batch for step in zip(*map(numbers, sets)) for batch in step]

    alone = together(1)
    for ranks in (2, 4):
        # what is repeated is at the end of a batch
        assert [batch[: len(one)] for batch, one in zip(together(ranks), alone)] == alone


@pytest.mark.torch
@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.full)])
def test_ranks_come_from_torch_distributed(tmp_path: Path, context: str) -> None:
    import torch

    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    code = """
import sys, torch, torch.distributed as dist, numpy as np, corgipile
rank, file = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
ds = corgipile.CorgiPileDataset(corgipile.arrays({"number": np.arange(1003)}), batch_size=16, lanes=4)
seen = []
for batch in corgipile.Loader(ds, num_workers=2, multiprocessing_context=sys.argv[3], tensors="torch"):
    # hangs if the ranks have unequal numbers of batches
    dist.all_reduce(batch["number"].sum())
    seen.append(batch["number"])
seen = torch.cat(seen)
assert len(seen) == 502
every = [torch.empty_like(seen) for _ in range(2)]
dist.all_gather(every, seen)
assert set(torch.cat(every).tolist()) == set(range(1003))
leave_together(file, rank, 2)
"""
    script = tmp_path / "ranks.py"
    code = LEAVE_TOGETHER + code
    script.write_text("if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in code.splitlines()))
    arguments = [str(tmp_path / "meeting"), context]
    processes = [subprocess.Popen([sys.executable, str(script), str(rank), *arguments]) for rank in range(2)]
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
