"""`corgipile.torch`: what PyTorch's users write, and what they may expect of it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from loading_fixtures import Numbers, flat

import corgipile

pytestmark = pytest.mark.torch
if find_spec("torch"):
    import torch
    from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, default_collate

    from corgipile.torch import CorgiPileDataset, Row


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create|Length of IterableDataset")
        yield


@pytest.mark.parametrize(
    "code",
    [
        "import torch, corgipile; ds = corgipile.CorgiPileDataset(source())",
        "import corgipile, torch; ds = corgipile.CorgiPileDataset(source())",
        "import corgipile; ds = corgipile.CorgiPileDataset(source()); import torch",
        "from corgipile.torch import CorgiPileDataset; ds = CorgiPileDataset(source(), batch_size=64)",
        "import corgipile; ds = corgipile.torch.CorgiPileDataset(source(), batch_size=64)",
    ],
)
def test_loaders_know_it_whatever_is_imported_first(code: str) -> None:
    program = f"""
import numpy as np
def source():
    module = __import__("corgipile")
    return module.arrays({{"number": np.arange(200)}})
{code}
from torch.utils.data import DataLoader, IterableDataset
assert isinstance(ds, IterableDataset)
print(sum(len(batch["number"]) for batch in DataLoader(ds, batch_size=None, num_workers=1)))
"""
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("200\n", 0), ran.stderr


def test_a_data_set_is_known_without_torch_too() -> None:
    code = """
import sys, pickle, numpy, corgipile
ds = corgipile.CorgiPileDataset(corgipile.arrays({"x": numpy.arange(10)}), batch_size=3)
same = pickle.loads(pickle.dumps(ds))
assert type(same) is type(ds) is ds.__class__ is corgipile.CorgiPileDataset
assert [b["x"].tolist() for b in same] == [b["x"].tolist() for b in ds]
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_s_batch_size_is_of_rows(rows: corgipile.Source, workers: int) -> None:
    ds = CorgiPileDataset(rows, seed=1)
    assert len(ds) == 1003
    batches = list(DataLoader(ds, batch_size=32, num_workers=workers))
    assert {type(values) for batch in batches for values in batch.values()} == {torch.Tensor}
    assert {batch["number"].dtype for batch in batches} == {torch.int64}
    assert sum(len(batch["number"]) == 32 for batch in batches) >= 1003 // 32 - workers
    for batch in batches:
        assert torch.equal(batch["x"][:, 0].long(), batch["number"]) and batch["x"].shape[1] == 2
    assert sorted(torch.cat([batch["number"] for batch in batches]).tolist()) == list(range(1003))
    last = DataLoader(ds, batch_size=32, num_workers=workers, drop_last=True)
    assert {len(batch["number"]) for batch in last} == {32}


@pytest.mark.parametrize("workers", [0, 2])
def test_without_a_batch_size_of_the_loader_the_data_set_has_it(rows: corgipile.Source, workers: int) -> None:
    ds = CorgiPileDataset(rows, batch_size=32, seed=1)
    batches = list(DataLoader(ds, batch_size=None, num_workers=workers))
    assert len(batches) == len(ds) == 32
    assert sorted(torch.cat([batch["number"] for batch in batches]).tolist()) == list(range(1003))
    single = list(DataLoader(CorgiPileDataset(rows, seed=1), batch_size=None, num_workers=workers))
    assert len(single) == 1003 and single[0]["x"].shape == (2,)
    assert sorted(int(row["number"]) for row in single) == list(range(1003))


def test_rows_and_batches_come_in_one_order(rows: corgipile.Source, numbers: Numbers) -> None:
    of_rows = DataLoader(CorgiPileDataset(rows, seed=5), batch_size=50)
    of_batches = DataLoader(CorgiPileDataset(rows, seed=5, batch_size=50), batch_size=None)
    assert numbers(of_rows) == numbers(of_batches)


def test_batches_are_not_put_into_batches(rows: corgipile.Source) -> None:
    for ds in (CorgiPileDataset(rows, batch_size=10), CorgiPileDataset(rows, batch_size=10, tensors="numpy")):
        with pytest.raises(ValueError, match=r"DataLoader\(ds, batch_size=None\) takes them as they are"):
            next(iter(DataLoader(ds, batch_size=32)))


