"""JOADER for Python: what data sets, jobs and their states do, and what they refuse."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joader_processes import HERE, started
from test_sources import KINDS, NUMBER, write

import corgipile
from corgipile import joader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

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
def rows(tmp_path: Path) -> str:
    """Rows with their numbers, and others."""
    numbers = np.arange(ROWS)
    path = tmp_path / "rows.parquet"
    table = pa.table({"number": numbers, "half": numbers / 2, "text": [f"row {number}" for number in numbers]})
    pq.write_table(table, path, row_group_size=100)
    return str(path)


@pytest.fixture
def address(serve: Serve, rows: str) -> str:
    """A server with a data set of 100 elements."""
    path = serve()
    joader.create(path, "rows", rows, element_size=10)
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


def until(holds: Callable[[], Any], within: float = 10) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


# what jobs get


def test_each_row_comes_once_in_each_epoch_and_in_another_order(address: str) -> None:
    with joader.Job(f"unix:{address}", dataset="rows", epochs=3, batch_size=64) as job:
        orders = []
        for epoch, batches in job.by_epoch():
            assert epoch == len(orders)
            orders.append(numbers_of(batches))
        assert [sorted(order) for order in orders] == [list(range(ROWS))] * 3
        assert orders[0] != orders[1] and orders[0] != sorted(orders[0])
        assert job.rows == ROWS and job.counts["shared"] == 300
        assert list(job) == []


def test_columns_conditions_and_preparations_are_the_jobs_own(address: str) -> None:
    job = joader.Job(
        address,
        dataset="rows",
        columns=["number", "text"],
        where="half < 10 AND number % 2 = 0",
        prepare=[joader.function("joader_processes:twice"), joader.drop_column("text")],
        batch_size=4,
    )
    batches = list(job)
    assert sorted(numbers_of(batches)) == list(range(0, 20, 2)) and job.rows == 10
    for batch in batches:
        assert list(batch) == ["number", "twice"]
        assert (batch["twice"] == 2 * batch["number"]).all()
    assert [len(batch["number"]) for batch in batches] == [4, 4, 2]


def test_jobs_share_what_is_read(address: str) -> None:
    jobs = [joader.Job(address, dataset="rows", epochs=2) for _ in range(3)]
    for job in jobs:
        assert sorted(numbers_of(job)) == sorted(2 * list(range(ROWS)))
    assert joader.status(address)["loads"] == 100
    until(lambda: not joader.status(address)["jobs"])


def test_a_condition_that_chooses_nothing_gives_epochs_without_batches(address: str) -> None:
    job = joader.Job(address, dataset="rows", where="number < 0", epochs=3)
    assert [(epoch, list(batches)) for epoch, batches in job.by_epoch()] == [(0, []), (1, []), (2, [])]
    assert job.rows == 0
    job.load_state_dict(job.state_dict())
    assert list(job) == []


def test_a_job_of_no_epochs_and_one_of_one_row(serve: Serve, tmp_path: Path) -> None:
    path = serve()
    pq.write_table(pa.table({"number": [7]}), tmp_path / "one.parquet")
    assert joader.create(path, "one", tmp_path / "one.parquet")["elements"] == 1
    assert list(joader.Job(path, dataset="one", epochs=0)) == []
    assert [batch["number"].tolist() for batch in joader.Job(path, dataset="one", epochs=3)] == [[7]] * 3
    assert list(joader.Job(path, dataset="one", drop_last=True, batch_size=2)) == []


def test_data_sets_without_rows_are_data_sets(serve: Serve, tmp_path: Path) -> None:
    path = serve()
    pq.write_table(pa.table({"number": np.arange(0)}), tmp_path / "none.parquet")
    for size in ("auto", 1, 10):
        assert joader.create(path, f"none by {size}", tmp_path / "none.parquet", element_size=size)["rows"] == 0
        job = joader.Job(path, dataset=f"none by {size}", epochs=2)
        assert list(job) == [] and job.rows == 0


def test_elements_larger_than_the_memory_come_outside_of_it(serve: Serve, tmp_path: Path) -> None:
    path = serve(memory=65536)
    numbers = np.arange(200)
    table = pa.table({"number": numbers, "wide": [bytes(5000)] * 200})
    pq.write_table(table, tmp_path / "wide.parquet", row_group_size=20)
    joader.create(path, "wide", tmp_path / "wide.parquet", element_size=20)
    job = joader.Job(path, dataset="wide", epochs=2)
    assert sorted(numbers_of(job)) == sorted(2 * list(range(200)))
    assert job.counts["outside"] == 20


def _by_number(batches: Any, number: str) -> dict[int, dict[str, Any]]:
    """Rows by their numbers, as Python has them."""
    rows = {}
    for batch in batches:
        for at, of in enumerate(batch[number].tolist()):
            row = {name: np.asarray(values[at]).tolist() for name, values in batch.items()}
            assert rows.setdefault(int(of), row) is row, f"row {of} came twice"
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_source_are_the_same_with_a_server_and_without(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "goes")
    server = Server(path)
    source = write(tmp_path, kind)
    wanted = _by_number(corgipile.CorgiPileDataset(source, batch_size=50), NUMBER.get(kind, "id"))
    assert joader.create(path, "rows", source, element_size=10)["rows"] == len(wanted)
    # buffers have elements of both
    job = joader.Job(path, dataset="rows", epochs=2, batch_size=7, buffer_size=3)
    for epoch, batches in job.by_epoch():
        got = []
        for batch in batches:
            got.append(batch)
            if epoch == 0 and len(got) == 3:
                server.stop()
        assert _by_number(got, NUMBER.get(kind, "id")) == wanted
    assert job.counts["direct"] > 0 and job.counts["shared"] > 0


def test_a_table_comes_with_a_server_and_without(
    database: str, conn: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGDATABASE", database)
    conn.execute("CREATE TABLE joader AS SELECT i AS number, i / 2.0::float8 AS half FROM generate_series(0, 9999) i")
    conn.commit()
    path = str(tmp_path / "goes")
    server = Server(path)
    joader.create(path, "rows", corgipile.postgres("joader"), element_size=100)
    job = joader.Job(path, dataset="rows", where="half < 2000", columns=["number"], batch_size=50, buffer_size=3)
    iterator = iter(job)
    got = numbers_of([next(iterator)])
    state = job.state_dict()
    server.stop()
    got += numbers_of(iterator)
    assert sorted(got) == list(range(4000)) and job.counts["direct"] > 0
    # rows that have changed are not taken for those with which the job began
    conn.execute("UPDATE joader SET number = number + 1 WHERE number < 5000")
    conn.commit()
    server = Server(path)
    try:
        joader.create(path, "rows", corgipile.postgres("joader"), element_size=100)
        job.load_state_dict(state)
        with pytest.raises(joader.JoaderError, match="is another one than this job has begun with"):
            next(iter(job))
    finally:
        server.stop()


# states


def _state(job: joader.Job, how: int) -> Any:
    """The state of a job as it comes from where it is kept."""
    state = job.state_dict()
    return (state, json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state)))[how % 3]


def test_a_job_goes_on_from_every_point(serve: Serve, rows: str) -> None:
    path = serve()
    joader.create(path, "rows", rows, element_size=7)
    options = {"dataset": "rows", "where": "number % 10 < 3", "epochs": 2, "batch_size": 9, "buffer_size": 3}
    wanted = [number for number in range(ROWS) if number % 10 < 3]
    job = joader.Job(path, **options)
    total = len(list(job))
    for point in range(0, total + 1, 3):
        job = joader.Job(path, **options)
        got: list[list[int]] = [[], []]

        def take(job: joader.Job, most: int, got: list[list[int]] = got) -> int:
            taken = 0
            for epoch, batches in job.by_epoch():
                for batch in batches:
                    got[epoch] += numbers_of([batch])
                    taken += 1
                    if taken == most:
                        return taken
            return taken

        if point:
            take(job, point)
        state = _state(job, point)
        job.close()
        assert job.state_dict() == state
        # twice, so that a state that was loaded is told again, before and after it has begun
        again = joader.Job(path, **options)
        again.load_state_dict(state)
        assert again.state_dict() == state
        take(again, 2)
        last = joader.Job(path, **options)
        last.load_state_dict(_state(again, point + 1))
        again.close()
        take(last, -1)
        assert [sorted(of) for of in got] == [wanted, wanted], f"from batch {point} on"
        assert list(last) == []


def test_a_job_that_is_pickled_goes_on_elsewhere(address: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    iterator = iter(job)
    got = numbers_of([next(iterator), next(iterator)])
    copy = pickle.loads(pickle.dumps(job))
    job.close()
    assert sorted(got + numbers_of(copy)) == list(range(ROWS))


def test_states_that_are_none_are_refused(address: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    next(iter(job))
    state = job.state_dict()
    other = joader.Job(address, dataset="rows", batch_size=10)
    wrong: list[Any] = [
        {**state, "version": 2},
        {**state, "batch_size": 11},
        {**state, "left": [[5, 3]]},
        {**state, "left": [[0, 2**32]]},
        {**state, "left": "all"},
        {**state, "left": [[math.nan, 3]]},
        {**state, "buffer": [-1]},
        {**state, "buffer": None},
        {**state, "number": 2**64},
        {**state, "given": -1},
        {**state, "epoch": 2**70},
        {**state, "epoch": "no"},
        {**state, "fingerprint": "xyz"},
        {**state, "fingerprint": f"{2**64:x}"},
        {name: value for name, value in state.items() if name != "given"},
        {},
    ]
    for bad in wrong:
        with pytest.raises(ValueError):
            other.load_state_dict(bad)
    for bad in (None, 3, [state]):
        with pytest.raises(TypeError):
            other.load_state_dict(bad)  # type: ignore[arg-type]
    # what only the server knows
    for bad, said in (
        ({**state, "left": [[0, 101]], "buffer": []}, "left: "),
        ({**state, "buffer": [100]}, "element 100"),
        ({**state, "buffer": [2, 2]}, "twice"),
        ({**state, "left": [[0, 10]], "buffer": [5]}, "left as well"),
    ):
        other.load_state_dict(bad)
        with pytest.raises(ValueError, match=said):
            next(iter(other))
    other.load_state_dict({**state, "fingerprint": "1"})
    with pytest.raises(joader.JoaderError, match="another one"):
        next(iter(other))
    # a state of a user's is not ours to change
    other.load_state_dict(state)
    other.state_dict()["left"].clear()
    state["left"].clear()
    assert other.state_dict()["left"]


def test_a_closed_job_gives_nothing_and_tells_where_it_was(address: str) -> None:
    job = joader.Job(address, dataset="rows", epochs=3, batch_size=10)
    iterator = iter(job)
    got = numbers_of([next(iterator)])
    state = job.state_dict()
    job.close()
    job.close()
    assert job.state_dict() == state
    with pytest.raises(ValueError, match="closed"):
        next(iterator)
    with pytest.raises(ValueError, match="closed"):
        next(iter(job))
    until(lambda: not joader.status(address)["jobs"])
    job.load_state_dict(state)
    got += [
        number for _, batches in zip([0], (batches for _, batches in job.by_epoch())) for number in numbers_of(batches)
    ]
    assert sorted(got) == list(range(ROWS))
    never = joader.Job(address, dataset="rows")
    never.close()
    with pytest.raises(ValueError, match="closed"):
        next(iter(never))


# what is refused


def test_arguments_that_make_no_sense_are_refused_by_name(address: str, rows: str) -> None:
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
            joader.create(address, name, rows, **options)  # type: ignore[arg-type]
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
        ({"memory": 2**61}, (OSError, ValueError), "memory"),
        ({"threads": -1}, ValueError, "threads"),
        ({"processes": 2000}, ValueError, "processes"),
        ({"seed": 2**64}, ValueError, "seed"),
        ({"log": "loud"}, ValueError, "log"),
    ]:
        with pytest.raises(kind, match=said):
            joader.serve(tmp_path / "new", stop=lambda: True, **options)  # type: ignore[arg-type]
        assert not (tmp_path / "new").exists()
    with pytest.raises(OSError, match="another server"):
        joader.serve(address)
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


def test_data_sets_on_which_jobs_train_stay_as_they_are(address: str, rows: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    next(iter(job))
    for change in (lambda: joader.alter(address, "rows", rows, element_size=5), lambda: joader.drop(address, "rows")):
        with pytest.raises(joader.JoaderError, match="jobs train on"):
            change()
    assert sorted(numbers_of(job))[-1] == ROWS - 1
    until(lambda: not joader.status(address)["jobs"])
    assert joader.alter(address, "rows", rows, element_size=5)["elements"] == 200
    joader.drop(address, "rows")
    with pytest.raises(joader.JoaderError, match="there is none yet"):
        joader.alter(address, "rows", rows)


def test_a_state_of_another_data_set_is_refused(address: str, rows: str) -> None:
    job = joader.Job(address, dataset="rows", batch_size=10)
    next(iter(job))
    state = job.state_dict()
    job.close()
    until(lambda: not joader.status(address)["jobs"])
    joader.alter(address, "rows", rows, element_size=5)
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


# errors of elements


def test_an_element_that_cannot_be_prepared_is_an_error_of_its_job_and_the_others_come(address: str) -> None:
    prepare = [joader.function("joader_processes:fails_at_50")]
    failing = joader.Job(address, dataset="rows", prepare=prepare, batch_size=10, epochs=2)
    good = joader.Job(address, dataset="rows", batch_size=10)
    batches: list[Any] = []
    errors = list(filter(None, [taken(failing, batches) for _ in range(3)]))
    assert sorted(numbers_of(batches)) == sorted(2 * [number for number in range(ROWS) if not 50 <= number < 60])
    assert len(errors) == 2 and all(error.startswith("rows 50 to 60: ") for error in errors)
    assert "ArithmeticError: 50 is too much" in errors[0] and "joader_processes.py" in errors[0]
    assert sorted(numbers_of(good)) == list(range(ROWS))


def test_an_element_of_another_shape_is_an_error_and_the_others_of_its_buffer_come(address: str) -> None:
    prepare = [joader.function("joader_processes:of_another_shape")]
    job = joader.Job(address, dataset="rows", where="number < 300", prepare=prepare, batch_size=10, buffer_size=5)
    batches: list[Any] = []
    errors = list(filter(None, [taken(job, batches) for _ in range(2)]))
    assert len(errors) == 1 and errors[0].startswith("rows 50 to 60: ")
    assert {batch["pixels"].shape[1] for batch in batches} == {2}
    assert sorted(numbers_of(batches)) == [*range(50), *range(60, 300)]


def test_a_damaged_file_is_an_error_for_conditions_on_it(serve: Serve, tmp_path: Path) -> None:
    path = serve()
    place = tmp_path / "damaged.parquet"
    table = pa.table({"number": np.arange(1000), "other": np.arange(1000)})
    pq.write_table(table, place, row_group_size=100, compression="none", use_dictionary=False, write_page_checksum=True)
    column = pq.ParquetFile(place).metadata.row_group(3).column(0)
    with place.open("r+b") as file:
        file.seek(column.data_page_offset + column.total_compressed_size // 2)
        file.write(b"\xff" * 32)
    joader.create(path, "rows", place, element_size=100)
    with pytest.raises((ValueError, joader.JoaderError), match=r"damaged\.parquet, byte"):
        next(iter(joader.Job(path, dataset="rows", where="number < 500")))
    # the other column is whole
    assert len(list(joader.Job(path, dataset="rows", columns=["other"], where="other < 500", batch_size=50))) == 10


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
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(reader, 10_000).decode()
    assert said == "['ValueError', 'ValueError', 'ValueError'] Job('rows', of another process)"
    os.close(reader)
    os.close(writer)
    assert sorted(got + numbers_of(iterator)) == list(range(ROWS))


def test_a_job_that_is_killed_is_gone_though_a_process_that_it_forked_off_lives_on(address: str) -> None:
    job = _script(
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
            list(slow)
        except ValueError as error:
            failed.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: slow.epoch > 1)
    slow.close()
    thread.join(timeout=10)
    assert not thread.is_alive() and failed == ["the job was closed"]


def _script(*lines: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", "\n".join(lines)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True)


def test_ctrl_c_ends_a_job_that_waits_for_a_server_that_hangs(tmp_path: Path, rows: str) -> None:
    path = str(tmp_path / "socket")
    server = started("hangs", "serve", path, 1 << 20, json.dumps({"rows": rows}))
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    server.send_signal(signal.SIGSTOP)
    try:
        for what in (
            "with joader.Job(PATH, dataset='rows') as job: next(iter(job))",
            "joader.status(PATH)",
            "joader.create(PATH, 'others', ROWS)",
        ):
            asking = _script(
                "from corgipile import joader",
                f"PATH, ROWS = {path!r}, {rows!r}",
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


def test_closing_a_job_that_reads_by_itself_does_not_wait_for_what_it_reads(tmp_path: Path, rows: str) -> None:
    path = str(tmp_path / "socket")
    slow = f"os.path.exists({str(tmp_path / 'slow')!r})"
    code = ["import os, time", "def slow(rows):", f"    time.sleep(30 if {slow} else 0)", "    return rows"]
    (tmp_path / "slow_rows.py").write_text("\n".join(code))
    sys.path.insert(0, str(tmp_path))
    try:
        server = Server(path)
        joader.create(path, "rows", rows, element_size=10)
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
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(1000),
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


def test_thousands_of_connections_that_say_nothing_keep_nobody_out(tmp_path: Path, rows: str) -> None:
    path = str(tmp_path / "socket")
    server = started("crowd", "serve", path, 1 << 20, json.dumps({"rows": rows}))
    assert server.stdout is not None and server.stdout.readline() == "ready\n"
    job = joader.Job(path, dataset="rows", batch_size=10, epochs=2)
    iterator = iter(job)
    got = numbers_of([next(iterator)])
    crowd = _script(
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
