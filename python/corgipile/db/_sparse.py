"""Rows of which only some features are there: entries of indices and values, row after row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._text import number_of_text, whole_of_text
from ._document import Document
from ._inputs import narrow

#: Entries, with those that fill up short rows, of one batch.
_AT_ONCE = 1 << 21


@dataclass
class Entries:
    """The entries of row i are those from starts[i] to starts[i + 1], by ascending index."""

    starts: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: NDArray[np.float32]
    answered: NDArray[np.bool_]

    def batches(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
        """Rows, and their entries with as many columns as the longest row has; short ones end in zeros at index 0.
        Rows of like length go together."""
        lengths = np.diff(self.starts)
        order = np.argsort(-lengths, kind="stable")
        first = 0
        while first < len(order):
            longest = max(1, int(lengths[order[first]]))
            rows = order[first : first + max(1, _AT_ONCE // longest)]
            places = np.arange(longest)
            there = places < lengths[rows, None]
            at = np.where(there, self.starts[rows, None] + places, 0)
            if len(self.indices):
                indices, values = np.where(there, self.indices[at], 0), np.where(there, self.values[at], np.float32(0))
            else:
                indices, values = np.zeros(at.shape, np.int64), np.zeros(at.shape, np.float32)
            yield rows, indices, values
            first += len(rows)


def entries_of_csr(document: Document, rows: Any, handle_unknown: str) -> Entries:
    """The entries of a sparse matrix of scipy's, whose column j is the j-th index from the smallest on."""
    lengths = np.diff(rows.indptr)
    of_row = np.repeat(np.arange(len(lengths)), lengths)
    values = narrow(rows.data.astype(np.float64), lambda at: f"row {of_row[at[0]]} of X")
    answered = np.ones(len(lengths), bool)
    if np.isnan(values).any():
        raise ValueError(f"row {of_row[int(np.argmax(np.isnan(values)))]} of X has NaN, where what is not there is 0")
    return _ordered(document, of_row, rows.indices.astype(np.int64), values, answered, handle_unknown)


def entries_of_pairs(document: Document, indices: Any, values: Any, nulls: str, handle_unknown: str) -> Entries:
    """The entries of a column of arrays of indices and one of values."""
    index_name, value_name = document.features
    answered = np.ones(len(indices), bool)
    rows: list[int] = []
    all_indices: list[Any] = []
    all_values: list[Any] = []
    for row, (some, of) in enumerate(zip(indices, values)):
        missing = _null_among(index_name, some) or _null_among(value_name, of)
        if missing:
            if nulls == "error":
                raise ValueError(f"feature {missing!r}, row {row}: NULL, which nothing can stand for")
            answered[row] = False
            continue
        if len(some) != len(of):
            raise ValueError(f"row {row}: {len(some)} indices in {index_name!r}, {len(of)} values in {value_name!r}")
        rows.extend([row] * len(some))
        all_indices.extend(some)
        all_values.extend(of)
    places = np.array(all_indices, np.float64)
    if (places != np.floor(places)).any():
        raise ValueError(f"feature {index_name!r} has indices that are not whole")
    reals = narrow(np.array(all_values, np.float64), lambda at: f"feature {value_name!r}, row {rows[at[0]]}")
    of_row = np.array(rows, np.int64)
    base = document.index_base or 0
    return _ordered(document, of_row, places.astype(np.int64) - base, reals, answered, handle_unknown)


def entries_of_vectors(document: Document, vectors: Any) -> Entries:
    """The entries of a column of sparse vectors: texts as pgvector writes them, or mappings of indices, from 1."""
    name = document.features[0]
    rows: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    answered = np.ones(len(vectors), bool)
    for row, vector in enumerate(vectors):
        if vector is None:
            answered[row] = False
            continue
        for index, value in _vector(document, name, row, vector).items():
            rows.append(row)
            indices.append(int(index) - 1)
            values.append(float(value))
    reals = narrow(np.array(values, np.float64), lambda at: f"feature {name!r}, row {rows[at[0]]}")
    return _ordered(document, np.array(rows, np.int64), np.array(indices, np.int64), reals, answered, "error")


def _vector(document: Document, name: str, row: int, vector: Any) -> Mapping[Any, Any]:
    if isinstance(vector, Mapping):
        return vector
    text, _, dimensions = str(vector).rpartition("/")
    if not (text.startswith("{") and text.endswith("}") and dimensions.isascii() and dimensions.isdigit()):
        raise TypeError(f"feature {name!r}, row {row}: no sparse vector, such as '{{1:0.5,3:2}}/5' or {{1: 0.5, 3: 2}}")
    if int(dimensions) != document.width:
        raise ValueError(f"feature {name!r}, row {row}: {dimensions} dimensions, and the model has {document.width}")
    entries: dict[int, float] = {}
    for pair in filter(None, text[1:-1].split(",")):
        index, _, value = pair.partition(":")
        try:
            place, number = whole_of_text(index), number_of_text(value)
        except ValueError as error:
            raise ValueError(f"feature {name!r}, row {row}: {error}") from None
        if place in entries:
            raise ValueError(f"feature {name!r}, row {row}: index {place} appears twice")
        entries[place] = number
    return entries


def _null_among(name: str, array: Any) -> str | None:
    if array is None or isinstance(array, float):
        return name
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        return None
    return f"{name}[...]" if any(value is None or value != value for value in array) else None


def _ordered(
    document: Document,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    values: NDArray[np.float32],
    answered: NDArray[np.bool_],
    handle_unknown: str,
) -> Entries:
    """Entries in order, without those that the model does not know."""
    base = document.index_base or 0
    if (places < 0).any():
        at = int(np.argmax(places < 0))
        raise ValueError(f"row {rows[at]}: index {places[at] + base} is below {base}, the model's smallest")
    beyond = places >= document.width
    if beyond.any():
        if handle_unknown == "error":
            at = int(np.argmax(beyond))
            last = document.width - 1 + base
            raise ValueError(f"row {rows[at]}: index {places[at] + base} is beyond {last}, the model's largest")
        rows, places, values = rows[~beyond], places[~beyond], values[~beyond]
    order = np.lexsort((places, rows))
    rows, places, values = rows[order], places[order], values[order]
    twice = (rows[1:] == rows[:-1]) & (places[1:] == places[:-1])
    if twice.any():
        at = int(np.argmax(twice))
        raise ValueError(f"row {rows[at]}: index {places[at] + base} appears twice")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(answered)))]).astype(np.int64)
    return Entries(starts, places, values, answered)
