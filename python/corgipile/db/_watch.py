"""`watch`: the running trainings of the server, live."""

from __future__ import annotations

import contextlib
import html
import shutil
import sys
import time
from typing import Any, TextIO

from .._checks import called, check_number
from ._connections import connected
from ._optional import optional
from ._progress import Progress, running

#: Seconds between two looks, at most: a year. No system sleeps as long as a float can be.
_LONGEST = 365 * 86_400

_COLUMNS = ("pid", "user", "source", "epoch", "progress", "loss", "rows/s", "left")


def watch(conn: Any, *, interval: float = 1.0, rounds: int | None = None, file: TextIO | None = None) -> None:
    """Shows the running trainings of the server until it is interrupted with Ctrl-C.

    In a terminal and in a notebook the picture is updated in place; into a file or a pipe it is written again each
    time. For trainings that you may not see, only the process and the database are shown.

    Args:
        conn: as for `train`. Between updates it is not in a transaction, unless it was in one.
        interval: seconds between updates.
        rounds: number of updates; None: no limit.
        file: where to write; standard output by default.
    """
    with contextlib.suppress(KeyboardInterrupt):
        watch_on(conn, interval=interval, rounds=rounds, file=file)


def watch_on(conn: Any, *, interval: float = 1.0, rounds: int | None = None, file: TextIO | None = None) -> None:
    """The same, of which an interrupt is the caller's."""
    if isinstance(interval, bool) or not isinstance(interval, int | float):
        raise TypeError(f"interval: must be a number of seconds, not {called(interval)}")
    if not 0 <= interval <= _LONGEST:
        raise ValueError(f"interval is {interval}, and must be at least 0 seconds, and at most {_LONGEST}")
    if rounds is not None:
        check_number("rounds", rounds, 0, 2**62)
    if file is not None and not hasattr(file, "write"):
        raise TypeError(f"file: must be a file that is open for writing, not {called(file)}")
    seen = 0
    with connected(conn) as conn, contextlib.closing(_screen(file)) as screen:
        while rounds is None or seen < rounds:
            if seen:
                time.sleep(interval)
            with conn.transaction():
                found = running(conn)
            screen.show(found)
            seen += 1


def _screen(file: TextIO | None) -> Any:
    if file is None:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if type(shell).__name__ == "ZMQInteractiveShell":
            return _Notebook()
    out = file if file is not None else sys.stdout
    return _Terminal(out)


class _Terminal:
    """Lines that take the place of those before, if the file is a terminal."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._lines = file, 0
        self._is_live = file.isatty()

    def show(self, found: list[Progress]) -> None:
        width = shutil.get_terminal_size().columns if self._is_live else 120
        lines = [line[: width - 1] for line in text_of(found, width)]
        if self._is_live and self._lines:
            self._file.write(f"\x1b[{self._lines}F\x1b[J")
        self._file.write("\n".join(lines) + "\n")
        self._file.flush()
        self._lines = len(lines)

    def close(self) -> None:
        self._file.flush()


class _Notebook:
    """A table below the cell."""

    def __init__(self) -> None:
        self._display = optional("IPython.display")
        self._handle: Any = None

    def show(self, found: list[Progress]) -> None:
        assert self._display is not None, "a notebook has IPython"
        picture = self._display.HTML(html_of(found))
        if self._handle is None:
            self._handle = self._display.display(picture, display_id=True)
        else:
            self._handle.update(picture)

    def close(self) -> None:
        pass


def text_of(found: list[Progress], width: int = 120) -> list[str]:
    """The trainings as lines of text."""
    if not found:
        return ["no training runs"]
    bar = max(10, min(30, width - 75))
    rows = [_COLUMNS, *(_cells(progress, bar) for progress in found)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]


def html_of(found: list[Progress]) -> str:
    """The trainings as a table of HTML."""
    if not found:
        return "<p>no training runs</p>"
    head = "".join(f"<th scope='col' style='text-align:left'>{html.escape(name)}</th>" for name in _COLUMNS)
    rows = []
    for progress in found:
        cells = list(map(html.escape, _cells(progress, 0)))
        done, total = progress.epochs_done, progress.epochs_total or 1
        cells[4] = f"<progress max='{total}' value='{done:.3f}'></progress> {_percent(progress)}"
        rows.append("<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cells(progress: Progress, bar: int) -> tuple[str, ...]:
    if progress.epochs_total is None:
        return (str(progress.pid), "(not shown to you)", "", "", "", "", "", "")
    done = progress.epochs_done / progress.epochs_total if progress.epochs_total else 0.0
    filled = round(done * bar)
    return (
        str(progress.pid),
        printable(progress.user or ""),
        printable(progress.relation or "a query"),
        f"{progress.epoch or 0} of {progress.epochs_total}",
        f"{'█' * filled}{'░' * (bar - filled)} {_percent(progress)}".strip(),
        "" if progress.loss is None else f"{progress.loss:.4g}",
        "" if not progress.tuples_per_second else f"{progress.tuples_per_second:,.0f}",
        _duration(progress.seconds_left),
    )


def _percent(progress: Progress) -> str:
    return f"{100 * progress.epochs_done / progress.epochs_total:.0f}%" if progress.epochs_total else ""


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def printable(text: str) -> str:
    """A text without what could move the cursor or change colours in a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
