"""Views, queries and joins that the server shuffles, as one stream for each epoch."""

from __future__ import annotations

import _thread
import contextlib
import json
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest
from joader_fixtures import until
from loading_fixtures import Numbers, flat

import corgipile
from corgipile import CorgiPileDataset, Loader

pytestmark = pytest.mark.usefixtures("server")

ROWS = 3000
JOIN = "SELECT r.number, n.name FROM rows r JOIN names n ON n.id = r.number % 7 WHERE r.number < 2000"


@pytest.fixture
def database_of(database: str, conn: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table, a view of it, and another table to join with."""
    monkeypatch.setenv("PGDATABASE", database)
    conn.execute("DROP TABLE IF EXISTS rows, names CASCADE")
    columns = "i AS number, i::numeric / 2 AS half, ARRAY[i, 0.5]::real[] AS x, repeat('x', 100) AS filler"
    conn.execute(f"CREATE TABLE rows AS SELECT {columns} FROM generate_series(0, {ROWS - 1}) i")
    conn.execute("CREATE TABLE names AS SELECT i AS id, 'name ' || i AS name FROM generate_series(0, 6) i")
    conn.execute("CREATE VIEW odd AS SELECT number, half, x FROM rows WHERE number % 2 = 1")
    return conn


def rows_of(table: str, *columns: str, **options: Any) -> Any:
    return corgipile.postgres(table, list(columns) or None, server_shuffle=True, **options)


def dataset(source: Any, **options: Any) -> CorgiPileDataset:
    return CorgiPileDataset(source, batch_size=64, seed=3, rank=0, world_size=1, **options)


@pytest.mark.parametrize("table", ["rows", "odd", "SELECT number, half, x FROM rows WHERE number % 2 = 1"])
def test_tables_views_and_queries_come_in_the_order_of_the_function(
    database_of: Any, numbers: Numbers, table: str
) -> None:
    ds = dataset(rows_of(table, "number", "half", "x"), block_size="8kB", buffer_size="20%")
    first, second = numbers(ds), numbers(ds)
    expected = list(range(ROWS)) if table == "rows" else list(range(1, ROWS, 2))
    orders = flat(first), flat(second)
    assert sorted(orders[0]) == sorted(orders[1]) == expected
    assert orders[0] != orders[1] and orders[0] != expected
    # the server says the same
    columns = "number, half::float8 AS half, x"
    database_of.execute(
        f"CREATE OR REPLACE TEMP VIEW mine AS SELECT {columns} FROM {table}"
        if " " not in table
        else f"CREATE OR REPLACE TEMP VIEW mine AS SELECT {columns} FROM ({table}) q"
    )
    call = "corgipile_shuffle(NULL::mine, seed => 3, block_size => '8kB', buffer_size => '20%', epoch => 2)"
    database_of.execute("SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0")
    assert [row[0] for row in database_of.execute(f"SELECT number FROM {call}")] == orders[1]
    batch = next(iter(ds))
    assert batch["half"].tolist() == [number / 2 for number in batch["number"]]
    assert batch["x"].shape == (64, 2)


def test_a_join_is_shuffled_with_its_text_and_filtered(database_of: Any) -> None:
    source = rows_of(JOIN, where="name <> 'name 3' OR number = 3 -- and that is all")
    assert source.columns == {"number": "Int32", "name": "Utf8"}
    seen = [row for batch in dataset(source) for row in zip(batch["number"].tolist(), batch["name"])]
    assert sorted(seen) == [(i, f"name {i % 7}") for i in range(2000) if i % 7 != 3 or i == 3]


def test_an_epoch_goes_on_from_any_batch(database_of: Any, numbers: Numbers) -> None:
    make = lambda **options: dataset(rows_of("odd"), block_size="8kB", buffer_size="20%", **options)  # noqa: E731
    ds = make()
    ds.set_epoch(4)
    expected, following = numbers(ds), numbers(ds)
    for at in (0, 1, 11, len(expected)):
        ds = make()
        ds.set_epoch(4)
        batches = iter(ds)
        for _ in range(at):
            next(batches)
        state = json.dumps(ds.state_dict())
        assert len(state) < 1000
        del batches
        resumed = make()
        resumed.load_state_dict(json.loads(state))
        resumed.set_epoch(4)
        assert numbers(resumed) == expected[at:]
        assert numbers(resumed) == following
    # of other sizes, another strategy, or other rows
    for options in ({"block_size": "16kB"}, {"shuffle": "block_only"}):
        with pytest.raises(ValueError, match="fingerprint: "):
            dataset(rows_of("odd"), **{"block_size": "8kB", "buffer_size": "20%", **options}).load_state_dict(
                json.loads(state)
            )
    database_of.execute("UPDATE rows SET half = 0 WHERE number = 77")
    with pytest.raises(ValueError, match="fingerprint: "):
        make().load_state_dict(json.loads(state))


def test_all_epochs_see_one_snapshot(database_of: Any, numbers: Numbers) -> None:
    source = rows_of("odd")
    ds = dataset(source)
    before = numbers(ds)
    database_of.execute("DELETE FROM rows WHERE number > 100; INSERT INTO rows (number) SELECT 9001")
    assert sorted(flat(numbers(ds))) == sorted(flat(before))
    copy = pickle.loads(pickle.dumps(ds))
    copy.set_epoch(0)
    assert numbers(copy) == before
    assert len(rows_of("odd")) == 51


def test_one_worker_reads_and_transforms(database_of: Any, numbers: Numbers) -> None:
    pytest.importorskip("torch")
    expected = numbers(dataset(rows_of("odd")))
    for method in ("fork", "spawn"):
        loader = Loader(dataset(rows_of("odd")), num_workers=1, multiprocessing_context=method)
        assert numbers(loader) == expected
    with pytest.raises(ValueError, match="num_workers: 2, but the server sends an epoch as one stream"):
        Loader(dataset(rows_of("odd")), num_workers=2)


def test_what_cannot_be_is_refused_by_name(database_of: Any) -> None:
    source = rows_of("odd")
    with pytest.raises(ValueError, match="world_size: 2, but the server"):
        CorgiPileDataset(source, rank=0, world_size=2)
    with pytest.raises(ValueError, match="lanes: 4, but the server"):
        dataset(source, lanes=4)
    with pytest.raises(ValueError, match="shuffle: the server has no 'corgi2'"):
        dataset(source, shuffle="corgi2")
    with pytest.raises(ValueError, match="block_size: 100 rows: the server measures in bytes"):
        dataset(source, block_size=100)
    with pytest.raises(ValueError, match="the query has no column 'nosuch'".replace("'", '"')):
        rows_of("SELECT 1 AS one", "nosuch")
    for query in ("SELECT 1) x, (SELECT 2", "DELETE FROM rows RETURNING number", "SELECT 1; SELECT 2", "nosuch"):
        with pytest.raises(corgipile.SourceError):
            rows_of(query)
    with pytest.raises(ValueError, match=r"where: .* is not one condition"):
        rows_of("odd", where="true) OR (true")
    ds = dataset(source, block_size="1B")
    with pytest.raises(corgipile.SourceError, match="block_size"):
        next(iter(ds))
    # without it, the error says that it is a view
    with pytest.raises(ValueError, match="server_shuffle=True"):
        corgipile.postgres("odd")


def test_a_database_without_the_extension_says_so(database_of: Any) -> None:
    with pytest.raises(ValueError, match="this database has not the extension corgipile"):
        rows_of("SELECT 1 AS one", connection="dbname=postgres")


@pytest.mark.parametrize(("per_row", "came"), [(-1, r"\d+ rows, and 3000"), (1, "more rows, and 3000")])
def test_rows_that_are_others_each_time_are_noticed(database_of: Any, per_row: int, came: str) -> None:
    # each time that the rows are read, there is one fewer, or one more
    database_of.execute("DROP SEQUENCE IF EXISTS times; CREATE SEQUENCE times")
    database_of.execute(
        f"CREATE OR REPLACE FUNCTION those() RETURNS SETOF integer VOLATILE LANGUAGE sql AS "
        f"'SELECT i::integer FROM (SELECT nextval(''times'') AS n OFFSET 0) t, "
        f"generate_series(1, {ROWS} + {per_row} * (n - 1)) i'"
    )
    ds = dataset(rows_of("SELECT number FROM those() AS number"))
    assert len(ds.source) == ROWS
    with pytest.raises(corgipile.SourceError, match=f"{came} when they were counted: is the query volatile"):
        list(ds)


def test_an_iteration_that_is_given_up_ends_its_query(database_of: Any) -> None:
    ds = dataset(rows_of("SELECT number FROM odd WHERE (SELECT pg_advisory_xact_lock_shared(5)) IS NOT NULL"))
    # the server does not send a row while somebody else has the lock
    database_of.execute("SELECT pg_advisory_lock(5)")
    batches = iter(ds)
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND state = 'active' AND query LIKE 'COPY (SELECT%'"
    )
    interrupted: list[float] = []

    def interrupt() -> None:
        with contextlib.suppress(AssertionError):
            until(lambda: database_of.execute(running).fetchone()[0])
        interrupted.append(time.monotonic())
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert time.monotonic() < interrupted[0] + 2
    thread.join()
    del batches
    until(lambda: database_of.execute(running).fetchone()[0] == 0, within=20)
    database_of.execute("SELECT pg_advisory_unlock(5)")
    assert len(list(ds)) == len(ds)


def test_arrays_of_text_and_empty_results_come(database_of: Any) -> None:
    lists = rows_of("SELECT number, ARRAY['a', name] AS words FROM rows JOIN names ON id = number WHERE number < 5")
    batch = next(iter(dataset(lists)))
    assert [list(words) for words in batch["words"]] == [["a", f"name {number}"] for number in batch["number"]]
    empty = dataset(rows_of("SELECT number FROM rows WHERE false"))
    assert len(empty) == 0 and list(empty) == []
    assert np.asarray(next(iter(dataset(rows_of("SELECT 1.5 AS half"))))["half"]).tolist() == [1.5]
