"""Models of the PostgreSQL extension corgipile from Python: train, watch, report, and predict with numpy alone.

Connections are those of psycopg 3 or 2, engines or connections of SQLAlchemy, or connection strings, which psycopg 3
opens. `Model` needs no database.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._columns import columns
    from ._connections import Notice
    from ._database import Database
    from ._epochs import Epochs
    from ._model import Model
    from ._progress import Progress, running
    from ._report import report
    from ._table import Table
    from ._training import train
    from ._watch import watch

#: Public names, and the modules that they come from, which are imported when they are asked for.
_PLACES = {
    "Database": "._database",
    "Epochs": "._epochs",
    "Model": "._model",
    "Notice": "._connections",
    "Progress": "._progress",
    "Table": "._table",
    "columns": "._columns",
    "report": "._report",
    "running": "._progress",
    "train": "._training",
    "watch": "._watch",
}

__all__ = [
    "Database",
    "Epochs",
    "Model",
    "Notice",
    "Progress",
    "Table",
    "columns",
    "report",
    "running",
    "train",
    "watch",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(place, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
