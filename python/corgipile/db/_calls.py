"""Calls of the extension's functions: arguments of Python, notices, bars, and what is returned."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from .._checks import check_seed
from ._connections import Notice, end_statement, notices, quoted
from ._extension import argument_types, schema, select
from ._progress import Bar, is_wanted

_log = logging.getLogger("corgipile.db")


class Told:
    """What the server says meanwhile."""

    def __init__(self, bar: Bar | None) -> None:
        self.notices: list[Notice] = []
        self._bar = bar

    def __call__(self, notice: Notice) -> None:
        self.notices.append(notice)
        _log.info("%s", notice)
        if self._bar is not None:
            self._bar.write(f"{notice.severity}: {notice}")

    def done(self, epochs: int) -> None:
        """All epochs are over."""
        if self._bar is not None:
            self._bar.done(epochs)


@contextmanager
def in_database(conn: Any, progress: bool | None, what: str) -> Generator[Told, None, None]:
    """A transaction, in which the server's notices are kept, and a bar is shown if it is wanted."""
    bar = Bar(conn, what) if is_wanted(progress) else None
    told = Told(bar)
    with conn.transaction(), notices(conn, told), bar if bar is not None else nullcontext():
        try:
            yield told
        except KeyboardInterrupt:
            end_statement(conn)
            raise


def checked(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments. A seed that is no bigint is refused: the server's own message lacks the bounds."""
    for given in (arguments, arguments.get("options")):
        seed = given.get("seed") if isinstance(given, Mapping) else None
        if isinstance(seed, int) and not isinstance(seed, bool):
            check_seed(seed)
    return arguments


def run(
    conn: Any, function: str, first: Sequence[tuple[str, Any]], arguments: Mapping[str, Any]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Calls a function of the extension: columns and rows."""
    return select(conn, *call_of(conn, function, first, arguments))


def call_of(
    conn: Any, function: str, first: Sequence[tuple[str, Any]], arguments: Mapping[str, Any]
) -> tuple[str, list[Any]]:
    """The call of a function, by its first arguments, with their types, and others by name. What a function with
    options has no argument for, or none of that type, goes into these, where the server says by name what is wrong.

    Raises:
        TypeError: the function has no such argument, and no options.
    """
    types = argument_types(conn, function, first[0][0])
    given = {name: _plain(name, value) for name, value in arguments.items() if value is not None}
    options = given.pop("options", {})
    if not isinstance(options, Mapping):
        raise TypeError(f"options is a dict, not {type(options).__name__}")
    named = list(types)[len(first) :]
    typed = {name for name, value in given.items() if name in named and _fits(value, types[name])}
    left = {name: value for name, value in given.items() if name not in typed}
    if left and "options" not in types:
        name, value = next(iter(left.items()))
        if name in named:
            raise TypeError(f"{name}: must be of SQL's type {types[name]}, not {type(value).__name__}")
        raise TypeError(f"{name}: {function} has no such argument; it has {', '.join(named) or 'no others'}")
    options = {**options, **left}
    calls = [f"%s::{kind}" for kind, _ in first]
    values = [value for _, value in first]
    for name in sorted(typed):
        calls.append(f"{quoted(name)} => %s::{types[name]}")
        values.append(
            json.dumps(given[name]) if types[name] == "jsonb" or isinstance(given[name], dict) else given[name]
        )
    if options:
        calls.append("options => %s::pg_catalog.jsonb")
        values.append(json.dumps(options))
    return f"SELECT * FROM {schema(conn)}.{function}({', '.join(calls)})", values


def _fits(value: Any, kind: str | None) -> bool:
    """Whether a value is of SQL's type as it is."""
    if kind is None:
        return False
    if kind.endswith("[]"):
        return isinstance(value, list) and all(_fits(element, kind[:-2]) for element in value)
    if kind == "boolean" or isinstance(value, bool):
        return kind in ("boolean", "jsonb") and isinstance(value, bool | dict | list)
    if kind == "text":
        return isinstance(value, str | dict)
    if kind in ("integer", "bigint"):
        return isinstance(value, int) and abs(value) < (2**31 if kind == "integer" else 2**63)
    return kind == "jsonb" or isinstance(value, int | float)


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it: arrays of numpy, tuples and sets are lists, and one name is a list of it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple | set | frozenset):
        value = list(value)
    if name == "features" and isinstance(value, str):
        return [value]
    try:
        return json.loads(json.dumps(value, default=lambda part: part.tolist(), allow_nan=False))
    except (TypeError, ValueError, AttributeError):
        what = repr(value) if isinstance(value, float) else type(value).__name__
        raise TypeError(f"{name} is {what}, which is nothing that JSON knows") from None
