"""Copies in another order: all rows, made once, and read like any other file."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from loading_fixtures import Numbers, flat

import corgipile
from corgipile import CorgiPileDataset


def test_a_full_shuffle_has_all_rows_in_an_order_of_its_own(
    rows: corgipile.Source, numbers: Numbers, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    # so little memory that it takes several parts
    copy = corgipile.shuffle_once(rows, tmp_path, seed=3, memory=4096, progress=lambda *done: told.append(done))
    ds = CorgiPileDataset(copy, shuffle="no_shuffle")
    order = flat(numbers(ds))
    assert sorted(order) == list(range(1003))
    assert abs(np.corrcoef(order, np.arange(1003))[0, 1]) < 0.15
    assert all(done <= of == 2006 for done, of in told)
    for batch in ds:
        assert (batch["x"][:, 1] == 2 * batch["number"]).all()


@pytest.mark.parametrize("shuffle", ["shuffle_once", "corgi2"])
def test_a_copy_is_made_once_for_each_seed(
    rows: corgipile.Source, numbers: Numbers, shuffle: str, tmp_path: Path
) -> None:
    def epoch(seed: int) -> list[list[int]]:
        return numbers(CorgiPileDataset(rows, shuffle=shuffle, cache_dir=tmp_path, seed=seed, block_size=20))

    first = epoch(1)
    assert sorted(flat(first)) == list(range(1003))
    (copy,) = tmp_path.iterdir()
    made = copy.stat()
    assert epoch(1) == first
    assert copy.stat() == made or copy.stat().st_mtime_ns == made.st_mtime_ns
    assert epoch(2) != first
    assert len(list(tmp_path.iterdir())) == 2


def test_blocks_of_a_copy_for_corgi2_are_mixed(rows: corgipile.Source, numbers: Numbers, tmp_path: Path) -> None:
    copy = corgipile.corgi2(rows, tmp_path, block_size=20, buffer_size="20%")
    order = np.array(flat(numbers(CorgiPileDataset(copy, shuffle="no_shuffle"))))
    blocks_in_a_run = [len(set(order[start : start + 20] // 20)) for start in range(0, 1000, 20)]
    # ten blocks are in a buffer
    assert np.mean(blocks_in_a_run) > 6


def test_a_copy_needs_a_place(rows: corgipile.Source) -> None:
    with pytest.raises(ValueError, match="cache_dir: corgi2 needs a directory"):
        CorgiPileDataset(rows, shuffle="corgi2")


def test_a_copy_that_is_interrupted_is_not_there(rows: corgipile.Source, tmp_path: Path) -> None:
    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    big = corgipile.arrays({"number": np.arange(3_000_000)})
    with pytest.raises(KeyboardInterrupt):
        corgipile.shuffle_once(big, tmp_path, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_of_several_that_want_a_copy_one_makes_it(tmp_path: Path) -> None:
    rows = corgipile.arrays({"number": np.arange(500_000)})
    makers: set[int] = set()
    together = threading.Barrier(4)

    def copy(_number: int) -> corgipile.Source:
        # each has a lock of its own, as a process has
        together.wait()
        return corgipile.shuffle_once(rows, tmp_path, progress=lambda *_: makers.add(threading.get_ident()))

    with ThreadPoolExecutor(4) as threads:
        copies = list(threads.map(copy, range(4)))
    # of one and the same file
    assert len({source.fingerprint for source in copies}) == 1
    assert len(makers) <= 1
    assert len(list(tmp_path.iterdir())) == 1
