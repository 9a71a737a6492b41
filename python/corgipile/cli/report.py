"""`report`: models as a page of HTML."""

from __future__ import annotations

import argparse
from typing import Any

from .common import add_connection, bar, connect

HELP = "write a page on models, with curves and choices"
DESCRIPTION = "Write a report on a model of the database, or on several to compare them, as one HTML file."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a name, or an id")
    parser.add_argument("--versions", metavar="N,N", help="of one name these versions, to compare them")
    parser.add_argument("--source", help="rows to predict: a table or a query (what validation_column held out)")
    parser.add_argument("--max-rows", type=int, default=20_000, metavar="N", help="the largest sample (20000)")
    parser.add_argument("--title", help="the page's title")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the file to write (report.html)")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..db import report

    models: list[Any] = arguments.models
    if arguments.versions is not None:
        if len(models) != 1:
            raise ValueError("--versions goes with one name")
        versions = arguments.versions.split(",")
        if not all(version.strip().isdecimal() for version in versions):
            raise ValueError(f"--versions {arguments.versions!r} is not numbers with commas between them")
        models = [(models[0], int(version)) for version in versions]
    with connect(arguments) as conn, bar("report", None, "") as progress:
        path = report(
            conn, models, arguments.source, arguments.output, max_rows=arguments.max_rows, title=arguments.title
        )  # fmt: skip
        progress.update()
    print(path)
    return 0
