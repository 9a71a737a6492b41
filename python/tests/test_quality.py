"""How well rows are mixed: how far the labels in windows of an order are from those of all rows."""

from __future__ import annotations

import numpy as np

import corgipile
from corgipile import CorgiPileDataset

ROWS, CLASSES, WINDOW = 1000, 10, 100
LABELS = np.arange(ROWS) // (ROWS // CLASSES)


def variation(order: np.ndarray) -> float:
    """The mean total variation distance of a window's labels from those of all rows."""
    windows = order.reshape(-1, WINDOW)
    shares = np.stack([np.bincount(window, minlength=CLASSES) for window in windows]) / WINDOW
    return float(np.abs(shares - 1 / CLASSES).sum(axis=1).mean() / 2)


def mean_variation(shuffle: str, buffer_size: int | str = 200) -> float:
    source = corgipile.arrays({"label": LABELS})
    options = {"block_size": 20, "buffer_size": buffer_size, "batch_size": 50, "shuffle": shuffle}
    sets = [CorgiPileDataset(source, seed=seed, **options) for seed in range(30)]
    return float(np.mean([variation(np.concatenate([batch["label"] for batch in ds])) for ds in sets]))


def test_two_levels_mix_sorted_rows_better_than_one() -> None:
    corgipile_ = mean_variation("corgipile")
    assert corgipile_ < 0.75 * mean_variation("sliding_window")
    assert corgipile_ < 0.65 * mean_variation("block_only")
    assert corgipile_ < 0.4 * mean_variation("no_shuffle")


def test_a_buffer_for_all_rows_mixes_as_a_full_shuffle_does() -> None:
    random = np.random.default_rng(1)
    full = np.mean([variation(random.permutation(LABELS)) for _ in range(100)])
    assert abs(mean_variation("corgipile", "100%") / full - 1) < 0.1
