"""Resumption: what is left of an epoch comes exactly as it would have, from any batch on."""

from __future__ import annotations

import json
import os
import random
import time
from typing import Any

import pytest
from loading_fixtures import Numbers, flat

import corgipile
from corgipile import CorgiPileDataset, Loader


@pytest.mark.parametrize("shuffle", ["corgipile", "sliding_window"])
@pytest.mark.parametrize("lanes", [None, 2, 4])
def test_an_epoch_goes_on_from_any_batch(
    rows: corgipile.Source, numbers: Numbers, shuffle: str, lanes: int | None
) -> None:
    make = lambda: CorgiPileDataset(rows, shuffle=shuffle, lanes=lanes, batch_size=17, block_size=7, seed=11)  # noqa: E731
    whole = make()
    whole.set_epoch(2)
    expected, following = numbers(whole), numbers(whole)
    for at in random.Random(4).sample(range(len(expected) + 1), 12):
        interrupted = make()
        interrupted.set_epoch(2)
        iterator = iter(interrupted)
        for _ in range(at):
            next(iterator)
        state = json.loads(json.dumps(interrupted.state_dict()))
        del iterator
        resumed = make()
        resumed.load_state_dict(state)
        # as a loop over epochs does
        resumed.set_epoch(2)
        assert numbers(resumed) == expected[at:]
        assert numbers(resumed) == following


def test_the_state_of_an_epoch_that_is_over_is_the_beginning_of_the_next(
    rows: corgipile.Source, numbers: Numbers
) -> None:
    ds = CorgiPileDataset(rows)
    first, second = numbers(ds), numbers(ds)
    ds.set_epoch(0)
    assert numbers(ds) == first
    resumed = CorgiPileDataset(rows)
    resumed.load_state_dict(ds.state_dict())
    assert numbers(resumed) == second


