"""Commands of operators: serve, create and drop data sets, and show a server's status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

from corgipile import _native, sources
from corgipile.dataset import check_number

from . import _sources
from ._cluster import Follower, Leader, told

Sampler = Literal["dependent", "follow", "independent"]
Log = Literal["text", "json", "off"]

_MANY = 2**62


def socket_of(address: str | os.PathLike[str]) -> str:
    """The path of a server's socket, which an address may begin with "unix:"."""
    if not isinstance(address, str | os.PathLike):
        raise TypeError(f"address: {address!r} is not a path of a socket, such as 'unix:/run/user/1000/joader'")
    path = os.fspath(address).removeprefix("unix:")
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    scheme, colon, _ = path.partition(":")
    if colon and scheme in ("tcp", "http", "https", "grpc"):
        raise ValueError(f"address: {address!r}: a server has a socket of its machine, as 'unix:/run/user/1000/joader'")
    if not path:
        raise ValueError("address: must be the path of a socket, such as 'unix:/run/user/1000/joader'")
    return os.path.abspath(path)


def python_of_processes() -> dict[str, str]:
    """The Python that calls functions, and where it finds modules: as this one does."""
    return {"python": sys.executable, "python_path": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def names_of_columns(columns: Sequence[str] | None) -> list[str]:
    """Names of columns, checked; none for all of them."""
    names = [] if columns is None else list(columns) if not isinstance(columns, str) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f"columns: must be a list of names, such as ['image', 'label'], not {columns!r}")
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise ValueError(f"columns: {twice[0]!r} appears twice")
    return names


def serve(
    address: str | os.PathLike[str],
    *,
    memory: int = 1 << 30,
    threads: int = 0,
    processes: int = 0,
    seed: int = 0,
    log: Log = "off",
    cluster: Leader | Follower | None = None,
    datasets: str | os.PathLike[str] | None = None,
    ready: Callable[[], Any] | None = None,
    stop: Callable[[], bool] | None = None,
) -> None:
    """Serves jobs until Ctrl-C, or until `stop` returns True.

    Args:
        address: path of the socket, which answers only the user who serves, and root.
        memory: bytes for read and prepared elements, which all jobs share.
        threads: number of threads that read and prepare; 0 for the number of processors.
        processes: number of processes that call Python functions; 0 for the number of threads.
        seed: determines the order of elements.
        log: the format of messages on standard error.
        cluster: a `joader.Leader` or a `joader.Follower`, if several machines share their reading.
        datasets: a file that stores the data sets, so that they exist again after a restart; by default they are lost.
            A data set that cannot be opened then is tried again when a job asks for it. A file that others may write is
            refused.
        ready: called once jobs can connect.
    """
    check_number("memory", memory, 1 << 16, _MANY)
    check_number("threads", threads, 0, 1024)
    check_number("processes", processes, 0, 1024)
    check_number("seed", seed, -(2**63), 2**63 - 1)
    if log not in ("text", "json", "off"):
        raise ValueError(f"log: {log!r} is not one of text, json, off")
    threads = threads or os.cpu_count() or 1
    _native.joader_serve(
        socket_of(address),
        memory=memory,
        threads=threads,
        processes=processes or threads,
        seed=seed,
        opener=_sources,
        log=log,
        cluster=told(cluster),
        data_sets=None if datasets is None else os.path.abspath(os.fspath(datasets)),
        ready=ready or (lambda: None),
        stop=stop or (lambda: False),
        **python_of_processes(),
    )


def create(
    address: str | os.PathLike[str],
    name: str,
    source: sources.Source | str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    element_size: int | str = "auto",
    sampler: Sampler | Literal[""] = "",
) -> dict[str, Any]:
    """Creates a named data set on a server, which opens it: paths are those of its machine.

    Args:
        source: a path, or a source such as `corgipile.parquet(...)`; not `corgipile.arrays`. A table is read under one
            snapshot as long as the data set exists. Its connection string must not contain a password, because servers
            store and pass it on: servers and jobs take passwords from ~/.pgpass, PGPASSWORD or a service on their
            machine.
        columns: the columns that jobs may ask for; by default all.
        element_size: size of an element, the unit that is drawn, read and kept: a number of rows (1 for single rows, as
            in the paper), bytes ("64MiB"), a share ("1%"), or "auto" for 1 MiB, or a thousandth of the rows if that is
            less.
        sampler: how jobs draw. "dependent", the default, is the paper's: the order of each job is uniform, whatever
            other jobs want. With "follow" a job draws what others have just drawn, which saves reads if jobs begin at
            different times or have different speeds. The price: elements that other jobs want come first, so that the
            order is not random if another job has a different condition (`where`), and models can be much worse. Use
            "follow" only if all jobs want the same rows. "independent" lets each job draw by itself.

    Returns rows, elements and bytes of the data set.
    """
    return _put(address, name, source, columns, element_size, sampler, replaces=False)


def alter(
    address: str | os.PathLike[str],
    name: str,
    source: sources.Source | str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    element_size: int | str = "auto",
    sampler: Sampler | Literal[""] = "",
) -> dict[str, Any]:
    """Changes the rows or columns of a data set; refused while jobs train on it. Arguments are those of `create`."""
    return _put(address, name, source, columns, element_size, sampler, replaces=True)


def _put(
    address: str | os.PathLike[str],
    name: str,
    source: sources.Source | str | os.PathLike[str],
    columns: Sequence[str] | None,
    element_size: int | str,
    sampler: str,
    *,
    replaces: bool,
) -> dict[str, Any]:
    if not isinstance(name, str):
        raise TypeError(f"name: {name!r} is not a string")
    for argument, text in (("element_size", element_size), ("sampler", sampler)):
        if not isinstance(text, str) and (argument == "sampler" or not hasattr(text, "__index__")):
            example = "name such as 'dependent'" if argument == "sampler" else "number of rows or a size such as '1MiB'"
            raise TypeError(f"{argument}: {text!r} is not a {example}")
    return _native.joader_put(
        socket_of(address),
        name,
        _sources.as_text(source),
        columns=names_of_columns(columns),
        element_size=str(element_size),
        sampler=sampler,
        replaces=replaces,
    )


def drop(address: str | os.PathLike[str], name: str) -> None:
    """Drops a data set, on which no job may train."""
    if not isinstance(name, str):
        raise TypeError(f"name: {name!r} is not a string")
    _native.joader_drop(socket_of(address), name)


def datasets(address: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """All data sets of a server: names, rows, elements, bytes, and the number of jobs that train on each.

    `error` is None, or the reason why a data set from before a restart cannot be opened now.
    """
    return _native.joader_data_sets(socket_of(address))


def status(address: str | os.PathLike[str]) -> dict[str, Any]:
    """The status of a server: its memory, what it has read and saved, and the numbers of each job under "jobs"."""
    return _native.joader_status(socket_of(address))
