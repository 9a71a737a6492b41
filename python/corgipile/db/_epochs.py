"""The result of a training: a table with one row per epoch that knows its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._connections import Notice
from ._table import Table

if TYPE_CHECKING:
    from ._model import Model


class Epochs(Table):
    """The result of `train`: a table with one row per epoch that knows its model.

    A grid or groups train several models, each with its own rows. The columns are those of `corgipile_train`.

    Attributes:
        model_ids: the ids of the models, in the order of the rows.
        names: a dict of id to the model's name, or None.
        notices: the notices of the server, a list of `Notice`.
        source: the training source.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        names: dict[int, str | None],
        notices: list[Notice],
        source: str,
    ) -> None:
        super().__init__(columns, rows, notices)
        self.model_ids = list(names)
        self.names, self.source = names, source

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

    def model(self, conn: Any, model_id: int | None = None) -> Model:
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
