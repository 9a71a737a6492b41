"""A process that is killed: it writes down the rows of each batch with the state behind it, and goes on from the last.

killed.py LOG RANK RANKS WORKERS MOMENT

After MOMENT batches it kills itself and its workers; with 0 it runs to the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

import corgipile

EPOCHS = 3


def dataset(rank: int, ranks: int, workers: int) -> corgipile.CorgiPileDataset:
    """What is read."""
    source = corgipile.arrays({"number": np.arange(1003)})
    lanes = 4 * ranks if workers else None
    return corgipile.CorgiPileDataset(
        source, batch_size=16, block_size=5, lanes=lanes, rank=rank, world_size=ranks, seed=3
    )


def main(log: Path, rank: int, ranks: int, workers: int, moment: int) -> None:
    loader = corgipile.Loader(dataset(rank, ranks, workers), num_workers=workers)
    begin = 0
    lines = log.read_text().splitlines() if log.exists() else []
    if lines:
        state = json.loads(lines[-1])["state"]
        loader.load_state_dict(state)
        begin = state["epoch"]
    with log.open("a") as file:
        for epoch in range(begin, EPOCHS):
            loader.set_epoch(epoch)
            for batch in loader:
                # a line at a time, so that none is cut
                line = json.dumps({"numbers": batch["number"].tolist(), "state": loader.state_dict()}) + "\n"
                os.write(file.fileno(), line.encode())
                moment -= 1
                if moment == 0:
                    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
