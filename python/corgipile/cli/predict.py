"""`predict`: a model's predictions for the rows of a CSV or Parquet file."""

from __future__ import annotations

import argparse
import csv
import errno
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from .._text import number_of_text
from ..db._optional import required
from .common import ParquetWriter, add_connection, bar, connect, written

if TYPE_CHECKING:
    from ..db import Model

HELP = "predict the rows of a CSV or Parquet file"
DESCRIPTION = (
    "Predict the rows of a CSV or Parquet file with a model of the database, or with one in a file that "
    "corgipile_export or Model.save wrote. The columns of the input are kept, and the prediction is put behind them."
)

_ROWS_AT_ONCE = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a name or id in the database, or a file that ends with .json")
    parser.add_argument("input", help="a CSV file with a header, or a Parquet file; - is CSV from standard input")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="a CSV or Parquet file; - is standard output"
    )
    parser.add_argument("--version", type=int, metavar="N", help="a version of the model, if it is named")
    parser.add_argument("--column", default="prediction", metavar="NAME", help="the column of predictions (prediction)")
    parser.add_argument("--proba", action="store_true", help="a column for the probability of each class, too")
    parser.add_argument("--nulls", choices=("impute", "skip", "error"), help="what to do with NULLs (as in training)")
    parser.add_argument(
        "--handle-unknown", choices=("ignore", "error"), help="what to do with new categories (as in training)"
    )
    add_connection(parser)


def run(arguments: argparse.Namespace) -> int:
    model = _model(arguments)
    read = _read_parquet if arguments.input.endswith(".parquet") else _read_csv
    to_parquet = arguments.output.endswith(".parquet")
    first_row = 0
    with ExitStack() as stack:
        output = stack.enter_context(written(arguments.output))
        write = stack.enter_context(_Parquet(output, _types(model, arguments)) if to_parquet else _Csv(output))
        progress = stack.enter_context(bar("predict", None, " rows"))
        for columns in read(arguments.input):
            try:
                write.rows(columns | _answers(model, columns, arguments))
            except ValueError as error:
                raise ValueError(f"{arguments.input}, in the rows from {first_row} on: {error}") from None
            rows = len(next(iter(columns.values())))
            first_row += rows
            progress.update(rows)
    return 0


def _model(arguments: argparse.Namespace) -> Model:
    from ..db import Model

    if arguments.model.endswith(".json"):
        return Model.load(arguments.model)
    with connect(arguments) as conn:
        return Model.from_database(conn, arguments.model, arguments.version)


def _answers(model: Model, columns: dict[str, list[Any]], arguments: argparse.Namespace) -> dict[str, list[Any]]:
    """The columns to be put behind those of the input."""
    policies = {"nulls": arguments.nulls, "handle_unknown": arguments.handle_unknown}
    converted = {name: _converted(model, name, columns[name]) for name in model.input_columns if name in columns}
    answers = {arguments.column: _plain(model.predict(converted, **policies))}
    if arguments.proba:
        probabilities = model.predict_proba(converted, **policies)
        answers |= {name: _plain(probabilities[:, i]) for i, name in enumerate(_probabilities(model))}
    twice = answers.keys() & columns.keys()
    if twice:
        raise ValueError(f"the input has a column {twice.pop()!r} already: choose another with --column")
    return answers


def _probabilities(model: Model) -> list[str]:
    """The columns of the classes' probabilities."""
    classes = model.classes
    return [] if classes is None else [f"probability of {label}" for label in classes]


def _types(model: Model, arguments: argparse.Namespace) -> dict[str, Any]:
    """Arrow's types of the columns: those of a Parquet file stay as they are, and those of a CSV file, which are not
    here, are text."""
    pyarrow = required("pyarrow", "a Parquet file", "pyarrow")
    parquet = required("pyarrow.parquet", "a Parquet file", "pyarrow")
    types: dict[str, Any] = {}
    if arguments.input.endswith(".parquet"):
        with _named(arguments.input):
            types |= {field.name: field.type for field in parquet.read_schema(arguments.input)}
    kinds = {"b": pyarrow.bool_(), "i": pyarrow.int64(), "f": pyarrow.float64(), "O": pyarrow.string()}
    types[arguments.column] = kinds["f" if model.classes is None else model.classes.dtype.kind]
    return types | dict.fromkeys(_probabilities(model), pyarrow.float64())


def _plain(values: Any) -> list[Any]:
    return [None if value is None or value != value else value for value in values.tolist()]


