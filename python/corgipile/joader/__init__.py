"""JOADER: training jobs on one machine share the work of reading and preparing data.

A server reads and prepares rows once; jobs map them into their memory, each in random order, at its own speed, with its
own columns and condition. If the server ends, jobs continue to read by themselves, and return to the next server.

    corgipile-joader serve --memory 8GiB --listen unix:/run/user/1000/joader

    from corgipile import joader

    joader.create("unix:/run/user/1000/joader", "imagenet", corgipile.webdataset("train/*.tar"))
    job = joader.Job("unix:/run/user/1000/joader", dataset="imagenet", columns=["jpg", "cls"], where="cls < 100",
                     prepare=[joader.decode("jpg"), joader.resize("jpg", 224, 224)], seed=1, epochs=90, batch_size=64)
    for batch in job:
        ...

Xie et al., "A Deep Learning Dataloader with Shared Data Preparation", NeurIPS 2022.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corgipile._native import JoaderError

    from ._admin import alter, create, datasets, drop, serve, status
    from ._cluster import Follower, Leader
    from ._job import Job
    from ._recipe import center_crop, crop, decode, drop_column, function, resize

#: Public names, and the modules that they come from: the command says what it takes without the native module.
_PLACES = {
    "JoaderError": "corgipile._native",
    "Follower": "corgipile.joader._cluster",
    "Job": "corgipile.joader._job",
    "Leader": "corgipile.joader._cluster",
    **dict.fromkeys(("alter", "create", "datasets", "drop", "serve", "status"), "corgipile.joader._admin"),
    **dict.fromkeys(("center_crop", "crop", "decode", "drop_column", "function", "resize"), "corgipile.joader._recipe"),
}

__all__ = [
    "Follower",
    "JoaderError",
    "Job",
    "Leader",
    "alter",
    "center_crop",
    "create",
    "crop",
    "datasets",
    "decode",
    "drop",
    "drop_column",
    "function",
    "resize",
    "serve",
    "status",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
