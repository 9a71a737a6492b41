"""Map-style data sets (`len(dataset)`, `dataset[i]`), read in blocks of consecutive items.

This serves data sets whose neighbouring items are stored together: an array in a file, frames of a video, records of a
large file. A thread reads their items ahead, in sequence within a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from corgipile import _native
from corgipile._checks import check_function, check_number
from corgipile._collate import collate as collate_samples


class MapStyle:
    """A map-style data set as a source; made by `corgipile.map_style`."""

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any], fingerprint: int) -> None:
        self.dataset, self.collate, self._fingerprint = dataset, collate, fingerprint
        self._native = self._items().source

    def _items(self) -> _native.Items:
        return _native.items(self.dataset, len(self.dataset), self._fingerprint)

    @property
    def native(self) -> _native.Source:
        """The numbers of the items."""
        if self._native is None:
            self._native = self._items().source
        return self._native

    def __len__(self) -> int:
        return len(self.dataset)

    def __repr__(self) -> str:
        return f"map_style({type(self.dataset).__name__} of {len(self):,} items)"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None}

    def read(
        self, plan_of: Callable[[_native.Source], _native.Plan], *, items: bool = False, **of: int
    ) -> Iterator[Any]:
        """The batches of a reader of its own, or the lists of their items."""
        collate = list if items else self.collate
        opened = self._items()
        # one thread: few data sets can be asked by several at once
        reader = plan_of(opened.source).reader(**of, threads=1)
        try:
            while True:
                try:
                    numbers = next(reader)
                except StopIteration:
                    return
                except Exception:
                    # what the data set raised is better than what is reported of it
                    if (error := opened.error()) is not None:
                        raise error from None
                    raise
                yield collate(opened.take(numbers["item"]))
        finally:
            reader.close()


def map_style(dataset: Any, *, collate: Callable[[list[Any]], Any] = collate_samples, fingerprint: int = 0) -> MapStyle:
    """The items of a map-style data set, such as those of torchvision, as a source.

    Args:
        dataset: an object with `len(dataset)` and `dataset[i]`. If it has `__getitems__`, many items are fetched at
            once.
        collate: a function that turns the list of a batch's items into a batch. By default numbers, arrays and tensors
            are stacked.
        fingerprint: identifies this data set in `load_state_dict`, among others of the same length.
    """
    for name in ("__len__", "__getitem__"):
        if not hasattr(dataset, name):
            raise TypeError(f"dataset: {type(dataset).__name__} has no {name}")
    check_function("collate", collate)
    check_number("fingerprint", fingerprint, 0, 2**64 - 1)
    return MapStyle(dataset, collate, fingerprint)
