"""The call of CorgiPile's paper, section 6: `CorgiPileDataset(dataset_path, block_index, ...)` inside a DataLoader, by
one process and by several, over a TFRecord file with an index of the authors' tools or of ours."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from loading_fixtures import LEAVE_TOGETHER
from test_sources import example, record

import corgipile
from corgipile import CorgiPileDataset

pytestmark = pytest.mark.torch
if find_spec("torch"):
    import torch

ROWS = 1000


@pytest.fixture(scope="module")
def dataset_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records with their numbers, in order."""
    path = tmp_path_factory.mktemp("paper") / "train.tfrecord"
    path.write_bytes(b"".join(record(example(number)) for number in range(ROWS)))
    return path


def ends(path: Path) -> Iterator[int]:
    """Where records end, found as tfrecord2idx does it, which the authors use: by the lengths before the records."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        at += struct.unpack_from("<Q", data, at)[0] + 16
        yield at


def lines_of(all_ends: list[int]) -> list[str]:
    """What tfrecord2idx writes: offset and length."""
    return [f"{start} {end - start}\n" for start, end in zip([0, *all_ends], all_ends)]


INDEXES = ["record after record", "blocks of 70 records", "corgipile index"]


@pytest.fixture(params=INDEXES)
def block_index(request: pytest.FixtureRequest, dataset_path: Path, tmp_path: Path) -> Path:
    """The index as the authors have it, one of blocks as the paper has it, and ours."""
    index = tmp_path / "train.index"
    all_ends = list(ends(dataset_path))
    if request.param == "record after record":
        index.write_text("".join(lines_of(all_ends)))
    elif request.param == "blocks of 70 records":
        index.write_text("".join(lines_of([*all_ends[69::70], all_ends[-1]])))
    else:
        command = [sys.executable, "-m", "corgipile", "index", "--directory", tmp_path, dataset_path]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        (tmp_path / "train.tfrecord.cpindex").rename(index)
    return index


@pytest.mark.parametrize("workers", [0, 2])
def test_the_call_works_as_it_is_written(dataset_path: Path, block_index: Path, workers: int) -> None:
    train_dataset = CorgiPileDataset(str(dataset_path), str(block_index), batch_size=None, block_size=50, seed=5)
    train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=128, num_workers=workers)
    orders = []
    for epoch in range(2):
        train_dataset.set_epoch(epoch)
        batches = list(train_loader)
        assert all(batch["x"].shape == (len(batch["id"]), 2) for batch in batches)
        assert sum(len(batch["id"]) == 128 for batch in batches) >= 6  # each worker has a last one of its own
        orders.append(torch.cat([batch["id"] for batch in batches]).tolist())
        assert sorted(orders[-1]) == list(range(ROWS))
    assert orders[0] != orders[1]
    # batches that are made where rows are read are of the same rows in the same order
    ready = CorgiPileDataset(dataset_path, block_index, batch_size=128, block_size=50, seed=5)
    if not workers:
        assert [number for batch in ready for number in batch["id"].tolist()] == orders[0]


def test_every_index_gives_the_same_rows(dataset_path: Path, block_index: Path) -> None:
    with_index = CorgiPileDataset(dataset_path, block_index, seed=1)
    without = CorgiPileDataset(dataset_path, seed=1)
    assert with_index.plan().fingerprint == without.plan().fingerprint
    assert [batch["id"].tolist() for batch in with_index] == [batch["id"].tolist() for batch in without]


MULTI_PROCESS = (
    LEAVE_TOGETHER
    + """
import json, sys
import torch, torch.distributed as dist
from corgipile import CorgiPileDataset

def main(rank, dataset_path, block_index, meeting):
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
    train_dataset = CorgiPileDataset(dataset_path, block_index, batch_size=None, block_size=50, buffer_size=200)
    train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=32)
    seen = []
    for epoch in range(3):
        train_dataset.set_epoch(epoch)
        numbers = []
        for batch in train_loader:
            dist.all_reduce(batch["x"].sum())  # as gradients are: it hangs if the processes have unequal batches
            numbers += batch["id"].tolist()
        seen.append(numbers)
    print(json.dumps(seen))
    leave_together(meeting, rank, 2)

main(int(sys.argv[1]), *sys.argv[2:])
"""
)


@pytest.mark.parametrize(
    "block_index", [INDEXES[0], *(pytest.param(name, marks=pytest.mark.full) for name in INDEXES[1:])], indirect=True
)
def test_several_processes_share_the_blocks_anew_in_each_epoch(
    dataset_path: Path, block_index: Path, tmp_path: Path
) -> None:
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    arguments = [str(dataset_path), str(block_index), str(tmp_path / "meeting")]
    running = [
        subprocess.Popen([sys.executable, "-c", MULTI_PROCESS, str(rank), *arguments], stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    of_rank = [json.loads(process.communicate(timeout=300)[0]) for process in running]
    blocks = []
    for epoch in range(3):
        seen = [of_rank[rank][epoch] for rank in range(2)]
        assert sorted(seen[0] + seen[1]) == list(range(ROWS))
        # each process has BN/PN whole blocks, two in a buffer of BS/PN
        blocks.append([{number // 50 for number in numbers} for numbers in seen])
        assert [len(numbers) for numbers in seen] == [500, 500]
        assert [len(of) for of in blocks[-1]] == [10, 10]
        assert all(len({number // 50 for number in numbers[:100]}) == 2 for numbers in seen)
    assert len({frozenset(of[0]) for of in blocks}) == 3


def test_an_index_that_is_not_of_this_file_is_refused(dataset_path: Path, block_index: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="index: there is no such file"):
        CorgiPileDataset(dataset_path, tmp_path / "none.index")
    other = tmp_path / "other.tfrecord"
    other.write_bytes(dataset_path.read_bytes() + record(example(7)))
    with pytest.raises(ValueError, match=r"train\.index.*of .*other\.tfrecord as it is now"):
        CorgiPileDataset(other, block_index)
    whole = block_index.read_bytes()
    for length in (len(whole) - 3, len(whole) // 2, 30, 0):
        block_index.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"train\.index.*python -m corgipile index"):
            CorgiPileDataset(dataset_path, block_index)
    block_index.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"train\.index, line 1: is not text"):
        CorgiPileDataset(dataset_path, block_index)


def test_an_index_of_other_records_of_the_same_bytes_is_refused(tmp_path: Path) -> None:
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.index"
    path.write_bytes(b"".join(record(example(number)) for number in range(100)))
    all_ends = list(ends(path))
    # the first record is the same, two others are taken for one
    index.write_text("".join(lines_of([*all_ends[:50], *all_ends[51:]])))
    with pytest.raises(corgipile.SourceError, match="more than the 1 records that the index knows here"):
        list(CorgiPileDataset(path, index))
    index.write_text("".join(lines_of([all_ends[9], all_ends[49] + 1, all_ends[-1]])))
    with pytest.raises(ValueError, match=r"a\.index, line 2: ends within a record"):
        CorgiPileDataset(path, index)
