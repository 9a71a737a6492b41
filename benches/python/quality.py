"""How well each loader mixes rows that are sorted by label: `quality.py DATA CSV` (QUICK=1: few seeds).

The measure is that of python/tests/test_quality.py: the mean total variation distance of the labels in a window, as
it is read, from those of all rows. 0 is a window with as many rows of each label as all rows have, 0.9 one with a
single label of ten.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corgipile
import numpy as np

from data import generated, pictures, write_parquet
from peers import PEERS, Peer, Reading

WINDOWS = (20, 100)


@dataclass(frozen=True)
class Case:
    """A data set, and how it is read: rows of a block or shard, of the buffer, of a batch; how many seeds."""

    name: str
    load: Callable[[], tuple[np.ndarray, np.ndarray]]
    block: int
    buffer: int
    batch: int
    seeds: int


# Ours: what is not as for all of them.
OURS: dict[str, dict[str, Any]] = {
    "corgipile": {},
    "corgipile, 4 lanes": {"lanes": 4},
    "corgi2": {"shuffle": "corgi2"},
    "block_window": {"shuffle": "block_window"},
    "sliding_window": {"shuffle": "sliding_window"},
    "block_only": {"shuffle": "block_only"},
    "shuffle_once": {"shuffle": "shuffle_once"},
    "none": {"shuffle": "no_shuffle"},
}


def variation(order: np.ndarray, window: int, shares: np.ndarray) -> float:
    """The mean total variation distance of a window's labels from those of all rows."""
    windows = order[: len(order) // window * window].reshape(-1, window)
    counts = np.stack([np.bincount(labels, minlength=len(shares)) for labels in windows])
    return float(np.abs(counts / window - shares).sum(axis=1).mean() / 2)


def order_of_ours(case: Case, directory: Path, options: dict[str, Any], seed: int) -> np.ndarray:
    with tempfile.TemporaryDirectory(dir=directory) as cache:
        ds = corgipile.CorgiPileDataset(
            corgipile.parquet(str(directory / "rows.parquet"), columns=["y"]),
            block_size=case.block,
            buffer_size=case.buffer,
            batch_size=case.batch,
            seed=seed,
            **options,
            **({"cache": cache} if options.get("shuffle") in ("corgi2", "shuffle_once") else {}),
        )
        return np.concatenate([batch["y"] for batch in ds])


def order_of_peer(case: Case, directory: Path, peer: Peer, seed: int) -> np.ndarray:
    how = Reading(case.batch, seed=seed, block=case.block, buffer=case.buffer)
    return np.concatenate([peer.labels(batch) for batch in peer.read(directory, how)])


def measure(case: Case, directory: Path) -> list[dict[str, Any]]:
    """A row for each loader and window."""
    x, y = case.load()
    shares = np.bincount(y) / len(y)
    write_parquet(directory / "rows.parquet", x, y, case.block)
    rows = []
    for name in (*OURS, *PEERS):
        if peer := PEERS.get(name):
            files = directory / name.replace(" ", "_")
            files.mkdir()
            peer.write(files, x, y, case.block)
            orders = [order_of_peer(case, files, peer, seed) for seed in range(case.seeds)]
        else:
            orders = [order_of_ours(case, directory, OURS[name], seed) for seed in range(case.seeds)]
        for order in orders:
            if not np.array_equal(np.bincount(order), np.bincount(y)):
                raise ValueError(f"{name} does not read every row of {case.name} once")
        for window in WINDOWS:
            values = [variation(order, window, shares) for order in orders]
            of = {"set": case.name, "rows": len(y), "block": case.block, "buffer": case.buffer, "loader": name}
            measured = {"window": window, "seeds": case.seeds, "mean": np.mean(values), "deviation": np.std(values)}
            rows.append(of | measured)
        print(f"[python] quality: {case.name}, {name}: {rows[-2]['mean']:.3f}, {rows[-1]['mean']:.3f}", flush=True)
    return rows


def main(data: Path, path: Path) -> None:
    quick = os.environ.get("QUICK", "0") not in ("", "0")
    cases = [
        Case("generated", generated, 20, 200, 20, 30),
        Case("cifar10", lambda: pictures(data, "cifar10"), 20, 200, 20, 20),
        Case("mnist", lambda: pictures(data, "mnist"), 100, 6000, 100, 3),
    ]
    rows = []
    for case in cases[: 1 if quick else None]:
        with tempfile.TemporaryDirectory() as directory:
            rows += measure(case if not quick else Case(case.name, case.load, 20, 200, 20, 2), Path(directory))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{of:.4f}" if isinstance(of, float) else of for key, of in row.items()} for row in rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
