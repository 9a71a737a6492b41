"""What is read of a file or a table in an epoch: each part of it once, with small blocks too. Counts, and no times."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_sources import example, record

import corgipile
from corgipile import CorgiPileDataset, Source

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = 20_000
SMALL = ROWS // 2560  # rows of a block, if 256 are in a buffer of a tenth


def numbers() -> np.ndarray:
    return np.random.default_rng(1).random((ROWS, 28)).astype(np.float32)


@cache
def texts() -> list[list[str]]:
    return numbers().astype(str).tolist()


def write_csv(path: Path) -> None:
    rows = texts()
    path.write_text("".join(",".join(row) + "\n" for row in [[f"x{i}" for i in range(28)], *rows]))


def write_libsvm(path: Path) -> None:
    lines = (" ".join(f"{i}:{value}" for i, value in enumerate(row, 1)) for row in texts())
    path.write_text("".join(f"{number % 2} {line}\n" for number, line in enumerate(lines)))


def write_parquet(path: Path) -> None:
    x = pa.array(list(numbers()), pa.list_(pa.float32()))
    parquet.write_table(pa.table({"x": x, "y": pa.array(np.arange(ROWS))}), path, row_group_size=ROWS)


def write_feather(path: Path) -> None:
    x = pa.array(list(numbers()), pa.list_(pa.float32()))
    feather.write_feather(pa.table({"x": x}), path, compression="lz4", chunksize=3000)


def write_tfrecord(path: Path) -> None:
    some = [record(example(number)) for number in range(100)]
    path.write_bytes(b"".join(some[number % 100] for number in range(ROWS)))


def write_tar(path: Path) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number, row in enumerate(numbers()[: ROWS // 4]):
            member = tarfile.TarInfo(f"{number:06}.bin")
            member.size = row.nbytes
            tar.addfile(member, io.BytesIO(row.tobytes()))


FORMATS: dict[str, tuple[Callable[[Path], None], Callable[..., Source]]] = {
    "csv": (write_csv, corgipile.csv),
    "libsvm": (write_libsvm, corgipile.libsvm),
    "parquet": (write_parquet, corgipile.parquet),
    "feather": (write_feather, lambda path: corgipile.arrow(path, memory_map=False)),
    "tfrecord": (write_tfrecord, corgipile.tfrecord),
    "tar": (write_tar, corgipile.webdataset),
}
INDEXED = ("csv", "libsvm", "tfrecord", "tar")


def bytes_read() -> int:
    """What this process asked the system for so far."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def epoch(source: Source, epoch: int = 0, **options: Any) -> int:
    """Rows of an epoch."""
    data = CorgiPileDataset(source, batch_size=256, **options)
    data.set_epoch(epoch)
    return sum(len(next(iter(batch.values()))) for batch in data)


@pytest.mark.parametrize("kind", FORMATS)
def test_an_epoch_reads_a_file_once_with_small_blocks_too(kind: str, tmp_path: Path) -> None:
    write, opened = FORMATS[kind]
    path = tmp_path / f"rows.{kind}"
    write(path)
    size = path.stat().st_size
    before = bytes_read()
    source = opened(path)
    # a look through it, and a sample of 32 units of 128 kB
    assert bytes_read() - before <= 1.1 * size + 33 * (160 << 10)
    small: list[dict[str, Any]] = [{"block_size": SMALL}, {"block_size": 3 * SMALL + 1, "buffer_size": "5%"}]
    for number, options in enumerate([{}, {}, *small]):
        before = bytes_read()
        assert epoch(source, number, **options) == len(source)
        assert bytes_read() - before <= 1.2 * size, (options, number)


@pytest.mark.parametrize("kind", INDEXED)
def test_an_index_beside_the_file_spares_the_look_through_it(kind: str, tmp_path: Path) -> None:
    write, opened = FORMATS[kind]
    path = tmp_path / f"rows.{kind}"
    write(path)
    without = CorgiPileDataset(opened(path)).plan()
    opened(path, index="build")
    before = bytes_read()
    source = opened(path)
    entries = (tmp_path / f"rows.{kind}.cpindex").stat().st_size
    # what looks at a sample looks at no more than the rows of it, of a file as small as this nearly all
    assert bytes_read() - before <= entries + path.stat().st_size + (800 << 10)
    assert CorgiPileDataset(source).plan().fingerprint == without.fingerprint
    before = bytes_read()
    assert epoch(source) == len(source)
    assert bytes_read() - before <= 1.2 * path.stat().st_size


def test_the_default_blocks_are_hundreds_in_a_buffer_of_files_with_an_index(tmp_path: Path) -> None:
    for kind in INDEXED:
        write, opened = FORMATS[kind]
        path = tmp_path / f"rows.{kind}"
        write(path)
        plan = CorgiPileDataset(opened(path)).plan()
        assert plan.blocks >= 100 * plan.buffers, kind


@pytest.fixture
def table(database: str, conn: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table with the connection that made it; 20000 rows."""
    monkeypatch.setenv("PGDATABASE", database)
    conn.execute("DROP SCHEMA IF EXISTS bytes_test CASCADE; CREATE SCHEMA bytes_test")
    x = "ARRAY(SELECT (i + j)::real FROM generate_series(1, 28) j)"
    conn.execute(f"CREATE TABLE bytes_test.t AS SELECT i AS id, {x} AS x FROM generate_series(1, {ROWS}) i")
    conn.execute("DELETE FROM bytes_test.t WHERE id % 11 = 3 OR id BETWEEN 500 AND 900")
    conn.execute("VACUUM bytes_test.t")
    conn.execute("SELECT pg_stat_force_next_flush()")
    return conn


def test_an_epoch_touches_each_page_of_a_table_once(table: Any) -> None:
    pages = table.execute("SELECT pg_relation_size('bytes_test.t') / current_setting('block_size')::int").fetchone()[0]

    def touched() -> int:
        query = "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_all_tables WHERE relid = 'bytes_test.t'::regclass"
        return int(table.execute(query).fetchone()[0])

    def touched_by(epochs: int, **options: Any) -> int:
        """Of an opening and some epochs: what connections have touched is counted when they end."""
        before, last = touched(), -1
        source = corgipile.postgres("bytes_test.t")
        for number in range(epochs):
            assert epoch(source, number, **options) == len(source)
        del source
        while (now := touched()) == before or now != last:
            last = now
            time.sleep(1.2)
        return last - before

    opening = touched_by(0)
    # counted once; a sample of 8 of 256 units, and what is probed
    assert opening <= 1.1 * pages + 10
    assert touched_by(2) - opening <= 2 * 1.1 * pages
    # blocks of a few rows end within pages, which another block reads again
    small = ROWS // 100
    assert touched_by(1, block_size=small) - opening <= pages + ROWS // small
