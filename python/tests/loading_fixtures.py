"""What tests of the data set and the loader use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import corgipile

Numbers = Callable[[Iterable[dict[str, Any]]], list[list[int]]]


@pytest.fixture
def rows() -> corgipile.Source:
    """1003 rows with their numbers, in one run."""
    numbers = np.arange(1003)
    return corgipile.arrays({"x": np.stack([numbers, 2 * numbers], axis=1).astype(np.float32), "number": numbers})


@pytest.fixture
def numbers() -> Numbers:
    """The numbers of the rows in each batch."""
    return lambda batches: [np.asarray(batch["number"]).tolist() for batch in batches]


def flat(lists: Iterable[list[Any]]) -> list[Any]:
    """What is in the lists, one after the other."""
    return [item for one in lists for item in one]


# A process that ends closes its connections, over which another may still be reading what it has sent.
LEAVE_TOGETHER = """
def leave_together(meeting, rank, ranks):
    import os, sys, time
    sys.stdout.flush()
    open(f"{meeting}.{rank}", "w").close()
    while not all(os.path.exists(f"{meeting}.{other}") for other in range(ranks)):
        time.sleep(0.01)
    os._exit(0)

"""
