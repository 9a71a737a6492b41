"""What a call of the database returns: a table, whatever is installed."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from typing import Any

from ._optional import required

#: Rows that a table shows of itself.
_SHOWN = 20


class Table:
    """Rows with named columns; a notebook shows it as a table.

    `table["loss"]` is a column, as a list, `table.rows` a list of tuples, and `list(table)` the names of the columns.

    Attributes:
        columns: the names of the columns.
        rows: the rows.
        notices: the notices of the server, a list of `Notice`.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], notices: Sequence[Any] = ()) -> None:
        self.columns = list(columns)
        self.rows = [tuple(row) for row in rows]
        self.notices = list(notices)

    def __getitem__(self, column: str) -> list[Any]:
        try:
            place = self.columns.index(column)
        except ValueError:
            raise KeyError(f"{column!r}; columns are {', '.join(self.columns)}") from None
        return [row[place] for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return (self.columns, self.rows) == (other.columns, other.rows)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def _ipython_key_completions_(self) -> list[str]:
        return self.columns

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        return [dict(zip(self.columns, row)) for row in self.rows]

    def to_pandas(self) -> Any:
        """The same as a data frame of pandas."""
        return required("pandas", "a data frame").DataFrame(self.rows, columns=self.columns)

    def to_arrow(self) -> Any:
        """The same as a table of pyarrow."""
        pyarrow = required("pyarrow", "a table of Arrow")
        return pyarrow.table({name: pyarrow.array(_plain(self[name])) for name in self.columns})

    def __repr__(self) -> str:
        shown = [name for name in self.columns if any(value is not None for value in self[name])] or self.columns
        cells = [shown] + [[_text(value) for value in row] for row in zip(*(self[name][:_SHOWN] for name in shown))]
        widths = [max(len(row[i]) for row in cells) for i in range(len(shown))]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths)) for row in cells]
        return "\n".join(lines + self._more())

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(value))}</td>" for value in row) + "</tr>"
            for row in self.rows[:_SHOWN]
        )
        more = "".join(f"<p>{html.escape(line)}</p>" for line in self._more())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def _more(self) -> list[str]:
        return [f"... {len(self.rows):,} rows"] if len(self.rows) > _SHOWN else []


def _plain(values: list[Any]) -> list[Any]:
    # a column of JSON has objects of any structure, for which Arrow has no type
    return [json.dumps(value, default=str) if isinstance(value, dict) else value for value in values]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
