"""The tables: what a client copies once is replicated, made dense and compressed inside the server."""

import os

from data import Part, create_table
from scipy.sparse import csr_matrix, issparse
from sets import Set

COPIES = int(os.environ.get("COPIES", "16"))
KDD99_FEATURES = 118
NAMES = {"dense": "o.features_v", "sparse": "o.features_k, o.features_v"}  # of what was copied


def load_mnist(connection, data):
    """Tables mnist_dense and mnist_sparse: digit, zero (is it a 0?), pixels as fractions of 255."""
    for form, columns in once(connection, data.part(Set("mnist", "mnist", ("softmax",), "natural", ""), "train")):
        create(connection, f"mnist_{form}", f"digit int, zero int, {columns}")
        connection.execute(
            f"INSERT INTO mnist_{form} SELECT o.label, (o.label = 0)::int, {NAMES[form]} FROM once_{form} AS o; DROP TABLE once_{form}"
        )


def load_kdd99(connection, data):
    """Tables kdd99_dense and kdd99_sparse: label -1 or 1, copy after copy of the rows in the order of the file."""
    kdd99 = Set("kdd99", "kdd99_onehot", ("logistic",), "natural", "", dimensions=KDD99_FEATURES)
    for form, columns in once(connection, data.part(kdd99, "train")):
        create(connection, f"kdd99_{form}", f"label int, {columns}")
        # within the server: a client would send the same gigabytes again and again
        connection.execute(
            f"""DO $$ BEGIN
                    FOR copy IN 1..{COPIES} LOOP
                        INSERT INTO kdd99_{form} SELECT o.label, {NAMES[form]} FROM once_{form} AS o;
                    END LOOP;
                END $$;
                DROP TABLE once_{form}"""
        )


def once(connection, rows):
    """Copies the rows, dense and sparse, and gives the columns of both."""
    dense = rows.features.toarray() if issparse(rows.features) else rows.features
    create_table(connection, "once_dense", Part(dense, rows.labels))
    yield "dense", "x real[]"
    create_table(connection, "once_sparse", Part(csr_matrix(dense), rows.labels))
    yield "sparse", "i int[], v real[]"


def create(connection, name, columns):
    """A table whose arrays are neither compressed nor moved out of line: nobody else's compression is measured."""
    connection.execute(f"CREATE TABLE {name} ({columns})")
    for column in columns.split(", "):
        if column.endswith("[]"):
            connection.execute(f"ALTER TABLE {name} ALTER {column.split()[0]} SET STORAGE plain")
