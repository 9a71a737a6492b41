"""The tables: what a client copies once is replicated, made dense and compressed inside the server."""

import os

from scipy.sparse import csr_matrix, issparse

from data import Part, create_table
from sets import Set

COPIES = int(os.environ.get("COPIES", "8"))
KDD99_FEATURES = 118


def load_mnist(connection, data):
    """Tables mnist_dense and mnist_sparse: digit, pixels as fractions of 255, zero (is it a 0?)."""
    for form in once(connection, data.part(Set("mnist", "mnist", ("softmax",), "natural", ""), "train")):
        # a rewrite keeps the rows in sequence; INSERT would go back to fill gaps
        connection.execute(
            f"""ALTER TABLE once_{form} ADD zero int GENERATED ALWAYS AS ((label = 0)::int) STORED;
                ALTER TABLE once_{form} RENAME label TO digit;
                ALTER TABLE once_{form} RENAME TO mnist_{form}"""
        )


def load_kdd99(connection, data):
    """Tables kdd99_dense and kdd99_sparse: label -1 or 1, copy after copy of the rows in the order of the file."""
    kdd99 = Set("kdd99", "kdd99_onehot", ("logistic",), "natural", "", dimensions=KDD99_FEATURES)
    for form in once(connection, data.part(kdd99, "train")):
        # within the server: a client would send the same gigabytes again and again
        connection.execute(
            f"""CREATE TABLE kdd99_{form} (LIKE once_{form} INCLUDING STORAGE);
                DO $$ BEGIN
                    FOR copy IN 1..{COPIES} LOOP INSERT INTO kdd99_{form} SELECT * FROM once_{form}; END LOOP;
                END $$;
                DROP TABLE once_{form}"""
        )


def once(connection, rows):
    """Copies the rows, dense and sparse, into tables of which it gives the forms."""
    dense = rows.features.toarray() if issparse(rows.features) else rows.features
    for form, features in (("dense", dense), ("sparse", csr_matrix(dense))):
        create_table(connection, f"once_{form}", Part(features, rows.labels))
        yield form
