"""Processes that are started together, looked at while they run, and ended together."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("processes.py")
PROGRAMS: dict[str, Path] = {}  # of other kinds of processes
PATIENCE = float(os.environ.get("PATIENCE", 120))  # seconds for a run
LOOKED_AT = 0.5  # seconds between two looks at memory
TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """A process in a session of its own, and what it says."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        self.kind, self.said = kind, dict[str, Any]()
        self.progress: list[tuple[float, int]] = []
        self.news: queue.Queue[None] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAMS.get(kind, PROGRAM)), kind, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.error = ""
        for read in (self._hear, self._hear_errors):
            threading.Thread(target=read, daemon=True).start()

    def _hear(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            what, _, told = line.partition(" ")
            with contextlib.suppress(ValueError):
                self.said[what] = json.loads(told)
                if what == "AT":
                    rows, at = self.said[what]
                    self.progress.append((at, rows))
        self.said["ENDED"] = None

    def _hear_errors(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.error = line.strip() or self.error

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def has(self, what: str) -> bool:
        """Whether it has said so. An error, if it has ended instead."""
        if "ENDED" in self.said and what not in self.said:
            raise RuntimeError(f"{self.kind} ended: {self.error or 'it said nothing'}")
        return what in self.said

    @property
    def rows(self) -> int:
        return self.said["DONE"]["rows"] if "DONE" in self.said else self.progress[-1][1] if self.progress else 0

    def end(self) -> None:
        ended = tree(self.process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # what torch shares and could not remove
        for one in ended:
            for path in Path("/dev/shm").glob(f"torch_{one}_*"):
                path.unlink(missing_ok=True)


def wait(until: Any, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} took longer than {seconds:.0f} seconds")
        time.sleep(0.01)


@contextlib.contextmanager
def processes() -> Iterator[Any]:
    """Gives a function that starts processes, all of which are ended at the end, however that comes."""
    started: list[Process] = []

    def start(kind: str, options: dict[str, Any]) -> Process:
        started.append(Process(kind, options))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.end()


def tree(process: int) -> list[int]:
    """A process and those that it has started."""
    found = [process]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += tree(int(child))
    return found


def read(path: str) -> str:
    try:
        return Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def processor_seconds(process: int) -> float:
    """Of a process and of all that it has started."""
    total = 0
    for one in tree(process):
        fields = read(f"/proc/{one}/stat").rpartition(")")[2].split()
        # user's and system's, its own and those of children that it has waited for
        own = fields[11:13] if one != process else fields[11:15]
        total += sum(map(int, own))
    return total / TICKS


def bytes_read(process: int) -> int:
    total = 0
    for one in tree(process):
        for line in read(f"/proc/{one}/io").splitlines():
            total += int(line.split()[1]) if line.startswith("rchar") else 0
    return total


def megabytes(process: int) -> float:
    """Memory of their own and shared that a process and those it has started have; not files'."""
    total = 0
    for one in tree(process):
        for line in read(f"/proc/{one}/smaps_rollup").splitlines():
            total += int(line.split()[1]) if line.startswith(("Pss_Anon", "Pss_Shmem")) else 0
    return total / 1024


class Look(threading.Thread):
    """The most memory that processes have in all."""

    def __init__(self, of: list[Process]) -> None:
        super().__init__(daemon=True)
        self.of, self.most, self.ended = [one.process.pid for one in of], 0.0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(LOOKED_AT):
            self.look()

    def look(self) -> None:
        self.most = max(self.most, sum(map(megabytes, self.of)))

    def end(self) -> None:
        """With a last look, while processes still have what they had."""
        self.ended.set()
        self.join()
        self.look()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """What was measured before."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: f"{of:.6g}" if isinstance(of, float) else of for key, of in row.items()} for row in rows)
