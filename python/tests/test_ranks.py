"""Ranks: equal numbers of batches for all, whatever the rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from loading_fixtures import Numbers, flat

import corgipile
from corgipile import CorgiPileDataset

HERE = Path(__file__).parent


@pytest.mark.parametrize("ranks", ["pad", "drop"])
@pytest.mark.parametrize("n", [0, 1, 2, 100, 1003])
def test_uneven_data_makes_equal_batches(n: int, ranks, numbers: Numbers) -> None:
    source = corgipile.arrays({"number": np.arange(n)})
    # 7 blocks for 3 ranks
    sets = [
        CorgiPileDataset(source, block_size=max(1, -(-n // 7)), batch_size=16, rank=rank, world_size=3, ranks=ranks)
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


def test_orders_of_ranks_together_are_that_of_one(rows: corgipile.Source, numbers: Numbers) -> None:
    def together(ranks: int) -> list[list[int]]:
        sets = [CorgiPileDataset(rows, lanes=4, batch_size=25, rank=rank, world_size=ranks) for rank in range(ranks)]
        return [batch for step in zip(*map(numbers, sets)) for batch in step]

    alone = together(1)
    for ranks in (2, 4):
        # what comes again is at the end of a batch
        assert [batch[: len(one)] for batch, one in zip(together(ranks), alone)] == alone


def test_ranks_come_from_torch_distributed(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
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
"""
    script = tmp_path / "ranks.py"
    script.write_text("if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in code.splitlines()))
    for context in ("fork", "spawn"):
        command = [sys.executable, str(script)]
        arguments = [str(tmp_path / context), context]
        processes = [subprocess.Popen([*command, str(rank), *arguments]) for rank in range(2)]
        assert [process.wait(timeout=100) for process in processes] == [0, 0]
