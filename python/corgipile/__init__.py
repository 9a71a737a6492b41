"""CorgiPile: rows in an order that is nearly random, read nearly in sequence, and models trained in PostgreSQL.

Importing this package imports nothing heavy: what needs the native module, a database or another package is imported
when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Public names, and the modules that they come from. A module is public under its own name.
_PLACES = {
    "db": "corgipile.db",
    "sklearn": "corgipile.sklearn",
}

__all__ = ["db", "sklearn"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(place)
    value = module if place == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
