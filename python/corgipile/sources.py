"""Sources of rows.

A source is opened when it is created, so that errors are raised immediately. It can be passed to another process, which
opens it again and verifies that it has not changed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from corgipile import _native
from corgipile._checks import (
    called,
    check_character,
    check_flag,
    check_names,
    check_number,
    check_path,
    check_paths,
    check_text,
    check_texts,
    check_texts_by_name,
)
from corgipile._text import is_unicode
from corgipile.server import ShuffledByServer


class Source:
    """Rows that can be read in blocks, from any process. Made by `corgipile.parquet`, `corgipile.arrays`, and so on."""

    def __init__(
        self, opener: Callable[..., _native.Source], *arguments: Any, opened: _native.Source | None = None
    ) -> None:
        self._opener = opener
        self._arguments = arguments
        self._opened: _native.Source | None = opener(*arguments) if opened is None else opened
        self._fingerprint = self.native.fingerprint

    @property
    def native(self) -> _native.Source:
        """The open source."""
        if self._opened is None:
            opened = self._opener(*self._arguments)
            if opened.fingerprint != self._fingerprint:
                raise _native.SourceError("the source changed since it was given to another process")
            self._opened = opened
        return self._opened

    @property
    def opener_name(self) -> str:
        """Name of the native module's function that opens it."""
        return self._opener.__name__

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments of that function."""
        return self._arguments

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __len__(self) -> int:
        """Number of rows."""
        return self.native.rows

    @property
    def columns(self) -> dict[str, str]:
        """Names and Arrow types of the columns."""
        return dict(self.native.columns)

    @property
    def fingerprint(self) -> int:
        """Identifies the rows, their number and their order."""
        return self._fingerprint

    @property
    def skipped(self) -> int:
        """Number of damaged rows skipped so far in this process, with `on_error="skip"`."""
        return self.native.skipped

    @property
    def messages(self) -> list[str]:
        """The first twenty messages on skipped rows and files in this process."""
        return self.native.messages


class Table(Source):
    """The rows of a PostgreSQL table under one snapshot, which the process that opened it first holds."""

    def __init__(
        self,
        connection: str,
        table: str,
        columns: list[str] | None,
        where: str | None,
        snapshot: str | None,
        lists: str,
        fill_value: float | None,
    ) -> None:
        opened, self.snapshot = _native.postgres(connection, table, columns, where, snapshot, lists, fill_value)
        # Copies in other processes read under the same snapshot.
        arguments = connection, table, columns, where, self.snapshot, lists, fill_value
        super().__init__(_open_table, *arguments, opened=opened)


def _open_table(*arguments: Any) -> _native.Source:
    return _native.postgres(*arguments)[0]


Path = str | os.PathLike[str]
Paths = Path | Iterable[Path]
OnError = Literal["raise", "skip"]
Lists = Literal["auto", "ragged"]


def _index(index: Path) -> tuple[bool, str | None]:
    place = check_path("index", index)
    if place in ("auto", "build"):
        return place == "build", None
    if not os.path.exists(place):
        raise FileNotFoundError(errno.ENOENT, "index: there is no such file or directory", place)
    return False, place


def _on_error(on_error: OnError) -> str:
    return check_text("on_error", on_error, "skip")


def _lists(lists: Lists) -> str:
    return check_text("lists", lists, "ragged")


def _fill_value(fill_value: float | None) -> float | None:
    if fill_value is None:
        return None
    if isinstance(fill_value, bool | np.bool_):
        return float(fill_value)
    if isinstance(fill_value, str | bytes) or not hasattr(fill_value, "__float__"):
        raise TypeError(f"fill_value: must be a number, not {called(fill_value)}")
    return float(fill_value)


def parquet(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    on_error: OnError = "raise",
    lists: Lists = "auto",
    fill_value: float | None = None,
) -> Source:
    """Rows of Parquet files. Blocks are row groups; for huge ones with a page index, runs of pages.

    A page is always decoded as a whole, and so is a row group of lists without a page index. If blocks are smaller than
    that, decoded data are kept in memory, in addition to the data set's `memory`, if all of them take at most 128 MB.
    Otherwise each block decodes its pages again: row groups of the block size, or small pages with an index, avoid
    this.

    Dictionaries are returned as their values, decimals as doubles.

    Args:
        paths: files, folders or patterns such as "train/*.parquet". Patterns are read in the given order, the files of
            each sorted by name.
        columns: the columns to read, in this order; by default all. All files must have them, with the same types.
        on_error: "skip" leaves out damaged row groups and files and counts them (`Source.skipped`, `Source.messages`).
        lists: with "auto", a column of lists of equal length is returned as a two-dimensional array. Parquet does not
            record which columns these are: they are recognized by counts of values and a sample, and a row of another
            length is an error. "ragged" returns lists.
        fill_value: the value that replaces missing numbers and booleans, also in lists. With nan, columns of integers
            and booleans are returned as doubles. By default, missing doubles are NaN and missing times NaT; a missing
            integer or boolean is an error that names the file and the row, or is skipped with `on_error="skip"`.
            Missing texts, bytes and lists are None.
    """
    chosen = check_paths("paths", paths), check_names("columns", columns)
    return Source(_native.parquet, *chosen, _on_error(on_error), _lists(lists), _fill_value(fill_value))


def arrow(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    on_error: OnError = "raise",
    lists: Lists = "auto",
    memory_map: bool = True,
    fill_value: float | None = None,
) -> Source:
    """Rows of Arrow IPC files (Feather version 2) and streams. Blocks are record batches.

    `paths`, `columns`, `on_error`, `lists` and `fill_value` are those of `parquet`. Files are mapped into memory, so
    that parts of huge batches can be read. A mapped file must not be truncated, which would end this process: with
    `memory_map=False`, bytes are read instead.
    """
    chosen = check_paths("paths", paths), check_names("columns", columns), _on_error(on_error), _lists(lists)
    return Source(_native.arrow, *chosen, check_flag("memory_map", memory_map), _fill_value(fill_value))


def tfrecord(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    features: Mapping[str, str] | None = None,
    decode: Literal["example", "raw"] = "example",
    on_error: OnError = "raise",
    lists: Lists = "auto",
    index: Path = "auto",
    fill_value: float | None = None,
) -> Source:
    """Records of TFRecord files, with verified checksums, decoded as `tf.train.Example`.

    Args:
        paths: files, folders or patterns, as in `parquet`.
        features: the columns with their types: "bytes", "float32" or "int64" for one value, "float32[3]" for three,
            "float32[]" for any number. By default determined from a sample of the records. A feature that a record
            lacks is null.
        columns: the subset of these to read.
        decode: "raw" returns the bytes of the records in one column, "record".
        lists: "ragged" returns all features that were found in the sample as lists.
        on_error: "skip" leaves out damaged records and counts them; after a damaged length, the rest of the file is
            skipped.
        index: positions of the records. Files of up to 256 MB are scanned; others need an index, built by `python -m
            corgipile index FILE`, or by "build" here. It is stored next to its file (`FILE.cpindex`), or in the given
            directory. An index of DALI or of tfrecord's `tfrecord2idx` is also read, if it is named `.tfindex`,
            `.index` or `.idx`, or given as a file: lines of offset and length, of records, or of blocks of records if
            the file has at most 256 MB. An index of a file that has changed since is refused.
        fill_value: as in `parquet`.
    """
    if decode not in ("example", "raw"):
        raise ValueError(f"decode: {decode!r} is neither 'example' nor 'raw'")
    if features is not None and not features:
        raise ValueError(
            "features: must not be empty; leave the argument out to determine the features from a sample of the records"
        )
    if decode == "raw" and (features is not None or columns is not None):
        raise ValueError("decode: raw records have no features: leave out features and columns")
    named = None if features is None else list(check_texts_by_name("features", features).items())
    chosen = check_paths("paths", paths), check_names("columns", columns), named, decode == "raw"
    chosen = *chosen, _on_error(on_error), _lists(lists), _index(index)
    return Source(_native.tfrecord, *chosen, _fill_value(fill_value))


def webdataset(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    on_error: OnError = "raise",
    index: Path = "auto",
    fill_value: float | None = None,
) -> Source:
    """Samples of WebDataset tar files: members with the same name and different endings, which are the columns' names.

    "cls" is a number, "txt" and "json" are text, everything else is bytes.

    Args:
        paths: files, folders or patterns, as in `parquet`.
        columns: endings, such as "jpg", "jpg;png" for either, and "__key__" for the sample's name. By default, all
            endings found in a sample of the data.
        on_error: "skip" leaves out damaged samples and counts them; after a damaged header, the rest of the file is
            skipped.
        index: as in `tfrecord`, except indexes of other programs.
        fill_value: as in `parquet`.
    """
    chosen = check_paths("paths", paths), check_names("columns", columns)
    return Source(_native.webdataset, *chosen, _on_error(on_error), _index(index), _fill_value(fill_value))


def csv(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    header: bool = True,
    delimiter: str = ",",
    quote: str = '"',
    types: Mapping[str, str] | None = None,
    null_values: Sequence[str] = (),
    on_error: OnError = "raise",
    index: Path = "auto",
    fill_value: float | None = None,
) -> Source:
    """Rows of uncompressed CSV files.

    Args:
        paths: files, folders or patterns, as in `parquet`.
        columns: the columns to read, in this order; without a header they are named "column_1" and so on.
        header: whether the first row of each file contains the names of the columns.
        delimiter: the character between two values.
        quote: the character around values that contain a delimiter or an end of line. Within such a value it is
            doubled; a closing quote that is followed by other characters is damage.
        types: types of columns: bool, int8 to int64, uint8 to uint64, float32, float64, str, date, datetime. Types of
            other columns are determined from a sample of the rows. `Infinity` and `NaN`, as COPY writes them, are
            numbers.
        null_values: words for missing values, such as "NA". An empty field is always missing.
        on_error: "skip" leaves out malformed rows and counts them.
        index: as in `tfrecord`, except indexes of other programs.
        fill_value: as in `parquet`.
    """
    characters = check_character("delimiter", delimiter), check_character("quote", quote)
    chosen = check_paths("paths", paths), check_names("columns", columns), check_flag("header", header)
    of_type = {} if types is None else check_texts_by_name("types", types)
    words = check_texts("null_values", null_values, "words")
    chosen = *chosen, *characters, of_type, words, _on_error(on_error), _index(index)
    source = Source(_native.csv, *chosen, _fill_value(fill_value))
    for message in source.messages:
        if "delimiter=" in message:
            warnings.warn(message, stacklevel=2)
    return source


def libsvm(
    paths: Paths,
    *,
    dense: bool | int = False,
    zero_based: bool | Literal["auto"] = False,
    on_error: OnError = "raise",
    index: Path = "auto",
    fill_value: float | None = None,
) -> Source:
    """Rows of LIBSVM (svmlight) files: "label", "qid" if it exists, and "indices", from 0 on, with their "values".

    Args:
        paths: files, folders or patterns, as in `parquet`.
        dense: return features as one array "x" of this length; True determines the length from the data.
        zero_based: whether indices in the files start from 0 instead of 1, LIBSVM's rule. "auto" assumes 0 if any index
            is 0, with a warning: files of one data set may be read differently, such as a test file without index 0.
        on_error: "skip" leaves out malformed lines and counts them.
        index: as in `tfrecord`, except indexes of other programs.
        fill_value: as in `parquet`, for lines without a "qid" if others have one.
    """
    if not isinstance(dense, bool):
        hint = ": True takes as many features as the data need, and False gives indices and values"
        dense = check_number("dense", dense, 1, _native.MOST_DENSE, hint)
    length = None if dense is False else 0 if dense is True else dense
    if not isinstance(zero_based, bool) and zero_based != "auto":
        raise TypeError(f"zero_based: must be True, False or 'auto', not {called(zero_based)}")
    base = None if zero_based == "auto" else zero_based
    if base is None:
        what = "guesses by these files alone whether features begin at 0, so that others of the data set may be shifted"
        warnings.warn(f'zero_based="auto" {what}: say True or False', stacklevel=2)
    chosen = check_paths("paths", paths), length, base, _on_error(on_error), _index(index)
    return Source(_native.libsvm, *chosen, _fill_value(fill_value))


@overload
def postgres(
    table: str,
    columns: Sequence[str] | None = ...,
    *,
    connection: str = ...,
    where: str | None = ...,
    snapshot: str | None = ...,
    lists: Lists = ...,
    fill_value: float | None = ...,
    server_shuffle: Literal[False] = ...,
) -> Table: ...


@overload
def postgres(
    table: str,
    columns: Sequence[str] | None = ...,
    *,
    connection: str = ...,
    where: str | None = ...,
    snapshot: str | None = ...,
    lists: Lists = ...,
    fill_value: float | None = ...,
    server_shuffle: bool,
) -> Table | ShuffledByServer: ...


def postgres(
    table: str,
    columns: Sequence[str] | None = None,
    *,
    connection: str = "",
    where: str | None = None,
    snapshot: str | None = None,
    lists: Lists = "auto",
    fill_value: float | None = None,
    server_shuffle: bool = False,
) -> Table | ShuffledByServer:
    """Rows of a PostgreSQL table, of its partitions or of a materialized view. The extension is not needed.

    The table is read once to count its rows. All threads and workers read under one snapshot, so that changes to the
    table do not matter. A connection holds the snapshot: in the meantime vacuum keeps old rows, and the table cannot be
    dropped.

    Args:
        table: the name, as in SQL: "my_table", "schema.table", '"My Table"'. With `server_shuffle`, also a view or a
            query.
        columns: the columns to read, in this order; by default all. Columns of type numeric are returned as doubles,
            types without a matching array type as text, `char(n)` without trailing blanks. An infinite date or time is
            an error.
        connection: a connection string or URI of libpq, with or without encryption. Other parameters are taken from the
            same places as in libpq: a service, PGHOST, PGUSER, PGSSLMODE and so on, the password file. Unsupported
            parameters of libpq are refused by name.
        where: one SQL condition on the rows.
        snapshot: the `snapshot` of a table that another process keeps open, so that both see the same rows.
        lists, fill_value: as in `parquet`.
        server_shuffle: let the extension in the server shuffle the rows and send each epoch as one stream, to at most
            one rank and one worker. This needs the privilege to create temporary views. The server reads the rows once
            to fingerprint them; to resume in the middle of an epoch, it produces the epoch's order again and skips the
            first rows.
    """
    for name, text, example in (("where", where, "x > 0"), ("snapshot", snapshot, "00000003-00000002-1")):
        if text is not None:
            check_text(name, text, example)
    reached = check_text("connection", connection, "host=localhost dbname=postgres"), check_text("table", table, "t")
    arguments = *reached, check_names("columns", columns), where, snapshot, _lists(lists), _fill_value(fill_value)
    return ShuffledByServer(*arguments) if server_shuffle else Table(*arguments)


def arrays(columns: Mapping[str, Any], *, fingerprint: int | None = None) -> Source:
    """Rows of arrays in memory, all of the same length; numbers are not copied.

    Args:
        columns: arrays by name, with any number of dimensions, of which the first is the rows; texts and bytes have
            one. They must not be changed while they are read.
        fingerprint: identifies this source in `load_state_dict`. By default, it is computed from names, types, lengths
            and a sample of the values.
    """
    if not hasattr(columns, "items"):
        raise TypeError(f"columns: must be a dictionary of arrays, such as {{'x': ...}}, not {called(columns)}")
    if fingerprint is not None:
        check_number("fingerprint", fingerprint, 0, 2**64 - 1)
    if not len(columns):
        raise ValueError("columns: must not be empty")
    taken = {name: _array(name, values) for name, values in columns.items()}
    lengths = {name: len(values) if values.ndim else -1 for name, values in taken.items()}
    if -1 in lengths.values() or len(set(lengths.values())) > 1:
        raise ValueError(f"columns: all must have the same length, but they have {lengths}")
    return Source(_memory, taken, _sampled(taken) if fingerprint is None else fingerprint)


def _array(name: str, values: Any) -> np.ndarray[Any, Any]:
    if not isinstance(name, str):
        raise TypeError(f"columns: {name!r} is not a name, which is text")
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"column {name!r}: a masked array is not an array of values: fill it, as in values.filled(np.nan)"
        )
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"column {name!r}: its rows have different lengths, so that they make no array") from None
    if 0 in array.shape[1:]:
        raise ValueError(f"column {name!r}: its rows have no values: the array's shape is {array.shape}")
    if array.dtype.kind == "S" and not isinstance(values, np.ndarray):
        # numpy's own strings of bytes end before their last zeros
        return np.array(values, dtype=object)
    return array


def _memory(columns: dict[str, np.ndarray], fingerprint: int) -> _native.Source:
    return _native.memory([_column(name, values) for name, values in columns.items()], fingerprint)


def _column(name: str, values: np.ndarray) -> tuple[str, str, list[int], Any]:
    """What the native part makes a column of."""
    kind, shape = values.dtype.kind, list(values.shape[1:])
    if kind in "US" or kind == "O":
        if shape:
            raise TypeError(f"column {name!r}: a row has one text, and not {' x '.join(map(str, shape))} of them")
        items = values.tolist()
        kind = bytes if any(isinstance(item, bytes) for item in items) else str
        for row, item in enumerate(items):
            if item is not None and not isinstance(item, kind):
                wanted = "bytes, as others are" if kind is bytes else "text or bytes"
                raise TypeError(f"column {name!r}, row {row}: objects must be {wanted}, not {type(item).__name__}")
            if isinstance(item, str) and not is_unicode(item):
                raise ValueError(f"column {name!r}, row {row}: {item!r} is not valid Unicode text")
        return name, kind.__name__, shape, items
    if kind not in "biufmM":
        raise TypeError(f"column {name!r}: arrays of type {values.dtype} cannot be read")
    values = np.require(values.astype(values.dtype.newbyteorder("<"), copy=False), requirements=["C", "A"])
    code = values.dtype.str[1:] if kind in "mM" else kind + str(values.dtype.itemsize)
    return name, code, shape, values.reshape(-1).view(np.uint8)


def _sampled(columns: Mapping[str, np.ndarray]) -> int:
    """A number that other columns barely have, without looking at every value."""
    digest = hashlib.blake2b(digest_size=8)
    for name, values in columns.items():
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        some = values[:: max(1, len(values) // 64)][:64]
        digest.update(repr(some.tolist()).encode() if some.dtype.kind == "O" else np.ascontiguousarray(some).tobytes())
    return int.from_bytes(digest.digest(), "little")


def _tsv(paths: Paths, *, index: Path = "auto") -> Source:
    return csv(paths, delimiter="\t", index=index)


# What a path's last part says about its format: those that know where their rows are, and those that need an index.
_FORMATS: dict[str, Callable[[Paths], Source]] = {
    **dict.fromkeys([".parquet", ".pq"], parquet),
    **dict.fromkeys([".arrow", ".arrows", ".feather", ".ipc"], arrow),
}
_INDEXED: dict[str, Callable[..., Source]] = {
    **dict.fromkeys([".tfrecord", ".tfrecords"], tfrecord),
    **dict.fromkeys([".libsvm", ".svm", ".svmlight"], libsvm),
    ".tar": webdataset,
    ".csv": csv,
    ".tsv": _tsv,
}


def open_path(path: Path, block_index: Path | None, argument: str = "dataset_path") -> Source:
    """The source for a path, by its ending, as in the paper's `CorgiPileDataset(dataset_path, block_index)`."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if (indexed := _INDEXED.get(ending)) is not None:
        return indexed(path) if block_index is None else indexed(path, index=block_index)
    if (opener := _FORMATS.get(ending)) is None:
        known = ", ".join(sorted([*_FORMATS, *_INDEXED]))
        raise ValueError(
            f"{argument}: {os.fspath(path)!r} ends with none of {known}: open it by corgipile.parquet or the like"
        )
    if block_index is not None:
        raise ValueError(f"block_index: files that end with {ending} have an index of their own: leave it out")
    return opener(path)
