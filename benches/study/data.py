"""Reads the data sets' files, brings them into the order asked for, and copies them into tables.

A part of a set is a matrix of features and a vector of labels or targets, for scikit-learn as for the server, so that
both learn from the same numbers.
"""

import csv
import gzip
import io
import struct
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.datasets import load_svmlight_file

from sets import BINARY

REAL, INTEGER = 700, 23  # types' OIDs
CALIFORNIA_UNIT = 100_000  # dollars
PAGE = 8_000  # bytes that a row may have, about

COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
COPY_TRAILER = struct.pack(">h", -1)


@dataclass
class Part:
    """Rows of features with their labels or targets, as float32 and, of classes, int32."""

    features: np.ndarray | csr_matrix
    labels: np.ndarray

    def __len__(self):
        return len(self.labels)

    def in_order(self, order):
        return Part(self.features[order], self.labels[order])


class Data:
    """The directory of the data sets. What was read is kept."""

    def __init__(self, directory):
        self.directory = directory
        self.part = lru_cache(maxsize=4)(self._part)

    def path(self, name):
        return f"{self.directory}/{name}"

    def _part(self, data_set, part):
        """Part "train" or "test", the former in the set's order."""
        rows = self._read(data_set, part)
        if part == "train":
            rows = rows.in_order(order_of(data_set, rows))
        return rows

    def _read(self, data_set, part):
        name = f"{data_set.files}_{part}"
        if data_set.sparse:
            path = self.path(f"{name}.libsvm.gz")
            features, labels = load_svmlight_file(
                path, n_features=data_set.dimensions, dtype=np.float32, zero_based=False
            )
            return Part(features, labels.astype(np.int32))
        if data_set.columns:
            rows = self.california_rows(part)
            return Part(california_features(rows), np.array([row[0] for row in rows], np.float32))
        table = self.numbers(name)
        features, labels = table[:, 1:], table[:, 0]
        if data_set.files == "covtype_random" and data_set.models == BINARY:
            labels = labels == 2
        if data_set.files == "mnist":
            features = features / np.float32(255)
        if data_set.files == "blogfeedback":
            largest = np.abs(logarithmic(self.numbers("blogfeedback_train")[:, 1:])).max(axis=0)
            features = logarithmic(features) / np.where(largest > 0, largest, 1)
            labels = np.log1p(labels)
        is_class = data_set.models != ("linear",)
        return Part(features.astype(np.float32), labels.astype(np.int32 if is_class else np.float32))

    def numbers(self, name):
        with gzip.open(self.path(f"{name}.csv.gz")) as file:
            columns = len(file.readline().split(b","))
            text = file.read().strip().replace(b"\n", b",")
        return np.fromstring(text.decode(), np.float32, sep=",").reshape(-1, columns)

    def california_rows(self, part):
        """Rows of target, in units of 100,000 dollars, eight numbers and a text; what is missing is None."""
        with gzip.open(self.path(f"california_{part}.csv.gz"), "rt") as file:
            lines = list(csv.reader(file))[1:]
        rows = [[float(field) if field else None for field in line[:9]] + [line[9]] for line in lines]
        for row in rows:
            row[0] /= CALIFORNIA_UNIT
        if part == "train":
            rows.sort(key=lambda row: row[0])
        return rows


def logarithmic(features):
    return np.sign(features) * np.log1p(np.abs(features))


def california_features(rows):
    """The numbers, and a column for each of the text's values. Rows with something missing must be left out before."""
    numbers = np.array([[np.nan if field is None else field for field in row[1:9]] for row in rows])
    categories = ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"]
    one_hot = np.array([[row[9] == category for category in categories] for row in rows])
    return np.hstack([numbers, one_hot]).astype(np.float32)


def order_of(data_set, rows):
    if data_set.order == "natural":
        return np.arange(len(rows))
    if data_set.order == "label":
        return np.argsort(rows.labels, kind="stable")
    features = rows.features.astype(np.float64)
    varying = features.std(axis=0) > 0
    correlation = np.zeros(features.shape[1])
    correlation[varying] = [abs(np.corrcoef(x, rows.labels)[0, 1]) for x in features.T[varying]]
    return np.argsort(features[:, correlation.argmax()], kind="stable")


