"""JOADER while its server, its jobs and its preparers are killed, stopped and started again.

Each job writes down the rows that it gets; the test adds them up. CORGIPILE_KILLS=200 draws this many faults, otherwise
there are 20 if CORGIPILE_FULL is 1, and 8 if not. CORGIPILE_SEED=3 draws others.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import FULL
from joader_processes import LEFT, lines_of, marked, shared_memory, started

from corgipile import joader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FAULTS = int(os.environ.get("CORGIPILE_KILLS", "0")) or (20 if FULL else 8)
SEED = int(os.environ.get("CORGIPILE_SEED", "1"))
ROWS = 3000
# a damaged row group
DAMAGED = range(900, 1200)
MEMORIES = (64 << 10, 256 << 10, 8 << 20)

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"dataset": "whole", "batch_size": 50},
    "chosen": {"dataset": "whole", "batch_size": 16, "where": "number % 3 = 0", "columns": ["number"]},
    "prepared": {
        "dataset": "whole",
        "batch_size": 50,
        "prepare": [joader.function("joader_processes:twice")],
        "buffer_size": 3,
    },
    "equal": {"dataset": "whole", "batch_size": 70, "buffer_size": "50%"},
    "damaged": {"dataset": "damaged", "batch_size": 50},
}


def write_rows(path: Path) -> None:
    """Numbered rows whose pages have check sums."""
    numbers = np.arange(ROWS)
    table = pa.table({"number": numbers, "payload": numbers * 7, "text": [f"{number:060}" for number in numbers]})
    options = {"row_group_size": 300, "write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pq.write_table(table, path, **options)


def damage(path: Path) -> None:
    """Makes one row group unreadable."""
    meta = pq.ParquetFile(path).metadata.row_group(DAMAGED.start // 300)
    column = meta.column(0)
    with path.open("r+b") as file:
        file.seek(column.data_page_offset + column.total_compressed_size // 2)
        file.write(b"\xff" * 64)


class Running:
    """A server and jobs as processes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.mark = uuid.uuid4().hex
        self.socket = str(place / "joader")
        self.sources = {name: str(place / f"{name}.parquet") for name in ("whole", "damaged")}
        for source in self.sources.values():
            write_rows(Path(source))
        damage(Path(self.sources["damaged"]))
        self.jobs: dict[str, subprocess.Popen[str]] = {}
        self.server: subprocess.Popen[str] | None = None

    def serve(self, memory: int = 8 << 20) -> None:
        self.server = started(self.mark, "serve", self.socket, memory, json.dumps(self.sources))
        assert self.server.stdout is not None
        assert self.server.stdout.readline() == "ready\n"

    def begin(self, name: str, **options: Any) -> None:
        """Starts a job, or starts it again."""
        kind = name.split()[0]
        wanted = {"epochs": 2, "name": name, "seed": len(name), "pause": 0.004, **KINDS[kind], **options}
        self.jobs[name] = started(self.mark, "job", self.socket, self.log(name), json.dumps(wanted))

    def log(self, name: str) -> Path:
        return self.place / f"log of {name}"

    def end_server(self) -> None:
        assert self.server is not None
        os.kill(self.server.pid, signal.SIGINT)
        assert self.server.wait(timeout=30) == 0

    def gone(self, within: float = 10) -> list[tuple[int, str]]:
        """Waits for all processes to end; those that have not."""
        until = time.monotonic() + within
        while (left := list(marked(self.mark))) and time.monotonic() < until:
            time.sleep(0.05)
        return left

    def kill_all(self) -> None:
        for process, _ in list(marked(self.mark)):
            os.kill(process, signal.SIGKILL)
        for process in [*self.jobs.values(), *([self.server] if self.server else [])]:
            process.wait()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.kill_all()


