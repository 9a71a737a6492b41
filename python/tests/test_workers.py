"""Workers: forked, spawned and persistent ones, their transforms and their errors."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from conftest import FULL
from loading_fixtures import Numbers, flat

import corgipile
from corgipile import CorgiPileDataset, Loader

pytestmark = pytest.mark.torch
if find_spec("torch"):
    import torch
    from torch.utils.data import DataLoader


def doubled(batch: dict) -> dict:
    return {**batch, "doubled": batch["number"] * 2}


def refuses(batch: dict) -> dict:
    raise corgipile.SourceError("file x, byte 7: bad")


def sample(row: dict) -> tuple:
    return row["x"].sum(), str(row["number"]), row["x"]


@pytest.mark.parametrize(("context", "persistent"), [("fork", False), ("fork", True), ("spawn", True)])
def test_an_order_is_the_same_for_any_number_of_workers(
    rows: corgipile.Source, numbers: Numbers, context: str, persistent: bool
) -> None:
    make = lambda: CorgiPileDataset(rows, lanes=4, batch_size=30, tensors="torch")  # noqa: E731
    ds = make()
    expected = [numbers(ds) for _ in range(3)]
    for count in (1, 2, 4) if context == "fork" and FULL else (2,):
        options = {"num_workers": count, "multiprocessing_context": context, "persistent_workers": persistent}
        for plain in (True, False):
            ds = make()
            loader = DataLoader(ds, batch_size=None, **options) if plain else Loader(ds, **options)
            assert len(loader) == len(expected[0])
            # one epoch after the other, and the one that is asked for
            got = [numbers(loader), numbers(loader)]
            ds.set_epoch(0)
            got += [numbers(loader), numbers(loader), numbers(loader)]
            assert got == [expected[0], expected[1], expected[0], expected[1], expected[2]]


def test_spawned_workers_of_one_epoch_read_the_same(rows: corgipile.Source, numbers: Numbers) -> None:
    ds = CorgiPileDataset(rows, lanes=2)
    expected = numbers(ds)
    ds.set_epoch(0)
    assert numbers(Loader(ds, num_workers=1, multiprocessing_context="spawn")) == expected


def test_each_row_comes_once_from_workers_without_lanes(rows: corgipile.Source, numbers: Numbers) -> None:
    for workers in (1, 3):
        ds = CorgiPileDataset(rows, batch_size=30, tensors="torch")
        got = numbers(DataLoader(ds, batch_size=None, num_workers=workers))
        assert sorted(flat(got)) == list(range(1003))
        assert len(got) == len(ds)


def test_workers_that_have_no_lane_are_told_of(rows: corgipile.Source, numbers: Numbers) -> None:
    ds = CorgiPileDataset(rows, lanes=4)
    expected = numbers(ds)
    with pytest.warns(UserWarning, match="2 of 3 workers have something to do"):
        loader = Loader(ds, num_workers=3)
    ds.set_epoch(0)
    assert numbers(loader) == expected


def test_tensors_share_the_memory_of_arrays(rows: corgipile.Source) -> None:
    batch = next(iter(CorgiPileDataset(rows, tensors="torch")))
    assert {name: values.dtype for name, values in batch.items()} == {"x": torch.float32, "number": torch.int64}
    array = next(iter(CorgiPileDataset(rows)))["x"]
    from corgipile.dataset import to_torch

    tensor = to_torch({"x": array})["x"]
    assert tensor.data_ptr() == array.ctypes.data


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_and_samples_are_transformed(rows: corgipile.Source, workers: int) -> None:
    ds = CorgiPileDataset(rows, lanes=2, batch_size=100)
    for batch in Loader(ds, transform=doubled, num_workers=workers):
        assert batch["doubled"].dtype == batch["number"].dtype
        assert (batch["doubled"] == 2 * batch["number"]).all()
        assert type(batch["x"]).__module__ == "numpy"
    sums, names, both = next(iter(Loader(ds, sample_transform=sample, num_workers=workers)))
    assert sums.shape == (100,)
    assert both.shape == (100, 2)
    assert (sums == both.sum(axis=1)).all()
    assert all(isinstance(name, str) for name in names)
    sums, _, both = next(iter(Loader(ds, sample_transform=sample, num_workers=workers, tensors="torch")))
    assert isinstance(both, torch.Tensor)
    assert sums.shape == (100,)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_error_of_a_worker_is_the_error_of_the_loader(rows: corgipile.Source, workers: int) -> None:
    with pytest.raises(corgipile.SourceError, match="file x, byte 7: bad"):
        list(Loader(CorgiPileDataset(rows), transform=refuses, num_workers=workers))


def test_what_was_read_by_workers_has_no_state_in_the_data_set(rows: corgipile.Source) -> None:
    ds = CorgiPileDataset(rows, tensors="torch")
    list(DataLoader(ds, batch_size=None, num_workers=1))
    with pytest.raises(RuntimeError, match=r"use corgipile\.Loader"):
        ds.state_dict()


def test_an_iteration_that_is_left_leaves_nothing_behind(rows: corgipile.Source, numbers: Numbers) -> None:
    import threading
    import time
    from pathlib import Path

    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    ds = CorgiPileDataset(rows, batch_size=10)
    list(ds)
    before = threads()
    for _ in range(20):
        next(iter(ds))
    deadline = time.monotonic() + 10
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before
    assert threading.active_count() >= 1