# ------------------------------------------------------------------------------------------------------------- tables


def create_tables(connection, data, data_set):
    """The tables of both parts: label and features_v; label, features_k and features_v; or columns."""
    for part in ("train", "test"):
        table = data_set.table(part)
        if data_set.columns:
            create_california(connection, table, data.california_rows(part))
        else:
            create_table(connection, table, data.part(data_set, part))


def create_table(connection, table, rows):
    label = "int" if rows.labels.dtype == np.int32 else "real"
    features = "features_k int[], features_v real[]" if issparse(rows.features) else "features_v real[]"
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} (label {label}, {features})")
    if issparse(rows.features) or rows.features.shape[1] * 4 < PAGE:
        # wide rows would be moved out of line, and compressed, otherwise
        connection.execute(f"ALTER TABLE {table} ALTER features_v SET STORAGE PLAIN")
    chunks = sparse_chunks(rows) if issparse(rows.features) else dense_chunks(rows)
    with connection.cursor().copy(f"COPY {table} FROM STDIN BINARY") as copy:
        copy.write(COPY_HEADER)
        for chunk in chunks:
            copy.write(chunk)
        copy.write(COPY_TRAILER)
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")


def array_header(element):
    """Fields before an array's elements in the binary format: length in bytes to lower bound."""
    return [
        ("bytes", ">i4"),
        ("dimensions", ">i4"),
        ("nulls", ">i4"),
        ("element", ">i4"),
        ("length", ">i4"),
        ("lower", ">i4"),
    ]


def fixed_array(element, values):
    """A row of `values` per array, as the binary format has it."""
    length = values.shape[1]
    kind = ">f4" if element == REAL else ">i4"
    array = np.empty(len(values), [*array_header(element), ("values", [("bytes", ">i4"), ("value", kind)], length)])
    array["bytes"] = 20 + 8 * length
    array["dimensions"], array["nulls"], array["element"], array["length"], array["lower"] = 1, 0, element, length, 1
    array["values"]["bytes"], array["values"]["value"] = 4, values
    return array


def fixed_rows(labels, arrays):
    """Rows of a label and arrays that have the same length in all rows."""
    columns = [("fields", ">i2"), ("label_bytes", ">i4"), ("label", ">i4" if labels.dtype == np.int32 else ">f4")]
    rows = np.empty(len(labels), columns + [(f"array{i}", array.dtype) for i, array in enumerate(arrays)])
    rows["fields"], rows["label_bytes"], rows["label"] = 1 + len(arrays), 4, labels
    for i, array in enumerate(arrays):
        rows[f"array{i}"] = array
    return rows.tobytes()


def dense_chunks(rows, size=10_000):
    for start in range(0, len(rows), size):
        here = slice(start, start + size)
        yield fixed_rows(rows.labels[here], [fixed_array(REAL, rows.features[here])])


def sparse_chunks(rows, size=10_000):
    features = rows.features
    indices = fixed_array(INTEGER, features.indices.reshape(-1, 1) + 1)["values"].tobytes()
    values = fixed_array(REAL, features.data.reshape(-1, 1))["values"].tobytes()
    empty = [struct.pack(">iiii", 12, 0, 0, element) for element in (INTEGER, REAL)]
    for start in range(0, len(rows), size):
        chunk = io.BytesIO()
        for row in range(start, min(start + size, len(rows))):
            first, last = features.indptr[row], features.indptr[row + 1]
            chunk.write(struct.pack(">hii", 3, 4, rows.labels[row]))
            for element, stored, none in ((INTEGER, indices, empty[0]), (REAL, values, empty[1])):
                if first == last:
                    chunk.write(none)
                else:
                    length = int(last - first)
                    chunk.write(struct.pack(">iiiiii", 20 + 8 * length, 1, 0, element, length, 1))
                    chunk.write(stored[8 * first : 8 * last])
        yield chunk.getvalue()


CALIFORNIA_COLUMNS = [
    "longitude",
    "latitude",
    "housing_median_age",
    "total_rooms",
    "total_bedrooms",
    "population",
    "households",
    "median_income",
]


def create_california(connection, table, rows):
    columns = ", ".join(f"{column} float8" for column in CALIFORNIA_COLUMNS)
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} (label float8, {columns}, ocean_proximity text)")
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
