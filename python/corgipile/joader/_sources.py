"""Sources as text, with which a server and a job that reads by itself open the same rows."""

from __future__ import annotations

import json
import os
from typing import Any

from corgipile import _native, sources

# which argument of an opener has the paths, and which the columns; None without any
_PLACES: dict[str, tuple[int | None, int | None]] = {
    "parquet": (0, 1),
    "arrow": (0, 1),
    "tfrecord": (0, 1),
    "webdataset": (0, 1),
    "csv": (0, 1),
    "libsvm": (0, None),
    "postgres": (None, 2),
}

# of a table's arguments, the snapshot, no matter who opens it has one of its own
_SNAPSHOT = 4


def as_text(source: sources.Source | str | os.PathLike[str]) -> str:
    """A source as text. Paths are made absolute: who opens it may have another working directory."""
    if isinstance(source, str | os.PathLike):
        source = sources.open_path(source, None, argument="source")
    if not isinstance(source, sources.Source):
        raise TypeError(f"source: {type(source).__name__} is neither a path nor made by corgipile.parquet and the like")
    kind = "postgres" if isinstance(source, sources.Table) else source.opener_name
    if kind not in _PLACES:
        raise ValueError("source: arrays are in the memory of this process; write them into a file for others to read")
    arguments = list(source.arguments)
    paths, _ = _PLACES[kind]
    if paths is not None:
        arguments[paths] = [os.path.abspath(path) for path in arguments[paths]]
    if kind == "postgres":
        arguments[_SNAPSHOT] = None
    _check(kind, arguments)
    return _text_of(kind, arguments)


def _check(kind: str, arguments: list[Any]) -> None:
    """Refuses passwords: a server keeps the text in a file, and gives it to jobs and to servers of other machines."""
    if kind == "postgres" and _native.has_password(arguments[0]):
        places = "~/.pgpass, PGPASSWORD or a service of pg_service.conf, where server and jobs run"
        raise ValueError(f"connection: it has a password, which a server would keep and pass on: put it into {places}")


def _text_of(kind: str, arguments: list[Any]) -> str:
    return json.dumps({"kind": kind, "arguments": [_plain(argument) for argument in arguments]})


def open_text(text: str) -> Opened:
    """What `as_text` has made."""
    return Opened(*_told(text))


def hold_text(text: str) -> Held:
    """Keeps the rows that somebody else has opened, as `Opened.passing` tells, also for when that one has gone."""
    return Held(*_told(text))


def _told(text: str) -> tuple[str, list[Any]]:
    try:
        told = json.loads(text)
        kind, arguments = told["kind"], [_back(argument) for argument in told["arguments"]]
        if kind not in _PLACES:
            raise KeyError(kind)
    except (ValueError, KeyError, TypeError) as error:
        # which is not shown, as it may have a password
        raise ValueError("source: the text is not what corgipile.joader.create makes of one") from error
    _check(kind, arguments)
    return kind, arguments


class Opened:
    """A source whose columns can be had by themselves."""

    def __init__(self, kind: str, arguments: list[Any]) -> None:
        self._kind = kind
        self._arguments = arguments
        self._opened: dict[tuple[str, ...] | None, _native.Source] = {}
        self.columns(None)

    def columns(self, names: list[str] | None) -> _native.Source:
        """These columns, or all of them: the same rows, a table's under the same snapshot."""
        key = None if names is None else tuple(names)
        if key not in self._opened:
            self._opened[key] = self._open(names)
        return self._opened[key]

    def passing(self) -> str | None:
        """These rows as text, as long as they are open here; None if others find them without."""
        return _text_of(self._kind, self._arguments) if self._kind == "postgres" else None

    def _open(self, names: list[str] | None) -> _native.Source:
        arguments = list(self._arguments)
        _, place = _PLACES[self._kind]
        if names is not None:
            if place is None:
                raise ValueError(f"columns: a {self._kind} source has none that could be had by themselves")
            arguments[place] = names
        if self._kind != "postgres":
            return getattr(_native, self._kind)(*arguments)
        opened, snapshot = _native.postgres(*arguments)
        self._arguments[_SNAPSHOT] = snapshot
        return opened


class Held:
    """A table's snapshot, held on."""

    def __init__(self, kind: str, arguments: list[Any]) -> None:
        self._snapshot = _native.HeldSnapshot(arguments[0], arguments[_SNAPSHOT])
        arguments[_SNAPSHOT] = self._snapshot.name
        #: The rows as text, as long as this is there.
        self.text = _text_of(kind, arguments)


def _plain(argument: Any) -> Any:
    # JSON has no tuples, which the openers need where they have them
    if isinstance(argument, tuple):
        return {"tuple": [_plain(part) for part in argument]}
    if isinstance(argument, list):
        return [_plain(part) for part in argument]
    if isinstance(argument, dict):
        return {"dict": {name: _plain(value) for name, value in argument.items()}}
    return argument


def _back(argument: Any) -> Any:
    if isinstance(argument, dict) and "tuple" in argument:
        return tuple(_back(part) for part in argument["tuple"])
    if isinstance(argument, dict):
        return {name: _back(value) for name, value in argument["dict"].items()}
    if isinstance(argument, list):
        return [_back(part) for part in argument]
    return argument
