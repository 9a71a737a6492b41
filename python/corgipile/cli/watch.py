"""`watch`: the trainings that run in the server."""

from __future__ import annotations

import argparse

from .common import add_connection, connect

HELP = "show the trainings that run in the server"
DESCRIPTION = "Show the trainings that run in the server, until Ctrl-C."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between two looks (1)")
    parser.add_argument("--once", action="store_true", help="look once")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..db._watch import watch_on

    with connect(arguments) as conn:
        watch_on(conn, interval=arguments.interval, rounds=1 if arguments.once else None)
    return 0
