"""Models of the PostgreSQL extension corgipile from Python: train, watch, report, and predict with numpy alone.

Connections are psycopg's (version 3). Needs psycopg for all that speaks to a database; `Model` needs numpy only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._columns import columns
    from ._connections import Notice
    from ._epochs import Epochs
    from ._model import Model
    from ._progress import Progress, running
    from ._report import report
    from ._training import train
    from ._watch import watch

#: Public names, and the modules that they come from, which are imported when they are asked for.
_PLACES = {
    "Epochs": "._epochs",
    "Model": "._model",
    "Notice": "._connections",
    "Progress": "._progress",
    "columns": "._columns",
    "report": "._report",
    "running": "._progress",
    "train": "._training",
    "watch": "._watch",
}

__all__ = ["Epochs", "Model", "Notice", "Progress", "columns", "report", "running", "train", "watch"]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(place, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
