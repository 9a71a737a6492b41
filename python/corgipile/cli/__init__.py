"""The commands of `corgipile`, or `python -m corgipile`, one file each.

Guarantees: results go to standard output or into a file, everything else to standard error; an error is one line, and
the exit code is 1 (2 for wrong arguments, 130 for Ctrl-C, 143 for SIGTERM).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from . import ending, index, predict, report, shuffle, train, watch

#: The commands by name.
COMMANDS = {"index": index, "shuffle": shuffle, "train": train, "predict": predict, "report": report, "watch": watch}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="corgipile" if os.path.basename(sys.argv[0]) == "corgipile" else "python -m corgipile",
        description="Shuffle files and tables, and train, watch and use models of the PostgreSQL extension corgipile.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.DESCRIPTION, allow_abbrev=False)
        module.add_arguments(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    return ending.run("corgipile", lambda: _command(words))


def _command(words: list[str]) -> int:
    if words[:1] == ["index"]:  # its module has arguments of its own
        return index.run_with(words[1:])
    arguments = _parser().parse_args(words)
    return COMMANDS[arguments.command].run(arguments)
