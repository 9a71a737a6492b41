"""Every format through its function: what was written comes back, and what is wrong is said in Python's words."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corgipile
from corgipile import CorgiPileDataset, Source, SourceError

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = 300


def read(source: Source, shuffle: str = "no_shuffle") -> dict[str, np.ndarray]:
    """All rows of a source."""
    batches = list(CorgiPileDataset(source, batch_size=64, shuffle=shuffle))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def table(first: int = 0, rows: int = ROWS) -> Any:
    """Numbers, texts, vectors and lists of different lengths."""
    numbers = range(first, first + rows)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": pa.array([f"row {number}" for number in numbers]),
            "x": pa.array([[number, 0.5] for number in numbers], pa.list_(pa.float32())),
            "tokens": pa.array([list(range(number % 3)) for number in numbers], pa.list_(pa.int64())),
        }
    )


def crc32c(data: bytes) -> int:
    """CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """A record of a TFRecord file."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def field(number: int, data: bytes) -> bytes:
    """A field of Protocol Buffers, of less than 128 bytes."""
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def example(number: int) -> bytes:
    """An example with the number, in one byte or two, and two floats."""
    varint = bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])
    features = {
        b"id": field(3, field(1, varint)),
        b"x": field(2, field(1, struct.pack("<2f", number, 0.5))),
        b"name": field(1, field(1, b"row %d" % number)),
    }
    entries = b"".join(field(1, field(1, name) + field(2, value)) for name, value in features.items())
    return field(1, entries)


def write_tar(path: Path, samples: range = range(ROWS)) -> None:
    with tarfile.open(path, "w") as tar:
        for number in samples:
            for ending, data in (("cls", b"%d" % number), ("bin", b"x" * (number % 5)), ("txt", b"row %d" % number)):
                member = tarfile.TarInfo(f"train/{number:06}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def write(directory: Path, kind: str) -> Source:
    """Rows of one kind, opened."""
    path = directory / f"rows.{kind}"
    match kind:
        case "parquet":
            parquet.write_table(table(), path, row_group_size=70)
            return corgipile.parquet(path)
        case "arrow":
            feather.write_feather(table(), str(path), chunksize=70)
            return corgipile.arrow(path)
        case "arrows":
            with pa.ipc.new_stream(str(path), table().schema) as stream:
                stream.write_table(table(), max_chunksize=70)
            return corgipile.arrow(path)
        case "tfrecord":
            path.write_bytes(b"".join(record(example(number)) for number in range(ROWS)))
            return corgipile.tfrecord(path)
        case "tar":
            write_tar(path)
            return corgipile.webdataset(path)
        case "csv":
            path.write_text("id,text,x\n" + "".join(f'{number},"row, {number}",{number}.5\n' for number in range(ROWS)))
            return corgipile.csv(path)
        case "libsvm":
            path.write_text("".join(f"{number} 1:{number} 3:0.5\n" for number in range(ROWS)))
            return corgipile.libsvm(path, dense=True)
        case _:
            pass
    raise AssertionError(kind)


KINDS = ["parquet", "arrow", "arrows", "tfrecord", "tar", "csv", "libsvm"]
NUMBER = {"tar": "cls", "libsvm": "label"}


@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_come_back_in_order_shuffled_and_from_a_copy(tmp_path: Path, kind: str) -> None:
    source = write(tmp_path, kind)
    name = NUMBER.get(kind, "id")
    assert len(source) == ROWS
    assert read(source)[name].tolist() == list(range(ROWS))
    shuffled = read(source, "corgipile")[name].tolist()
    assert sorted(shuffled) == list(range(ROWS))
    copy = pickle.loads(pickle.dumps(source))
    assert read(copy, "corgipile")[name].tolist() == shuffled
    assert copy.fingerprint == source.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changed_is_told_and_not_read(tmp_path: Path, kind: str) -> None:
    source = write(tmp_path, kind)
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(SourceError, match=r"rows\.\w+ changed while it was read; open the data set again"):
        read(source)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows"])
def test_lists_of_one_length_are_arrays_of_two_dimensions(tmp_path: Path, kind: str) -> None:
    source = write(tmp_path, kind)
    rows = read(source)
    assert rows["x"].shape == (ROWS, 2)
    assert rows["x"].dtype == np.float32
    assert rows["x"][7].tolist() == [7.0, 0.5]
    assert rows["text"][7] == "row 7"
    assert rows["tokens"][5].tolist() == [0, 1]
    opener = corgipile.parquet if kind == "parquet" else corgipile.arrow
    ragged = read(opener(tmp_path / f"rows.{kind}", ["x"], lists="ragged"))
    assert ragged["x"].shape == (ROWS,)
    assert ragged["x"][7].tolist() == [7.0, 0.5]


def test_parquet_of_pandas_and_of_many_files_is_read(tmp_path: Path) -> None:
    for number in range(3):
        part = table(ROWS * number).append_column("colour", pa.array(["red", "blue"] * (ROWS // 2)).dictionary_encode())
        part = part.append_column("nothing", pa.nulls(ROWS))
        part = part.append_column("price", pa.array([1] * ROWS, pa.decimal128(9, 2)))
        parquet.write_table(part, tmp_path / f"part-{number}.parquet", compression=["zstd", "gzip", "lz4"][number])
    (tmp_path / "_SUCCESS").touch()
    source = corgipile.parquet(tmp_path)
    rows = read(source)
    assert rows["id"].tolist() == list(range(3 * ROWS))
    assert rows["colour"][:2].tolist() == ["red", "blue"]
    assert np.isnan(rows["nothing"]).all()
    assert rows["price"].tolist() == [1.0] * 3 * ROWS
    assert list(read(corgipile.parquet(tmp_path / "*.parquet", ["text", "id"]))) == ["text", "id"]


def test_a_damaged_row_group_is_an_error_or_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    parquet.write_table(table().select(["id"]), path, row_group_size=100, **options)
    data = bytearray(path.read_bytes())
    place = data.index(struct.pack("<q", 150))
    data[place] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"rows\.parquet, byte \d+: .*CRC"):
        read(corgipile.parquet(path))
    source = corgipile.parquet(path, on_error="skip")
    assert read(source)["id"].tolist() == [*range(100), *range(200, 300)]
    assert source.skipped == 100
    assert "rows skipped: " in source.messages[0]


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    parquet.write_table(table(), tmp_path / "a.parquet")
    parquet.write_table(table().drop_columns(["text"]), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r'b\.parquet: there is no column "text", which .*a\.parquet has'):
        corgipile.parquet(tmp_path)
    source = corgipile.parquet(tmp_path, on_error="skip")
    assert (len(source), source.skipped) == (ROWS, ROWS)


def test_records_of_tfrecord_have_types_as_said_or_are_bytes(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    assert set(read(write(tmp_path, "tfrecord"))) == {"id", "x", "name"}
    features = {"x": "float32[2]", "id": "int64", "missing": "float32[3]"}
    rows = read(corgipile.tfrecord(path, features=features))
    assert list(rows) == list(features)
    assert rows["x"][9].tolist() == [9.0, 0.5]
    assert np.isnan(rows["missing"]).all()
    assert rows["missing"].shape == (ROWS, 3)
    assert read(corgipile.tfrecord(path, ["name"]))["name"][3] == b"row 3"
    assert read(corgipile.tfrecord(path, features={"x": "float32[]"}))["x"][9].tolist() == [9.0, 0.5]
    assert read(corgipile.tfrecord(path, decode="raw"))["record"][3] == example(3)
    with pytest.raises(ValueError, match=r"features: .*x.* cannot be .*double.*; say bytes, float32 or int64"):
        corgipile.tfrecord(path, features={"x": "double"})
    with pytest.raises(ValueError, match=r'no record has a feature "y"; there are id, name, x'):
        corgipile.tfrecord(path, ["y"])


def test_a_damaged_record_is_an_error_or_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    records = [record(example(number)) for number in range(10)]
    records[4] = records[4][:20] + b"?" + records[4][21:]
    path.write_bytes(b"".join(records))
    features = {"id": "int64"}
    with pytest.raises(SourceError, match=rf"byte {sum(map(len, records[:4]))}: the record's checksum is wrong"):
        read(corgipile.tfrecord(path, features=features))
    source = corgipile.tfrecord(path, features=features, on_error="skip")
    assert read(source)["id"].tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert source.skipped == 1
    path.write_bytes(b"".join(records[:4]) + records[5][:-3])
    with pytest.raises(SourceError, match="the file ends within a record"):
        corgipile.tfrecord(path)


def test_samples_of_tar_files_have_a_column_for_each_ending(tmp_path: Path) -> None:
    rows = read(write(tmp_path, "tar"))
    assert rows["__key__"][4] == "train/000004"
    assert rows["bin"][4] == b"xxxx"
    assert rows["txt"][4] == "row 4"
    path = tmp_path / "rows.tar"
    assert list(read(corgipile.webdataset(path, ["cls", "png;bin"]))) == ["cls", "png;bin"]
    path.write_bytes(path.read_bytes()[:1100])
    with pytest.raises(SourceError, match=r"rows\.tar, byte 1024: the file ends within a header"):
        corgipile.webdataset(path)


def test_csv_takes_types_nulls_and_other_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1;a;NA\n2;b;3\n")
    options: dict[str, Any] = {"header": False, "delimiter": ";", "null_values": ["NA"]}
    rows = read(corgipile.csv(path, types={"column_1": "float32", "column_3": "float64"}, **options))
    assert rows["column_1"].dtype == np.float32
    assert np.isnan(rows["column_3"][0])
    with pytest.raises(ValueError, match=r"types: column .*column_1.* cannot be of type .*number.*; there are bool"):
        corgipile.csv(path, types={"column_1": "number"}, **options)
    with pytest.raises(ValueError, match="delimiter: '::' is not one ASCII character"):
        corgipile.csv(path, delimiter="::")
    path.write_text("a\n1\nx\n")
    with pytest.raises(SourceError, match=r"rows\.csv, byte 4: .*x.*types are those of a sample"):
        read(corgipile.csv(path, types={"a": "int64"}))


def test_libsvm_is_sparse_or_dense(tmp_path: Path) -> None:
    assert read(write(tmp_path, "libsvm"))["x"][4].tolist() == [4.0, 0.0, 0.5]
    sparse = read(corgipile.libsvm(tmp_path / "rows.libsvm"))
    assert sparse["indices"][4].tolist() == [0, 2]
    assert sparse["values"][4].tolist() == [4.0, 0.5]
    wide = read(corgipile.libsvm(tmp_path / "rows.libsvm", dense=5, zero_based=True))
    assert wide["x"][4].tolist() == [0.0, 4.0, 0.0, 0.5, 0.0]
    with pytest.raises(SourceError, match=r"index of .* is not from 0 to 1"):
        read(corgipile.libsvm(tmp_path / "rows.libsvm", dense=2, zero_based=True))


@pytest.mark.parametrize(
    "opener",
    [corgipile.parquet, corgipile.arrow, corgipile.tfrecord, corgipile.webdataset, corgipile.csv, corgipile.libsvm],
)
def test_what_is_not_there_or_makes_no_sense_is_refused(tmp_path: Path, opener: Callable[..., Source]) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        opener(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="matches no file"):
        opener(tmp_path / "*.nothing")
    with pytest.raises(FileNotFoundError, match=r"has no file named \*\."):
        opener(tmp_path)
    with pytest.raises(ValueError, match="no path was given"):
        opener([])
    with pytest.raises(ValueError, match=r"on_error: .*ignore.* is neither 'raise' nor 'skip'"):
        opener(tmp_path / "nothing", on_error="ignore")
    (tmp_path / "empty").touch()
    if opener is corgipile.libsvm:
        assert len(opener(tmp_path / "empty")) == 0
    else:
        with pytest.raises((SourceError, ValueError), match=r"empty|there is no (record|sample|row)"):
            opener(tmp_path / "empty")


def test_compressed_files_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0")
    with pytest.raises(ValueError, match=r"compressed with gzip.*gunzip --keep .*rows\.csv\.gz.*Parquet"):
        corgipile.csv(path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_paper_s_call_knows_formats_by_their_endings(tmp_path: Path, kind: str) -> None:
    write(tmp_path, kind)
    batches = list(CorgiPileDataset(tmp_path / f"rows.{kind}", batch_size=100, shuffle="no_shuffle"))
    assert len(batches[0][NUMBER.get(kind, "id")]) == 100
