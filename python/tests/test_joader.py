"""JOADER for Python: what jobs get, their states, and errors of elements."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joader_fixtures import ROWS, Serve, Server, numbers_of, taken, until
from test_sources import KINDS, NUMBER, write

import corgipile
from corgipile import joader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

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


def test_the_condition_of_another_job_leaves_a_jobs_order_uniform(serve: Serve, tmp_path: Path) -> None:
    """A table sorted by label: next to a job that wants `label < 3`, a job that wants everything learns as well as
    alone."""
    random = np.random.default_rng(1)
    labels = np.repeat(np.arange(10), 400)
    centers = random.normal(size=(10, 8))
    rows = (centers[labels] + 0.45 * random.normal(size=(4000, 8))).astype(np.float32)
    path = serve()
    pq.write_table(pa.table({"label": labels, "x": list(rows)}), tmp_path / "sorted.parquet", row_group_size=400)
    joader.create(path, "sorted", tmp_path / "sorted.parquet", element_size=20)

    def accuracy_and_share(other: joader.Job | None) -> tuple[float, float]:
        """Of a linear model after an epoch, and of labels below 3 in the first half of it."""
        weights, seen = np.zeros((10, 9)), []
        others = iter(other or ())
        next(others, None)
        with joader.Job(path, dataset="sorted", batch_size=20, seed=1, buffer_size=2) as job:
            for batch in job:
                next(others, None)
                x = np.hstack([batch["x"], np.ones((len(batch["x"]), 1))])
                scores = np.exp(x @ weights.T)
                scores /= scores.sum(axis=1, keepdims=True)
                scores[np.arange(len(x)), batch["label"]] -= 1
                weights -= 0.3 / len(x) * scores.T @ x
                seen.extend(batch["label"].tolist())
        assert sorted(seen) == labels.tolist()
        predicted = (rows @ weights[:, :8].T + weights[:, 8]).argmax(axis=1)
        return float((predicted == labels).mean()), float(np.mean(np.array(seen[:2000]) < 3))

    alone, share = accuracy_and_share(None)
    assert 0.2 < share < 0.4
    with joader.Job(path, dataset="sorted", where="label < 3", batch_size=20, epochs=4, seed=2) as other:
        beside, share = accuracy_and_share(other)
    assert 0.2 < share < 0.4, f"{share} of the rows of the first half, of .3 that the other job wants"
    assert beside > alone - 0.05, f"accuracy {beside} next to the other job, {alone} alone"


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


def test_a_job_reads_the_rows_of_a_table_that_has_changed_when_its_server_has_gone(
    database: str, conn: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PGDATABASE", database)
    conn.execute("CREATE TABLE changes AS SELECT i AS number, repeat('x', 100) AS x FROM generate_series(0, 9999) i")
    conn.commit()
    path = str(tmp_path / "goes")
    server = Server(path)
    held = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND state = 'idle in transaction' AND query LIKE '%pg_export_snap%'"
    )
    try:
        joader.create(path, "rows", corgipile.postgres("changes"), element_size=100)
        job = joader.Job(path, dataset="rows", columns=["number"], batch_size=50, buffer_size=3, epochs=2)
        iterator = iter(job)
        got = numbers_of([next(iterator)])
        # of the server, and of the job
        until(lambda: conn.execute(held).fetchone()[0] == 2)
        conn.commit()
        conn.execute("DELETE FROM changes WHERE number % 3 = 0")
        conn.execute("UPDATE changes SET number = -number")
        conn.commit()
    finally:
        server.stop()
    got += numbers_of(iterator)
    assert sorted(got) == sorted(2 * list(range(10000))) and job.counts["direct"] > 0
    job.close()
    until(lambda: conn.execute(held).fetchone()[0] == 0)


def test_epochs_of_which_no_batch_is_taken_are_an_error(address: str) -> None:
    job = joader.Job(address, dataset="rows", epochs=3)
    epochs = []
    with pytest.raises(ValueError, match="no batch of epoch 1 was taken"):
        for epoch, batches in job.by_epoch():
            epochs.append(epoch)
            if epoch == 0:
                assert sum(len(batch["number"]) for batch in batches) == ROWS
    assert epochs == [0, 1]
    for _, batches in job.by_epoch():
        next(batches)
        break
    assert sum(len(batch["number"]) for batch in job) == 2 * ROWS - 64


def test_data_sets_are_there_when_the_server_is_started_again(serve: Serve, tmp_path: Path, file_of_rows: str) -> None:
    file = tmp_path / "data sets.json"
    first = Server(str(tmp_path / "first"), datasets=file)
    joader.create(tmp_path / "first", "rows", file_of_rows, element_size=10, columns=["number"], sampler="dependent")
    before = joader.datasets(tmp_path / "first")
    with pytest.raises(OSError, match="another server has it"):
        serve(datasets=file)
    first.stop()
    second = Server(str(tmp_path / "second"), datasets=file)
    assert joader.datasets(tmp_path / "second") == before
    second.stop()
    # one that cannot be opened is shown with the reason, and there again once it can
    os.rename(file_of_rows, f"{file_of_rows}.gone")
    path = serve(datasets=file)
    [shown] = joader.datasets(path)
    assert (shown["name"], shown["columns"], shown["rows"]) == ("rows", ["number"], 0)
    assert "rows.parquet" in shown["error"]
    os.rename(f"{file_of_rows}.gone", file_of_rows)
    assert sorted(numbers_of(joader.Job(path, dataset="rows"))) == list(range(ROWS))
    until(lambda: joader.datasets(path) == before)  # the job is seen to have left


def test_a_rank_waits_for_the_others_as_long_as_it_is_told(address: str) -> None:
    job = joader.Job(address, dataset="rows", name="ranks", rank=0, world_size=2, timeout=1)
    with pytest.raises(joader.JoaderError, match=r"after 1 seconds 1 of the 2 ranks of \"ranks\" were not there \(1\)"):
        next(iter(job))


def test_rows_that_a_condition_leaves_out_may_have_nulls(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "nulls.parquet"
    numbers = [None if number % 7 == 0 else number for number in range(ROWS)]
    pq.write_table(pa.table({"number": pa.array(numbers, pa.int64())}), file, row_group_size=100)
    path = serve()
    joader.create(path, "nulls", str(file), element_size=10)
    job = joader.Job(path, dataset="nulls", where="number is not null", epochs=2)
    assert sorted(numbers_of(job)) == sorted(2 * [number for number in numbers if number is not None])
    with pytest.raises(corgipile.SourceError, match="a value is missing"):
        next(iter(joader.Job(path, dataset="nulls")))


def test_damaged_pictures_concern_only_those_who_want_them(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    good = tmp_path / "good.png"
    image.new("RGB", (4, 3), (1, 2, 3)).save(good)
    pictures = [good.read_bytes()] * 40
    pictures[25] = b"nothing"
    pictures[30:] = [good.read_bytes()[:40]] * 10
    table = pa.table({"number": np.arange(40), "picture": pa.array(pictures, pa.binary())})
    pq.write_table(table, tmp_path / "pictures.parquet")
    path = str(tmp_path / "goes")
    server = Server(path)
    joader.create(path, "pictures", tmp_path / "pictures.parquet", element_size=10)

    def job(where: str, **options: Any) -> Any:
        decode = [joader.decode("picture")]
        return joader.Job(path, dataset="pictures", prepare=decode, where=where, batch_size=5, **options)

    def take_all(job: Any, got: list[int]) -> str:
        try:
            for batch in job:
                got += numbers_of([batch])
        except corgipile.SourceError as error:
            return str(error)
        return ""

    def errors_of(job: Any) -> tuple[list[str], list[int]]:
        said: list[str] = []
        got: list[int] = []
        while error := take_all(job, got):
            said.append(error)
        return said, got

    try:
        fine = job("number != 25 AND number < 30")
        for batch in fine:
            assert (np.asarray(batch["picture"]) == [1, 2, 3]).all()
        assert sorted(numbers_of(job("number != 25 AND number < 30"))) == sorted(set(range(30)) - {25})
        assert fine.counts["errors"] == 0
        said, got = errors_of(job("number < 30"))
        assert len(said) == 1 and 'row 25: column "picture": there is neither a JPEG nor a PNG' in said[0]
        assert sorted(got) == list(range(20))
        said, got = errors_of(job("true"))
        assert len(said) == 2 and any("row 30: column" in error for error in said)
        # what is held by no one is free, and counted
        until(lambda: all(job["held"] == 0 for job in joader.status(path)["jobs"]))
        alone = job("number != 25 AND number < 30", epochs=3)
        batches = iter(alone)
        got = numbers_of([next(batches)])
    finally:
        server.stop()
    got += numbers_of(batches)
    assert sorted(got) == sorted(3 * list(set(range(30)) - {25})) and alone.counts["direct"] > 0


def test_functions_that_hang_keep_no_other_jobs_waiting(serve: Serve, file_of_rows: str) -> None:
    path = serve(processes=2)
    joader.create(path, "rows", file_of_rows, element_size=10)
    hangs = joader.Job(path, dataset="rows", prepare=[joader.function("joader_processes:hangs")])

    def go_on() -> None:
        with pytest.raises(ValueError, match="the job was closed"):
            list(hangs)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        until(lambda: len(joader.status(path)["jobs"]) == 1)
        assert sorted(numbers_of(joader.Job(path, dataset="rows"))) == list(range(ROWS))
    finally:
        hangs.close()
        thread.join()
    # no one wants what hangs any more: others get its processes
    job = joader.Job(path, dataset="rows", prepare=[joader.function("joader_processes:twice")])
    assert sum(len(batch["number"]) for batch in job) == ROWS


def test_a_function_whose_process_somebody_has_ended_is_called_again(serve: Serve, file_of_rows: str) -> None:
    path = serve(processes=1)
    joader.create(path, "rows", file_of_rows, element_size=10)
    job = joader.Job(path, dataset="rows", prepare=[joader.function("joader_processes:twice")], batch_size=10)
    batches = iter(job)
    rows = len(next(batches)["number"])
    preparers = [int(id) for id in os.listdir("/proc") if id.isdigit() and _is_preparer(Path("/proc", id))]
    assert len(preparers) == 1
    os.kill(preparers[0], signal.SIGKILL)
    rows += sum(len(batch["number"]) for batch in batches)
    assert rows == ROWS and job.counts["errors"] == 0


def _is_preparer(process: Path) -> bool:
    """Whether this process has started it to call functions."""
    try:
        is_ours = process.joinpath("stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
        return is_ours and "corgipile.joader._preparer" in process.joinpath("cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


# states


def _state(job: joader.Job, how: int) -> Any:
    """The state of a job as it comes from where it is kept."""
    state = job.state_dict()
    return (state, json.loads(json.dumps(state)), pickle.loads(pickle.dumps(state)))[how % 3]


def test_a_job_goes_on_from_every_point(serve: Serve, file_of_rows: str) -> None:
    path = serve()
    joader.create(path, "rows", file_of_rows, element_size=7)
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
        # twice, so that a state that was loaded is returned again, before and after it has begun
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