def _converted(model: Model, name: str, values: list[Any]) -> list[Any]:
    """Texts of CSV as what the model was trained on; other values as they are."""
    from ..db._dates import PARTS, split
    from ..db._written import split as split_text

    if not any(isinstance(value, str) for value in values):
        return values
    features = model.features
    is_date = name not in features and any(split(f) == (name, part) for f in features for part in PARTS)
    is_text = name not in features and any((split_text(feature) or ("",))[0] == name for feature in features)
    if name in model.categories or is_date or is_text:
        return [None if value == "" else value for value in values]
    if model.feature_kind != "columns":
        return [None if value in ("", None) else _array(name, value) for value in values]
    return [_number(name, value) for value in values]


def _number(name: str, value: Any) -> float | None:
    if value is None or value == "":
        return None
    if value in ("t", "true", "f", "false", "True", "False"):
        return float(value in ("t", "true", "True"))
    try:
        return number_of_text(value)
    except ValueError:
        raise ValueError(f"column {name!r} has {value!r}, where the model was trained on numbers") from None


def _array(name: str, value: str) -> list[float | None]:
    """An array as PostgreSQL or JSON writes it."""
    body = value.strip()
    if body[:1] + body[-1:] not in ("{}", "[]"):
        raise ValueError(f"column {name!r} has {value!r}, where the model was trained on an array such as {{1,2}}")
    parts = [part.strip() for part in body[1:-1].split(",")] if body[1:-1].strip() else []
    return [None if part.lower() in ("null", "none") else _number(name, part) for part in parts]


def _read_csv(path: str) -> Iterator[dict[str, list[Any]]]:
    with ExitStack() as stack:
        if path == "-" and sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        # Excel and others put a mark before the first name
        marked = "utf-8-sig"
        file = sys.stdin if path == "-" else stack.enter_context(open(path, newline="", encoding=marked))
        # quotes that are not closed are damage, not a field that goes on to the end
        reader = csv.reader(file, strict=True)
        csv.field_size_limit(sys.maxsize)
        lines = _told(path, reader)
        header = next(lines, None)
        if header is None:
            raise ValueError(f"{path} is empty: a CSV file begins with the names of its columns")
        if len(set(header)) < len(header):
            raise ValueError(f"{path} has a column twice: {', '.join(header)}")
        rows: list[list[str]] = []
        for row in lines:
            if not row and len(header) == 1:
                row = [""]  # the one value of this line is missing
            if len(row) != len(header):
                raise ValueError(f"{path}, line {reader.line_num}: {len(row)} values for {len(header)} columns")
            rows.append(row)
            if len(rows) == _ROWS_AT_ONCE:
                yield _columns(header, rows)
                rows = []
        yield _columns(header, rows)


def _told(path: str, reader: Any) -> Iterator[list[str]]:
    """The rows of a CSV file; an error in a row names the file."""
    try:
        yield from reader
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num + 1}: {error}") from None
    except UnicodeDecodeError as error:  # somewhere in what was read ahead
        raise ValueError(f"{path} is not text in UTF-8: {error}") from None


def _columns(header: list[str], rows: list[list[str]]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


@contextmanager
def _named(path: str) -> Generator[None, None, None]:
    """Puts the file's name before what is wrong with it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read_parquet(path: str) -> Iterator[dict[str, list[Any]]]:
    parquet = required("pyarrow.parquet", "a Parquet file", "pyarrow")
    with _named(path), parquet.ParquetFile(path) as file:
        if not file.schema_arrow.names:
            raise ValueError("there are no columns")
        yield file.schema_arrow.empty_table().to_pydict()  # so that there is an output of no rows, too
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            yield batch.to_pydict()


class _Csv:
    """Rows as CSV, with a header."""

    def __init__(self, output: str) -> None:
        self._own = output != "-"
        self._output = output
        self._has_header = False

    def rows(self, columns: dict[str, list[Any]]) -> None:
        if not self._has_header:
            self._file = open(self._output, "w", newline="", encoding="utf-8") if self._own else sys.stdout  # noqa: SIM115 - closed at the end
            self._writer = csv.writer(self._file, lineterminator="\n")
            self._writer.writerow(columns)
            self._has_header = True
        self._writer.writerows(zip(*columns.values()))

    def __enter__(self) -> _Csv:
        return self

    def __exit__(self, *error: object) -> None:
        if self._has_header:
            self._file.flush()
            if self._own:
                self._file.close()


class _Parquet(ParquetWriter):
    """Rows as Parquet. Columns without a type are text."""

    def __init__(self, output: str, types: dict[str, Any]) -> None:
        super().__init__(output)
        self._types = types

    def rows(self, columns: dict[str, list[Any]]) -> None:
        text = self.pyarrow.string()
        self.write({n: self.pyarrow.array(values, self._types.get(n, text)) for n, values in columns.items()})
