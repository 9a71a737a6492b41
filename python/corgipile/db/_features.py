"""Rows as the features of a model's weights.

Guarantees: a row becomes the same numbers as in the extension: categories and buckets, parts of dates, means for NULLs.
Invalid values are refused with the name of the feature and the row, before anything is computed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._text import number_of_text
from . import _dates, _json, _written
from ._document import Categories, Document, Vector, Words
from ._hashing import xxh3_64
from ._inputs import NamedColumns, narrow, numbers, texts
from ._sparse import Entries, entries_of_csr, entries_of_pairs, entries_of_vectors

#: Values of type char(n) come with blanks, which are no part of them in SQL; in a text they are.
_BLANKS = "it is known without the blanks at its end: if the column is of type char(n), cut them off"

#: Frames from a warning to anyone who has called `predict`, or a function like it.
_CALLER = 8


@dataclass
class Dense:
    """Rows with a number for each feature, and which of them have an answer."""

    values: NDArray[np.float32]
    answered: NDArray[np.bool_]


@dataclass(frozen=True)
class Policies:
    """What becomes of NULLs, and of what the model has not seen."""

    nulls: str
    handle_unknown: str

    @staticmethod
    def of(document: Document, nulls: str | None, handle_unknown: str | None) -> Policies:
        """Those of the model, unless the call says something else."""
        for argument, word, known in (
            ("nulls", nulls, ("impute", "skip", "error")),
            ("handle_unknown", handle_unknown, ("ignore", "error")),
        ):
            if word is not None and word not in known:
                raise ValueError(f"{argument} is {word!r}, and must be one of {', '.join(known)}")
        if nulls == "impute" and document.nulls != "impute":
            raise ValueError("nulls='impute' needs a model that was trained so: this one knows no means")
        return Policies(nulls or document.nulls, handle_unknown or document.handle_unknown)


def features(document: Document, rows: Any, policies: Policies) -> Dense | Entries:
    """The features of rows, which [`rows_of`] has read."""
    if hasattr(rows, "indptr"):
        return _of_csr(document, rows, policies)
    if document.feature_kind == "columns":
        return _of_columns(document, rows, policies)
    if not isinstance(rows, NamedColumns):
        return _of_matrix(document, rows, policies)
    columns = [_column(document, rows, name) for name in document.features]
    if document.feature_kind == "array":
        return _of_arrays(document, columns[0], policies)
    if len(columns) == 1:
        return entries_of_vectors(document, columns[0])
    return entries_of_pairs(document, columns[0], columns[1], policies.nulls, policies.handle_unknown)


def input_columns(document: Document) -> list[str]:
    """The columns that the features are taken from: a date, JSON or text once, in place of its parts."""
    if document.feature_kind != "columns":
        return list(document.features)
    return list(dict.fromkeys(_column_of(feature) for feature in document.features))


def _column_of(feature: str) -> str:
    return (_json.split(feature) or _written.split(feature) or _dates.split(feature) or (feature,))[0]


def feature_name(document: Document, place: int) -> str:
    """What the number at this place is called."""
    if document.feature_kind == "columns":
        for name, column in zip(document.features, document.columns):
            width = column.width if isinstance(column, Vector) else 1
            if place < width:
                return f"{name}[{place + 1}]" if isinstance(column, Vector) else name
            place -= width
    return f"{document.features[-1]}[{place + (1 if document.index_base is None else document.index_base)}]"


def _column(document: Document, rows: NamedColumns, name: str) -> Any:
    if name not in rows.columns:
        wanted = ", ".join(map(repr, input_columns(document)))
        given = ", ".join(map(repr, rows.columns)) or "none"
        raise ValueError(f"X has no column {name!r}: the model's features are {wanted}; the columns of X are {given}")
    return rows.columns[name]


def _of_matrix(document: Document, rows: NDArray[Any], policies: Policies) -> Dense:
    if rows.shape[1] != document.width:
        raise ValueError(
            f"X has {rows.shape[1]} features, and the model {document.width}: {', '.join(map(repr, document.features))}"
        )
    if rows.dtype.kind not in "biuf":
        columns = [numbers(feature_name(document, i), rows[:, i]) for i in range(document.width)]
        return _filled(document, np.stack(columns, axis=1), policies)
    values = narrow(rows.astype(np.float64), lambda at: f"feature {feature_name(document, at[1])!r}, row {at[0]}")
    return _filled(document, values, policies)


def _filled(document: Document, values: NDArray[np.float32], policies: Policies) -> Dense:
    """Dense features with something in place of NULLs."""
    missing = np.isnan(values)
    if not missing.any():
        return Dense(values, np.ones(len(values), bool))
    if policies.nulls == "skip":
        return Dense(np.where(missing, np.float32(0), values), np.logical_not(missing.any(axis=1)))
    if policies.nulls == "impute" and document.fill is not None:
        return Dense(np.where(missing, document.fill, values), np.ones(len(values), bool))
    row, place = np.argwhere(missing)[0]
    raise _null(feature_name(document, int(place)), int(row))


def _null(feature: str, row: int) -> ValueError:
    return ValueError(f"feature {feature!r}, row {row}: NULL, and the model knows nothing to take in its place")


def _of_arrays(document: Document, column: Any, policies: Policies) -> Dense:
    name = document.features[0]
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return _of_matrix(document, column, policies)
    values, missing = _vectors(name, column, document.width)
    if missing.any() and policies.nulls == "error":
        raise _null(name, int(np.argmax(missing)))
    dense = _filled(document, np.where(missing[:, None], np.float32(0), values), policies)
    dense.answered &= ~missing
    return dense


def _vectors(name: str, column: Any, width: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """The numbers of vectors, NaN for NULL, and which rows have none."""
    rows = [_array_of(name, i, row) for i, row in enumerate(column)]
    missing = np.array([row is None or (isinstance(row, float) and np.isnan(row)) for row in rows], bool)
    for i, row in enumerate(rows):
        if not missing[i] and (not hasattr(row, "__len__") or isinstance(row, str) or len(row) != width):
            given = len(row) if hasattr(row, "__len__") and not isinstance(row, str) else type(row).__name__
            raise ValueError(f"feature {name!r}, row {i}: {given}, where the model has {width} numbers")
    values = np.full((len(rows), width), np.nan, np.float32)
    if not missing.all():
        doubles = np.concatenate([_element_doubles(name, i, row) for i, row in enumerate(rows) if not missing[i]])
        of_row = np.flatnonzero(~missing)

        def where(at: tuple[int, ...]) -> str:
            return f"feature {f'{name}[{at[1] + 1}]'!r}, row {of_row[at[0]]}"

        values[~missing] = narrow(doubles.reshape(-1, width), where)
    return values, missing


def _array_of(name: str, row: int, value: Any) -> Any:
    """A value of a column of arrays: bytes are numbers from 0 to 255, texts are arrays and vectors as SQL has them."""
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(value, np.uint8)
    if isinstance(value, str) and value[:1] + value[-1:] in ("[]", "{}"):
        parts = value[1:-1].split(",") if len(value) > 2 else []
        try:
            return [None if part.strip().upper() == "NULL" else number_of_text(part) for part in parts]
        except ValueError as error:
            raise ValueError(f"feature {name!r}, row {row}: {error}") from None
    return value


def _element_doubles(name: str, row: int, values: Any) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return numbers(f"{name}, row {row}", list(values)).astype(np.float64)


def _of_columns(document: Document, rows: Any, policies: Policies) -> Dense | Entries:
    words = next((name for name, c in zip(document.features, document.columns) if isinstance(c, Words)), None)
    if words is not None:
        raise ValueError(
            f"feature {words!r}: the model was trained on the words of a tsvector or of arrays of text, which are "
            "hashed in the database alone: predict there, with corgipile_predict()"
        )
    are_numbers = all(column is None or isinstance(column, Vector) for column in document.columns)
    if not isinstance(rows, NamedColumns):
        given = input_columns(document)
        if are_numbers and rows.shape[1] == document.width > len(given):
            return _of_matrix(document, rows, policies)
        if rows.shape[1] != len(given):
            wanted = ", ".join(map(repr, given))
            raise ValueError(f"X has {rows.shape[1]} features, and the model {len(given)}: {wanted}")
        if all(column is None for column in document.columns) and given == document.features:
            return _of_matrix(document, rows, policies)
        rows = NamedColumns({name: rows[:, i] for i, name in enumerate(given)})
    columns = _Columns(document, rows)
    if are_numbers:
        of_columns = zip(document.features, document.columns)
        values = [
            columns.vectors(name, column) if isinstance(column, Vector) else columns.numbers(name)[:, None]
            for name, column in of_columns
        ]
        return _filled(document, np.concatenate(values, axis=1), policies)
    return _Mixed(document, columns, policies).entries()


class _Columns:
    """The columns of features, some of which are parts of dates or of JSON, or what texts say."""

    def __init__(self, document: Document, rows: NamedColumns) -> None:
        self.document, self.rows = document, rows
        self._times: dict[str, _dates.Times] = {}

    def _part(self, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        parts = _dates.split(name)
        if name in self.rows.columns or parts is None or _written.split(name) is not None:
            return None
        column, part = parts
        if column not in self._times:
            self._times[column] = _dates.Times(column, _column(self.document, self.rows, column))
        times = self._times[column]
        if part == "hour" and not times.has_hours:
            raise TypeError(f"column {column!r} has dates, and the model was trained on hours: give timestamps")
        return times.part(part)

    def _values(self, name: str) -> Any:
        """The values of a column, of a key of one that has JSON, or of what its texts say."""
        key, written = _json.split(name), _written.split(name)
        if name in self.rows.columns or (key is None and written is None):
            return _column(self.document, self.rows, name)
        if key is not None:
            column, path, is_text = key
            return _json.values(column, path, is_text, _column(self.document, self.rows, column))
        column, read = written or (name, lambda value, _: value)
        values = _column(self.document, self.rows, column)
        return [read(value, f"feature {name!r}, row {row}") for row, value in enumerate(list(values))]

    def numbers(self, name: str) -> NDArray[np.float32]:
        part = self._part(name)
        if part is None:
            return numbers(name, self._values(name), self.rows.rows)
        values, missing = part
        return numbers(name, np.where(missing, np.nan, values))

    def vectors(self, name: str, vector: Vector) -> NDArray[np.float32]:
        column = _column(self.document, self.rows, name)
        return _vectors(name, list(column), vector.width)[0]

    def texts(self, name: str) -> list[str | None]:
        part = self._part(name)
        if part is None:
            return texts(name, self._values(name))
        values, missing = part
        return [None if gone else text for text, gone in zip(values, missing)]


class _Mixed:
    """Numbers, categories and hashed columns: an entry for each that a row has, and its buckets behind them."""

    def __init__(self, document: Document, columns: _Columns, policies: Policies) -> None:
        self.document, self.columns, self.policies = document, columns, policies
        self.rows = columns.rows.rows
        self.answered = np.ones(self.rows, bool)
        self.indices: list[NDArray[np.int64]] = []  # below 0 where a row has no entry
        self.values: list[NDArray[np.float32]] = []

    def entries(self) -> Entries:
        buckets: list[NDArray[np.int64]] = []
        first = 0
        for name, column in zip(self.document.features, self.document.columns):
            if column is None:
                self._add_numbers(name, first)
                first += 1
            elif isinstance(column, Vector):
                self._add_vectors(name, column, first)
                first += column.width
            elif isinstance(column, Categories):
                self._add_categories(name, column, first)
                first += column.width
            elif isinstance(column, int):
                buckets.append(self._buckets(name, column))
        if buckets:
            self._add_buckets(np.sort(np.stack(buckets, axis=1), axis=1), first)
        indices, values = np.stack(self.indices, axis=1), np.stack(self.values, axis=1)
        there = indices >= 0
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return Entries(starts, indices[there], values[there], self.answered)

    def _add(self, indices: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        self.indices.append(indices)
        self.values.append(values)

    def _add_numbers(self, name: str, place: int) -> None:
        self._add_filled(name, place, self.columns.numbers(name))

    def _add_vectors(self, name: str, vector: Vector, first: int) -> None:
        values = self.columns.vectors(name, vector)
        for i in range(vector.width):
            self._add_filled(f"{name}[{i + 1}]", first + i, values[:, i])

    def _add_filled(self, name: str, place: int, values: NDArray[np.float32]) -> None:
        missing = np.isnan(values)
        if missing.any():
            if self.policies.nulls == "skip":
                self.answered &= ~missing
                values = np.where(missing, np.float32(0), values)
            elif self.policies.nulls == "impute" and self.document.fill is not None:
                values = np.where(missing, self.document.fill[place], values)
            else:
                raise _null(name, int(np.argmax(missing)))
        self._add(np.full(self.rows, place, np.int64), values)

    def _add_categories(self, name: str, known: Categories, first: int) -> None:
        indices = np.full(self.rows, -1, np.int64)
        padded: str | None = None
        for row, text in enumerate(self.columns.texts(name)):
            place = self._null_place(name, known, row) if text is None else known.places.get(text)
            if place is not None:
                indices[row] = first + place
            elif text is not None:
                is_padded = text.endswith(" ") and text.rstrip(" ") in known.places
                if self.policies.handle_unknown == "error":
                    hint = f"; {_BLANKS}" if is_padded else ""
                    raise ValueError(f"feature {name!r}, row {row}: category {text!r} is unknown to the model{hint}")
                if is_padded:
                    padded = text
        if padded is not None:
            warnings.warn(
                f"feature {name!r}: category {padded!r} is unknown to the model and counts as none; {_BLANKS}",
                stacklevel=_CALLER,
            )
        self._add(indices, np.ones(self.rows, np.float32))

    def _null_place(self, name: str, known: Categories, row: int) -> int | None:
        if self.policies.nulls == "skip":
            self.answered[row] = False
            return None
        if self.policies.nulls == "impute" and known.has_null:
            return len(known.places)
        if self.policies.nulls == "impute" and self.policies.handle_unknown == "ignore":
            return None
        raise _null(name, row)

    def _buckets(self, name: str, count: int) -> NDArray[np.int64]:
        values = self.columns.texts(name)
        _refuse_padded(name, values)
        seed = xxh3_64(name.encode())
        known: dict[str | None, int] = {None: seed % count}
        for row, text in enumerate(values):
            if text is None and self.policies.nulls == "error":
                raise _null(name, row)
            if text is None and self.policies.nulls == "skip":
                self.answered[row] = False
            elif text not in known:
                known[text] = xxh3_64(str(text).encode(), seed) % count
        return np.array([known[text] for text in values], np.int64)

    def _add_buckets(self, buckets: NDArray[np.int64], first: int) -> None:
        """Adds each bucket once, ascending, with how often it is there."""
        columns = buckets.shape[1]
        counts = np.ones(buckets.shape, np.float32)
        for i in reversed(range(columns - 1)):
            counts[:, i] += np.where(buckets[:, i] == buckets[:, i + 1], counts[:, i + 1], np.float32(0))
        for i in range(columns):
            is_first = np.ones(self.rows, bool) if i == 0 else buckets[:, i] != buckets[:, i - 1]
            self._add(np.where(is_first, first + buckets[:, i], -1), counts[:, i])


def _refuse_padded(name: str, values: list[str | None]) -> None:
    """Refuses values that may be those of a column of type char(n), which SQL hashes without the blanks at their end.

    Raises:
        ValueError: all values have the same length, and one ends with a blank.
    """
    if len({len(text) for text in values if text is not None}) == 1:
        row = next((row for row, text in enumerate(values) if text is not None and text.endswith(" ")), None)
        if row is not None:
            raise ValueError(
                f"feature {name!r}, row {row}: {values[row]!r} ends with blanks, and may be of type char(n), which is "
                "hashed without them: cut them off, or select the column as text"
            )


def _of_csr(document: Document, rows: Any, policies: Policies) -> Dense | Entries:
    """A sparse matrix of scipy's, whose column j is feature j."""
    if document.feature_kind == "sparse":
        return entries_of_csr(document, rows, policies.handle_unknown)
    if rows.shape[1] != document.width or any(column is not None for column in document.columns):
        wanted = ", ".join(map(repr, document.features))
        raise ValueError(f"X has {rows.shape[1]} columns, and the model {document.width} features of {wanted}")
    return _of_matrix(document, rows.toarray(), policies)
