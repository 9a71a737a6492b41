"""`corgipile-joader top`: the activity of a server and its jobs, live."""

from __future__ import annotations

from typing import Any

from corgipile.db._watch import printable

_COLUMNS = ("job", "name", "data set", "process", "epoch", "left", "rows/s", "shared", "again", "outside", "held", "")


def lines_of(status: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """A status as lines of text; speeds are those since the one before, or since the jobs began."""
    delivered = status["bytes_loaded"] + status["bytes_saved"]
    saved = f" ({100 * status['bytes_saved'] / delivered:.0f}%)" if delivered else ""
    head = (
        f"memory {_bytes(status['used'])} of {_bytes(status['memory'])}, {status['elements']} elements; "
        f"read {_bytes(status['bytes_loaded'])}, saved {_bytes(status['bytes_saved'])}{saved}; "
        f"{status['evictions']} evicted, {status['errors']} errors; up {status['seconds']:.0f} s"
    )
    if not status["jobs"]:
        return [head, "no job"]
    earlier = {job["job"]: job for job in (before or {"jobs": []})["jobs"]}
    rows = [_COLUMNS, *(_cells(job, earlier.get(job["job"])) for job in status["jobs"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    return [head, *("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)]


def _cells(job: dict[str, Any], before: dict[str, Any] | None) -> tuple[str, ...]:
    rows, seconds = job["rows"], job["seconds"]
    if before is not None:
        rows, seconds = rows - before["rows"], seconds - before["seconds"]
    drawn = job["loads"] + job["merged"] + job["hits"]
    return (
        str(job["job"]),
        printable(job["name"]),
        printable(job["data_set"]),
        str(job["process"]),
        str(job["epoch"]),
        str(job["left"]),
        f"{rows / seconds:,.0f}" if seconds > 0 else "",
        f"{100 * (job['merged'] + job['hits']) / drawn:.0f}%" if drawn else "",
        str(job["again"]),
        str(job["outside"]),
        str(job["held"]),
        "stalled" if job["stalled"] else f"{job['errors']} errors" if job["errors"] else "",
    )


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
