"""Models of the PostgreSQL extension corgipile from Python: train, watch, report, and predict with numpy alone.

Connections are psycopg's (version 3). Needs psycopg for all that speaks to a database; `Model` needs numpy only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._model import Model

_PLACES = {
    "Model": "._model",
}

__all__ = ["Model"]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(place, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
