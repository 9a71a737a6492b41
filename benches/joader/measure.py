"""Many jobs that train on the same pictures: `measure.py CSV TRACE`.

By JOADER, each with a DataLoader of its own, and by TensorSocket. A row of the file is a run, with numbers of all its
processes from the moment when the first job may begin to the one when the last has its last row. TRACE gets what was
read by when of jobs that start one after the other.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pictures
from measured import PATIENCE, Look, Process, bytes_read, processes, processor_seconds, read_rows, save, wait
from processes import BATCH

PICTURES = int(os.environ.get("PICTURES", 2000))
EPOCHS = int(os.environ.get("EPOCHS", 2))
REPETITIONS = int(os.environ.get("REPETITIONS", 2))
SECONDS = float(os.environ.get("SECONDS_EACH", 10))
CASES = os.environ.get("CASES", "equal speeds staggered intersect").split()
JOBS = [int(jobs) for jobs in os.environ.get("JOBS", "1 2 3 4 5 6").split()]
DECODED = pictures.SIZE * pictures.SIZE * 3
FAST = float(os.environ.get("FAST", 400))  # rows per second that the fastest of jobs of different speeds trains with
SHARES = (0.25, 0.5, 0.75, 1.0)
THREADS = os.cpu_count() or 1


@dataclass(frozen=True)
class Way:
    """How jobs get their rows. `memory` is JOADER's, in shares of all decoded pictures."""

    name: str
    kind: str
    memory: float = 0.4
    element: str = "16"
    sampler: str = "follow"
    workers: int = 1
    servers: bool = False  # each job has one of its own


JOADER = Way("JOADER", "joader")
LARGE = Way("JOADER, memory for all", "joader", memory=1.5)
SINGLE = Way("JOADER, single rows", "joader", element="1")
AUTO = Way("JOADER, elements of 1 MiB", "joader", element="1MiB")
DEPENDENT = Way("JOADER, dependent", "joader", sampler="dependent")
APART = Way("JOADER, a server each", "joader", memory=0.1, servers=True)
OWN = Way("DataLoader each", "own")
OWN_2 = Way("DataLoader each, 2 workers", "own", workers=2)
SOCKET = Way("TensorSocket", "tensorsocket", workers=THREADS)


@dataclass
class Run:
    """One run of a case: what its jobs do, and what is measured."""

    case: str
    way: Way
    jobs: int
    x: float = 0.0  # what is varied besides the number of jobs
    steps: tuple[float, ...] = ()  # seconds that a batch of each job takes, if not none
    seconds: float | None = None  # how long jobs train, if not for their epochs
    epochs: int = EPOCHS
    staggered: bool = False
    often: bool = False  # measured once more, for a bound
    parts: list[tuple[int, int, int, int]] = field(default_factory=list)  # rows of each job: from, to, but not from, to

    @property
    def rows(self) -> int:
        return sum(to - start - (end - begin) for start, to, begin, end in self.parts) if self.parts else 0


OF_BOUNDS = ((JOADER, 1), (JOADER, 4), (OWN, 4))


def equal() -> list[Run]:
    runs = []
    for jobs in JOBS:
        ways = (JOADER, OWN, SOCKET) if jobs in (1, 2, 4, 6) else (JOADER,)
        runs += [Run("equal", way, jobs, often=(way, jobs) in OF_BOUNDS) for way in ways]
        if jobs in (1, 4):
            runs += [Run("equal", way, jobs) for way in (LARGE, SINGLE, AUTO, DEPENDENT)]
            runs += [Run("equal", APART, jobs)] if jobs > 1 else []
            runs.append(Run("equal", OWN_2, jobs, often=jobs == 1))
    return runs


def speeds() -> list[Run]:
    runs = []
    for way in (JOADER, DEPENDENT, OWN, SOCKET):
        for jobs in (1, 5):
            steps = tuple(BATCH / FAST * (1 + place) for place in range(jobs))
            often = way is JOADER
            runs.append(Run("speeds", way, jobs, steps=steps, seconds=SECONDS, epochs=10**6, often=often))
    return runs


def staggered() -> list[Run]:
    return [Run("staggered", way, 4, staggered=True) for way in (JOADER, DEPENDENT, LARGE, OWN, SOCKET)]


