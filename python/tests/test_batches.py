"""Batches: their types, and that each row comes once."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from loading_fixtures import Numbers, flat

import corgipile
from corgipile import CorgiPileDataset


def test_arrays_keep_their_types_and_shapes_and_belong_to_whoever_gets_them() -> None:
    n = 100
    columns = {
        "f4": np.arange(n * 6, dtype=np.float32).reshape(n, 2, 3),
        "f8": np.arange(n, dtype=np.float64),
        "f2": np.arange(n, dtype=np.float16),
        "i1": np.arange(n, dtype=np.int8),
        "u2": np.arange(n, dtype=np.uint16),
        "u8": np.arange(n, dtype=np.uint64) + np.uint64(2**63),
        "truth": np.arange(n) % 3 == 0,
        "moment": np.arange(n).astype("datetime64[us]"),
        "span": np.arange(n).astype("timedelta64[ms]"),
        "big_endian": np.arange(n, dtype=">i4"),
        "every_other": np.arange(2 * n)[::2],
    }
    text = {"text": [f"row {i} ü" for i in range(n)], "bytes": [bytes([i]) for i in range(n)]}
    some = {"some": [None if i % 2 else "x" for i in range(n)]}
    ds = CorgiPileDataset(corgipile.arrays({"n": np.arange(n), **columns, **text, **some}), batch_size=32, seed=5)
    for batch in ds:
        rows = batch["n"]
        for name, values in columns.items():
            got = batch[name]
            assert got.dtype == values.dtype.newbyteorder("<"), name
            assert np.array_equal(got, values[rows]), name
            assert got.flags.writeable and got.flags.c_contiguous
        for name, values in {**text, **some}.items():
            assert batch[name].dtype == object
            assert batch[name].tolist() == [values[row] for row in rows]
        # what is done to a batch is not done to the source
        batch["f8"][:] = -1
    assert (columns["f8"] == np.arange(n)).all()


@pytest.mark.parametrize(
    "shuffle",
    [
        "corgipile", "corgipile_simple", "block_only", "block_only_stratified", "sliding_window", "block_window",
        "no_shuffle",
    ],
)  # fmt: skip
@pytest.mark.parametrize("lanes", [None, 4])
def test_each_row_comes_once_in_each_epoch(
    rows: corgipile.Source, numbers: Numbers, shuffle: str, lanes: int | None
) -> None:
    ds = CorgiPileDataset(rows, shuffle=shuffle, lanes=lanes, batch_size=50, buffer_size=200, block_size=10)
    epochs = [numbers(ds) for _ in range(3)]
    for epoch in epochs:
        assert sorted(flat(epoch)) == list(range(1003))
        assert len(epoch) == len(ds)
    assert (epochs[0] == epochs[1]) == (shuffle == "no_shuffle")
    ds.set_epoch(1)
    assert numbers(ds) == epochs[1]
    assert numbers(ds) == epochs[2], "without set_epoch, one epoch follows the other"


def test_an_order_depends_on_the_seed(rows: corgipile.Source, numbers: Numbers) -> None:
    orders = [numbers(CorgiPileDataset(rows, seed=seed)) for seed in (1, 1, 2, -(2**63))]
    assert orders[0] == orders[1]
    assert len({str(order) for order in orders}) == 3


def test_a_buffer_of_everything_shuffles_everything(rows: corgipile.Source, numbers: Numbers) -> None:
    order = np.array(flat(numbers(CorgiPileDataset(rows, buffer_size="100%", block_size=100, seed=3))))
    # the correlation of a random order with the natural one has a deviation of 1 / sqrt(1003)
    assert abs(np.corrcoef(order, np.arange(1003))[0, 1]) < 0.15
    assert (np.abs(np.diff(order)) < 10).mean() < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_size": "10 apples"}, "block_size: .* is not a size"),
        ({"buffer_size": 0}, "buffer_size: .* not greater than zero"),
        ({"buffer_size": "101%"}, "buffer_size: .* more than 100%"),
        ({"shuffle": "thorough"}, "shuffle: .* not one of corgipile"),
        ({"uneven_ranks": "sad"}, "uneven_ranks: .* not one of pad, drop, join"),
        ({"batch_size": 0}, "batch_size: 0 is not between 1 and"),
        ({"rank": 2, "world_size": 2}, "rank: 2 of world_size 2"),
        ({"rank": 1}, "rank and world_size: give both"),
        ({"lanes": 3, "rank": 0, "world_size": 2}, "lanes: 3 is not a multiple of the 2 ranks"),
        ({"tensors": "jax"}, "tensors: 'jax' is neither"),
    ],
)
def test_arguments_that_make_no_sense_are_named(rows: corgipile.Source, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CorgiPileDataset(rows, **options)


def test_sources_that_make_no_sense_are_refused(tmp_path) -> None:
    with pytest.raises(TypeError, match="source: list is neither a path nor made by"):
        CorgiPileDataset([1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="all must have the same length"):
        corgipile.arrays({"x": np.arange(3), "y": np.arange(4)})
    with pytest.raises(TypeError, match="column 'x', row 0: objects must be text or bytes, not dict"):
        corgipile.arrays({"x": [{}, {}]})
    with pytest.raises(TypeError, match="column 'x', row 1: objects must be bytes, as others are, not str"):
        corgipile.arrays({"x": np.array([b"a", "b"], object)})
    with pytest.raises(TypeError, match="column 'x': a row has one text, and not 2 of them"):
        corgipile.arrays({"x": [["a", "b"], ["c", "d"]]})
    with pytest.raises(ValueError, match="column 'x': its rows have different lengths"):
        corgipile.arrays({"x": [[1, 2], [3]]})
    with pytest.raises(ValueError, match=r"column 'x': its rows have no values: the array's shape is \(5, 0\)"):
        corgipile.arrays({"x": np.zeros((5, 0))})
    with pytest.raises(ValueError, match=r"column 'x', row 1: 'b\\ud800' is not valid Unicode text"):
        corgipile.arrays({"x": ["a", "b\ud800"]})
    with pytest.raises(TypeError, match="columns: 5 is not a name"):
        corgipile.arrays({5: [1, 2]})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="features: must not be empty"):
        corgipile.tfrecord(tmp_path / "x.tfrecord", features={})
    with pytest.raises(TypeError, match="column 'x': arrays of type complex128"):
        corgipile.arrays({"x": np.arange(3).astype(complex)})
    with pytest.raises(ValueError, match=r"dataset_path: .* ends with none of"):
        CorgiPileDataset(tmp_path / "x.unknown", tmp_path / "x.index")
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*none\.parquet'"):
        corgipile.parquet(tmp_path / "none.parquet")
    with pytest.raises(OSError, match="is neither a file nor a folder"):
        corgipile.parquet("/dev/null")


def test_days_are_arrays_as_they_were() -> None:
    days = np.array(["2024-02-29", "NaT", "1969-12-31"], "datetime64[D]")
    (batch,) = CorgiPileDataset(corgipile.arrays({"day": days}), shuffle="no_shuffle")
    np.testing.assert_array_equal(batch["day"], days)
    assert batch["day"].dtype == days.dtype


def test_without_a_size_of_batches_rows_come_alone(rows: corgipile.Source, numbers: Numbers) -> None:
    alone = CorgiPileDataset(rows, batch_size=None, seed=2)
    of_one = CorgiPileDataset(rows, batch_size=1, seed=2)
    given = list(alone)
    assert len(alone) == len(given) == 1003
    assert (given[0]["x"].shape, given[0]["number"].shape) == ((2,), ())
    assert [[row["number"]] for row in given] == numbers(of_one)
    alone.set_epoch(0)
    iterator = iter(alone)
    before = [next(iterator)["number"] for _ in range(700)]
    state = alone.state_dict()
    again = CorgiPileDataset(rows, batch_size=None, seed=2)
    again.load_state_dict(state)
    assert [*before, *(row["number"] for row in again)] == [row["number"] for row in given]
    with pytest.raises(ValueError, match="sample_transform: the data set gives rows"):
        corgipile.Loader(again, sample_transform=dict)


def test_no_rows_make_no_batches() -> None:
    ds = CorgiPileDataset(corgipile.arrays({"x": np.zeros((0, 3))}))
    assert (len(ds), list(ds)) == (0, [])


def test_bytes_are_a_size(rows: corgipile.Source) -> None:
    plan = CorgiPileDataset(rows, block_size="160B", buffer_size="4KiB").plan()
    # a row takes 16 bytes
    assert plan.blocks in range(95, 110)
    assert plan.buffers in range(3, 6)


def test_a_source_and_a_data_set_can_be_pickled(rows: corgipile.Source, numbers: Numbers) -> None:
    ds = CorgiPileDataset(rows, seed=9)
    again = pickle.loads(pickle.dumps(ds))
    ds.set_epoch(4)
    again.set_epoch(4)
    assert numbers(again) == numbers(ds)


def test_a_state_is_small_and_plain(rows: corgipile.Source) -> None:
    ds = CorgiPileDataset(rows, seed=2**63 - 1)
    state = ds.state_dict()
    assert len(json.dumps(state)) < 1024
    assert json.loads(json.dumps(state)) == state


def test_torch_is_not_imported_unless_it_is_used() -> None:
    code = """
import sys, numpy, corgipile
ds = corgipile.CorgiPileDataset(corgipile.arrays({"x": numpy.arange(10)}))
assert len(list(corgipile.Loader(ds))) == 1
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
