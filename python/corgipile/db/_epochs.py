"""The result of a training: a table with one row per epoch that knows its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ._connections import Notice
from ._optional import optional, required

if TYPE_CHECKING:
    import psycopg

    from ._model import Model

#: What the table knows besides its rows.
_ATTRIBUTES = ("model_ids", "names", "notices", "source")


class _Trained:
    """The result of `train`: a table with one row per epoch that knows its model; a data frame if pandas is installed.

    A grid or groups train several models, each with its own rows. The columns are those of `corgipile_train`.

    Attributes:
        model_ids: the ids of the models, in the order of the rows.
        names: a dict of id to the model's name, or None.
        notices: the notices of the server, a list of `Notice`.
        source: the training source.
    """

    model_ids: list[int]
    names: dict[int, str | None]
    notices: list[Notice]
    source: str

    @property
    def model_id(self) -> int:
        """The id of the model.

        Raises:
            ValueError: a grid or groups have trained several models.
        """
        if len(self.model_ids) != 1:
            raise ValueError(f"{len(self.model_ids)} models were trained: choose one of model_ids")
        return self.model_ids[0]

    @property
    def name(self) -> str | None:
        """The model's name, None if it has none."""
        return self.names[self.model_id]

    def model(self, conn: psycopg.Connection[Any], model_id: int | None = None) -> Model:
        """The model, for predictions without the database; of several models, the one with this id."""
        from ._model import Model

        return Model.from_database(conn, self.model_id if model_id is None else model_id)

    def plot(self, axes: Any = None) -> Any:
        """Plots loss and score by epoch, for the training and the held-out rows; needs matplotlib.

        Args:
            axes: two axes of matplotlib to plot into; new ones by default.

        Returns:
            The figure.
        """
        from ._plot import plot_epochs

        return plot_epochs(self, axes)


class Epochs(_Trained):
    """A table with one row per epoch and the columns of `corgipile_train`, if pandas is not installed."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.columns = list(columns)
        self.rows = [tuple(row) for row in rows]

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

    def to_pandas(self) -> Any:
        """The same as a data frame of pandas."""
        return frame_class()(self.rows, columns=self.columns)

    def __repr__(self) -> str:
        shown = [c for c in self.columns if any(value is not None for value in self[c])]
        cells = [shown] + [[_text(value) for value in row] for row in zip(*(self[c] for c in shown))]
        widths = [max(len(row[i]) for row in cells) for i in range(len(shown))]
        return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, widths)) for row in cells)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@cache
def frame_class() -> Any:
    """The class of tables of epochs where pandas is installed: a DataFrame."""
    pandas = required("pandas", "a data frame")

    class EpochsFrame(_Trained, pandas.DataFrame):
        """A data frame with a row per epoch and the columns of `corgipile_train`."""

        _metadata = list(_ATTRIBUTES)  # noqa: RUF012 - pandas wants a list

        @property
        def _constructor(self) -> Any:
            return pandas.DataFrame  # a part of the table is not a training any more

    EpochsFrame.__qualname__ = "EpochsFrame"  # by which pickle finds it, through __getattr__ below
    return EpochsFrame


def __getattr__(name: str) -> Any:
    if name == "EpochsFrame":
        return frame_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    names: dict[int, str | None],
    notices: list[Notice],
    source: str,
) -> Any:
    """The table of a training."""
    made = frame_class()(rows, columns=list(columns)) if optional("pandas") else Epochs(columns, rows)
    made.model_ids = list(names)
    made.names, made.notices, made.source = names, notices, source
    return made
