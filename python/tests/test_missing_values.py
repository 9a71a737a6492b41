"""Missing numbers and truth values: an error that names file and row, a value of the user's, or a skipped row."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_sources import field, read, record

import corgipile
from corgipile import CorgiPileDataset, Source, joader

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = 3000
#: Rows of the second of two files without a value.
MISSING = [1200, 2900]


def _table(rows: range) -> Any:
    numbers = [None if row in MISSING else row for row in rows]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "truth": pa.array([None if number is None else number % 2 == 0 for number in numbers]),
            "half": pa.array([None if number is None else number / 2 for number in numbers], pa.float64()),
        }
    )


def _example(row: int) -> bytes:
    number = field(3, field(1, bytes([row & 127 | 128, row >> 7])))
    entry = b"" if row in MISSING else field(1, field(1, b"id") + field(2, number))
    return field(1, entry + field(1, field(1, b"n") + field(2, number)))


def _write_csv(path: Path, rows: range) -> None:
    lines = (",,1" if row in MISSING else f"{row},{str(row % 2 == 0).lower()},1" for row in rows)
    path.write_text("id,truth,n\n" + "\n".join(lines) + "\n")


def _write_tar(path: Path, rows: range) -> None:
    with tarfile.open(path, "w") as tar:
        for row in rows:
            for ending in ("txt",) if row in MISSING else ("cls", "txt"):
                member = tarfile.TarInfo(f"{row:06}.{ending}")
                member.size = len(str(row))
                tar.addfile(member, io.BytesIO(str(row).encode()))


WRITERS: dict[str, tuple[Callable[[Path, range], Any], Any]] = {
    "parquet": (lambda path, rows: parquet.write_table(_table(rows), path, row_group_size=300), corgipile.parquet),
    "arrow": (lambda path, rows: feather.write_feather(_table(rows), str(path), chunksize=300), corgipile.arrow),
    "csv": (_write_csv, corgipile.csv),
    "tfrecord": (
        lambda path, rows: path.write_bytes(b"".join(record(_example(row)) for row in rows)),
        corgipile.tfrecord,
    ),
    "tar": (_write_tar, corgipile.webdataset),
    "libsvm": (
        lambda path, rows: path.write_text(
            "".join(f"1{'' if row in MISSING else f' qid:{row}'} 1:1\n" for row in rows)
        ),
        corgipile.libsvm,
    ),
}
WHOLE = {"libsvm": "qid", "tar": "cls"}
PRESENT = [row for row in range(ROWS) if row not in MISSING]


@pytest.fixture(params=WRITERS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Callable[..., Source], str, str]:
    kind = request.param
    write, opener = WRITERS[kind]
    for name, rows in (("a", range(1000)), ("b", range(1000, ROWS))):
        write(tmp_path / f"{name}.{kind}", rows)
    return lambda **options: opener(tmp_path, **options), WHOLE.get(kind, "id"), f"b.{kind}"


def test_without_a_choice_the_error_names_file_and_row(opened: Any) -> None:
    source, name, file = opened
    what = rf'{file}, row 200: column "{name}": a value is missing, .* say in fill_value what it becomes'
    with pytest.raises(ValueError, match=what):
        read(source())


def test_a_row_without_a_value_is_skipped_and_counted(opened: Any) -> None:
    source, name, file = opened
    skipping = source(on_error="skip")
    assert read(skipping)[name].tolist() == PRESENT
    assert skipping.skipped == 2
    assert file in skipping.messages[0] and "fill_value" in skipping.messages[0]


def test_a_value_is_filled_in(opened: Any) -> None:
    source, name, _ = opened
    for on_error in ("raise", "skip"):
        filled = source(fill_value=True, on_error=on_error)
        assert read(filled)[name].tolist() == [1 if row in MISSING else row for row in range(ROWS)]
        assert filled.skipped == 0
    zero = source(fill_value=0)
    rows = read(pickle.loads(pickle.dumps(zero)), "corgipile")
    assert sorted(rows[name].tolist()) == [0, 0, *PRESENT] and rows[name].dtype == np.int64
    if "truth" in rows:
        assert rows["truth"].dtype == bool and rows["truth"].sum() == 1500 - 2
    if "half" in rows:
        assert not np.isnan(rows["half"]).any()
    assert zero.fingerprint != source(fill_value=1).fingerprint != source().fingerprint
    doubles = read(source(fill_value=float("nan")))
    assert doubles[name].dtype == np.float64 and np.flatnonzero(np.isnan(doubles[name])).tolist() == MISSING


def test_a_value_that_a_column_cannot_have_is_refused(opened: Any) -> None:
    source, name, _ = opened
    with pytest.raises(ValueError, match=f'fill_value: column "{name}" is of type Int64, which has no 0.5'):
        source(fill_value=0.5)
    with pytest.raises(TypeError, match="fill_value: must be a number, not '0'"):
        source(fill_value="0")


def test_missing_numbers_in_lists_count_too(tmp_path: Path) -> None:
    lists: Any = {
        "pair": pa.array([[1, 2], [3, None], [5, 6]], pa.list_(pa.int64())),
        "ragged": pa.array([[None], [], [7, 8, 9]], pa.list_(pa.int32())),
    }
    parquet.write_table(pa.table(lists), tmp_path / "lists.parquet")
    for name, row in (("pair", 1), ("ragged", 0)):
        with pytest.raises(ValueError, match=f'lists.parquet, row {row}: column "{name}": a value is missing'):
            read(corgipile.parquet(tmp_path / "lists.parquet", [name]))
    rows = read(corgipile.parquet(tmp_path / "lists.parquet", fill_value=-1))
    assert rows["pair"].tolist() == [[1, 2], [3, -1], [5, 6]]
    assert [values.tolist() for values in rows["ragged"]] == [[-1], [], [7, 8, 9]]
    skipping = corgipile.parquet(tmp_path / "lists.parquet", on_error="skip")
    assert read(skipping)["pair"].tolist() == [[5, 6]] and skipping.skipped == 2


def test_a_data_set_of_joader_is_filled_in(tmp_path: Path, serve: Any) -> None:
    parquet.write_table(_table(range(ROWS)), tmp_path / "rows.parquet", row_group_size=300)
    address = serve()
    joader.create(address, "rows", corgipile.parquet(tmp_path / "rows.parquet", fill_value=0), element_size=100)
    job = joader.Job(address, dataset="rows", columns=["id"])
    assert sorted(int(number) for batch in job for number in batch["id"]) == [0, 0, *PRESENT]


@pytest.mark.parametrize("word", ["Infinity", "-Infinity", "inf", "NaN", "+inf"])
@pytest.mark.parametrize("others", [["1", "2"], ["1.5", "2"], ["", ""], ["-Infinity", "3"]])
def test_infinity_and_nan_of_csv_are_numbers(tmp_path: Path, word: str, others: list[str]) -> None:
    (tmp_path / "rows.csv").write_text("id,x\n" + "".join(f"1,{value}\n" for value in [others[0], word, others[1]]))
    x = read(corgipile.csv(tmp_path / "rows.csv"))["x"]
    assert x.dtype == np.float64
    np.testing.assert_array_equal(x[1], float(word))
    np.testing.assert_array_equal(x[[0, 2]], [float(value or "nan") for value in others])


def test_words_among_texts_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("name,flag\nNan,true\nAnn,NaN\n")
    rows = read(corgipile.csv(tmp_path / "rows.csv"))
    assert rows["name"].tolist() == ["Nan", "Ann"] and rows["flag"].tolist() == ["true", "NaN"]


def test_features_of_libsvm_begin_at_1_unless_something_else_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.libsvm").write_text("1 0:1 2:1\n")
    (tmp_path / "test.libsvm").write_text("1 1:1 2:1\n")
    assert read(corgipile.libsvm(tmp_path / "test.libsvm"))["indices"][0].tolist() == [0, 1]
    with pytest.raises(corgipile.SourceError, match=r"train\.libsvm, byte 0: .*zero_based=True"):
        read(corgipile.libsvm(tmp_path / "train.libsvm"))
    for name in ("train", "test"):
        with pytest.warns(UserWarning, match='zero_based="auto" guesses'):
            corgipile.libsvm(tmp_path / f"{name}.libsvm", zero_based="auto")


def test_a_byte_order_mark_of_libsvm_gets_a_hint(tmp_path: Path) -> None:
    (tmp_path / "rows.libsvm").write_text("1 1:1\n2 2:1\n", encoding="utf-8-sig")
    with pytest.raises(corgipile.SourceError, match=r"byte order mark \(BOM\).*tail -c \+4"):
        list(CorgiPileDataset(corgipile.libsvm(tmp_path / "rows.libsvm")))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("header", [True, False])
def test_another_delimiter_of_csv_gets_a_hint(tmp_path: Path, delimiter: str, header: bool) -> None:
    (tmp_path / "rows.csv").write_text(f"a{delimiter}b\n1{delimiter}2\n")
    with pytest.warns(UserWarning, match="rows.csv: there is one column .*: is delimiter=") as warned:
        corgipile.csv(tmp_path / "rows.csv", header=header)
    assert repr(delimiter) in str(warned[0].message)
    corgipile.csv(tmp_path / "rows.csv", header=header, delimiter=delimiter)


def test_a_column_that_is_not_there_under_another_delimiter_gets_a_hint(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a;b\n1,5;2\n")
    with pytest.raises(corgipile.SourceError, match=r"there is no column \"b\".*is delimiter=';' meant"):
        corgipile.csv(tmp_path / "rows.csv", ["b"])
    with pytest.warns(UserWarning, match="delimiter"):
        source = corgipile.csv(tmp_path / "rows.csv")
    with pytest.raises(corgipile.SourceError, match=r"fields.*is delimiter=';' meant"):
        read(source)