@pytest.mark.parametrize("last", ["pad", "drop", "join"])
def test_other_numbers_of_ranks_go_on_with_exactly_what_was_left(
    rows: corgipile.Source, numbers: Numbers, last: str
) -> None:
    def sets(ranks: int) -> list[CorgiPileDataset]:
        options: dict[str, Any] = {"lanes": 12, "batch_size": 10, "uneven_ranks": last, "world_size": ranks}
        return [CorgiPileDataset(rows, rank=rank, **options) for rank in range(ranks)]

    # by rank, of an epoch that no one interrupts
    whole = {ranks: [numbers(ds) for ds in sets(ranks)] for ranks in (1, 2, 3, 4)}
    for steps in range(len(whole[2][0]) + 1):
        two = sets(2)
        states = []
        for ds in two:
            iterator = iter(ds)
            for _ in range(steps):
                next(iterator)
            states.append(ds.state_dict())
        if steps == len(whole[2][0]):
            # unless some batch is asked for that is not there, no one knows that the epoch is over
            continue
        # it does not matter whose state it is
        assert states[0] == states[1]
        for ranks in (1, 2, 3, 4):
            done = 2 * steps
            resumed = sets(ranks)
            if done % ranks:
                with pytest.raises(
                    ValueError, match=f"world_size: the state is that of {done} batches.* {ranks} ranks"
                ):
                    resumed[0].load_state_dict(states[0])
                continue
            for ds in resumed:
                ds.load_state_dict(states[0])
            left = [numbers(ds) for ds in resumed]
            assert left == [batches[done // ranks :] for batches in whole[ranks]]
            seen = [row for batches in whole[2] for batch in batches[:steps] for row in batch]
            all_rows = sorted(seen + [row for batches in left for batch in batches for row in batch])
            more = len(all_rows) - 1003
            # the last rows of either number of ranks
            most = 2 - 1 + ranks - 1
            assert {"pad": 0 <= more <= most, "drop": -most <= more <= 0, "join": more == 0}[last]
            assert len(set(all_rows)) == min(1003, 1003 + more)


def test_ranks_that_cannot_share_the_lanes_are_refused_and_told_why(rows: corgipile.Source) -> None:
    make = lambda ranks, lanes: CorgiPileDataset(rows, lanes=lanes, rank=0, world_size=ranks)  # noqa: E731
    state = make(2, 4).state_dict()
    with pytest.raises(ValueError, match="lanes: 4 is not a multiple of the 3 ranks"):
        make(3, 4)
    with pytest.raises(ValueError, match="world_size: the state is that of 4 lanes, which 3 ranks cannot share"):
        make(3, None).load_state_dict(state)
    with pytest.raises(ValueError, match="lanes: the state has 4, the data set 6"):
        make(3, 6).load_state_dict(state)


class Slow:
    """A map-style data set that counts what it was asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, number: int) -> dict[str, int]:
        self.asked += 1
        time.sleep(0.0005)
        return {"number": number}


@pytest.mark.parametrize("lanes", [1, 4])
def test_to_go_on_a_buffer_at_most_is_read(lanes: int, numbers: Numbers) -> None:
    make = lambda data: CorgiPileDataset(  # noqa: E731
        corgipile.map_style(data), batch_size=20, block_size=10, buffer_size=200, lanes=lanes, seed=5
    )
    expected = numbers(make(Slow()))
    for at in [0, 1, 9, 10, 24, 33, 48]:
        resumed = make(data := Slow())
        state = make(Slow()).state_at((0, at, 0))
        resumed.load_state_dict(state)
        batches = iter(resumed)
        assert next(batches)["number"].tolist() == expected[at]
        # the thread goes on while a batch is handed out
        assert data.asked <= 200 + 40
        assert numbers(batches) == expected[at + 1 :]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("seed", {"seed": 2}),
        ("batch_size", {"batch_size": 10}),
        ("shuffle", {"shuffle": "no_shuffle"}),
        ("uneven_ranks", {"uneven_ranks": "drop"}),
        ("fingerprint", {"block_size": 3}),
        ("lanes", {"lanes": 7}),
    ],
)
def test_a_state_of_other_choices_is_refused(rows: corgipile.Source, name: str, options: dict) -> None:
    state = CorgiPileDataset(rows).state_dict()
    with pytest.raises(ValueError, match=f"^{name}: "):
        CorgiPileDataset(rows, **options).load_state_dict(state)


def test_a_state_of_another_source_or_version_is_refused(rows: corgipile.Source) -> None:
    import numpy as np

    state = CorgiPileDataset(rows).state_dict()
    other = CorgiPileDataset(corgipile.arrays({"x": np.arange(1003)}))
    with pytest.raises(ValueError, match="fingerprint: the state is that of another source"):
        other.load_state_dict(state)
    with pytest.raises(ValueError, match="version 2 is not known"):
        CorgiPileDataset(rows).load_state_dict({**state, "version": 2})


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_a_loader_counts_what_it_gave_out_not_what_workers_read_ahead(
    rows: corgipile.Source, numbers: Numbers, workers: int
) -> None:
    pytest.importorskip("torch")
    make = lambda: Loader(CorgiPileDataset(rows, lanes=4, batch_size=20), num_workers=workers)  # noqa: E731
    expected = numbers(make())
    iterator = iter(loader := make())
    for _ in range(7):
        next(iterator)
    resumed = make()
    resumed.load_state_dict(loader.state_dict())
    assert loader.state_dict()["batches"] == 7
    assert numbers(resumed) == expected[7:]


def test_a_forked_process_may_let_go_of_what_its_parent_iterates(rows: corgipile.Source, numbers: Numbers) -> None:
    """Threads of its own have the memory of its parent's by then."""
    make = lambda: iter(CorgiPileDataset(rows, lanes=4, batch_size=20))  # noqa: E731
    inherited = [make() for _ in range(4)]
    for iterator in inherited:
        next(iterator)
    child = os.fork()
    if child == 0:
        try:
            mine = make()
            got = numbers([next(mine)])
            del iterator
            inherited.clear()
            os._exit(len(flat(got + numbers(mine))) != 1003)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_who_goes_on_reads_a_buffer_again_at_most() -> None:
    """However far the epoch has come; and the state is small."""

    class Items:
        asked = 0

        def __len__(self) -> int:
            return 20_000

        def __getitem__(self, i: int) -> int:
            self.asked += 1
            return i

    buffer = 1000
    make = lambda items: CorgiPileDataset(  # noqa: E731
        corgipile.map_style(items), batch_size=100, block_size=50, buffer_size=buffer
    )
    ds = make(Items())
    states = [ds.state_dict() for _ in ds]
    assert len(states) == 200
    assert max(len(json.dumps(state)) for state in states) < 1000
    for place in (0, 3, 57, 128, 190):
        items = Items()
        resumed = make(items)
        resumed.load_state_dict(states[place])
        batches = iter(resumed)
        next(batches)
        # at the end of a buffer the two behind it may be read ahead by now
        assert items.asked <= 3 * buffer, f"after {place + 1} batches"
        del batches
