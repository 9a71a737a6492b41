"""JOADER for Python: what is refused, and what many jobs and strangers do."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joader_fixtures import ROWS, Server, numbers_of, script, until
from joader_processes import started

import corgipile
from corgipile import joader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# what is refused


def test_arguments_that_make_no_sense_are_refused_by_name(address: str, file_of_rows: str) -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"dataset": 3}, TypeError, "dataset"),
        ({"columns": "number"}, TypeError, "columns"),
        ({"columns": [3]}, TypeError, "columns"),
        ({"where": 3}, TypeError, "where"),
        ({"name": b"x"}, TypeError, "name"),
        ({"seed": 1.5}, TypeError, "seed"),
        ({"seed": 2**63}, ValueError, "seed"),
        ({"epochs": -1}, ValueError, "epochs"),
        ({"epochs": math.nan}, TypeError, "epochs"),
        ({"epochs": True}, TypeError, "epochs"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"batch_size": 2**40}, ValueError, "batch_size"),
        ({"buffer_size": 0}, ValueError, "buffer_size"),
        ({"buffer_size": math.nan}, TypeError, "buffer_size"),
        ({"buffer_size": 0.5}, TypeError, "buffer_size"),
        ({"buffer_size": 2**40}, ValueError, "buffer_size"),
        ({"buffer_size": "nan%"}, ValueError, "buffer_size"),
        ({"buffer_size": "101%"}, ValueError, "buffer_size"),
        ({"buffer_size": "many"}, ValueError, "buffer_size"),
        ({"tensors": "jax"}, ValueError, "tensors"),
        ({"prepare": "decode"}, TypeError, "prepare"),
        ({"prepare": [3]}, TypeError, "prepare"),
        ({"prepare": joader.decode("text")}, TypeError, "prepare"),
        ({"prepare": 3}, TypeError, "prepare"),
        ({"prepare": [{"step": math.nan}]}, ValueError, "prepare"),
        ({"prepare": iter([])}, TypeError, "prepare"),
        ({"prepare": [{"step": object()}]}, TypeError, "prepare"),
        ({"prepare": [{"step": "twist"}]}, ValueError, "prepare"),
        ({"prepare": [joader.decode("number")]}, ValueError, "prepare"),
        ({"prepare": [joader.drop_column("nothing")]}, ValueError, "prepare"),
        ({"columns": ["nothing"]}, ValueError, "nothing"),
        ({"columns": ["number", "number"]}, ValueError, "number"),
        ({"where": "nothing = 3"}, ValueError, "where"),
        ({"where": "number ="}, ValueError, "where"),
        ({"where": "x" * 100_000}, ValueError, "where"),
        ({"where": "numbér = 'ä\n\x00'"}, ValueError, "where"),
        ({"dataset": "nothing"}, joader.JoaderError, "dataset"),
        ({"dataset": ""}, joader.JoaderError, "dataset"),
    ]
    for options, kind, said in cases:
        with pytest.raises(kind, match=said) as raised:
            next(iter(joader.Job(address, **{"dataset": "rows", **options})))
        assert type(raised.value) is kind, options
    for wrong in (3, None, b"x"):
        with pytest.raises(TypeError, match="address"):
            joader.Job(wrong, dataset="rows")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="address"):
        joader.Job("unix:", dataset="rows")
    for name, options, kind, said in [
        ("", {}, ValueError, "name"),
        (3, {}, TypeError, "name"),
        ("rows", {}, joader.JoaderError, "already"),
        ("others", {"columns": ["nothing"]}, ValueError, "nothing"),
        ("others", {"columns": ["number", "number"]}, ValueError, "number"),
        ("others", {"columns": [3]}, TypeError, "columns"),
        ("others", {"element_size": 0}, ValueError, "element_size"),
        ("others", {"element_size": -1}, ValueError, "element_size"),
        ("others", {"element_size": math.nan}, TypeError, "element_size"),
        ("others", {"element_size": 10**30}, ValueError, "element_size"),
        ("others", {"sampler": "best"}, ValueError, "sampler"),
        ("others", {"sampler": 3}, TypeError, "sampler"),
    ]:
        with pytest.raises(kind, match=said):
            joader.create(address, name, file_of_rows, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name"):
        joader.drop(address, 3)  # type: ignore[arg-type]
    with pytest.raises(joader.JoaderError, match="nothing"):
        joader.drop(address, "nothing")
    with pytest.raises(ValueError, match="arrays"):
        joader.create(address, "arrays", corgipile.arrays({"x": np.arange(3)}))
    with pytest.raises((OSError, ValueError), match="nothing"):
        joader.create(address, "others", "/nothing/at/all.parquet")
    # all of that has left nothing
    assert [of["name"] for of in joader.datasets(address)] == ["rows"]
    until(lambda: not joader.status(address)["jobs"])


def test_serving_what_makes_no_sense_is_refused_by_name(tmp_path: Path, address: str) -> None:
    for options, kind, said in [
        ({"memory": 1}, ValueError, "memory"),
        ({"memory": math.inf}, TypeError, "memory"),
        ({"memory": 2**61}, OSError, r"memory: \d+ MiB are more than there are here"),
        ({"threads": -1}, ValueError, "threads"),
        ({"processes": 2000}, ValueError, "processes"),
        ({"seed": 2**64}, ValueError, "seed"),
        ({"log": "loud"}, ValueError, "log"),
        ({"datasets": tmp_path / "nowhere" / "file"}, OSError, "nowhere"),
        ({"datasets": __file__}, OSError, "it is not what a server has written"),
    ]:
        with pytest.raises(kind, match=said):
            joader.serve(tmp_path / "new", stop=lambda: True, **options)  # type: ignore[arg-type]
        assert not (tmp_path / "new").exists()
    with pytest.raises(OSError, match="another server"):
        joader.serve(address)
    for remote in ("tcp:1", "http://127.0.0.1:80"):
        with pytest.raises(ValueError, match=r"address: .* a server has a socket of its machine"):
            joader.status(remote)
    with pytest.raises(OSError, match=r"nowhere"):
        joader.serve(tmp_path / "nowhere" / "socket")
    with pytest.raises(OSError, match="too long"):
        joader.serve(tmp_path / ("x" * 150))
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="no socket"):
        joader.serve(tmp_path / "file")
    with pytest.raises(ZeroDivisionError):
        joader.serve(tmp_path / "new", ready=lambda: 1 // 0)
    assert not (tmp_path / "new").exists()
    with pytest.raises(ConnectionError, match="no JOADER serves"):
        joader.status(tmp_path / "new")
    with pytest.raises(ConnectionError, match="no JOADER serves"):
        next(iter(joader.Job(tmp_path / "new", dataset="rows")))


def test_steps_that_make_no_sense_are_refused_where_they_are_made() -> None:
    wrong: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: joader.decode(5), TypeError, "column: 5 is not a name"),  # type: ignore[arg-type]
        (lambda: joader.decode("image", channels=2), ValueError, "channels: 2 is not one of 1"),
        (lambda: joader.resize("image", 0, 5), ValueError, "height: 0 is not between 1 and"),
        (lambda: joader.resize("image", 5, 5, filter="best"), ValueError, "filter: 'best' is not one of nearest, box"),
        (lambda: joader.crop("image", -1, 0, 5, 5), ValueError, "top: -1 is not between 0 and"),
        (lambda: joader.center_crop("image", 5, 2.5), TypeError, "width: 2.5 is not an integer"),  # type: ignore[arg-type]
        (lambda: joader.drop_column(None), TypeError, "column: None is not a name"),  # type: ignore[arg-type]
    ]
    for make, kind, said in wrong:
        with pytest.raises(kind, match=said):
            make()


def test_a_closed_job_says_so_and_keeps_its_account(address: str) -> None:
    job = joader.Job(address, dataset="rows")
    assert sum(len(batch["number"]) for batch in job) == ROWS
    assert job.counts["shared"] == 100
    job.close()
    assert job.mode == "closed" and job.counts["shared"] == 100


def test_two_servers_that_begin_at_once_do_not_share_a_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    servers: list[Server] = []
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            servers.append(Server(path))
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=begin) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert len(servers) == 1 and len(failed) == 5
        joader.status(path)
    finally:
        for server in servers:
            server.stop()
    assert os.listdir(tmp_path) == []


def test_a_server_does_not_take_the_socket_of_another_one_along(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    first = Server(path)
    os.unlink(path)
    second = Server(path)
    first.stop()
    assert joader.status(path)["jobs"] == []
    second.stop()
    assert not os.path.exists(path)


def test_data_sets_on_which_jobs_train_stay_as_they_are(address: str, file_of_rows: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    next(iter(job))
    for change in (
        lambda: joader.alter(address, "rows", file_of_rows, element_size=5),
        lambda: joader.drop(address, "rows"),
    ):
        with pytest.raises(joader.JoaderError, match="jobs train on"):
            change()
    assert sorted(numbers_of(job))[-1] == ROWS - 1
    until(lambda: not joader.status(address)["jobs"])
    assert joader.alter(address, "rows", file_of_rows, element_size=5)["elements"] == 200
    joader.drop(address, "rows")
    with pytest.raises(joader.JoaderError, match="there is none yet"):
        joader.alter(address, "rows", file_of_rows)


def test_a_state_of_another_data_set_is_refused(address: str, file_of_rows: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    next(iter(job))
    state = job.state_dict()
    job.close()
    until(lambda: not joader.status(address)["jobs"])
    joader.alter(address, "rows", file_of_rows, element_size=5)
    job.load_state_dict(state)
    with pytest.raises(joader.JoaderError, match="another one than this job has begun with"):
        next(iter(job))


def test_rows_that_changed_are_not_read_by_a_job_that_is_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    source = tmp_path / "rows.csv"
    source.write_text("number\n" + "".join(f"{n:04}\n" for n in range(1000)))
    server = Server(path)
    joader.create(path, "rows", corgipile.csv(source), element_size=10)
    job = joader.Job(path, dataset="rows", batch_size=10, buffer_size=2)
    iterator = iter(job)
    next(iterator)
    server.stop()
    source.write_text("number\n" + "".join(f"{n:04}\n" for n in range(1, 1001)))
    os.utime(source, (1, 1))
    # it has opened them before or after they changed
    with pytest.raises((joader.JoaderError, corgipile.SourceError), match="changed"):
        list(iterator)
    job.close()


# many, and strangers


def test_64_jobs_may_train_on_a_data_set_and_a_65th_is_refused(address: str) -> None:
    jobs = [joader.Job(address, dataset="rows", batch_size=500) for _ in range(64)]
    iterators = [iter(job) for job in jobs]
    got = [numbers_of([next(iterator)]) for iterator in iterators]
    with pytest.raises(joader.JoaderError, match="64"):
        next(iter(joader.Job(address, dataset="rows")))
    for before, iterator in zip(got, iterators, strict=True):
        assert sorted(before + numbers_of(iterator)) == list(range(ROWS))
    until(lambda: not joader.status(address)["jobs"])
    assert sorted(numbers_of(joader.Job(address, dataset="rows"))) == list(range(ROWS))


def _connect(path: str) -> socket.socket:
    stranger = socket.socket(socket.AF_UNIX)
    stranger.settimeout(20)
    stranger.connect(path)
    return stranger


def _is_closed(stranger: socket.socket) -> bool:
    """Whether the server ends the connection, whatever it says before."""
    try:
        while stranger.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_what_strangers_say_harms_nobody(address: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    iterator = iter(job)
    got = numbers_of([next(iterator)])
    for said in (
        b"\x00" * 100,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        os.urandom(10_000),
        b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        # a frame that is larger than any may be: of a shorter one the rest would be waited for
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff" + os.urandom(1000),
        # no session of that name
        b"M" + bytes(16),
        b"M" + os.urandom(16) + b"more",
    ):
        stranger = _connect(address)
        stranger.sendall(said)
        assert _is_closed(stranger), said[:30]
        stranger.close()
    for half in (b"", b"P", b"PRI * HTTP", b"M", b"M" + bytes(7)):
        stranger = _connect(address)
        stranger.sendall(half)
        stranger.close()
    assert sorted(got + numbers_of(iterator)) == list(range(ROWS))
    until(lambda: not joader.status(address)["jobs"])


def test_half_a_handshake_is_ended_after_a_bound(address: str) -> None:
    halves = [_connect(address) for _ in range(3)]
    for stranger, said in zip(halves, (b"", b"PRI * HT", b"M" + bytes(7)), strict=True):
        stranger.sendall(said)
    for stranger in halves:
        assert _is_closed(stranger)
        stranger.close()


def test_thousands_of_connections_that_say_nothing_keep_nobody_out(tmp_path: Path, file_of_rows: str) -> None:
    path = str(tmp_path / "socket")
    server = started("crowd", "serve", path, 1 << 20, json.dumps({"rows": file_of_rows}))
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    job = joader.Job(path, dataset="rows", batch_size=10, epochs=2)
    iterator = iter(job)
    got = numbers_of([next(iterator)])
    crowd = script(
        "import resource, socket, sys",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
        "crowd = []",
        "for _ in range(3000):",
        "    one = socket.socket(socket.AF_UNIX)",
        "    one.setblocking(False)",
        "    try:",
        f"        one.connect({path!r})",
        "        crowd.append(one)",
        "    except OSError:",
        "        break",
        "print(len(crowd), flush=True)",
        "sys.stdin.read()",
    )
    try:
        assert crowd.stdout is not None and int(crowd.stdout.readline()) > 1000
        # the job that is there gets what it wants, which has to be read from files
        assert sorted(got + numbers_of(iterator)) == sorted(2 * list(range(ROWS)))
        assert job.counts["errors"] == 0 and job.mode == "connected"
    finally:
        crowd.kill()
        crowd.wait()
    until(lambda: not joader.status(path)["jobs"], within=30)
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) == 0
