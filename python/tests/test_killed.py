"""Processes that are killed at random batches, with workers and ranks, over several sources, go on exactly.

CORGIPILE_KILLS=50 kills each combination of source, workers and ranks so often. Without it half of the combinations are
killed once or twice if CORGIPILE_FULL is 1, and three of them, with all sources and numbers of workers, if not.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from killed import EPOCHS, ROWS, dataset
from loading_fixtures import Numbers

import corgipile

HERE = Path(__file__).parent
SOURCES = ("parquet", "postgres", "map_style")
WORKERS = (0, 1, 4)
RANKS = (1, 2)
SAMPLE = (("parquet", 1), ("postgres", 4), ("map_style", 0))
KILLS = int(os.environ.get("CORGIPILE_KILLS", "0"))


def combinations() -> Iterator[Any]:
    """Sources, workers, ranks, and how often they are killed."""
    for at, (source, workers) in enumerate(product(SOURCES, WORKERS)):
        for ranks in RANKS if KILLS else (RANKS[at % 2],):
            more = () if KILLS or (source, workers) in SAMPLE else pytest.mark.full
            yield pytest.param(source, workers, ranks, KILLS or (1 if workers else 2), marks=more)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the rows of the source are."""
    source = request.node.callspec.params["source"]
    if source == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pytest.importorskip("pyarrow").table({"number": range(ROWS)})
        parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
        return str(tmp_path / "rows.parquet")
    if source == "postgres":
        monkeypatch.setenv("PGDATABASE", request.getfixturevalue("database"))
        conn = request.getfixturevalue("conn")
        sql = f"SELECT i AS number, repeat('x', 200) FROM generate_series(0, {ROWS - 1}) i"
        conn.execute(f"CREATE TABLE IF NOT EXISTS killed AS {sql}")
        return "killed"
    return "nowhere"


@pytest.mark.parametrize(("source", "workers", "ranks", "kills"), combinations())
def test_a_killed_process_goes_on_exactly(
    source: str,
    workers: int,
    ranks: int,
    kills: int,
    place: str,
    tmp_path: Path,
    numbers: Numbers,
) -> None:
    if workers:
        pytest.importorskip("torch")
    expected = [_expected(dataset(source, place, rank, ranks, workers), numbers) for rank in range(ranks)]
    logs = [tmp_path / f"log of {rank}" for rank in range(ranks)]
    moments = random.Random(f"{source} {workers} {ranks}").sample(range(1, len(expected[0])), kills)
    # batches until it is killed; then it may run to its end
    for moment in [*sorted(moments), 0]:
        commands = [
            [sys.executable, HERE / "killed.py", logs[rank], source, place, rank, ranks, workers, moment]
            for rank in range(ranks)
        ]
        # sessions of their own, so that workers are killed with each
        running = [subprocess.Popen(list(map(str, command)), start_new_session=True, cwd=HERE) for command in commands]
        for process in running:
            assert process.wait(timeout=300) == (-signal.SIGKILL if moment else 0)
    told: dict[str, list[float]] = {"bytes of state": [], "ms to go on": [], "ms to begin": []}
    for log, batches in zip(logs, expected, strict=True):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert [line["numbers"] for line in lines] == batches
        told["bytes of state"] += [len(json.dumps(line["state"])) for line in lines]
        for resumed, seconds in (line["first"] for line in lines if "first" in line):
            told["ms to go on" if resumed else "ms to begin"].append(round(1000 * seconds, 1))
    assert max(told["bytes of state"]) < 1000
    if KILLS:
        of = f"{source}, {workers} workers, {ranks} ranks, {kills} kills"
        found = {what: f"median {median(of_it)}, most {max(of_it)}" for what, of_it in told.items()}
        print(f"{of}: {found}")


def _expected(ds: corgipile.CorgiPileDataset, numbers: Numbers) -> list[list[int]]:
    batches = []
    for epoch in range(EPOCHS):
        ds.set_epoch(epoch)
        batches += numbers(ds)
    return batches
