"""Whether networks learn from sorted pictures in each order: `learning.py DATA CSV` (QUICK=1: two epochs of one seed).

A small convolution net learns cifar10, a perceptron mnist, both from Parquet files sorted by label, by the package's
loader and SGD with momentum; in one process, and in two by DistributedDataParallel over gloo with half of the batch
each. The weights at the start depend on the seed only. One thread for each process.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corgipile
import numpy as np
import torch
from torch import nn

from data import pictures, write_parquet

STRATEGIES: dict[str, dict[str, Any]] = {
    "corgipile": {},
    "shuffle_once": {"shuffle": "shuffle_once"},
    # all rows in the buffer, again in each epoch
    "epoch_shuffle": {"buffer_size": "100%"},
    "sliding_window": {"shuffle": "sliding_window"},
    "block_only": {"shuffle": "block_only"},
    "no_shuffle": {"shuffle": "no_shuffle"},
}
# Those that are compared to a fraction of a point have more seeds than the others.
COMPARED = ("corgipile", "shuffle_once")
FEW_SEEDS = 3
# in two processes
TOGETHER = (*COMPARED, "no_shuffle")


@dataclass(frozen=True)
class Case:
    """A data set and a network: rows of a block, of a batch of all processes; epochs, rate and seeds."""

    name: str
    shape: tuple[int, ...]
    block: int
    batch: int
    epochs: int
    rate: float
    seeds: int


CASES = {
    "cifar10": Case("cifar10", (3, 32, 32), 20, 32, 10, 0.02, 20),
    "mnist": Case("mnist", (784,), 100, 64, 5, 0.05, 5),
}


def network(case: Case) -> nn.Module:
    if len(case.shape) == 1:
        return nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, 10),
    )


def pixels(x: Any, shape: tuple[int, ...]) -> torch.Tensor:
    return (torch.as_tensor(x).float() / 255 - 0.5).reshape(-1, *shape)


class Run:
    """Trains with one order and seed in this process, which may be one of two."""

    def __init__(self, case: Case, directory: Path, strategy: str, seed: int, rank: int, world_size: int) -> None:
        self.case, self.strategy, self.seed, self.rank, self.world_size = case, strategy, seed, rank, world_size
        begin = time.perf_counter()
        options = {"block_size": case.block, "buffer_size": "10%"} | STRATEGIES[strategy]
        if options.get("shuffle") == "shuffle_once":
            # made again, as its time counts; both processes may ask for the same copy
            cache = directory / f"shuffled_{world_size}_{seed}"
            cache.mkdir(exist_ok=True)
            options["cache"] = str(cache)
        self.ds = corgipile.CorgiPileDataset(
            corgipile.parquet(str(directory / f"{case.name}.parquet")),
            batch_size=case.batch // world_size,
            seed=seed,
            rank=rank,
            world_size=world_size,
            tensors="torch",
            threads=1,
            **options,
        )
        self.seconds = time.perf_counter() - begin
        torch.manual_seed(seed)
        self.net = network(case)
        self.model = nn.parallel.DistributedDataParallel(self.net) if world_size > 1 else self.net
        self.optimizer = torch.optim.SGD(self.model.parameters(), case.rate, momentum=0.9)

    def epoch(self, epoch: int, epochs: int) -> float:
        """The mean loss."""
        begin = time.perf_counter()
        self.ds.set_epoch(epoch)
        steps, losses = epochs * len(self.ds), []
        for step, batch in enumerate(self.ds, epoch * len(self.ds)):
            for group in self.optimizer.param_groups:
                group["lr"] = self.case.rate * (1 + math.cos(math.pi * step / steps)) / 2
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(pixels(batch["x"], self.case.shape)), batch["y"])
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.seconds += time.perf_counter() - begin
        return float(np.mean(losses))

    def accuracy(self, x: torch.Tensor, y: torch.Tensor) -> float:
        with torch.no_grad():
            return float((self.net(x).argmax(1) == y).float().mean())


def train(rank: int, world_size: int, data: Path, directory: Path, path: Path, quick: bool) -> None:
    """All runs with this many processes, of which this is one; the first one writes what it measures."""
    torch.set_num_threads(1)
    if world_size > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{directory / 'group'}", rank=rank, world_size=world_size
        )
    rows = []
    for case in CASES.values():
        x, y = pictures(data, case.name, "test")
        x, y = pixels(x, case.shape), torch.as_tensor(y)
        epochs, seeds = (2, 1) if quick else (case.epochs, case.seeds)
        for seed in range(seeds):
            for strategy in STRATEGIES if world_size == 1 else TOGETHER:
                if strategy not in COMPARED and seed >= FEW_SEEDS:
                    continue
                run = Run(case, directory, strategy, seed, rank, world_size)
                of = {"set": case.name, "processes": world_size, "strategy": strategy, "seed": seed}
                for epoch in range(epochs):
                    loss = run.epoch(epoch, epochs)
                    measured = {"seconds": run.seconds, "loss": loss, "accuracy": run.accuracy(x, y)}
                    rows.append(of | {"epoch": epoch + 1} | measured)
                if rank == 0:
                    told = f"{rows[-1]['accuracy']:.4f} after {run.seconds:.0f} s"
                    print(f"[python] {case.name}, {world_size} processes, {strategy}, seed {seed}: {told}", flush=True)
    if rank == 0:
        write(path, rows, world_size)
    if world_size > 1:
        torch.distributed.destroy_process_group()


def write(path: Path, rows: list[dict[str, Any]], world_size: int) -> None:
    """Appends the runs of several processes to those of one."""
    with open(path, "w" if world_size == 1 else "a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if world_size == 1:
            writer.writeheader()
        writer.writerows({key: f"{of:.4f}" if isinstance(of, float) else of for key, of in row.items()} for row in rows)


def main(data: Path, path: Path) -> None:
    quick = os.environ.get("QUICK", "0") not in ("", "0")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for case in CASES.values():
            write_parquet(directory / f"{case.name}.parquet", *pictures(data, case.name), case.block)
        for world_size in (1, 2):
            shared = (world_size, data, directory, path, quick)
            torch.multiprocessing.spawn(train, shared, nprocs=world_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
