"""`python -m corgipile index FILE`: builds the index of files that do not contain the positions of their rows."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from corgipile import _native
from corgipile._checks import check_character, check_flag, check_function, check_path

# What a path's last part says about its format.
FORMATS = {
    **dict.fromkeys([".tfrecord", ".tfrecords"], "tfrecord"),
    **dict.fromkeys([".libsvm", ".svm", ".svmlight"], "libsvm"),
    **dict.fromkeys([".csv", ".tsv"], "csv"),
    ".tar": "webdataset",
}

# Formats that know where their rows are.
NEEDLESS = (".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc")


def build_index(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    header: bool = True,
    delimiter: str | None = None,
    quote: str = '"',
    directory: str | os.PathLike[str] | None = None,
    force: bool = False,
    skip_damaged: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, Any]:
    """Builds the index of a file; an interrupted build continues where it stopped.

    `format` is "tfrecord", "webdataset", "csv" or "libsvm"; by default it follows from the file's ending. `header`,
    `delimiter` and `quote` must be those with which the CSV file will be opened. The index is written next to the file,
    or into `directory`. An index that matches the file is kept, unless `force`. With `skip_damaged`, rows after damage
    are left out. `progress` is called with the number of bytes done and the total.

    Returns a description of the index: its `path`, `rows`, `units`, the byte at which an interrupted build was
    continued (`resumed_at`), `damage` with its position, if any, and whether it was `built` now.
    """
    file = check_path("path", path)
    check_function("progress", progress)
    ending = os.path.splitext(file)[1].lower()
    chosen = format or FORMATS.get(ending)
    if chosen is None:
        if ending in NEEDLESS:
            raise ValueError(f"{file} needs no index: files that end with {ending} know where their rows are")
        known = ", ".join(sorted(FORMATS))
        raise ValueError(f"{file} ends with none of {known}: say its format")
    between = delimiter or ("\t" if ending == ".tsv" else ",")
    characters = check_character("delimiter", between), check_character("quote", quote)
    where = None if directory is None else check_path("directory", directory)
    on_error = "skip" if skip_damaged else "raise"
    given = check_flag("header", header), *characters, where, check_flag("force", force), on_error, progress
    return _native.build_index(file, chosen, *given)


class Bar:
    """A bar of progress on a terminal's one line."""

    def __init__(self, name: str) -> None:
        self._name, self._begun, self._first = name, time.monotonic(), None
        self.done = self.total = 0

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        if total and sys.stderr.isatty():
            if self._first is None:
                self._first = done
            sys.stderr.write(f"\r{self.line(shutil.get_terminal_size().columns - 1)}")
            sys.stderr.flush()

    def line(self, width: int) -> str:
        """The bar, in this many characters."""
        share = self.done / self.total
        seconds = time.monotonic() - self._begun
        rate = (self.done - (self._first or 0)) / seconds if seconds > 0.5 else 0
        left = f", {(self.total - self.done) / rate:.0f} s left" if rate else ""
        numbers = f" {100 * share:3.0f}% of {self.total / 1e9:.2f} GB{left}"
        room = max(width - len(self._name) - len(numbers) - 3, 0)
        full = round(share * room)
        return f"{self._name} [{'#' * full}{' ' * (room - full)}]{numbers}"[:width].ljust(width)

    def close(self) -> None:
        """Leaves the line."""
        if self._first is not None:
            sys.stderr.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            sys.stderr.flush()


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    arguments = argparse.ArgumentParser(
        prog="python -m corgipile index",
        description="Build the index of TFRecord, WebDataset, CSV or LIBSVM files, so that they can be read in blocks. "
        "What was interrupted goes on where it was.",
    )
    arguments.add_argument("files", nargs="+", metavar="FILE")
    arguments.add_argument("--format", choices=sorted(set(FORMATS.values())), help="default: by the file's ending")
    arguments.add_argument("--no-header", action="store_true", help="CSV: the first row has no names of columns")
    arguments.add_argument("--delimiter", help="CSV: what is between values (default: , and of .tsv files a tab)")
    arguments.add_argument("--quote", default='"', help='CSV: what is around values (default: ")')
    arguments.add_argument("--directory", help="where the index goes (default: next to its file)")
    arguments.add_argument("--force", action="store_true", help="build it even if there is one")
    arguments.add_argument("--skip-damaged", action="store_true", help="leave rows out that are behind damage")
    arguments.add_argument("--quiet", action="store_true", help="say nothing but errors")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = parser().parse_args(argv)
    status = 0
    for path in options.files:
        bar = Bar(os.path.basename(path))
        try:
            built = build_index(
                path,
                format=options.format,
                header=not options.no_header,
                delimiter=options.delimiter,
                quote=options.quote,
                directory=options.directory,
                force=options.force,
                skip_damaged=options.skip_damaged,
                progress=None if options.quiet else bar,
            )
        except KeyboardInterrupt as interrupt:
            bar.close()
            print(f"corgipile: {path}: interrupted; the same command goes on where it was", file=sys.stderr)
            return 128 + interrupt.args[0] if interrupt.args else 130
        except (OSError, ValueError, _native.SourceError) as error:
            bar.close()
            told = str(error) if path in str(error) else f"{path}: {error}"
            print(f"corgipile: {told}", file=sys.stderr)
            status = 1
            continue
        bar.close()
        if not options.quiet:
            print(_told(path, built))
    return status


def _told(path: str, built: dict[str, Any]) -> str:
    what = f"{built['rows']} rows in {built['units']} units, index in {built['path']}"
    if not built["built"]:
        return f"{path}: has an index already: {what}"
    if built["resumed_at"]:
        what += f", taken up at byte {built['resumed_at']}"
    if built["damage"]:
        offset, why = built["damage"]
        what += f"; the rest left out, from byte {offset} on: {why}"
    return f"{path}: {what}"
