"""JOADER for Python: jobs in processes and threads, with torch, and when they are interrupted."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from joader_fixtures import ROWS, Server, numbers_of, script, until
from joader_processes import started

from corgipile import joader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# processes, threads, torch


def _raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "nothing"


def test_a_job_is_of_no_use_in_a_process_that_is_forked_off(address: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    iterator = iter(job)
    got = numbers_of([next(iterator)])
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            calls = (lambda: next(iterator), lambda: next(iter(job)), job.state_dict)
            told = [_raised(call) for call in calls]
            os.write(writer, f"{told} {job!r}".encode())
            # what it lets go of has the memory of its own threads by then
            mine = [joader.Job(address, dataset="rows", batch_size=10) for _ in range(4)]
            for other in mine:
                next(iter(other))
            del job, iterator, calls
            for other in mine:
                other.close()
            os.write(writer, b", which let go of it")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(reader, 10_000).decode()
    assert said == "['ValueError', 'ValueError', 'ValueError'] Job('rows', of another process), which let go of it"
    os.close(reader)
    os.close(writer)
    assert sorted(got + numbers_of(iterator)) == list(range(ROWS))


def test_a_job_that_is_killed_is_gone_though_a_process_that_it_forked_off_lives_on(address: str) -> None:
    job = script(
        "import os, time",
        "from corgipile import joader",
        f"job = joader.Job({address!r}, dataset='rows', batch_size=10)",
        "batch = next(iter(job))",
        "child = os.fork()",
        "if child: print(child, flush=True)",
        "time.sleep(60)",
    )
    assert job.stdout is not None
    child = int(job.stdout.readline())
    try:
        assert len(joader.status(address)["jobs"]) == 1
        job.kill()
        until(lambda: not joader.status(address)["jobs"], within=5)
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        job.wait()


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_dataloader_takes_a_job_without_workers_or_with_one(address: str, workers: int) -> None:
    torch = pytest.importorskip("torch")
    job = joader.Job(address, dataset="rows", columns=["number"], batch_size=50, tensors="torch", epochs=2)
    loader = torch.utils.data.DataLoader(job, batch_size=None, num_workers=workers)
    if workers == 2:
        with pytest.raises(ValueError, match="num_workers"):
            list(loader)
        return
    assert sorted(numbers_of(loader)) == sorted(2 * list(range(ROWS)))
    job.close()


def test_threads_may_share_a_job_and_another_one_may_close_it(address: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    got: list[int] = []

    def take() -> None:
        got.extend(numbers_of(job))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        _ = (job.state_dict(), job.mode, job.counts, job.rows, repr(job))
        time.sleep(0.001)
    assert sorted(got) == list(range(ROWS))
    slow = joader.Job(address, dataset="rows", batch_size=10, epochs=10**6)
    failed = []

    def run() -> None:
        try:
            for _ in slow:  # no one keeps the batches
                pass
        except ValueError as error:
            failed.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        until(lambda: slow.epoch > 1)
    finally:
        slow.close()  # or the thread goes on for ever
    thread.join(timeout=60)
    assert not thread.is_alive() and failed == ["the job was closed"]


def test_ctrl_c_ends_a_job_that_waits_for_a_server_that_hangs(tmp_path: Path, file_of_rows: str) -> None:
    path = str(tmp_path / "socket")
    server = started("hangs", "serve", path, 1 << 20, json.dumps({"rows": file_of_rows}))
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    server.send_signal(signal.SIGSTOP)
    try:
        for what in (
            "with joader.Job(PATH, dataset='rows') as job: next(iter(job))",
            "joader.status(PATH)",
            "joader.create(PATH, 'others', ROWS)",
        ):
            asking = script(
                "from corgipile import joader",
                "joader.Job, joader.status, joader.create  # a module is loaded when it is first named",
                f"PATH, ROWS = {path!r}, {file_of_rows!r}",
                "print('ready', flush=True)",
                "try:",
                f"    {what}",
                "except KeyboardInterrupt:",
                "    print('interrupted', flush=True)",
            )
            assert asking.stdout is not None and asking.stdout.readline() == "ready\n"
            time.sleep(0.5)
            begin = time.monotonic()
            asking.send_signal(signal.SIGINT)
            assert asking.wait(timeout=20) == 0
            assert asking.stdout.read() == "interrupted\n" and time.monotonic() - begin < 2, what
    finally:
        server.send_signal(signal.SIGCONT)
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) == 0
    assert not os.path.exists(path)


def test_closing_a_job_that_reads_by_itself_does_not_wait_for_what_it_reads(tmp_path: Path, file_of_rows: str) -> None:
    path = str(tmp_path / "socket")
    slow = f"os.path.exists({str(tmp_path / 'slow')!r})"
    code = ["import os, time", "def slow(rows):", f"    time.sleep(30 if {slow} else 0)", "    return rows"]
    (tmp_path / "slow_rows.py").write_text("\n".join(code))
    sys.path.insert(0, str(tmp_path))
    try:
        server = Server(path)
        joader.create(path, "rows", file_of_rows, element_size=10)
        slow = [joader.function("slow_rows:slow")]
        job = joader.Job(path, dataset="rows", prepare=slow, batch_size=10, buffer_size=2)
        iterator = iter(job)
        next(iterator)
        (tmp_path / "slow").touch()
        server.stop()
        until(lambda: job.mode == "direct")
        time.sleep(0.3)
        begin = time.monotonic()
        job.close()
        assert time.monotonic() - begin < 3
    finally:
        sys.path.remove(str(tmp_path))
