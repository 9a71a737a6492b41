"""CorgiPile: rows in nearly random order, read nearly sequentially, and models trained in PostgreSQL.

    import corgipile

    ds = corgipile.CorgiPileDataset(corgipile.parquet("train/*.parquet"), batch_size=64)
    for epoch in range(3):
        ds.set_epoch(epoch)
        for batch in ds:  # a dictionary of column name to array
            ...

Importing this package is fast: the native module, the database client and other packages are imported when they are
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import db, joader, sklearn, torch
    from ._native import SourceError
    from .dataset import CorgiPileDataset
    from .items import map_style
    from .loader import Loader
    from .offline import corgi2, shuffle_once
    from .sources import Source, arrays, arrow, csv, libsvm, parquet, postgres, tfrecord, webdataset

__version__ = "0.3.0"

#: Public names, and the modules that they come from. A module is public under its own name.
_PLACES = {
    "CorgiPileDataset": "corgipile.dataset",
    "Loader": "corgipile.loader",
    "Source": "corgipile.sources",
    "SourceError": "corgipile._native",
    "arrays": "corgipile.sources",
    "arrow": "corgipile.sources",
    "corgi2": "corgipile.offline",
    "csv": "corgipile.sources",
    "db": "corgipile.db",
    "joader": "corgipile.joader",
    "libsvm": "corgipile.sources",
    "map_style": "corgipile.items",
    "parquet": "corgipile.sources",
    "postgres": "corgipile.sources",
    "shuffle_once": "corgipile.offline",
    "sklearn": "corgipile.sklearn",
    "tfrecord": "corgipile.sources",
    "torch": "corgipile.torch",
    "webdataset": "corgipile.sources",
}

__all__ = [
    "CorgiPileDataset",
    "Loader",
    "Source",
    "SourceError",
    "arrays",
    "arrow",
    "corgi2",
    "csv",
    "db",
    "joader",
    "libsvm",
    "map_style",
    "parquet",
    "postgres",
    "shuffle_once",
    "sklearn",
    "tfrecord",
    "torch",
    "webdataset",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(place)
    value = module if place == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
