"""The commands of `python -m corgipile`, a file for each.

Guarantees: what was asked for goes to standard output or into a file, everything else to standard error; an error is
one line, and the exit code is 1 (2 for wrong arguments, 130 for Ctrl-C, 143 for SIGTERM).
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence

from . import index, predict, report, shuffle, train, watch
from .common import one_line, said

#: The commands by name.
COMMANDS = {"index": index, "shuffle": shuffle, "train": train, "predict": predict, "report": report, "watch": watch}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m corgipile",
        description="Shuffle files and tables, and train, watch and use models of the PostgreSQL extension corgipile.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.DESCRIPTION, allow_abbrev=False)
        module.add_arguments(command)
    return parser


class _Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: what Ctrl-C cancels and tidies up, they do, too."""


@contextlib.contextmanager
def _ending_tidily() -> Iterator[None]:
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


def _in_one_line(message: Warning | str, *_place: object) -> None:
    print(f"corgipile: warning: {one_line(str(message))}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # it was closed before
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    with _ending_tidily(), warnings.catch_warnings():
        warnings.showwarning = _in_one_line
        return _run(words)


def _command(words: list[str]) -> int:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    if words[:1] == ["index"]:  # its module has arguments of its own
        return index.run_with(words[1:])
    arguments = _parser().parse_args(words)
    return COMMANDS[arguments.command].run(arguments)


def _run(words: list[str]) -> int:
    try:
        code = _command(words)
        sys.stdout.flush()
        return code
    except _Ended as ended:
        print("corgipile: cancelled", file=sys.stderr)
        return 128 + ended.args[0]
    except KeyboardInterrupt:
        print("corgipile: cancelled", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # whoever read the output has had enough; nothing is left to be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        line = said(error)
        if line is None:
            raise
        print(f"corgipile: {line}", file=sys.stderr)
        return 1
