"""How a command ends: with an exit code, and with an error in one line.

Guarantees: the exit code is 1 for an error, 130 for Ctrl-C, 143 for SIGTERM and 129 for SIGHUP, which end a command as
cleanly as Ctrl-C; and 141 if the reader of the output has ended.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator

from .common import one_line, said


class _Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: what Ctrl-C cancels and tidies up, they do, too."""


@contextlib.contextmanager
def _ending_tidily() -> Generator[None, None, None]:
    def end(number: int, _frame: object) -> None:
        raise _Ended(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(program: str, command: Callable[[], int]) -> int:
    """Runs a command and returns its exit code."""
    if sys.stderr is None:  # it was closed before
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process

    def in_one_line(message: Warning | str, *_place: object) -> None:
        print(f"{program}: warning: {one_line(str(message))}", file=sys.stderr)

    with _ending_tidily(), warnings.catch_warnings():
        warnings.showwarning = in_one_line
        return _run(program, command)


def _run(program: str, command: Callable[[], int]) -> int:
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        code = command()
        sys.stdout.flush()
        return code
    except SystemExit:  # of the help, which may still be on its way
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            return 141
        raise
    except _Ended as ended:
        print(f"{program}: cancelled", file=sys.stderr)
        return 128 + ended.args[0]
    except KeyboardInterrupt:
        print(f"{program}: cancelled", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _discard_output()  # anyone who read it has had enough
        return 141
    except Exception as error:
        line = said(error)
        if line is None:
            raise
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            _discard_output()  # on a disk that is full, say: the interpreter would try again at exit, and say so
        print(f"{program}: {line}", file=sys.stderr)
        return 1


def _discard_output() -> None:
    """Nothing is left to be flushed at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
