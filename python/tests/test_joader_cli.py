"""`corgipile-joader` from a shell: serve, data sets, status, top, metrics."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joader_processes import shared_memory

from corgipile import joader
from corgipile.joader import _metrics, _top, cli

COMMAND = [sys.executable, "-m", "corgipile.joader"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=60)


class Server:
    def __init__(self, directory: Path, *options: str) -> None:
        self.address = f"unix:{directory}/joader"
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--listen", self.address, "--memory", "16MiB", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"serving at {self.address}\n"

    def run(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        return run(command, "--address", self.address, *words)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    serving = Server(tmp_path, "--metrics", "127.0.0.1:0")
    try:
        yield serving
    finally:
        serving.process.kill()
        serving.process.wait()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text("number,label\n" + "".join(f"{row},{row // 10}\n" for row in range(1000)))
    return str(path)


def test_data_sets_are_created_shown_altered_and_dropped(server: Server, file: str) -> None:
    made = server.run("create", "rows", file, "--element-size", "100")
    assert (made.returncode, made.stdout, made.stderr) == (0, "rows: 1000 rows in 10 elements\n", "")
    assert server.run("list").stdout == "rows: 1000 rows in 10 elements, 0 jobs\n"
    again = server.run("create", "rows", file)
    assert again.returncode == 1
    assert again.stderr == 'corgipile-joader: there is a data set "rows" already: alter or drop it\n'
    altered = server.run("alter", "rows", file, "--columns", "number", "--element-size", "1", "--sampler", "dependent")
    assert altered.stdout == "rows: 1000 rows in 1000 elements\n"
    job = joader.Job(server.address, dataset="rows", epochs=1)
    numbers = np.concatenate([batch["number"] for batch in job])
    assert sorted(numbers.tolist()) == list(range(1000))
    job.close()
    assert server.run("drop", "rows").returncode == 0
    assert server.run("list").stdout == ""
    unknown = server.run("drop", "rows")
    assert (unknown.returncode, unknown.stderr) == (
        1,
        'corgipile-joader: dataset: there is no "rows"; there is none yet\n',
    )


def test_status_and_top_show_jobs(server: Server, file: str) -> None:
    server.run("create", "rows", file, "--element-size", "100")
    job = joader.Job(server.address, dataset="rows", name="first \x1b[31m", epochs=1)
    assert len(next(iter(job))["number"]) == 64
    told = json.loads(server.run("status").stdout)
    assert [told["jobs"][0][name] for name in ("name", "data_set", "process")] == [
        "first \x1b[31m",
        "rows",
        os.getpid(),
    ]
    shown = server.run("top", "--once").stdout
    assert "first ?[31m" in shown and "\x1b" not in shown
    assert shown.splitlines()[0].startswith("memory ")
    job.close()
    assert server.run("top", "--once").stdout.splitlines()[1] == "no job"


def test_top_shows_speed_since_the_look_before() -> None:
    job = dict.fromkeys(("job", "process", "epoch", "left", "elements", "loads", "merged", "hits", "again"), 0)
    job |= {"outside": 0, "errors": 0, "held": 3, "name": "a", "data_set": "b", "stalled": True}
    status = {"memory": 2**30, "used": 2**20, "elements": 2, "bytes_loaded": 100, "bytes_saved": 300}
    status |= {"evictions": 0, "errors": 0, "seconds": 5.0}
    before = status | {"jobs": [job | {"rows": 100, "seconds": 1.0}]}
    after = status | {"jobs": [job | {"rows": 500, "seconds": 3.0, "loads": 1, "merged": 2, "hits": 1}]}
    head, _, line = _top.lines_of(after, before)
    assert "saved 300 B (75%)" in head
    assert re.split(r"\s\s+", line) == ["0", "a", "b", "0", "0", "0", "200", "75%", "0", "0", "3", "stalled"]


def test_prometheus_reads_the_metrics(tmp_path: Path, server: Server, file: str) -> None:
    server.run("create", "rows", file, "--element-size", "100")
    metrics = _metrics.Metrics(server.address, "127.0.0.1:0")
    try:
        job = joader.Job(server.address, dataset="rows", name='a "job"', epochs=1)
        next(iter(job))
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4"
            lines = answer.read().decode().splitlines()
        job.close()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/", timeout=10)
    finally:
        metrics.close()
    sample = re.compile(r'joader_\w+(\{\w+="([^"\\]|\\.)*"(,\w+="([^"\\]|\\.)*")*\})? -?[\d.e+-]+')
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines), lines
    loads = [line for line in lines if line.startswith("joader_job_loads_total")]
    assert len(loads) == 1 and r'name="a \"job\""' in loads[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_tidily(tmp_path: Path, number: int) -> None:
    server = Server(tmp_path, "--log", "json")
    code, said = server.end(number)
    assert code == 0
    assert [json.loads(line)["fields"]["message"] for line in said.splitlines()] == ["serving"]
    assert not (tmp_path / "joader").exists()


def test_nothing_is_left_of_a_server_that_was_killed(tmp_path: Path, file: str) -> None:
    before = shared_memory()
    server = Server(tmp_path)
    server.run("create", "rows", file)
    job = joader.Job(server.address, dataset="rows", epochs=1)
    next(iter(job))
    server.process.kill()
    server.process.wait()
    assert sum(len(batch["number"]) for batch in job) == 1000 - 64
    assert shared_memory() == before
    # its socket is taken over
    Server(tmp_path).end()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--memory", "much"], "'much' is not a number of bytes such as 8GiB"),
        (["serve", "--memory", "1KB"], "'1KB' is not a number of bytes such as 8GiB"),
        (["create", "rows"], "the following arguments are required: path"),
        (["top", "--interval", "x"], "invalid float value"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_wrong_arguments_are_told(words: list[str], said: str) -> None:
    ended = run(*words)
    assert ended.returncode == 2 and said in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--listen", "unix:"], "address: must be the path of a socket"),
        (["serve", "--memory", "1"], "memory: 1 is not between 65536"),
        (["serve", "--threads", "-1"], "threads: -1 is not between 0"),
        (["serve", "--listen", "unix:/nowhere/joader"], "/nowhere"),
        (["top", "--interval", "-1"], "interval: -1.0 is not at least 0 seconds"),
        (["list", "--address", "unix:/nowhere/joader"], "no JOADER serves at /nowhere/joader"),
        (["create", "--address", "unix:/nowhere/joader", "rows", "/nowhere/rows.parquet"], "/nowhere/rows.parquet"),
    ],
)
def test_errors_are_one_line(words: list[str], said: str) -> None:
    ended = run(*words)
    assert ended.returncode == 1
    assert ended.stderr.startswith("corgipile-joader: ") and said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, str]:
    """A certificate for 127.0.0.1, its key, and a token."""
    files = {name: str(tmp_path / name) for name in ("certificate", "key", "token")}
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=leader"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    made = ["-keyout", files["key"], "-out", files["certificate"]]
    subprocess.run(["openssl", "req", "-x509", *curve, *names, *made], check=True, capture_output=True)
    Path(files["token"]).write_text("0123456789abcdef0123\n")
    os.chmod(files["token"], 0o600)
    return files


def test_machines_share_a_data_parallel_job(tmp_path: Path, file: str, secrets: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    numbers = ["--nodes", "2", "--token", secrets["token"], "--node"]
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    leader = Server(
        places[0],
        *("--leader", address, "--certificate", secrets["certificate"], "--key", secrets["key"], *numbers, "0"),
    )
    follower = Server(places[1], *("--follow", address, "--trust", secrets["certificate"], *numbers, "1"))
    try:
        assert follower.run("create", "rows", file, "--element-size", "10").returncode == 0
        assert leader.run("list").stdout == "rows: 1000 rows in 100 elements, 0 jobs\n"

        def rank_of(rank: int) -> list[np.ndarray]:
            server = (leader, follower, follower)[rank]
            job = joader.Job(server.address, dataset="rows", name="net", rank=rank, world_size=3, batch_size=32)
            got = [batch["number"] for batch in job]
            job.close()
            return got

        with ThreadPoolExecutor(3) as pool:
            got = list(pool.map(rank_of, range(3)))
        assert len({len(batches) for batches in got}) == 1, "all have the same number of batches"
        assert sorted(np.concatenate([row for batches in got for row in batches]).tolist()) == list(range(1000))
    finally:
        assert follower.end()[0] == 0
        assert leader.end()[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--leader", "127.0.0.1:0"], "certificate: servers talk with TLS and a token only"),
        (["--follow", "127.0.0.1:1", "--trust", "x"], "token: servers talk with TLS and a token only"),
        (["--leader", "127.0.0.1:0", "--follow", "127.0.0.1:1"], "follow: a server that leads follows no one"),
        (["--follow", "127.0.0.1:1", "--trust", "x", "--token", "/nowhere/token"], "/nowhere/token"),
    ],
)
def test_servers_of_several_machines_need_tls_and_a_token(tmp_path: Path, words: list[str], said: str) -> None:
    ended = run("serve", "--listen", f"unix:{tmp_path}/joader", *words)
    assert ended.returncode == 1 and said in ended.stderr, ended.stderr


@pytest.mark.parametrize("name", ["key", "token"])
def test_a_secret_that_others_may_read_is_refused(tmp_path: Path, secrets: dict[str, str], name: str) -> None:
    os.chmod(secrets[name], 0o644)
    files = [word for file in secrets for word in (f"--{file}", secrets[file])]
    ended = run("serve", "--listen", f"unix:{tmp_path}/joader", "--leader", "127.0.0.1:0", "--nodes", "2", *files)
    assert ended.returncode == 1 and ended.stdout == ""
    assert f"{name}: others than its owner may read {secrets[name]}: chmod 600 {secrets[name]}" in ended.stderr


def test_connections_that_say_nothing_keep_nobody_from_the_metrics(tmp_path: Path, server: Server) -> None:
    metrics = _metrics.Metrics(server.address, "127.0.0.1:0")
    threads = threading.active_count()
    idle = [socket.create_connection(("127.0.0.1", metrics.port)) for _ in range(300)]
    try:
        for slow in idle[-10:]:
            slow.send(b"GET /metr")
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=4) as answer:
            assert answer.read().startswith(b"# HELP")
        assert threading.active_count() - threads <= 32
        for stranger in idle:
            stranger.settimeout(10)
            assert stranger.recv(1) == b""
    finally:
        for stranger in idle:
            stranger.close()
        metrics.close()


def test_bytes_are_written_with_a_unit() -> None:
    assert cli._bytes("8GiB") == 8 * 2**30 and cli._bytes("1.5MiB") == 3 * 2**19 and cli._bytes("70000") == 70000


@pytest.mark.parametrize("options", [["--nodes", "2"], ["--node", "1"], ["--token", "file"], ["--trust", "file"]])
def test_a_server_of_several_machines_that_is_not_told_its_part_is_refused(tmp_path: Path, options: list[str]) -> None:
    told = subprocess.run(
        [*COMMAND, "serve", "--listen", f"unix:{tmp_path}/socket", *options], capture_output=True, text=True, timeout=60
    )
    assert told.returncode == 1 and told.stdout == ""
    assert told.stderr.endswith(f"{options[0]}: a server of several machines needs --leader or --follow, too\n")