def test_a_row_is_a_mapping_that_others_may_collate(rows: corgipile.Source) -> None:
    ds = CorgiPileDataset(rows, seed=2)
    row = next(iter(ds))
    assert set(row) == {"x", "number"} and len(row) == 2
    assert {**row}.keys() == dict(row).keys() and torch.equal(dict(row)["x"], row["x"])
    assert torch.equal(pickle.loads(pickle.dumps(row))["x"], row["x"]) and len(pickle.dumps(row)) < 2000
    assert repr(row).startswith("Row({'x': tensor(")
    with pytest.raises(TypeError):
        row["x"] = 1  # pyright: ignore[reportIndexIssue]
    listed = DataLoader(ds, batch_size=7, collate_fn=lambda rows: [int(row["number"]) for row in rows])
    assert sorted(flat(listed)) == list(range(1003))

    class Doubled(IterableDataset):
        def __iter__(self) -> Any:
            for row in ds:
                yield {**row, "x": row["x"] * 2}

    batch = next(iter(DataLoader(Doubled(), batch_size=9)))
    assert torch.equal(batch["x"][:, 0].long(), batch["number"] * 2)


def test_rows_in_any_order_are_put_together(rows: corgipile.Source) -> None:
    of = list(CorgiPileDataset(rows, tensors="numpy"))
    chosen = [of[place] for place in np.random.default_rng(0).permutation(1003)[:300]]
    assert all(type(row) is Row for row in chosen)
    batch = default_collate(chosen)
    assert batch["number"].tolist() == [int(row["number"]) for row in chosen]
    assert torch.equal(batch["x"][:, 1].long(), 2 * batch["number"])


def test_texts_and_lists_are_collated_as_torch_does() -> None:
    names = np.array([f"row {number}" for number in range(300)], object)
    source = corgipile.arrays({"name": names, "small": np.arange(300).astype(np.uint16), "on": np.arange(300) % 2 == 0})
    batches = list(DataLoader(CorgiPileDataset(source), batch_size=100))
    for batch in batches:
        assert batch["name"] == [f"row {number}" for number in batch["small"].tolist()]
        assert (batch["small"].dtype, batch["on"].dtype) == (torch.int32, torch.bool)


class Items:
    """A map-style data set whose items are tuples."""

    def __len__(self) -> int:
        return 300

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        return torch.full((2,), float(number)), number


def test_items_of_a_map_style_data_set_are_collated_by_the_loader() -> None:
    ds = CorgiPileDataset(corgipile.map_style(Items()))
    batches = list(DataLoader(ds, batch_size=30))
    assert all(x.shape == (30, 2) and torch.equal(x[:, 1].long(), y) for x, y in batches)
    assert sorted(torch.cat([y for _, y in batches]).tolist()) == list(range(300))
    resumed = iter(ds)
    first = [next(resumed)[1] for _ in range(150)]
    state = ds.state_dict()
    again = CorgiPileDataset(corgipile.map_style(Items()))
    again.load_state_dict(state)
    assert sorted(first + [item[1] for item in again]) == list(range(300))


# --- ranks, as DistributedSampler has them


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("rows_in_all", [0, 1, 100, 1003, 1024])
def test_ranks_have_as_many_rows_as_those_of_distributed_sampler(rows_in_all: int, drop_last: bool) -> None:
    source = corgipile.arrays({"number": np.arange(rows_in_all)})
    for ranks in (1, 2, 3):
        seen: list[int] = []
        for rank in range(ranks):
            ds = CorgiPileDataset(source, num_replicas=ranks, rank=rank, seed=4, drop_last=drop_last)
            got = [int(row["number"]) for row in ds]
            if rows_in_all >= ranks:
                of: Any = range(rows_in_all)
                theirs: Any = DistributedSampler(of, ranks, rank, seed=4, drop_last=drop_last)
                assert len(got) == len(theirs)
            assert len(ds) == len(got)
            seen += got
        if drop_last:
            assert len(set(seen)) == len(seen) > rows_in_all - ranks or not rows_in_all
        else:
            assert set(seen) == set(range(rows_in_all)) and len(seen) < rows_in_all + ranks


