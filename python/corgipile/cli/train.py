"""`train`: a training in the database."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .common import add_connection, connect, listed

HELP = "train a model in the database"
DESCRIPTION = "Train a model on a table in the database and store it there. A row per epoch goes to standard output."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="a table or view as SQL names it, or a query")
    parser.add_argument(
        "--model",
        default="logistic",
        help="logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, "
        "squared_hinge, squared_hinge_one_vs_rest, mlp or mlp_regression",
    )
    parser.add_argument("--label", help="the column to predict ('label')")
    parser.add_argument("--features", help="columns, with commas between them")
    parser.add_argument("--name", help="the model's name")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="any other argument or option of corgipile_train; VALUE is JSON, or a text",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write epochs as lines of JSON")
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    from ..db import train

    given: dict[str, Any] = dict(map(_setting, arguments.settings))
    if "model" in given:
        raise ValueError("model is given by --model, not by --set")
    for name in ("label", "name", "features"):
        if name in given and getattr(arguments, name) is not None:
            raise ValueError(f"{name} is given twice, by --{name} and by --set")
    for name in ("label", "name"):
        if getattr(arguments, name) is not None:
            given[name] = getattr(arguments, name)
    if arguments.features is not None:
        given["features"] = listed(arguments.features)
    with connect(arguments) as conn:
        epochs = train(conn, arguments.source, model=arguments.model, **given)
    if not sys.stderr.isatty():
        for notice in epochs.notices:  # the bar has told them in a terminal
            print(f"{notice.severity}: {notice}", file=sys.stderr)
    _print(epochs, arguments.json)
    return 0


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"--set {text!r} is not KEY=VALUE")
    try:
        return key, json.loads(value, parse_constant=_no_json)
    except ValueError:
        return key, value


def _no_json(constant: str) -> Any:
    raise ValueError(constant)  # NaN and Infinity are words of Python's, and plain text to others


def _print(epochs: Any, as_json: bool) -> None:
    columns = list(epochs.columns)
    rows = list(zip(*(list(epochs[column]) for column in columns)))
    there = [column for i, column in enumerate(columns) if any(_is_there(row[i]) for row in rows)]
    if as_json:
        for row in rows:
            said = {column: value if _is_there(value) else None for column, value in zip(columns, row)}
            print(json.dumps(said, default=_plain))
        return
    print("\t".join(there))
    for row in rows:
        values = dict(zip(columns, row))
        print("\t".join(_text(values[column]) for column in there))


def _is_there(value: Any) -> bool:
    return value is not None and value == value


def _plain(value: Any) -> Any:
    return value.item()


def _text(value: Any) -> str:
    if not _is_there(value):
        return ""
    if isinstance(value, dict):
        return json.dumps(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
