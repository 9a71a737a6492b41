"""`on_error="skip"`: rows that are skipped do not decide which columns there are, nor their types and widths."""

from __future__ import annotations

import io
import struct
import tarfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_sources import example, field, read, record, table

import corgipile
from corgipile import Source

parquet = pytest.importorskip("pyarrow.parquet")


def skipping(source: Source, skipped: int) -> dict[str, np.ndarray]:
    """The rows of a source that skips as many others."""
    rows = read(source)
    assert source.skipped == skipped and source.messages
    return rows


CSV = "".join(f"{row},{row}.5\n" for row in range(8000))


@pytest.mark.parametrize(
    "wrong",
    [b"7\n", b"7,8,9\n", b'"7"x,8\n', b'"7,8\n', b"7,\xff\n"],
    ids=["too few", "too many", "quote", "open quote", "no UTF-8"],
)
@pytest.mark.parametrize("first", [False, True], ids=["in the middle", "at first"])
def test_a_wrong_row_of_csv_says_nothing_of_types(tmp_path: Path, wrong: bytes, first: bool) -> None:
    if wrong == b'"7,8\n':  # joins the next row
        wrong += b'"7,8\n'
    head, tail = (b"", CSV.encode()) if first else (CSV[:40000].rpartition("\n")[0].encode() + b"\n", b"9,9.5\n")
    (tmp_path / "rows.csv").write_bytes(b"a,b\n" + head + wrong + tail)
    rows = skipping(corgipile.csv(tmp_path / "rows.csv", on_error="skip"), 1)
    assert (rows["a"].dtype, rows["b"].dtype) == (np.int64, np.float64)
    assert (rows["b"] == rows["a"] + 0.5).all() and len(rows["a"]) == (head + tail).count(b"\n")
    # without a header, the number of columns is that of most rows
    (tmp_path / "rows.csv").write_bytes(head + wrong + tail)
    plain = skipping(corgipile.csv(tmp_path / "rows.csv", header=False, on_error="skip"), 1)
    assert (plain["column_2"] == rows["b"]).all() and list(plain) == ["column_1", "column_2"]


def test_a_row_of_csv_whose_type_was_asked_for_says_nothing_of_other_types(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\noops,text\n3,4\n")
    rows = skipping(corgipile.csv(tmp_path / "rows.csv", types={"a": "int64"}, on_error="skip"), 1)
    assert (rows["a"].tolist(), rows["b"].tolist()) == ([1, 3], [2, 4])


def test_a_file_of_csv_with_a_damaged_header_is_skipped(tmp_path: Path) -> None:
    for name, header in (("a", '"x"y,z'), ("b", "x,z"), ("c", "x,z")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n1,2\n")
    assert skipping(corgipile.csv(tmp_path, on_error="skip"), 1)["z"].tolist() == [2, 2]


def test_values_that_come_late_in_a_column_of_csv_are_not_lost(tmp_path: Path) -> None:
    lines = [f"{row},{'x' * 90},\n" for row in range(60_000)]
    lines[45_000] = f"45000,{'x' * 90},7.5\n"  # in no unit that is looked at
    (tmp_path / "rows.csv").write_text("id,text,late\n" + "".join(lines))
    late = read(corgipile.csv(tmp_path / "rows.csv", ["late"]))["late"]
    assert late[45_000] == 7.5 and np.isnan(late).sum() == 59_999


@pytest.mark.parametrize("wrong", ["1 0:x 99:1", "x 0:1 99:1", "1 0:1 99:1 99:2", "1 0:1 99", "1 qid:x 0:1", "x qid:1"])
@pytest.mark.parametrize("index", ["auto", "build"])
def test_a_wrong_line_of_libsvm_shifts_and_widens_nothing(tmp_path: Path, wrong: str, index: str) -> None:
    (tmp_path / "rows.libsvm").write_text(f"1 1:1 3:3\n{wrong}\n-1 2:2\n")
    for zero_based in (False, "auto"):
        options: Any = {"zero_based": zero_based, "on_error": "skip", "index": index}
        with pytest.warns(UserWarning, match="zero_based") if zero_based == "auto" else nullcontext():
            source = corgipile.libsvm(tmp_path / "rows.libsvm", dense=True, **options)
        rows = skipping(source, 1)
        assert list(rows) == ["label", "x"]
        assert rows["x"].tolist() == [[1, 0, 3], [0, 2, 0]]


def test_a_line_with_feature_0_widens_nothing_where_features_begin_at_1(tmp_path: Path) -> None:
    (tmp_path / "rows.libsvm").write_text("1 1:1 3:3\n1 0:1 99:1\n")
    rows = skipping(corgipile.libsvm(tmp_path / "rows.libsvm", dense=True, on_error="skip"), 1)
    assert rows["x"].tolist() == [[1, 0, 3]]
    both = read(corgipile.libsvm(tmp_path / "rows.libsvm", dense=True, zero_based=True))
    assert both["x"].shape == (2, 100)


def test_a_wrong_record_names_no_feature_and_no_kind(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    odd = field(1, field(1, b"odd") + field(2, field(3, field(1, b"\x07"))))
    other_kind = field(1, field(1, field(1, b"id") + field(2, field(1, field(1, b"text")))))
    cut_off = field(1, odd + b"\x0a\x7f")
    damaged = bytearray(record(field(1, odd)))
    damaged[-1] ^= 1
    wrong = [record(other_kind), record(cut_off), bytes(damaged)]
    for order in (wrong, wrong[::-1]):
        path.write_bytes(b"".join(order) + b"".join(record(example(number)) for number in range(40)))
        rows = skipping(corgipile.tfrecord(path, on_error="skip"), 3)
        assert sorted(rows) == ["id", "name", "x"]
        assert rows["id"].tolist() == list(range(40)) and rows["x"].shape == (40, 2)


def _tar(path: Path, *members: tuple[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("wrong", ["cls", "txt", "twice"])
def test_a_wrong_sample_has_no_ending_that_counts(tmp_path: Path, wrong: str) -> None:
    bad = {"cls": [("b.cls", b"x")], "txt": [("b.txt", b"\xff")], "twice": [("b.cls", b"1"), ("b.CLS", b"2")]}[wrong]
    good = [("a.cls", b"1"), ("a.txt", b"one"), ("c.cls", b"3"), ("c.txt", b"three")]
    _tar(tmp_path / "rows.tar", *good[:2], *bad, ("b.odd", b"?"), *good[2:])
    rows = skipping(corgipile.webdataset(tmp_path / "rows.tar", on_error="skip"), 1)
    assert sorted(rows) == ["__key__", "cls", "txt"] and rows["cls"].tolist() == [1, 3]


@pytest.mark.parametrize("group", [0, 2], ids=["first", "last"])
def test_a_damaged_row_group_says_nothing_of_lists(tmp_path: Path, group: int) -> None:
    path = tmp_path / "rows.parquet"
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    parquet.write_table(table().select(["id", "x"]), path, row_group_size=100, **options)
    data = bytearray(path.read_bytes())
    data[data.index(struct.pack("<f", 100 * group + 50))] ^= 0xFF
    path.write_bytes(data)
    assert skipping(corgipile.parquet(path, on_error="skip"), 100)["x"].shape == (200, 2)