def test_epochs_and_ranks_are_set_as_with_distributed_sampler(rows: corgipile.Source) -> None:
    ds = CorgiPileDataset(rows, num_replicas=2, rank=1)
    orders = []
    for epoch in (0, 1, 0):
        ds.set_epoch(epoch)
        orders.append([int(row["number"]) for row in ds])
    assert orders[0] == orders[2] != orders[1]
    # DistributedSampler also takes one of both
    assert CorgiPileDataset(rows, num_replicas=2).rank_and_world_size() == (0, 2)
    assert CorgiPileDataset(rows, rank=0).rank_and_world_size() == (0, 1)
    with pytest.raises(ValueError, match="rank: 1 of world_size 1"):
        CorgiPileDataset(rows, rank=1)
    with pytest.raises(TypeError, match="num_replicas: is the same as world_size"):
        CorgiPileDataset(rows, rank=0, num_replicas=2, world_size=2)


# --- resumption


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_go_on_from_any_of_them(rows: corgipile.Source, workers: int, numbers: Numbers) -> None:
    """By the package's loader, of which workers give rows, too."""
    make = lambda: corgipile.Loader(CorgiPileDataset(rows, lanes=2, seed=3), num_workers=workers)  # noqa: E731
    whole = [int(row["number"]) for row in make()]
    assert sorted(whole) == list(range(1003))
    for at in (0, 1, 127, 128, 129, 700, 1002, 1003):
        stopped = make()
        iterator = iter(stopped)
        assert [int(next(iterator)["number"]) for _ in range(at)] == whole[:at]
        state = json.loads(json.dumps(stopped.state_dict()))
        del iterator
        resumed = make()
        resumed.load_state_dict(state)
        left = [int(row["number"]) for row in resumed]
        assert left == (whole[at:] if at < 1003 else left) and len(left) in (1003 - at, 1003)
        # with another number of workers, too
        alone = CorgiPileDataset(rows, lanes=2, seed=3)
        alone.load_state_dict(state)
        assert [int(row["number"]) for row in alone] == left


def test_other_ranks_go_on_between_the_rows_that_are_read_at_once(rows: corgipile.Source) -> None:
    make = lambda rank, ranks: CorgiPileDataset(rows, lanes=2, rank=rank, num_replicas=ranks)  # noqa: E731
    for at in (100, 130):
        two = [make(rank, 2) for rank in range(2)]
        seen: list[int] = []
        for ds in two:
            iterator = iter(ds)
            seen += [int(next(iterator)["number"]) for _ in range(at)]
        state, one = two[0].state_dict(), make(0, 1)
        if at == 100:
            one.load_state_dict(state)
            left = [int(row["number"]) for row in one]
            assert set(seen + left) == set(range(1003)) and len(seen + left) <= 1004
        else:
            with pytest.raises(ValueError, match="world_size: the state is that of 2 ranks within rows"):
                one.load_state_dict(state)


@pytest.mark.parametrize("batch_size", [None, 20])
@pytest.mark.parametrize(("workers", "lanes"), [(0, None), (2, None), (2, 4), (3, 3)])
def test_torchdata_s_loader_resumes_exactly(
    rows: corgipile.Source, batch_size: int | None, workers: int, lanes: int | None
) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def make() -> Any:
        ds = CorgiPileDataset(rows, batch_size=batch_size, lanes=lanes, seed=7)
        return stateful(ds, batch_size=20 if batch_size is None else None, num_workers=workers)

    def read(batches: Any) -> list[list[int]]:
        return [batch["number"].tolist() for batch in batches]

    whole = make()
    first, second = read(whole), read(whole)
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(1003)) and first != second
    for at in (0, 1, 2, 7, 25, len(first) - 1, len(first)):
        stopped = make()
        iterator = iter(stopped)
        assert [next(iterator)["number"].tolist() for _ in range(at)] == first[:at]
        state = pickle.loads(pickle.dumps(stopped.state_dict()))
        del iterator
        resumed = make()
        resumed.load_state_dict(state)
        # that the epoch is over is known to the one that asks for a batch behind its last
        assert read(resumed) == first[at:], at
        assert read(resumed) == second, at


