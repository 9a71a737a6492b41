"""Rows per second and memory of an epoch, by loader, size of rows and number of workers: `speed.py CSV`.

Each loader has a process of its own for each number of workers. Its first epoch is cold: the files' pages were dropped
from memory. Further ones are warm, three at least and as many as fit into two seconds, and the fastest counts. An epoch
that takes longer than a second is measured for that long. In the file, rows of the sizes that were measured are
replaced.

Memory is what the process and its workers have beyond what they have after importing their packages: their own pages
and shared ones, but not those of files.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import loaders
import peers
from peers import Reading

WIDTHS = {100: 256, 3_000: 64, 100_000: 16}  # bytes of a row, and rows of a batch
WORKERS = (0, 1, 4)
PATIENCE = 60  # seconds for an epoch, whose time is looked at between batches only
ROWS_ONE_BY_ONE = 100_000  # at most, for loaders that put batches together row by row
LOADERS = loaders.OWN | peers.PEERS
SHARED = loaders.SHARED | peers.SHARED


# ---------------------------------------------------------------------------------------- the process that is measured


def epoch(loader: Any, reader: Any, seconds: float) -> dict[str, float]:
    begin, rows, first = time.perf_counter(), 0, 0.0
    for batch in reader:
        rows += len(loader.labels(batch))
        took = time.perf_counter() - begin
        first = first or took
        if took > seconds:
            break
    return {"rows": rows, "seconds": time.perf_counter() - begin, "first": first}


def measured(name: str, directory: Path, batch: int, workers: int) -> None:
    """Answers each line from the driver, a number of seconds, with an epoch of at most that long."""
    import corgipile
    import torch

    torch.set_num_threads(1)
    loader, reader = LOADERS[name], None
    of_imports = corgipile.__name__
    if name in peers.PEERS:
        # what a first use imports is not measured
        __import__({"mosaicml-streaming": "streaming"}.get(loader.package, loader.package.lower()))
        of_imports = loader.package
    print(f"READY {of_imports}", flush=True)
    for line in sys.stdin:
        if reader is None:
            reader = loader.read(directory, Reading(batch, workers=workers, seed=1))
        print("EPOCH " + json.dumps(epoch(loader, reader, float(line))), flush=True)
    os._exit(0)  # no one waits for workers


# ---------------------------------------------------------------------------------------------------------- the driver


def drop(directory: Path) -> None:
    """Drops the pages of its files from memory. Needs no rights, and leaves other files alone."""
    for path in directory.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def megabytes(process: int) -> float:
    """Memory of its own or shared that a process and its children have."""
    total = 0.0
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Pss_Anon", "Pss_Shmem")):
                total += int(line.split()[1]) / 1024
        for task in Path(f"/proc/{process}/task").iterdir():
            total += sum(megabytes(int(child)) for child in (task / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return total


class Memory(threading.Thread):
    """The most that a process has of it, looked at many times a second."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.process, self.least, self.most, self.ended = process, megabytes(process), 0.0, False

    def run(self) -> None:
        while not self.ended:
            self.most = max(self.most, megabytes(self.process))
            time.sleep(0.03)


def measure(name: str, directory: Path, batch: int, workers: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, __file__, name, str(directory), str(batch), str(workers)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        assert process.stdin and process.stdout
        told, written = process.stdout, process.stdin

        def answer(start: str) -> str:
            # with its workers, which have its output open
            late = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
            late.start()
            try:
                for line in told:
                    if line.startswith(start):
                        return line.removeprefix(start)
            finally:
                late.cancel()
            raise RuntimeError(f"{name} with {workers} workers ended, or took longer than {PATIENCE} seconds")

        def ask() -> dict[str, float]:
            written.write(f"{seconds}\n")
            written.flush()
            return json.loads(answer("EPOCH "))

        answer("READY")
        drop(directory)
        memory = Memory(process.pid)
        memory.start()
        cold = ask()
        warm = [ask()]
        # epochs of milliseconds differ by a third: as many as fit
        while len(warm) < 3 or sum(epoch["seconds"] for epoch in warm) < 2 * seconds:
            if warm[-1]["seconds"] >= seconds:
                break
            warm.append(ask())
        memory.ended = True
        memory.join()
        written.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        # workers that it left behind
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    best = max(warm, key=lambda of: of["rows"] / of["seconds"])
    return {
        "cold": cold["rows"] / cold["seconds"],
        "warm": best["rows"] / best["seconds"],
        "first": best["first"],
        "megabytes": memory.most - memory.least,
    }


def write_all(width: int, megabytes_of_data: int, directory: Path) -> dict[str, tuple[int, float]]:
    """The rows in the format of each loader; rows and megabytes of each."""
    draw = np.random.default_rng(1)
    rows = megabytes_of_data * 2**20 // width
    x, y = draw.random((rows, width // 4), dtype=np.float32), np.arange(rows)
    made: dict[str, tuple[int, float]] = {}
    for name, loader in LOADERS.items():
        if name in SHARED:
            continue
        n = min(rows, ROWS_ONE_BY_ONE) if loader.by_row else rows
        files = directory / name.replace(" ", "_")
        files.mkdir()
        begin = time.perf_counter()
        loader.write(files, x[:n], y[:n], None)
        size = sum(path.stat().st_size for path in files.rglob("*") if path.is_file()) / 2**20
        made[name] = n, size
        print(
            f"{width:6} {name:18} {n:8} rows written in {time.perf_counter() - begin:.0f} s: {size:.0f} MB", flush=True
        )
    return made


def main(path: Path) -> None:
    seconds, megabytes_of_data = float(os.environ.get("SECONDS_EACH", 1)), int(os.environ.get("MB", 200))
    chosen = [int(width) for width in os.environ.get("WIDTHS", "").split()] or list(WIDTHS)
    of_workers = [int(workers) for workers in os.environ.get("WORKERS", "").split()] or list(WORKERS)
    begin = time.perf_counter()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {megabytes_of_data} MB of each size of rows")
    for width in chosen:
        rows: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as directory:
            made = write_all(width, megabytes_of_data, Path(directory))
            print("row bytes  loader              workers  cold rows/s  warm rows/s    MiB/s  first batch s  memory MB")
            for name in LOADERS:
                source = SHARED.get(name, name)
                files = Path(directory) / source.replace(" ", "_")
                for workers in of_workers if name not in loaders.ALONE else (0,):
                    try:
                        told = measure(name, files, WIDTHS[width], workers, seconds)
                    except RuntimeError as error:
                        print(f"{width:9}  left out: {error}", flush=True)
                        continue
                    count, size = made[source]
                    of = {"width": width, "loader": name, "workers": workers, "rows": count, "file_megabytes": size}
                    rows.append(of | told)
                    print(
                        f"{width:9}  {name:18} {workers:8} {told['cold']:12.0f} {told['warm']:12.0f}"
                        f" {told['warm'] * width / 2**20:8.0f} {told['first']:14.3f} {told['megabytes']:10.0f}",
                        flush=True,
                    )
        save(path, [{key: f"{of:.5g}" if isinstance(of, float) else of for key, of in row.items()} for row in rows])
        print(f"{(time.perf_counter() - begin) / 60:.0f} minutes so far, load {os.getloadavg()[0]:.1f}", flush=True)


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    kept = []
    if path.exists():
        with open(path, newline="") as file:
            kept = [row for row in csv.DictReader(file) if int(row["width"]) not in {of["width"] for of in rows}]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept + rows, key=lambda row: int(row["width"])))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        name_, directory_, batch_, workers_ = sys.argv[1:]
        measured(name_, Path(directory_), int(batch_), int(workers_))
