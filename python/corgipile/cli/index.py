"""`index`: builds indexes of files, so that their rows can be read in blocks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

HELP = "write indexes next to files, so that their rows can be read in blocks"
DESCRIPTION = "Write indexes next to TFRecord, tar, CSV and LIBSVM files, so that their rows can be read in blocks."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")


def run(arguments: argparse.Namespace) -> int:
    return run_with(arguments.files)


def run_with(words: Sequence[str]) -> int:
    """Everything behind `index` is for the module that writes indexes."""
    from .. import index  # type: ignore[attr-defined]

    return index.main(list(words)) or 0
