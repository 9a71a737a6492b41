"""Servers and jobs of JOADER as processes that can be killed, stopped and started again.

joader_processes.py serve SOCKET MEMORY DATA_SETS
joader_processes.py job SOCKET LOG OPTIONS

A server creates the data sets, which are JSON: names and paths. A job writes down the rows of each batch, and every few
batches its state; started again it goes on from the last of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import corgipile
from corgipile import joader

HERE = Path(__file__).parent
MARK = "CORGIPILE_JOADER_TEST"
# of a job that was asked to leave
LEFT = 3
# a batch has state in one line of this many
STATES = 3


def hangs(columns: dict[str, Any]) -> dict[str, Any]:
    time.sleep(1000)
    return columns


def twice(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A preparation."""
    return {**rows, "twice": 2 * rows["number"]}


def fails_at_50(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A preparation that cannot stand one row."""
    if 50 in rows["number"]:
        raise ArithmeticError("50 is too much")
    return rows


def of_another_shape(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A preparation whose rows from 50 to 59 are wider."""
    wide = 50 in rows["number"]
    return {"number": rows["number"], "pixels": np.zeros((len(rows["number"]), 3 if wide else 2))}


def crashes_at_50(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A preparation that takes its process along."""
    if 50 in rows["number"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def serve(path: str, memory: str, data_sets: str) -> None:
    """Serves until Ctrl-C."""

    def ready() -> None:
        for name, source in json.loads(data_sets).items():
            joader.create(path, name, source, element_size=100)
        print("ready", flush=True)

    try:
        joader.serve(path, memory=int(memory), threads=2, processes=2, ready=ready)
    except KeyboardInterrupt:
        print("interrupted", flush=True)


def lines_of(log: Path) -> list[dict[str, Any]]:
    """What a job wrote up to its last state: what came behind that comes again."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    while lines and not (lines[-1].endswith("\n") and json.loads(lines[-1]).get("state")):
        lines.pop()
    return [json.loads(line) for line in lines]


def job(path: str, log: str, options: str) -> int:
    """Gets all batches."""
    lines = lines_of(Path(log))
    Path(log).write_text("".join(json.dumps(line) + "\n" for line in lines))
    state = lines[-1]["state"] if lines else None
    asked = []
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    # from now on it can be asked to leave
    Path(f"{log}.process").write_text(str(os.getpid()))
    wanted = json.loads(options)
    pause = wanted.pop("pause")
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(line: dict[str, Any]) -> None:
        os.write(file, (json.dumps(line) + "\n").encode())

    for _ in range(600):
        mine = joader.Job(path, **wanted)
        if state is not None:
            mine.load_state_dict(state)
        try:
            return _all(mine, write, asked, pause)
        except (joader.JoaderError, ConnectionError) as error:
            # without a server, or its data set, a job cannot begin; once it has, it can go on
            if mine.rows is not None:
                write({"fatal": repr(error)})
                return 1
            if asked:
                return LEFT
            mine.close()
            time.sleep(0.1)
    return 1


def _all(mine: joader.Job, write: Any, asked: list[bool], pause: float) -> int:
    while (code := _until_error(mine, write, asked, pause)) is None:
        pass
    return code


def _until_error(mine: joader.Job, write: Any, asked: list[bool], pause: float) -> int | None:
    number = 0
    try:
        for epoch, batches in mine.by_epoch():
            for batch in batches:
                line = {
                    "epoch": epoch,
                    "numbers": batch["number"].tolist(),
                    "mode": mine.mode,
                    "counts": mine.counts,
                }
                if "payload" in batch and not (batch["payload"] == batch["number"] * 7).all():
                    line["fatal"] = f"payloads are {batch['payload'].tolist()}"
                if "twice" in batch and not (batch["twice"] == batch["number"] * 2).all():
                    line["fatal"] = f"twice is {batch['twice'].tolist()}"
                number += 1
                if number % STATES == 0 or asked:
                    line["state"] = mine.state_dict()
                write(line)
                if asked:
                    mine.close()
                    return LEFT
                time.sleep(pause)
        # what came behind the last state is complete, too
        write({"epoch": mine.epoch, "numbers": [], "state": mine.state_dict(), "counts": mine.counts})
        return 0
    except ValueError as error:
        # a preparer was killed
        if "of its buffer cannot be read again" not in str(error):
            raise
    except corgipile.SourceError as error:
        write({"epoch": mine.epoch, "numbers": [], "error": str(error)})
    return None


def started(mark: str, *command: Any) -> subprocess.Popen[str]:
    """A process of this module, which has a mark in its environment that those it starts have, too."""
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, command)],
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE if command[0] == "serve" else None,
        text=True,
        cwd=HERE,
        start_new_session=True,
    )


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Processes with this mark that have not ended, and their command lines."""
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                has_it = f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0")
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if has_it and command:
                yield int(process.name), command


def shared_memory() -> list[str]:
    """What is in shared memory, but for that of torch, PostgreSQL, clusters and multiprocessing, which others use."""
    others = ("torch_", "PostgreSQL.", "corgipile.", "sem.")
    return sorted(name for name in os.listdir("/dev/shm") if not name.startswith(others))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        code = job(*sys.argv[2:])
        # a handler of Python's is not there while it ends
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        sys.exit(code)
