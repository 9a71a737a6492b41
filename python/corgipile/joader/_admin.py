"""What operators do: serve, create and drop data sets, look what a server does."""

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
        raise TypeError(f"address: {address!r} is no path of a socket, such as 'unix:/run/user/1000/joader'")
    path = os.fspath(address).removeprefix("unix:")
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    scheme, colon, _ = path.partition(":")
    if colon and scheme in ("tcp", "http", "https", "grpc"):
        raise ValueError(f"address: {address!r}: a server has a socket of its machine, as 'unix:/run/user/1000/joader'")
    if not path:
        raise ValueError("address: the path of a socket is needed, such as 'unix:/run/user/1000/joader'")
    return os.path.abspath(path)


def python_of_processes() -> dict[str, str]:
    """The Python that calls functions, and where it finds modules: as this one does."""
    return {"python": sys.executable, "python_path": os.pathsep.join(path or os.getcwd() for path in sys.path)}


def names_of_columns(columns: Sequence[str] | None) -> list[str]:
    """Names of columns, checked; none for all of them."""
    names = [] if columns is None else list(columns) if not isinstance(columns, str) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise TypeError(f"columns: a list of names is needed, such as ['image', 'label'], not {columns!r}")
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise ValueError(f"columns: {twice[0]!r} is there twice")
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
    """Serves jobs until Ctrl-C, or until `stop` gives True.

    Args:
        address: a socket's path, at which only the user who serves, and root, are answered.
        memory: bytes for elements that were read and prepared, which all jobs share.
        threads: that read and prepare, 0 for as many as the machine has processors.
        processes: that call functions of Python, 0 for as many as threads.
        seed: names the order of elements.
        log: what is said on standard error.
        cluster: a `joader.Leader` or a `joader.Follower`, if several machines share their reading.
        datasets: a file that keeps what data sets there are, so that they are there again when the server is started
            again; without it they are forgotten. One that cannot be opened then is tried again when a job asks for it.
            A file that others may write is refused.
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
    """Gives rows a name at a server, which opens them: paths are those of its machine.

    Args:
        source: a path, or made by `corgipile.parquet` and the like; not `corgipile.arrays`. A table is read under one
            snapshot as long as the data set is there. Its connection string has no password, as servers keep and pass
            on what is in it: servers and jobs take passwords from ~/.pgpass, PGPASSWORD or a service, where they run.
        columns: those that jobs may ask for; all without.
        element_size: of what is drawn, read and kept as a whole: a number of rows (1 for single rows, as in the paper),
            bytes ("64MiB"), a share ("1%"), or "auto" for 1 MiB, or a thousandth of the rows where that is less.
        sampler: how jobs draw. "dependent", the default, is the paper's: the order of each job is uniform, whatever
            other jobs want. With "follow" a job draws what others have just drawn, which saves reads where jobs begin
            at different moments or have different speeds. Its cost: elements that other jobs want come first, so that
            next to a job with another condition (`where`) the order is not random, and models can be much worse. Use
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
    """Gives a data set other rows or columns; refused while jobs train on it. Arguments are those of `create`."""
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
        raise TypeError(f"name: {name!r} is no text")
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
    """Forgets a data set, on which no job may train."""
    if not isinstance(name, str):
        raise TypeError(f"name: {name!r} is no text")
    _native.joader_drop(socket_of(address), name)


def datasets(address: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """All data sets of a server: names, rows, elements, bytes, and how many jobs train on each.

    `error` is None, or why one that the server had before it was started again cannot be opened now.
    """
    return _native.joader_data_sets(socket_of(address))


def status(address: str | os.PathLike[str]) -> dict[str, Any]:
    """What a server does: its memory, what it has read and saved, and each job's numbers under "jobs"."""
    return _native.joader_status(socket_of(address))
