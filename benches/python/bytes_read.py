"""Bytes that a source reads in opening and in an epoch, over those of its file, and time per row: `bytes_read.py CSV`.

Sources have the same rows of 28 floats and a label, 1,000,000 (`ROWS`), and fewer where writing them takes long. Bytes
are those that this process asked the system for (`rchar` of /proc/self/io); of a table, pages that were touched
(`pg_statio_user_tables`), where a server is reachable (`scripts/with-postgres -- ...`) and psycopg is installed.
Arrow files are mapped into memory, so that nothing is counted. Files are warm. The faster of two epochs counts, and so
does the faster of two readings by another library, of the whole file without a shuffle. In the file, rows of the
sources that were measured are replaced.
"""

from __future__ import annotations

import csv
import io
import os
import struct
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import corgipile
import numpy as np

FEATURES = 28
BATCH = 256
BLOCKS_OF_BUFFER = 256
BUFFERS = 10


def lists(x: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), FEATURES).cast(pa.list_(pa.float32()))


def write_csv(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.csv

    columns = {"y": pa.array(y)} | {f"x{i}": pa.array(x[:, i]) for i in range(FEATURES)}
    pa.csv.write_csv(pa.table(columns), path)


def write_libsvm(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    with open(path, "w") as file:
        for row, label in zip(x.round(4).tolist(), y.tolist(), strict=True):
            entries = " ".join(f"{i}:{value:.4g}" for i, value in enumerate(row, 1))
            file.write(f"{label} {entries}\n")


def write_parquet(path: Path, x: np.ndarray, y: np.ndarray, group: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pa.parquet.write_table(pa.table({"x": lists(x), "y": pa.array(y)}), path, row_group_size=group)


def write_arrow(path: Path, x: np.ndarray, y: np.ndarray, compression: str) -> None:
    import pyarrow as pa
    import pyarrow.feather

    pa.feather.write_feather(pa.table({"x": lists(x), "y": pa.array(y)}), path, compression=compression)


CRC_TABLE: list[int] = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    CRC_TABLE.append(byte)


def masked(data: bytes) -> bytes:
    """TFRecord's checksum."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def write_tfrecord(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    def field(number: int, data: bytes) -> bytes:
        length = bytes([len(data)]) if len(data) < 128 else bytes([len(data) & 127 | 128, len(data) >> 7])
        return bytes([number << 3 | 2]) + length + data

    with open(path, "wb") as file:
        for row, label in zip(x, y.tolist(), strict=True):
            features = {b"x": field(2, field(1, row.tobytes())), b"y": field(3, field(1, bytes([label])))}
            entries = (field(1, field(1, name) + field(2, value)) for name, value in features.items())
            data = field(1, b"".join(entries))
            length = struct.pack("<Q", len(data))
            file.write(length + masked(length) + data + masked(data))


def write_tar(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number, (row, label) in enumerate(zip(x, y.tolist(), strict=True)):
            for ending, data in (("cls", b"%d" % label), ("bin", row.tobytes())):
                member = tarfile.TarInfo(f"{number:07}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def pyarrow_csv(path: Path) -> None:
    import pyarrow.csv

    for _ in pyarrow.csv.open_csv(path):
        pass


def pyarrow_parquet(path: Path) -> None:
    import pyarrow.parquet

    for _ in pyarrow.parquet.ParquetFile(path).iter_batches(BATCH):
        pass


def pyarrow_arrow(path: Path) -> None:
    import pyarrow.feather

    pyarrow.feather.read_table(path, memory_map=False)


def by_tarfile(path: Path) -> None:
    with tarfile.open(path) as tar:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            file.read()


# The name, the part of all rows that it has, what writes it, what opens it, and another library that reads it.
Format = tuple[str, float, Callable[..., None], Callable[[Path], Any], str, Callable[[Path], None] | None]
FORMATS: list[Format] = [
    ("CSV", 0.3, write_csv, corgipile.csv, "pyarrow", pyarrow_csv),
    ("LIBSVM", 0.2, write_libsvm, corgipile.libsvm, "", None),
    (
        "Parquet, one row group",
        1.0,
        lambda *rows: write_parquet(*rows, 1 << 30),
        corgipile.parquet,
        "pyarrow",
        pyarrow_parquet,
    ),
    (
        "Parquet, groups of 20,000 rows",
        1.0,
        lambda *rows: write_parquet(*rows, 20_000),
        corgipile.parquet,
        "pyarrow",
        pyarrow_parquet,
    ),
    (
        "Arrow, mapped",
        1.0,
        lambda *rows: write_arrow(*rows, "uncompressed"),
        corgipile.arrow,
        "pyarrow",
        pyarrow_arrow,
    ),
    (
        "Arrow, lz4, not mapped",
        1.0,
        lambda *rows: write_arrow(*rows, "lz4"),
        lambda path: corgipile.arrow(path, memory_map=False),
        "pyarrow",
        pyarrow_arrow,
    ),
    ("TFRecord", 0.1, write_tfrecord, corgipile.tfrecord, "", None),
    ("tar (WebDataset)", 0.05, write_tar, corgipile.webdataset, "tarfile", by_tarfile),
]


def bytes_read() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def epochs(source: Any, **options: Any) -> Iterator[tuple[float, float]]:
    """Seconds of epochs, one after the other, and until the first batch of each."""
    data = corgipile.CorgiPileDataset(source, batch_size=BATCH, **options)
    for epoch in range(1_000_000):
        data.set_epoch(epoch)
        begin, first, rows = time.perf_counter(), 0.0, 0
        for batch in data:
            first = first or time.perf_counter() - begin
            rows += len(next(iter(batch.values())))
        assert rows == len(source)
        yield time.perf_counter() - begin, first


def timed(what: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    what()
    return time.perf_counter() - begin


def measured(open_source: Callable[[], Any], touched: Callable[[], int], size: int) -> dict[str, Any]:
    """Of a source: `touched` says how much of it was read so far, and `size` how much there is."""
    before, begin = touched(), time.perf_counter()
    source = open_source()
    opening, seconds = touched() - before, time.perf_counter() - begin
    before, runs = touched(), epochs(source)
    first_epoch = next(runs)
    of_epoch = touched() - before
    took, first = min(first_epoch, next(runs))
    rows = len(source)
    small = max(1, rows // (BUFFERS * BLOCKS_OF_BUFFER))
    again, before = open_source(), touched()
    next(epochs(again, block_size=small))
    return {
        "rows": rows,
        "opening": opening / size,
        "epoch": of_epoch / size,
        "small_blocks": (touched() - before) / size,
        "opening_milliseconds": 1000 * seconds,
        "nanoseconds": 1e9 * took / rows,
        "first_batch": first / took,
    }


def of_table(rows: int) -> dict[str, Any]:
    """The same of a table. Pages that a connection has touched are counted when it ends."""
    import psycopg

    connection = psycopg.connect("", autocommit=True)
    connection.execute("DROP TABLE IF EXISTS bytes_read")
    connection.execute(
        "CREATE TABLE bytes_read AS SELECT ARRAY(SELECT (i + j * 0.5)::real FROM generate_series(1, 28) j) AS x,"
        f" (i % 2)::int AS y FROM generate_series(1, {rows}) i"
    )
    connection.execute("VACUUM ANALYZE bytes_read")
    connection.execute("SELECT pg_stat_force_next_flush()")
    query = "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'bytes_read'"

    def one(sql: str) -> int:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return int(row[0])

    pages = one("SELECT pg_relation_size('bytes_read') / current_setting('block_size')::int")

    def touched_by(what: Callable[[], Any]) -> tuple[int, Any]:
        before = one(query)
        result = what()
        after = -1
        while (now := one(query)) != after or now == before:
            after = now
            time.sleep(1.5)
        return after - before, result

    def run(count: int, **options: Any) -> tuple[float, list[tuple[float, float]]]:
        begin = time.perf_counter()
        source = corgipile.postgres("bytes_read")
        seconds, runs = time.perf_counter() - begin, epochs(source, **options)
        return seconds, [next(runs) for _ in range(count)]

    opening, (seconds, _) = touched_by(lambda: run(0))
    of_two, (_, ran) = touched_by(lambda: run(2))
    of_small, _ = touched_by(lambda: run(1, block_size=max(1, rows // (BUFFERS * BLOCKS_OF_BUFFER))))
    took, first = min(ran)
    statement = "COPY bytes_read TO STDOUT (FORMAT binary)"

    def copied() -> None:
        with connection.cursor().copy(statement) as copy:
            for _ in copy:
                pass

    def fetched() -> None:
        from adbc_driver_postgresql import dbapi

        uri = f"postgresql://{os.environ['PGUSER']}@/{os.environ['PGDATABASE']}?host={os.environ['PGHOST']}"
        with dbapi.connect(uri) as adbc, adbc.cursor() as cursor:
            cursor.execute("SELECT * FROM bytes_read")
            cursor.fetch_arrow_table()

    try:
        peer, of_peer = "ADBC", min(timed(fetched) for _ in range(2))
    except ImportError:
        peer, of_peer = "COPY", min(timed(copied) for _ in range(2))
    connection.execute("DROP TABLE bytes_read")
    return {
        "source": "PostgreSQL",
        "megabytes": pages * 8192 / 2**20,
        "rows": rows,
        "opening": opening / pages,
        "epoch": (of_two - opening) / 2 / pages,
        "small_blocks": (of_small - opening) / pages,
        "opening_milliseconds": 1000 * seconds,
        "nanoseconds": 1e9 * took / rows,
        "first_batch": first / took,
        "peer": peer,
        "peer_nanoseconds": 1e9 * of_peer / rows,
    }


def main(path: Path) -> None:
    rows = int(os.environ.get("ROWS", 1_000_000))
    chosen = os.environ.get("SOURCES", "").split(";") if os.environ.get("SOURCES") else None
    draw = np.random.default_rng(1)
    x, y = draw.random((rows, FEATURES), dtype=np.float32), np.arange(rows, dtype=np.int32) % 2
    told = []
    for name, part, write, open_source, peer, read in FORMATS:
        if chosen is not None and name not in chosen:
            continue
        count = int(part * rows)
        with tempfile.TemporaryDirectory() as directory:
            # a name's ending matters to no function that opens it
            file = Path(directory) / "rows"
            write(file, x[:count], y[:count])
            size = file.stat().st_size
            of = {"source": name, "megabytes": size / 2**20}
            of |= measured(lambda file=file, opens=open_source: opens(file), bytes_read, size)
            of_peer = min(timed(lambda file=file, read=read: read(file)) for _ in range(2)) if read else 0.0
            told.append(of | {"peer": peer, "peer_nanoseconds": 1e9 * of_peer / count})
        report(told[-1])
    if os.environ.get("PGHOST") and (chosen is None or "PostgreSQL" in chosen):
        told.append(of_table(rows))
        report(told[-1])
    machine = f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
    rows_of = ({key: f"{of:.5g}" if isinstance(of, float) else of for key, of in row.items()} for row in told)
    save(path, [row | {"machine": machine} for row in rows_of])


def report(row: dict[str, Any]) -> None:
    told = (f"{name} {of:.4g}" if isinstance(of, float) else f"{name} {of}" for name, of in row.items())
    print(", ".join(told), flush=True)


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    kept = []
    if path.exists():
        with open(path, newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["source"] not in {of["source"] for of in rows}]
    order = [name for name, *_ in FORMATS] + ["PostgreSQL"]
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept + rows, key=lambda row: order.index(row["source"])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
