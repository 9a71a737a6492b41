"""Resumption: what is left of an epoch comes exactly as it would have, from any batch on."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from loading_fixtures import Numbers

import corgipile
from corgipile import CorgiPileDataset, Loader

HERE = Path(__file__).parent


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


def test_a_state_is_for_any_number_of_ranks_that_share_the_lanes(rows: corgipile.Source, numbers: Numbers) -> None:
    make = lambda rank, of: CorgiPileDataset(rows, lanes=4, batch_size=10, rank=rank, world_size=of)  # noqa: E731
    expected = numbers(make(0, 1))
    iterator = iter(two := make(0, 2))
    for _ in range(6):
        next(iterator)
    state = two.state_dict()
    for ranks in (1, 2, 4):
        sets = [make(rank, ranks) for rank in range(ranks)]
        for ds in sets:
            ds.load_state_dict(state)
        got = [batch for step in zip(*map(numbers, sets)) for batch in step]
        # rows that come again are in the last batches
        assert got[: len(expected) - 12 - 4] == expected[12:-4]
    with pytest.raises(ValueError, match=r"world_size: .* 8 ranks cannot share equally"):
        CorgiPileDataset(rows, lanes=None, batch_size=10, rank=0, world_size=8).load_state_dict(state)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("seed", {"seed": 2}),
        ("batch_size", {"batch_size": 10}),
        ("shuffle", {"shuffle": "none"}),
        ("ranks", {"ranks": "drop"}),
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


@pytest.mark.parametrize(("workers", "ranks"), [(0, 1), (0, 2), (1, 1), (4, 1), (1, 2)])
def test_a_killed_process_goes_on_exactly(workers: int, ranks: int, tmp_path: Path, numbers: Numbers) -> None:
    if workers:
        pytest.importorskip("torch")
    from killed import EPOCHS, dataset

    for rank in range(ranks):
        expected = []
        ds = dataset(rank, ranks, workers)
        for epoch in range(EPOCHS):
            ds.set_epoch(epoch)
            expected += numbers(ds)
        log = tmp_path / f"{workers}-{rank}"
        command = [sys.executable, str(HERE / "killed.py"), str(log), str(rank), str(ranks), str(workers)]
        # batches until it is killed; then it may run to its end
        moments = random.Random(workers + rank).sample(range(1, len(expected) // 5), 1 if workers else 4)
        for moment in [*moments, 0]:
            # a session of its own, so that its workers are killed with it
            process = subprocess.run([*command, str(moment)], start_new_session=True, cwd=HERE, timeout=120)
            assert process.returncode == (-signal.SIGKILL if moment else 0)
        assert [json.loads(line)["numbers"] for line in log.read_text().splitlines()] == expected


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
