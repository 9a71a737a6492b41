"""A process that is killed: it writes down the rows of each batch with the state behind it, and goes on from the last.

killed.py LOG SOURCE PLACE RANK RANKS WORKERS MOMENT

Some milliseconds after its log has MOMENT batches it kills itself and its workers, wherever they are then; with 0 it
runs to the end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import corgipile

EPOCHS = 3
ROWS = 1003


class Items:
    """A map-style data set."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> dict[str, int]:
        return {"number": number}


def source(kind: str, place: str) -> Any:
    """Rows with their numbers: of a Parquet file, of a table where PGDATABASE says, or of a data set."""
    if kind == "parquet":
        return corgipile.parquet(place, ["number"])
    if kind == "postgres":
        return corgipile.postgres(place, ["number"])
    return corgipile.map_style(Items())


def dataset(kind: str, place: str, rank: int, ranks: int, workers: int) -> corgipile.CorgiPileDataset:
    """What is read."""
    lanes = 4 * ranks if workers else None
    return corgipile.CorgiPileDataset(
        source(kind, place), batch_size=16, block_size=5, lanes=lanes, rank=rank, world_size=ranks, seed=3
    )


def whole_lines(log: Path) -> list[str]:
    """The lines of the log, without one that is cut because the process was killed where a page of the file ends."""
    if not log.exists():
        return []
    text = log.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        os.truncate(log, len(whole))
    return whole.splitlines()


def killed_soon(moment: int) -> None:
    """Kills this process and its workers while they go on."""
    delay = random.Random(moment).uniform(0, 0.005)
    threading.Timer(delay, os.killpg, (0, signal.SIGKILL)).start()


def main(log: Path, kind: str, place: str, rank: int, ranks: int, workers: int, moment: int) -> None:
    loader = corgipile.Loader(dataset(kind, place, rank, ranks, workers), num_workers=workers)
    begin = 0
    lines = whole_lines(log)
    if lines:
        state = json.loads(lines[-1])["state"]
        loader.load_state_dict(state)
        begin = state["epoch"]
    batches, resumed = len(lines), bool(lines)
    with log.open("a") as file:
        for epoch in range(begin, EPOCHS):
            loader.set_epoch(epoch)
            begun = time.monotonic()
            for batch in loader:
                # of the first batch, whether it is of an epoch that goes on, and how long it took
                first = {} if begun is None else {"first": [resumed, time.monotonic() - begun]}
                begun, resumed = None, False
                # at once, so that barely one is cut
                line = json.dumps({"numbers": batch["number"].tolist(), "state": loader.state_dict(), **first}) + "\n"
                os.write(file.fileno(), line.encode())
                batches += 1
                if moment and batches >= moment:
                    killed_soon(moment)
                    moment = sys.maxsize
    if moment:
        # there was nothing left, or the moment is still to come
        killed_soon(moment)
        time.sleep(60)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
