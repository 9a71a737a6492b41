"""Progress of trainings, from `corgipile.stat_progress_train`, over a second connection."""

from __future__ import annotations

import sys
import threading
import warnings
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .._checks import check_number
from ._connections import beside, connected, is_psycopg2
from ._extension import select
from ._optional import optional, required

_QUERY = """
SELECT p.pid, p.datname, p.usename, p.relation::text, p.epoch, p.epochs_total, p.blocks_done, p.blocks_total, p.loss,
       p.tuples, p.tuples_per_second, p.started_at, p.estimated_end, pg_catalog.clock_timestamp()
  FROM corgipile.stat_progress_train AS p
 WHERE p.pid = %(pid)s OR %(pid)s::int IS NULL
 ORDER BY p.started_at, p.pid
"""


@dataclass(frozen=True)
class Progress:
    """A row of `corgipile.stat_progress_train`; for trainings that you may not see, most of it is None."""

    pid: int
    database: str | None
    user: str | None
    relation: str | None
    epoch: int | None
    epochs_total: int | None
    blocks_done: int | None
    blocks_total: int | None
    loss: float | None
    tuples: int | None
    tuples_per_second: float | None
    started_at: datetime | None
    estimated_end: datetime | None
    now: datetime

    @property
    def epochs_done(self) -> float:
        """Epochs that are over, with the part of the one under way; those of a pass before the first do not count."""
        if not self.epoch:
            return 0.0
        share = min(1.0, (self.blocks_done or 0) / self.blocks_total) if self.blocks_total else 0.0
        return min(float(self.epochs_total or 0), self.epoch - 1 + share)

    @property
    def seconds_left(self) -> float | None:
        if self.estimated_end is None:
            return None
        return max(0.0, (self.estimated_end - self.now).total_seconds())


def running(conn: Any, pid: int | None = None) -> list[Progress]:
    """The running trainings of the server, or that of one process."""
    if pid is not None:
        check_number("pid", pid, 0)
    with connected(conn) as conn:
        return [Progress(*row) for row in select(conn, _QUERY, {"pid": pid})[1]]


class Bar:
    """A tqdm bar that follows a call of a connection, as a context manager: its training, if it is one.

    It asks the server over its own connection, in its own thread, because the training's connection is busy. If it
    cannot connect, a warning says so, and the training continues without a bar.
    """

    def __init__(self, conn: Any, what: str = "training", interval: float = 0.2) -> None:
        self._conn, self._what, self._interval = conn, what, interval
        self._pid = conn.info.backend_pid
        self._tqdm = required("tqdm.auto", "progress=True", "tqdm").tqdm
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.bar: Any = None

    def __enter__(self) -> Bar:
        driver: Any = required("psycopg2" if is_psycopg2(self._conn) else "psycopg", "a database connection")
        try:
            self._watching = beside(self._conn, "progress")
        except driver.OperationalError as error:
            warnings.warn(f"no progress is shown: {str(error).splitlines()[0]}", RuntimeWarning, stacklevel=3)
            return self
        self.bar = self._tqdm(total=1.0, desc=self._what, bar_format=_FORMAT, leave=True)
        self._thread = threading.Thread(target=self._follow, name="corgipile progress", daemon=True)
        self._thread.start()
        return self

    def write(self, text: str) -> None:
        """A line above the bar."""
        if self.bar is not None:
            self._tqdm.write(text, file=sys.stderr)

    def done(self, epochs: int) -> None:
        """The training is over, after this many epochs."""
        self._stop()
        if self.bar is not None:
            self.bar.total = self.bar.n = epochs
            self.bar.set_description_str("trained", refresh=False)
            self.bar.refresh()

    def _stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._stop()
        if self.bar is not None:
            if kind is None and self.bar.n == 0:
                self.bar.n = self.bar.total  # a call that is over, of which no one says how far it was
            self.bar.close()

    def _follow(self) -> None:
        with self._watching as watching:
            while not self._over.wait(self._interval):
                try:
                    found = running(watching, self._pid)
                except Exception:  # the server is gone: the training's own connection says so
                    return
                if found:
                    self._show(found[0])
                else:
                    self.bar.refresh()

    def _show(self, progress: Progress) -> None:
        self.bar.total = progress.epochs_total or 1
        self.bar.n = progress.epochs_done
        self.bar.set_description_str("preparing" if not progress.epoch else f"epoch {progress.epoch}", refresh=False)
        said = {}
        if progress.loss is not None:
            said["loss"] = f"{progress.loss:.4g}"
        if progress.tuples_per_second:
            said["rows/s"] = f"{progress.tuples_per_second:,.0f}"
        self.bar.set_postfix(said, refresh=False)
        self.bar.refresh()


_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {n:.1f}/{total:.0f} epochs [{elapsed}<{remaining}{postfix}]"


def is_wanted(progress: bool | None) -> bool:
    """Whether to show a bar: None means in a terminal or a notebook, if tqdm is installed."""
    if progress is not None:
        return progress
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return optional("tqdm") is not None and (sys.stderr.isatty() or type(shell).__name__ == "ZMQInteractiveShell")
