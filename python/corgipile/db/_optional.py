"""Packages that are imported when they are used, with an error that says what to install."""

from __future__ import annotations

import importlib
from types import ModuleType


def required(name: str, purpose: str, package: str | None = None) -> ModuleType:
    """The module of this name. If it is not installed, an ImportError says what it is for and how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        # a module that is there and fails for a reason of its own says so itself
        if error.name is None or error.name.split(".")[0] != name.split(".")[0]:
            raise
        install = package or name.split(".")[0]
        raise ImportError(f"{purpose} needs {install}: pip install '{install}'", name=name) from error


def optional(name: str) -> ModuleType | None:
    """The module of this name, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
