"""The command `corgipile-joader`.

Guarantees: results go to standard output, everything else to standard error; an error is one line, and the exit code is
1 (2 for wrong arguments, 130 for Ctrl-C, 143 for SIGTERM; `serve` ends with 0 by either).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from corgipile.cli import ending
from corgipile.cli.common import listed

PROGRAM = "corgipile-joader"

_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def _bytes(text: str) -> int:
    number = text.rstrip("BGKMTi")
    unit = text[len(number) :]
    try:
        return int(float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes such as 8GiB") from None


def _default_address() -> str:
    directory = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return f"unix:{directory}/joader"


def commands() -> dict[str, argparse.ArgumentParser]:
    """What each command takes."""
    return _parsers()[1]


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Read and prepare data once for many training jobs on this machine.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    made_by_name: dict[str, argparse.ArgumentParser] = {}

    def command(name: str, run: Callable[[argparse.Namespace], int], help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
        made.set_defaults(run=run)
        option = "--listen" if name == "serve" else "--address"
        where = "the socket (joader in $XDG_RUNTIME_DIR)"
        made_by_name[name] = made
        made.add_argument(option, dest="address", default=_default_address(), metavar="unix:PATH", help=where)
        return made

    serve = command("serve", _serve, "serve jobs until Ctrl-C")
    serve.add_argument("--memory", type=_bytes, default=2**30, metavar="BYTES", help="for elements (1GiB)")
    serve.add_argument("--threads", type=int, default=0, metavar="N", help="that read and prepare (processors)")
    serve.add_argument("--processes", type=int, default=0, metavar="N", help="that call Python (as many as threads)")
    serve.add_argument("--seed", type=int, default=0, metavar="N", help="names the order of elements (0)")
    serve.add_argument("--datasets", metavar="FILE", help="keep data sets there for the next start (forget them)")
    serve.add_argument("--metrics", metavar="HOST:PORT", help="answer Prometheus there, such as 127.0.0.1:9464")
    serve.add_argument("--leader", metavar="HOST:PORT", help="draw for several machines, whose servers come there")
    serve.add_argument("--follow", metavar="HOST:PORT", help="ask the leader there what jobs draw")
    serve.add_argument("--node", type=int, default=0, metavar="N", help="number of this machine, from 0 (0)")
    serve.add_argument("--nodes", type=int, default=1, metavar="N", help="number of machines (1)")
    serve.add_argument("--certificate", metavar="FILE", help="of the leader: its certificate, PEM")
    serve.add_argument("--key", metavar="FILE", help="of the leader: its certificate's key, PEM")
    serve.add_argument("--trust", metavar="FILE", help="of a follower: the certificate to trust, PEM")
    serve.add_argument("--name", metavar="NAME", help="of a follower: that in the certificate, if it is another one")
    serve.add_argument("--token", metavar="FILE", help="the secret that all servers share")
    serve.add_argument("--log", choices=("text", "json", "off"), default="text", help="on standard error (text)")
    for name, run, help in (
        ("create", _create, "give rows of files a name"),
        ("alter", _create, "give a data set other rows"),
    ):
        made = command(name, run, help)
        made.add_argument("name", help="of the data set")
        made.add_argument("path", help="of its files, or a pattern; the ending tells the format")
        made.add_argument("--columns", type=listed, metavar="NAME,...", help="that jobs may ask for (all)")
        made.add_argument("--element-size", default="auto", metavar="SIZE", help="rows, bytes, a share (auto)")
        samplers = ("dependent", "follow", "independent")
        sampler = made.add_argument("--sampler", choices=samplers, default="")
        sampler.help = "how jobs draw (dependent); follow reads less, but is uniform only if all want the same rows"
    command("drop", _drop, "forget a data set").add_argument("name", help="of the data set")
    command("list", _list, "show the data sets")
    command("status", _status, "show what the server and its jobs do, as JSON")
    top = command("top", _run_top, "show what the server and its jobs do, until Ctrl-C")
    top.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="between two looks (1)")
    top.add_argument("--once", action="store_true", help="look once")
    return parser, made_by_name


def _cluster(arguments: argparse.Namespace) -> Any:
    from ._cluster import Follower, Leader

    if arguments.leader and arguments.follow:
        raise ValueError("follow: a server that leads follows no one")
    if not arguments.leader and not arguments.follow:
        given = {"node": arguments.node != 0, "nodes": arguments.nodes != 1}
        given |= {name: bool(getattr(arguments, name)) for name in ("certificate", "key", "trust", "name", "token")}
        if alone := [f"--{name}" for name, is_given in given.items() if is_given]:
            raise ValueError(f"{' '.join(alone)}: a server of several machines needs --leader or --follow, too")
        return None
    needed = ("certificate", "key", "token") if arguments.leader else ("trust", "token")
    for name in needed:
        if not getattr(arguments, name):
            raise ValueError(f"{name}: servers talk with TLS and a token only: give --{' --'.join(needed)}")
    node, nodes, token = arguments.node, arguments.nodes, arguments.token
    if arguments.leader:
        return Leader(arguments.leader, node, nodes, arguments.certificate, arguments.key, token)
    return Follower(arguments.follow, node, nodes, arguments.trust, token, arguments.name)


def _serve(arguments: argparse.Namespace) -> int:
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    from . import _admin, _metrics

    metrics: list[_metrics.Metrics] = []

    def ready() -> None:
        if arguments.metrics:
            metrics.append(_metrics.Metrics(arguments.address, arguments.metrics))
        print(f"serving at {arguments.address}", flush=True)

    try:
        _admin.serve(
            arguments.address,
            memory=arguments.memory,
            threads=arguments.threads,
            processes=arguments.processes,
            seed=arguments.seed,
            log=arguments.log,
            cluster=_cluster(arguments),
            datasets=arguments.datasets,
            ready=ready,
            stop=ended.is_set,
        )
    finally:
        for server in metrics:
            server.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _create(arguments: argparse.Namespace) -> int:
    from corgipile.sources import open_path

    from . import _admin

    put = _admin.create if arguments.command == "create" else _admin.alter
    made = put(
        arguments.address,
        arguments.name,
        open_path(arguments.path, None),
        columns=arguments.columns,
        element_size=arguments.element_size,
        sampler=arguments.sampler,
    )
    print(f"{made['name']}: {made['rows']} rows in {made['elements']} elements")
    return 0


def _drop(arguments: argparse.Namespace) -> int:
    from . import _admin

    _admin.drop(arguments.address, arguments.name)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from . import _admin

    for made in _admin.datasets(arguments.address):
        if made["error"] is not None:
            print(f"{made['name']}: cannot be opened: {made['error']}")
            continue
        print(f"{made['name']}: {made['rows']} rows in {made['elements']} elements, {made['jobs']} jobs")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from . import _admin

    print(json.dumps(_admin.status(arguments.address)))
    return 0


def _run_top(arguments: argparse.Namespace) -> int:
    from . import _admin, _top

    if not arguments.interval >= 0:
        raise ValueError(f"interval: {arguments.interval} is not at least 0 seconds")
    before, shown, live = None, 0, sys.stdout.isatty()
    while True:
        status = _admin.status(arguments.address)
        lines = _top.lines_of(status, before)
        if live and shown:
            sys.stdout.write(f"\x1b[{shown}F\x1b[J")
        print("\n".join(lines), flush=True)
        before, shown = status, len(lines)
        if arguments.once:
            return 0
        time.sleep(arguments.interval)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    return ending.run(PROGRAM, lambda: _run(words))


def _run(words: list[str]) -> int:
    arguments = _parsers()[0].parse_args(words)
    return arguments.run(arguments)