def test_the_state_of_a_worker_is_not_for_another(rows: corgipile.Source) -> None:
    ds = CorgiPileDataset(rows)
    state = {**ds.state_dict(), "worker": 0, "workers": 2}
    with pytest.raises(ValueError, match="state: is that of worker 0 of 2, here is 0 of 0"):
        ds.load_state_dict(state)


# --- workers


def big(batch: dict[str, Any]) -> dict[str, Any]:
    """Something of everything that a transform may return."""
    return {
        **batch,
        "nothing": torch.empty(0),
        "scalar": batch["number"].sum(),
        "half": batch["x"].to(torch.bfloat16),
        "day": np.array(["2024-01-01"], "datetime64[D]"),
        "text": [f"{int(number)}" for number in batch["number"]],
        "array": batch["number"].numpy() * 3,
        "big": np.zeros((40, 1000), np.float32),
    }


@pytest.mark.parametrize("persistent", [False, True])
def test_what_workers_send_at_once_is_what_each_batch_was(rows: corgipile.Source, persistent: bool) -> None:
    def read(workers: int) -> list[list[Any]]:
        ds = CorgiPileDataset(rows, batch_size=5, lanes=2)
        options: dict[str, Any] = {"persistent_workers": persistent} if workers else {}
        loader = corgipile.Loader(ds, transform=big, num_workers=workers, **options)
        return [list(loader) for _ in range(2)]

    for ours, expected in zip(read(2), read(0), strict=True):
        for one, other in zip(ours, expected, strict=True):
            assert one.keys() == other.keys()
            for name, value in other.items():
                assert type(one[name]) is type(value), name
                if isinstance(value, torch.Tensor):
                    assert one[name].dtype == value.dtype and torch.equal(one[name], value)
                elif isinstance(value, np.ndarray):
                    assert one[name].dtype == value.dtype and (one[name] == value).all()
                else:
                    assert one[name] == value
            one["x"] += 1  # it belongs to the batch
        assert all(torch.equal(one["x"], other["x"] + 1) for one, other in zip(ours, expected, strict=True))


def fails_late(batch: dict[str, Any]) -> dict[str, Any]:
    if 400 in batch["number"].tolist():
        raise corgipile.SourceError("row 400")
    return batch


def test_batches_before_an_error_in_a_worker_come_before_it(rows: corgipile.Source) -> None:
    ds = CorgiPileDataset(rows, batch_size=10, shuffle="no_shuffle")
    seen = []
    with pytest.raises(corgipile.SourceError, match="row 400"):
        for batch in corgipile.Loader(ds, transform=fails_late, num_workers=1):
            seen += batch["number"].tolist()
    assert seen == list(range(400))


def test_batches_of_workers_are_mixed_by_a_buffer_of_the_same_size() -> None:
    def purity(workers: int, lanes: int | None = None) -> float:
        """The mean share of the commonest label in a batch."""
        source = corgipile.arrays({"number": np.arange(4000) // 400})
        shares = []
        for seed in range(4):
            ds = corgipile.CorgiPileDataset(
                source, block_size=20, buffer_size="10%", batch_size=20, seed=seed, lanes=lanes
            )
            batches = corgipile.Loader(ds, num_workers=workers)
            shares += [np.bincount(batch["number"]).max() / len(batch["number"]) for batch in batches]
        return float(np.mean(shares))

    alone = purity(0)
    assert purity(2) < 1.22 * alone and purity(3) < 1.32 * alone
    # what is documented of lanes, which share the buffer
    assert purity(0, 4) > 1.5 * alone


def test_names_of_orders_are_those_of_sql(rows: corgipile.Source) -> None:
    everything = CorgiPileDataset(rows, shuffle="epoch_shuffle", seed=1)
    assert everything.plan().buffers == 1
    for shuffle in ("no_shuffle", "sliding_window", "block_only", "corgipile"):
        assert len(list(CorgiPileDataset(rows, shuffle=shuffle))) == 1003
    with pytest.raises(ValueError, match="shuffle: 'mrs' gives some rows twice and others never"):
        CorgiPileDataset(rows, shuffle="mrs")
