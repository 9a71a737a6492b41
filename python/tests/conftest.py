"""Fixtures of all tests, and which of them may run side by side (`pytest -n`)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

FULL = os.environ.get("CORGIPILE_FULL") == "1"

pytest_plugins = ["db_fixtures", "joader_fixtures", "loading_fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: no other test runs meanwhile: it measures time, or sees what others do")
    config.addinivalue_line("markers", "torch: is skipped where there is no torch")
    config.addinivalue_line("markers", "full: draws more of what other tests show; runs if CORGIPILE_FULL is 1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that want to be alone come last, so that no one has to wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)
    left_out = {"torch": "torch is not installed"} if find_spec("torch") is None else {}
    if not FULL:
        left_out["full"] = "draws more of what others show: CORGIPILE_FULL=1"
    for item in items:
        for name, reason in left_out.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """All workers lock this file: for themselves alone, or together with others."""
    how = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
    with open(__file__) as file:
        fcntl.flock(file, how)
        try:
            return (yield)
        finally:
            # a process that was forked off may have the file still
            fcntl.flock(file, fcntl.LOCK_UN)
