"""Tables of PostgreSQL as sources, read by threads, by forked and by spawned processes under one snapshot."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from test_sources import read

import corgipile
from corgipile.sources import Table

Run = Callable[[str], Any]


@pytest.fixture
def run(database: str, conn: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs SQL in a schema of this test."""
    monkeypatch.setenv("PGDATABASE", database)
    conn.execute("SET search_path = sources_test; SET lock_timeout = '20s'")
    conn.execute("DROP SCHEMA IF EXISTS sources_test CASCADE; CREATE SCHEMA sources_test")
    return conn.execute


@pytest.fixture
def rows(run: Run) -> Table:
    """2000 rows."""
    columns = "i AS id, ARRAY[i, 0.5]::real[] AS x, 'row ' || i AS text"
    run(f"CREATE TABLE rows AS SELECT {columns} FROM generate_series(0, 1999) i")
    return corgipile.postgres("sources_test.rows")


def test_a_table_s_rows_are_read_in_order_and_shuffled(rows: Table) -> None:
    assert len(rows) == 2000
    read_all = read(rows)
    assert read_all["id"].tolist() == list(range(2000))
    assert read_all["x"].shape == (2000, 2)
    assert read_all["text"][5] == "row 5"
    shuffled = read(rows, "corgipile")["id"].tolist()
    assert sorted(shuffled) == list(range(2000)) != shuffled
    some = corgipile.postgres("sources_test.rows", ["text", "id"], where="id % 2 = 0", lists="ragged")
    assert list(read(some)) == ["text", "id"]
    assert len(some) == 1000


def _ids(source: Table, ids: multiprocessing.Queue[list[int]]) -> None:
    ids.put(read(source, "corgipile")["id"].tolist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_another_process_reads_the_same_snapshot(rows: Table, run: Run, method: str) -> None:
    before = read(rows, "corgipile")["id"].tolist()
    run("DELETE FROM rows WHERE id > 10; INSERT INTO rows SELECT 5000 + i FROM generate_series(1, 10000) i")
    context: Any = multiprocessing.get_context(method)
    ids = context.Queue()
    processes = [context.Process(target=_ids, args=(rows, ids)) for _ in range(2)]
    for process in processes:
        process.start()
    seen = [ids.get(timeout=300) for _ in processes]
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    assert seen == [before, before]
    # and what they did to their connections has not ended this process's
    assert read(rows, "corgipile")["id"].tolist() == before
    assert len(corgipile.postgres("sources_test.rows", snapshot=rows.snapshot)) == 2000
    assert len(corgipile.postgres("sources_test.rows")) == 10011


def test_a_copy_knows_that_its_snapshot_is_gone(run: Run) -> None:
    run("CREATE TABLE t AS SELECT 1 AS id")
    copy = pickle.dumps(corgipile.postgres("sources_test.t"))
    with pytest.raises(corgipile.SourceError, match="anyone who has exported the snapshot must be connected still"):
        len(pickle.loads(copy))


def test_nulls_and_what_has_no_number_are_missing(run: Run) -> None:
    run("CREATE TABLE t (a int, f float8, t text, d date); INSERT INTO t VALUES (1, 2, 'x', '2000-01-01')")
    rows = read(corgipile.postgres("sources_test.t"))
    assert rows["d"][0] == np.datetime64("2000-01-01")
    run("INSERT INTO t DEFAULT VALUES")
    rows = read(corgipile.postgres("sources_test.t", ["f", "t", "d"]))
    assert np.isnan(rows["f"][1])
    assert rows["t"][1] is None
    assert np.isnat(rows["d"][1])
    # which is not what is missing
    run("INSERT INTO t (d) VALUES ('infinity')")
    with pytest.raises(corgipile.SourceError, match='column "d": a value is infinite'):
        corgipile.postgres("sources_test.t", ["f", "d"])
    assert len(corgipile.postgres("sources_test.t", ["f", "d"], where="isfinite(d)")) == 1
    assert len(corgipile.postgres("sources_test.t", ["f"])) == 3


def test_what_the_database_refuses_is_told_in_its_words(run: Run) -> None:
    with pytest.raises(corgipile.SourceError, match=r'relation "nosuch" does not exist \(42P01\)'):
        corgipile.postgres("nosuch")
    run("CREATE VIEW v AS SELECT 1 AS id")
    with pytest.raises(ValueError, match=r"sources_test\.v is not a table"):
        corgipile.postgres("sources_test.v")
    with pytest.raises(ValueError, match="the connection string is wrong"):
        corgipile.postgres("t", connection="nosuch=1")
    with pytest.raises(corgipile.SourceError, match="database"):
        corgipile.postgres("t", connection="host=/nosuch")


@pytest.mark.parametrize(
    "table", ["select 1 AS x", "  WITH q AS (SELECT 1) SELECT * FROM q", "(values (1))", "TABLE rows"]
)
def test_a_query_is_told_who_reads_it(rows: Table, table: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a table; a query is read with server_shuffle=True"):
        corgipile.postgres(table)


@pytest.mark.parametrize("server_shuffle", [False, True])
def test_missing_values_of_a_table_are_named_or_filled_in(run: Run, server_shuffle: bool) -> None:
    if server_shuffle:
        run("CREATE EXTENSION IF NOT EXISTS corgipile SCHEMA public")
    run("CREATE TABLE gaps AS SELECT nullif(i, 1500) AS id, i <> 1500 OR NULL AS truth FROM generate_series(0, 1999) i")
    name, open_table = "sources_test.gaps", cast(Any, corgipile.postgres)
    with pytest.raises(ValueError, match=r'row 1500: column "id": a value is missing.*fill_value'):
        read(open_table(name, server_shuffle=server_shuffle), "no_shuffle")
    filled = open_table(name, server_shuffle=server_shuffle, fill_value=0)
    rows = read(pickle.loads(pickle.dumps(filled)) if server_shuffle else filled, "no_shuffle")
    assert rows["id"][1500] == 0 and not rows["truth"][1500] and rows["truth"].sum() == 1999