def wait_for(what: Callable[[], Any], within: float = 30) -> Any:
    """Waits until this is true."""
    until = time.monotonic() + within
    while not (found := what()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
    return found


def logged(running: Running, name: str, lines: int) -> Callable[[], bool]:
    """Whether a job has written this many lines."""
    log = running.log(name)
    return lambda: log.exists() and log.read_text().count("\n") >= lines


def account(running: Running, name: str, epochs: int) -> Counter[str]:
    """Adds up what a job got: each row once in each epoch, or an error that names it."""
    kind = name.split()[0]
    wanted = set(range(0, ROWS, 3)) if kind == "chosen" else set(range(ROWS))
    lines = lines_of(running.log(name))
    assert not [line["fatal"] for line in lines if "fatal" in line]
    found: Counter[str] = Counter()
    for epoch in range(epochs):
        rows: list[int] = []
        failed: list[int] = []
        for line in lines:
            if line["epoch"] == epoch:
                rows += line["numbers"]
                if "error" in line:
                    told = re.match(r"rows (\d+) to (\d+): ", line["error"])
                    assert told, line["error"]
                    failed += range(int(told[1]), int(told[2]))
        assert len(rows) == len(set(rows)), f"{name}, epoch {epoch}: rows came twice"
        assert len(failed) == len(set(failed)) and not set(failed) & set(rows), f"{name}, epoch {epoch}"
        assert set(rows) | set(failed) == wanted, f"{name}, epoch {epoch}: rows are missing"
        if kind == "damaged":
            assert set(failed) == set(DAMAGED)
        elif kind != "prepared":
            assert not failed
        found["rows"] += len(rows)
        found["rows of errors"] += len(failed)
    found["batches that the job has read by itself"] = sum(line.get("mode") == "direct" for line in lines)
    return found


class Faults:
    """What happens, drawn by a seed."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.random = random.Random(SEED)
        self.happened: Counter[str] = Counter()
        self.finished: list[str] = []
        self.numbers: Counter[str] = Counter()

    def begin_all(self) -> None:
        """As many jobs as there are kinds: those that have ended are followed by others."""
        going = {name.split()[0] for name in self.running.jobs}
        for kind in KINDS.keys() - going:
            self.numbers[kind] += 1
            self.running.begin(f"{kind} {self.numbers[kind]}")

    def look(self) -> None:
        """Jobs that have ended by themselves."""
        for name, process in list(self.running.jobs.items()):
            if process.poll() is not None:
                assert process.returncode in (0, LEFT), f"{name}: {process.returncode}"
                if process.returncode == LEFT:
                    self.running.begin(name)
                else:
                    del self.running.jobs[name]
                    self.finished.append(name)

    def draw(self) -> None:
        weighted = {
            self.kill_job: 6,
            self.stop_job: 3,
            self.leave: 3,
            self.kill_server: 3,
            self.stop_server: 2,
            self.restart_server: 1,
            self.kill_preparer: 2,
        }
        fault = self.random.choices(list(weighted), list(weighted.values()))[0]
        if fault():
            self.happened[fault.__name__.replace("_", " ")] += 1

    def some_job(self) -> tuple[str, subprocess.Popen[str]]:
        return self.random.choice(list(self.running.jobs.items()))

    def kill_job(self) -> bool:
        name, process = self.some_job()
        process.kill()
        # it may have come to its end just before
        if process.wait() == -signal.SIGKILL:
            self.running.begin(name)
            return True
        return False

    def stop_job(self) -> bool:
        _, process = self.some_job()
        if process.poll() is not None:
            return False
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0, 0.5))
        process.send_signal(signal.SIGCONT)
        return True

    def leave(self) -> bool:
        name, process = self.some_job()
        told = Path(f"{self.running.log(name)}.process")
        # before that the signal would end it
        if process.poll() is not None or not told.exists() or told.read_text() != str(process.pid):
            return False
        process.send_signal(signal.SIGUSR1)
        return True

    def kill_server(self) -> bool:
        assert self.running.server is not None
        self.running.server.kill()
        self.running.server.wait()
        time.sleep(self.random.uniform(0, 0.3))
        self.running.serve(self.random.choice(MEMORIES))
        return True

    def restart_server(self) -> bool:
        self.running.end_server()
        self.running.serve(self.random.choice(MEMORIES))
        return True

    def stop_server(self) -> bool:
        assert self.running.server is not None
        self.running.server.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0, 1))
        self.running.server.send_signal(signal.SIGCONT)
        return True

    def kill_preparer(self) -> bool:
        preparers = [process for process, command in marked(self.running.mark) if "_preparer" in command]
        if not preparers:
            return False
        try:
            os.kill(self.random.choice(preparers), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True


def test_accounts_add_up_whatever_is_killed_stopped_and_started_again(running: Running) -> None:
    before = shared_memory()
    running.serve()
    faults = Faults(running)
    while faults.happened.total() < FAULTS:
        faults.begin_all()
        time.sleep(faults.random.uniform(0, 0.25))
        faults.look()
        if running.jobs:
            faults.draw()
    until = time.monotonic() + 60
    while running.jobs:
        if time.monotonic() > until:
            ends = {name: running.log(name).read_text()[-1000:] for name in running.jobs}
            pytest.fail(f"these jobs do not end: {ends}, {joader.status(running.socket)}")
        faults.look()
        time.sleep(0.05)
    total: Counter[str] = Counter(jobs=len(faults.finished))
    for name in faults.finished:
        total += account(running, name, epochs=2)
    assert total["rows"] > 0 and total["rows of errors"] >= 2 * len(DAMAGED)
    wait_for(lambda: not joader.status(running.socket)["jobs"])
    # no one holds anything: data sets can be dropped
    assert [of["jobs"] for of in joader.datasets(running.socket)] == [0, 0]
    for name in running.sources:
        joader.drop(running.socket, name)
    running.end_server()
    assert running.gone() == []
    assert not Path(running.socket).exists()
    assert shared_memory() == before
    print(f"{sum(faults.happened.values())} faults: {dict(faults.happened)}; {dict(total)}")


def test_nothing_is_left_when_all_are_killed(running: Running) -> None:
    before = shared_memory()
    running.serve()
    running.begin("prepared 1")
    running.begin("plain 1")
    wait_for(logged(running, "prepared 1", 3))
    wait_for(logged(running, "plain 1", 3))
    processes = dict(marked(running.mark))
    assert any("_preparer" in command for command in processes.values())
    assert running.server is not None
    for process in [running.server, *running.jobs.values()]:
        process.kill()
        process.wait()
    # preparers end by themselves
    assert running.gone() == []
    assert shared_memory() == before
    # and the socket that is left is in no one's way
    running.serve()
    running.begin("prepared 1")
    assert running.jobs["prepared 1"].wait(timeout=60) == 0
    account(running, "prepared 1", 2)
    running.end_server()
    assert not Path(running.socket).exists()


def test_a_job_that_is_killed_gives_up_what_it_holds_at_once(running: Running) -> None:
    running.serve()
    running.begin("plain 1", pause=0.2)
    wait_for(logged(running, "plain 1", 2))
    (job,) = joader.status(running.socket)["jobs"]
    assert job["held"] > 0 and job["process"] == running.jobs["plain 1"].pid
    running.jobs["plain 1"].kill()
    wait_for(lambda: not joader.status(running.socket)["jobs"], within=2)


def test_a_job_that_stalls_stops_nobody_and_goes_on_later(running: Running) -> None:
    running.serve(memory=64 << 10)
    running.begin("equal 1")
    wait_for(logged(running, "equal 1", 3))
    running.jobs["equal 1"].send_signal(signal.SIGSTOP)
    running.begin("equal 2", pause=0)
    assert running.jobs["equal 2"].wait(timeout=60) == 0
    (stopped,) = joader.status(running.socket)["jobs"]
    assert stopped["name"] == "equal 1"
    running.jobs["equal 1"].send_signal(signal.SIGCONT)
    assert running.jobs["equal 1"].wait(timeout=60) == 0
    for name in ("equal 1", "equal 2"):
        account(running, name, 2)


def test_jobs_read_on_by_themselves_without_a_server_and_come_back_to_the_next_one(running: Running) -> None:
    running.serve()
    running.begin("plain 1", epochs=12)
    wait_for(logged(running, "plain 1", 3))
    assert running.server is not None
    running.server.kill()
    running.server.wait()
    has = lambda what: lambda: what in running.log("plain 1").read_text()  # noqa: E731
    wait_for(has('"mode": "direct"'))
    running.serve()
    wait_for(has('"registered": 2'))
    assert running.jobs["plain 1"].wait(timeout=60) == 0
    assert account(running, "plain 1", 12)["batches that the job has read by itself"] > 0


def test_a_server_that_stops_for_good_in_the_middle_of_the_last_epoch_is_not_needed(running: Running) -> None:
    running.serve()
    running.begin("plain 1", epochs=1)
    wait_for(logged(running, "plain 1", 3))
    running.end_server()
    assert running.jobs["plain 1"].wait(timeout=60) == 0
    account(running, "plain 1", 1)
    assert running.gone() == []


def test_a_server_that_hangs_is_given_up_after_a_bound(running: Running) -> None:
    running.serve()
    running.begin("plain 1", epochs=1, pause=0.02)
    wait_for(logged(running, "plain 1", 3))
    assert running.server is not None
    running.server.send_signal(signal.SIGSTOP)
    assert running.jobs["plain 1"].wait(timeout=60) == 0
    found = account(running, "plain 1", 1)
    assert found["batches that the job has read by itself"] > 0
    log = running.log("plain 1").read_text()
    assert '"registered": 1' in log and '"registered": 2' not in log
    running.server.send_signal(signal.SIGCONT)
    wait_for(lambda: not joader.status(running.socket)["jobs"])
    running.end_server()


def test_a_preparer_that_crashes_is_an_error_for_its_rows_only(running: Running) -> None:
    running.serve()
    prepare = [joader.function("joader_processes:crashes_at_50")]
    running.begin("prepared 1", prepare=prepare, epochs=1)
    running.begin("plain 1", epochs=1)
    for name in ("prepared 1", "plain 1"):
        assert running.jobs[name].wait(timeout=60) == 0
        found = account(running, name, 1)
        assert found["rows of errors"] == (100 if name == "prepared 1" else 0)
    assert "SIGKILL" in running.log("prepared 1").read_text()
