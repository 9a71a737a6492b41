"""The loop of a process that calls Python functions on rows, started by a server to prepare them.

Its standard input is a socket, which transfers two files in memory, and then calls: the function, and the length of the
rows in the first file. It answers with the length of the rows that it wrote into the second file, or with the error. It
ends when the socket is closed, even while a function runs.
"""

from __future__ import annotations

import fcntl
import importlib
import mmap
import operator
import os
import select
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from corgipile import _native
from corgipile.sources import _array, _column

# what is said of an exception, at most
_MAX_ERROR = 32 << 10

Function = Callable[[dict[str, np.ndarray]], dict[str, Any]]


class PreparerError(Exception):
    """What is wrong with a function, or with what it gave."""


def packed(name: str, values: Any) -> tuple[str, str, list[int], Any, list[int] | None]:
    """A column as the native part takes it, with the lengths of its rows if these are lists."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "O" and values.ndim == 1:
        lists = [item for item in values if isinstance(item, (np.ndarray, list, tuple))]
        if lists:
            for row, item in enumerate(values):
                if item is not None and not isinstance(item, (np.ndarray, list, tuple)):
                    raise TypeError(f"column {name!r}, row {row}: {type(item).__name__} is not a list, as others are")
            lengths = [-1 if item is None else len(item) for item in values]
            # an empty list of Python's has no type that those of the others should give way to
            filled = [np.asarray(item) for item in lists if len(item)] or [np.asarray(item) for item in lists]
            return *_column(name, np.concatenate(filled)), lengths
    return *_column(name, _array(name, values)), None


def result(given: Any, rows: int) -> _native.Slot:
    """What a function gave, checked and ready to be written."""
    if not isinstance(given, dict):
        raise PreparerError(f"it should give a dict of arrays by names, and gave {type(given).__name__}")
    if not given:
        raise PreparerError("it gave no columns")
    columns = []
    for name, values in given.items():
        try:
            columns.append(packed(name, values))
        except (TypeError, ValueError) as error:
            raise PreparerError(f"it gave what is not a column: {error}") from None
        if np.ndim(values) == 0 or len(values) != rows:
            there = "one value" if np.ndim(values) == 0 else f"{len(values)} rows"
            raise PreparerError(f"it gave {there} of column {name!r} for {rows} rows")
    try:
        return _native.dict_to_slot(columns)
    except (TypeError, ValueError) as error:
        raise PreparerError(f"it gave what is not a column: {error}") from None


def find(callable_name: str) -> Function:
    """The function that is named `module:function`."""
    module_name, _, name = callable_name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # one that the module itself imports is another matter
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise PreparerError(f"there is no module {error.name!r} in {os.getcwd()} or on Python's path") from None
    try:
        function: Function = operator.attrgetter(name)(module)
    except AttributeError:
        raise PreparerError(f"module {module_name!r} has no {name!r}") from None
    if not callable(function):
        raise PreparerError(f"{name!r} is of type {type(function).__name__}, which cannot be called")
    return function


def told(error: BaseException) -> str:
    """An exception by type, message and line."""
    if isinstance(error, PreparerError):
        return str(error)
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    if frames and not isinstance(error, SyntaxError):
        text += f" ({frames[-1].filename}, line {frames[-1].lineno})"
    return text


class Memory:
    """A file in memory, as an array of its bytes."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._mapped: mmap.mmap | None = None

    def array(self, length: int) -> np.ndarray[Any, Any]:
        """The first bytes of it, as many as asked for."""
        if self._mapped is None or len(self._mapped) < length:
            if os.fstat(self._file).st_size < length:
                os.ftruncate(self._file, length)
            self._mapped = mmap.mmap(self._file, max(os.fstat(self._file).st_size, 1))
        return np.frombuffer(self._mapped, np.uint8, count=length)


@contextmanager
def _ending_with(calls: socket.socket) -> Generator[None, None, None]:
    """Ends the process, whatever it does meanwhile, when no one is at the other end of the socket any more.

    The system sends a signal then, which ends a process that has not said otherwise. A thread that waits for that end
    could do nothing while a function in C does not let go of the interpreter.
    """
    flags = fcntl.fcntl(calls, fcntl.F_GETFL)
    fcntl.fcntl(calls, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(calls, fcntl.F_SETFL, flags | os.O_ASYNC)
    poll = select.poll()
    poll.register(calls, select.POLLRDHUP)
    if poll.poll(0):
        # before there was to be a signal
        os._exit(0)
    try:
        yield
    finally:
        fcntl.fcntl(calls, fcntl.F_SETFL, flags)


class Preparer:
    """Answers calls until there are no more."""

    def __init__(self, calls: socket.socket) -> None:
        self._calls = calls
        _, files, _, _ = socket.recv_fds(calls, 1, 2)
        if len(files) != 2:
            raise SystemExit("corgipile.joader._preparer is run by a server, which gives it two files")
        self._from, self._to = map(Memory, files)
        self._functions: dict[str, Function] = {}

    def run(self) -> None:
        while (header := self._read(12)) is not None:
            name_length, length = struct.unpack("<IQ", header)
            name = self._read(name_length)
            if name is None:
                return
            try:
                with _ending_with(self._calls):
                    slot = self._call(name.decode(), self._from.array(length))
                    slot.write(self._to.array(len(slot)))
            # whatever a function raises, `sys.exit` included, is about its rows
            except BaseException as error:
                said = told(error).encode(errors="replace")[:_MAX_ERROR]
                self._calls.sendall(struct.pack("<BQ", 0, len(said)) + said)
            else:
                self._calls.sendall(struct.pack("<BQ", 1, len(slot)))

    def _call(self, name: str, slot: np.ndarray) -> _native.Slot:
        columns = _native.slot_to_dict(slot)
        rows = min(map(len, columns.values()), default=0)
        if name not in self._functions:
            self._functions[name] = find(name)
        given = self._functions[name](columns)
        return result(given, rows)

    def _read(self, length: int) -> bytes | None:
        """This many bytes; None at the end."""
        parts = []
        while length:
            part = self._calls.recv(length)
            if not part:
                return None
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def main() -> None:
    # Neither what a function reads nor what it prints should be taken for calls and answers.
    calls = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    preparer = Preparer(calls)
    try:
        preparer.run()
    except OSError:
        # the server is gone
        sys.exit(0)


if __name__ == "__main__":
    main()
