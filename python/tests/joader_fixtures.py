"""What tests of JOADER's servers and jobs use."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joader_processes import HERE

import corgipile
from corgipile import joader

ROWS = 1000
Serve = Callable[..., str]


class Server:
    """A server in a thread of this process."""

    def __init__(self, path: str, **options: Any) -> None:
        self._stop = threading.Event()
        ready = threading.Event()
        self.failed: BaseException | None = None

        def serve() -> None:
            try:
                joader.serve(path, ready=ready.set, stop=self._stop.is_set, **{"threads": 2, "processes": 1, **options})
            except BaseException as error:
                self.failed = error
            finally:
                ready.set()

        self._thread = threading.Thread(target=serve)
        self._thread.start()
        ready.wait()
        if self.failed is not None:
            self._thread.join()
            raise self.failed

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers, each on a socket of its own."""
    monkeypatch.syspath_prepend(HERE)
    servers: list[Server] = []

    def start(**options: Any) -> str:
        path = str(tmp_path / f"socket {len(servers)}")
        servers.append(Server(path, **options))
        return path

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def file_of_rows(tmp_path: Path) -> str:
    """Rows with their numbers, and others."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = np.arange(ROWS)
    path = tmp_path / "rows.parquet"
    table = pa.table({"number": numbers, "half": numbers / 2, "text": [f"row {number}" for number in numbers]})
    pq.write_table(table, path, row_group_size=100)
    return str(path)


@pytest.fixture
def address(serve: Serve, file_of_rows: str) -> str:
    """A server with a data set of 100 elements."""
    path = serve()
    joader.create(path, "rows", file_of_rows, element_size=10)
    return path


def numbers_of(batches: Any) -> list[int]:
    return [int(number) for batch in batches for number in batch["number"]]


def taken(job: joader.Job, batches: list[Any]) -> str:
    """Takes batches up to the end or an error, and gives what that says."""
    try:
        batches.extend(job)
    except corgipile.SourceError as error:
        return str(error)
    return ""


def until(holds: Callable[[], Any], within: float = 60) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


def script(*lines: str) -> subprocess.Popen[str]:
    """A program that finds modules as this one does."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True)