def intersect() -> list[Run]:
    runs = []
    for share in SHARES:
        # all rows are wanted by somebody where jobs share the least
        rows = int(PICTURES / (4 - 3 * SHARES[0]))
        common = round(rows * share)
        alone = rows - common
        # the common rows, and rows of its own: from 0 to the end of these, without those in between
        parts = [(0, common + (job + 1) * alone, common, common + job * alone) for job in range(4)]
        runs += [Run("intersect", way, 4, x=share, parts=parts) for way in (JOADER, DEPENDENT, OWN, SOCKET)]
    return runs


def ports() -> int:
    """The first of four that are free."""
    for port in range(20000 + os.getpid() % 10000, 60000, 7):
        try:
            for place in range(4):
                with socket.socket() as tried:
                    tried.bind(("127.0.0.1", port + place))
        except OSError:
            continue
        return port
    raise RuntimeError("no ports are free")


class Measuring:
    """The files that all runs share."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.path = directory, directory / "pictures.parquet"
        self.picture = pictures.write(self.path, PICTURES)
        self.trace: list[dict[str, Any]] = []

    def run(self, run: Run, repetition: int) -> dict[str, Any]:
        of = {"case": run.case, "way": run.way.name, "jobs": run.jobs, "x": run.x, "repetition": repetition}
        of |= {"load": os.getloadavg()[0], "pictures": PICTURES, "fast": FAST}
        try:
            with processes() as start:
                told = self.measured(run, start, repetition)
        except (RuntimeError, OSError, ValueError) as error:
            told = dict.fromkeys(MEASURED, "") | {"error": f"{type(error).__name__}: {error}"}
        return of | told

    def measured(self, run: Run, start: Any, repetition: int) -> dict[str, Any]:
        kind, port = run.way.kind, ports() if run.way.kind == "tensorsocket" else 0
        alike = {"epochs": run.epochs, "batch": BATCH, "seconds": run.seconds, "path": str(self.path), "port": port}
        alike["workers"] = run.way.workers
        addresses: list[str] = []
        first: list[Process] = []
        if kind == "joader":
            memory = int(run.way.memory * PICTURES * DECODED)
            for server in range(run.jobs if run.way.servers else 1):
                addresses.append(f"unix:{self.directory}/joader{server}")
                first.append(start("server", {"address": addresses[-1], "memory": memory, "threads": THREADS}))
        elif kind == "tensorsocket":
            whole = {"rows": (0, PICTURES), "skipped": (0, 0)}
            first.append(start("producer", alike | whole | {"jobs": 1 if run.staggered else run.jobs}))
        jobs = []
        for job in range(run.jobs):
            begin, end, skip, until = run.parts[job] if run.parts else (0, PICTURES, 0, 0)
            rows = {"rows": (begin, end), "skipped": (skip, until), "seed": job}
            rows["where"] = f"id < {end} and (id < {skip} or id >= {until})" if run.parts else None
            rows["address"] = addresses[job % len(addresses)] if addresses else ""
            rows["step"] = run.steps[job] if run.steps else 0.0
            jobs.append(start(kind, alike | rows))
        everybody = [*first, *jobs]
        wait(lambda: all(one.has("READY") for one in everybody), PATIENCE, "to import packages")
        for one in first:
            one.go()
        wait(lambda: all(one.has("SERVES") for one in first), PATIENCE, "to serve")
        for address in addresses:
            self.create(address, run.way)
        before = self.counted(everybody)
        look = Look(everybody)
        look.start()
        begin = time.monotonic()
        for place, job in enumerate(jobs):
            if run.staggered:
                due = place * PICTURES // run.jobs
                self.watch(run, addresses, first, jobs, lambda due=due: jobs[0].rows >= due, begin, repetition)
            job.go()
        self.watch(run, addresses, first, jobs, lambda: all(job.has("DONE") for job in jobs), begin, repetition)
        for one in first:
            begin = one.said.get("BEGINS", begin)
        after = self.counted(everybody)
        look.end()
        done = [job.said["DONE"] for job in jobs]
        seconds = max(of["end"] for of in done) - begin
        rows = sum(of["rows"] for of in done)
        each = [of["rows"] / (of["end"] - (of["begin"] if kind != "tensorsocket" else begin)) for of in done]
        loads, prepared = 0, rows
        if kind == "joader":
            loads, prepared = self.loaded(addresses)
        elif kind == "tensorsocket":
            prepared = first[0].rows
        return {
            "seconds": seconds,
            "rows": rows,
            "rows_per_second": rows / seconds,
            "of_each": " ".join(f"{of:.1f}" for of in each),
            "loads": loads,
            "prepared": prepared,
            "picture_bytes": prepared * self.picture,
            "bytes_read": after[1] - before[1],
            "processor_seconds": after[0] - before[0],
            "megabytes": look.most,
            "error": "",
        }

    def counted(self, of: list[Process]) -> tuple[float, int]:
        ids = [one.process.pid for one in of]
        return sum(map(processor_seconds, ids)), sum(map(bytes_read, ids))

    def create(self, address: str, way: Way) -> None:
        from corgipile import joader, parquet

        told = joader.create(
            address, "pictures", parquet(str(self.path)), element_size=way.element, sampler=way.sampler
        )
        self.per_element = told["rows"] / told["elements"]

    def loaded(self, addresses: list[str]) -> tuple[int, int]:
        from corgipile import joader

        loads = sum(joader.status(address)["loads"] for address in addresses)
        return loads, round(loads * self.per_element)

    def watch(
        self,
        run: Run,
        addresses: list[str],
        first: list[Process],
        jobs: list[Process],
        until: Any,
        begin: float,
        repetition: int,
    ) -> None:
        """Waits, and writes the trace of the first repetition."""
        end, looked = time.monotonic() + PATIENCE, 0.0
        while not until():
            now = time.monotonic()
            if now > end:
                got = " ".join(str(job.rows) for job in jobs)
                raise RuntimeError(f"jobs took longer than {PATIENCE:.0f} seconds; they had got {got} rows")
            if run.staggered and repetition == 0 and now - looked > 0.5:
                looked = now
                given = sum(job.rows for job in jobs)
                prepared = self.loaded(addresses)[1] if run.way.kind == "joader" else given
                if run.way.kind == "tensorsocket":
                    prepared = first[0].rows
                of = {"way": run.way.name, "seconds": now - begin, "prepared": prepared, "given": given}
                self.trace.append(of)
            time.sleep(0.01)


MAKERS = {"equal": equal, "speeds": speeds, "staggered": staggered, "intersect": intersect}
MEASURED = (
    *("seconds", "rows", "rows_per_second", "of_each", "loads", "prepared", "picture_bytes", "bytes_read"),
    *("processor_seconds", "megabytes", "error"),
)


def main(path: Path, trace: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("measure.py: ended"))
    begin = time.monotonic()
    runs = [run for case in CASES for run in MAKERS[case]()]
    with tempfile.TemporaryDirectory() as directory:
        measuring = Measuring(Path(directory))
        print(
            f"load {os.getloadavg()[0]:.1f}, {THREADS} processors,"
            f" {PICTURES} pictures of {measuring.picture:.0f} bytes, {PICTURES * DECODED / 1e6:.0f} MB decoded",
            flush=True,
        )
        rows = [row for row in read_rows(path) if row["case"] not in CASES]
        print("case       jobs     x  way                         rows/s     each  prepared  cpu s    MB  load")
        for repetition in range(REPETITIONS + 1):
            for run in runs:
                if repetition == REPETITIONS and not run.often:
                    continue
                told = measuring.run(run, repetition)
                rows.append(told)
                shown = f"{told['case']:10} {told['jobs']:4} {told['x']:5.2f}  {told['way']:26}"
                if told["error"]:
                    print(f"{shown} {told['error']}", flush=True)
                    continue
                print(
                    f"{shown} {told['rows_per_second']:7.0f} {told['of_each'].split()[0]:>8} {told['prepared']:9}"
                    f" {told['processor_seconds']:6.1f} {told['megabytes']:5.0f} {told['load']:5.1f}",
                    flush=True,
                )
                save(path, rows)
                if measuring.trace:
                    save(trace, measuring.trace)
            print(f"{(time.monotonic() - begin) / 60:.1f} minutes so far, load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
