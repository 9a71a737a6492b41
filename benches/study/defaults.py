"""What a user gets who names source, model and label only: plain defaults on tables that are sorted by label, against
scikit-learn's estimators as most people use them."""

import csv
import gzip
import multiprocessing
import resource
import signal
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from psycopg.types.json import Jsonb
from scipy.sparse import csr_matrix, hstack, issparse
from sklearn import datasets
from sklearn.datasets import load_svmlight_file
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from data import Part, create_table
from progress import Progress
from server import connect, reclaim

SEEDS = (1, 2, 3, 4, 5)
TABLE = "defaults_train", "defaults_test"
LARGE = 25_000_000  # numbers in a training part, from which on the exact solver has a tenth of its iterations
LIMIT = 120  # seconds of processor time that an estimator of scikit-learn has
MOST_IN_GRID = 5_000_000  # numbers in a training part, up to which networks have a grid
GRID = {"learning_rate": [0.0001, 0.001, 0.01, 0.1], "l2": [0, 0.0001]}
GRID_OF_NETWORKS = {"learning_rate": [0.001, 0.003], "hidden_layer_sizes": [[50], [200]], "l2": [0, 0.0001]}


@dataclass(frozen=True)
class Task:
    """A set, as its files have it."""

    name: str
    regression: bool = False
    dimensions: int | None = None  # of sparse sets
    bundled: str | None = None  # the function of scikit-learn that has it
    positive: int | None = None  # the class against all others
    network: bool = False  # is it tried with networks, too?
    label: int = 0  # the label's column, of files with columns of numbers
    mixed: str | None = None  # the label's column, of files with columns of numbers and text and with missing values

    @property
    def files(self):
        return "covtype_random" if self.name in ("covtype_2", "covtype_7", "elevation") else self.name

    def file(self, part):
        """Of a mixed set."""
        kdd99 = {"train": "kdd99_10pct_train", "test": "kdd99_corrected_test"}
        return kdd99[part] if self.name == "kdd99" else f"{self.name}_{part}"


TASKS = (
    Task("a9a", dimensions=123),
    Task("w8a", dimensions=300),
    Task("agaricus", dimensions=127, network=True),
    Task("rcv1_small", dimensions=47236),
    Task("criteo10k_hashed", dimensions=1 << 20),
    Task("kdd99_onehot", dimensions=0),
    Task("census_income_onehot", dimensions=0),
    Task("higgs", network=True),
    Task("skin"),
    Task("covtype_2", positive=2),
    Task("covtype_7", network=True),
    Task("iris", bundled="load_iris", network=True),
    Task("wine", bundled="load_wine", network=True),
    Task("breast_cancer", bundled="load_breast_cancer", network=True),
    Task("digits", bundled="load_digits", network=True),
    Task("diabetes", bundled="load_diabetes", regression=True, network=True),
    Task("protein", regression=True, network=True),
    Task("blogfeedback", regression=True, network=True),
    Task("california", regression=True, mixed="median_house_value", network=True),
    Task("census_income", mixed="income_over_50k"),
    Task("kdd99", mixed="label"),
    Task("criteo10k", mixed="label"),
    Task("mnist"),
    Task("cifar10"),
)


def read(data, task):
    """Training and test part, the former sorted by label; classes are numbers from 0, -1 for those not in training."""
    if task.bundled:
        x, y = getattr(datasets, task.bundled)(return_X_y=True)
        stratify = None if task.regression else y
        x, x_test, y, y_test = train_test_split(x, y, test_size=0.3, random_state=0, stratify=stratify)
    elif task.dimensions is not None:
        (x, y), (x_test, y_test) = (sparse(data, task, part) for part in ("train", "test"))
        width = task.dimensions or max(x.shape[1], x_test.shape[1])
        x.resize(x.shape[0], width)
        x_test.resize(x_test.shape[0], width)
    else:
        table, test = (data.numbers(f"{task.files}_{part}") for part in ("train", "test"))
        x, x_test = (np.delete(part, task.label, axis=1) for part in (table, test))
        y, y_test = table[:, task.label], test[:, task.label]
    if not task.regression:
        if task.positive is not None:
            y, y_test = y == task.positive, y_test == task.positive
        classes, y = np.unique(y, return_inverse=True)
        y_test = np.where(np.isin(y_test, classes), np.searchsorted(classes, y_test), -1)
    labels = np.float32 if task.regression else np.int32
    train, test = Part(as_real(x), y.astype(labels)), Part(as_real(x_test), y_test.astype(labels))
    return train.in_order(np.argsort(train.labels, kind="stable")), test


def as_real(features):
    return csr_matrix(features, dtype=np.float32) if issparse(features) else np.ascontiguousarray(features, np.float32)


def sparse(data, task, part):
    features = task.dimensions or None
    return load_svmlight_file(data.path(f"{task.files}_{part}.libsvm.gz"), n_features=features, zero_based=False)


@dataclass
class Mixed:
    """Rows of columns of numbers (NaN where one is missing) and of text."""

    numbers: dict[str, np.ndarray]
    texts: dict[str, list[str]]
    labels: np.ndarray

    def __len__(self):
        return len(self.labels)


def read_mixed(data, task):
    """Both parts, the training part sorted by label."""
    tables = {}
    for part in ("train", "test"):
        with gzip.open(data.path(f"{task.file(part)}.csv.gz"), "rt") as file:
            header, *rows = csv.reader(file)
            header = [name.lower() for name in header]  # as SQL reads them
        tables[part] = dict(zip(header, zip(*rows, strict=True), strict=True))
    label = task.mixed if task.mixed in tables["train"] else list(tables["train"])[-1]
    numbers = [name for name, values in tables["train"].items() if name != label and all(map(is_number, values))]
    parts = []
    for table in tables.values():
        labels = table.pop(label)
        if task.name == "kdd99":
            labels = [value != "normal" for value in labels]
        labels = np.array(labels, np.float64).astype(np.float32 if task.regression else np.int32)
        order = np.argsort(labels, kind="stable") if not parts else np.arange(len(labels))
        columns = {name: np.array(values)[order] for name, values in table.items()}
        as_number = {name: np.where(columns[name] == "", "nan", columns[name]).astype(np.float32) for name in numbers}
        texts = {name: list(values) for name, values in columns.items() if name not in numbers}
        parts.append(Mixed(as_number, texts, labels[order]))
    return parts


def is_number(field):
    try:
        return field == "" or np.isfinite(float(field))
    except ValueError:
        return False


def create_mixed(connection, table, rows):
    columns = [(name, "real") for name in rows.numbers] + [(name, "text") for name in rows.texts]
    label = "int" if rows.labels.dtype == np.int32 else "real"
    connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute(f"CREATE TABLE {table} (label {label}, {', '.join(f'{name} {kind}' for name, kind in columns)})")
    numbers = [[None if np.isnan(x) else float(x) for x in column] for column in rows.numbers.values()]
    texts = [[value or None for value in column] for column in rows.texts.values()]
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in zip(rows.labels.tolist(), *numbers, *texts, strict=True):
            copy.write_row(row)
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")


def as_matrices(train, test):
    """Both parts for scikit-learn: means for missing numbers, scaled, and a column for each text."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore")
    parts = []
    for rows in (train, test):
        fitted = (numbers.transform, one_hot.transform) if parts else (numbers.fit_transform, one_hot.fit_transform)
        blocks = []
        if rows.numbers:
            blocks.append(csr_matrix(fitted[0](np.column_stack(list(rows.numbers.values())))))
        if rows.texts:
            blocks.append(fitted[1](np.array(list(rows.texts.values()), dtype=object).T))
        parts.append(Part(hstack(blocks).tocsr(), rows.labels))
    return parts


def model_of(task, train):
    if task.regression:
        return "linear"
    return "logistic" if len(np.unique(train.labels)) == 2 else "softmax"


def ours(connection, model, seeds):
    """Worst score, mean log-loss (None of a regression) and median seconds over the seeds."""
    scores, losses, seconds = [], [], []
    for seed in seeds:
        begun = perf_counter()
        model_id = connection.execute(
            "SELECT max(model_id) FROM corgipile_train(%s, model => %s, seed => %s)",
            [TABLE[0], model, seed],
        ).fetchone()[0]
        seconds.append(perf_counter() - begun)
        # rows of a class that training has not met are no rows to be evaluated on, but wrong they are
        metrics = dict(
            connection.execute(
                "SELECT metric, value"
                " FROM corgipile_evaluate(%s::bigint, 'SELECT * FROM defaults_test WHERE label <> -1')",
                [model_id],
            ).fetchall()
        )
        known, all_rows = connection.execute(
            "SELECT count(*) FILTER (WHERE label <> -1), count(*) FROM defaults_test"
        ).fetchone()
        score = metrics.get("r2")
        scores.append(metrics["accuracy"] * known / all_rows if score is None else score)
        losses.append(metrics.get("log_loss"))
        connection.execute("SELECT corgipile_drop(%s::bigint)", [model_id])
    loss = None if losses[0] is None else float(np.mean(losses))
    return min(scores), loss, float(np.median(seconds))


def ours_by_grid(connection, model):
    """The score of the point of a grid that is the best on a fifth of the rows that is held out."""
    grid = GRID_OF_NETWORKS if model.startswith("mlp") else GRID
    options = {} if model.startswith("mlp") else {"bounded_steps": True}
    rows = connection.execute(
        "SELECT model_id, epoch, validation_score FROM corgipile_train(%s, model => %s, seed => 1,"
        " validation_fraction => 0.2, grid => %s, options => %s)",
        [TABLE[0], model, Jsonb(grid), Jsonb(options)],
    ).fetchall()
    best = max((row for row in rows if row[1] == rows[-1][1]), key=lambda row: row[2])[0]
    metrics = dict(
        connection.execute(
            "SELECT metric, value FROM corgipile_evaluate(%s::bigint, 'SELECT * FROM defaults_test WHERE label <> -1')",
            [best],
        ).fetchall()
    )
    share = connection.execute("SELECT avg((label <> -1)::int)::float8 FROM defaults_test").fetchone()[0]
    for model_id in {row[0] for row in rows}:
        connection.execute("SELECT corgipile_drop(%s::bigint)", [model_id])
    return metrics["r2"] if "r2" in metrics else metrics["accuracy"] * share


def theirs(estimator, train, test):
    """Score, log-loss and seconds of an estimator of scikit-learn; all None if it has not ended within LIMIT."""
    return within_processor_time(fit, estimator, train, test) or (None, None, None)


def within_processor_time(function, *arguments):
    """What a function gives in a process of its own; None if it has not ended within LIMIT."""
    fork = multiprocessing.get_context("fork")  # which copies nothing
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=within_limit, args=(sender, function, arguments))
    child.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        found = None
    child.join()
    if child.exitcode not in (0, -signal.SIGXCPU):
        raise RuntimeError(f"{arguments[0]} ended with {child.exitcode}")
    return found


def within_limit(sender, function, arguments):
    """In a process of its own, which the kernel ends at the limit."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 1))
    sender.send(function(*arguments))


def fit(estimator, train, test):
    """Score, log-loss and seconds."""
    begun = perf_counter()
    estimator.fit(train.features, train.labels)
    seconds = perf_counter() - begun
    loss = None
    if hasattr(estimator, "predict_proba"):
        known = test.labels >= 0
        p = estimator.predict_proba(test.features[known])[np.arange(known.sum()), test.labels[known]]
        loss = float(-np.log(np.maximum(p, 1e-15)).mean())
    return estimator.score(test.features, test.labels), loss, seconds


def estimators(task, train):
    """The exact solver, and SGD; sparse features stay as they are."""
    iterations = 100 if train.features.size > LARGE else 1000
    exact = LinearRegression() if task.regression else LogisticRegression(max_iter=iterations)
    sgd = SGDRegressor(random_state=0) if task.regression else SGDClassifier(loss="log_loss", random_state=0)
    if issparse(train.features):
        return exact, sgd
    return make_pipeline(StandardScaler(), exact), make_pipeline(StandardScaler(), sgd)


def constant(task, train, test):
    """Score and log-loss of what says the same of all rows."""
    if task.regression:
        return 0.0, None
    shares = np.bincount(train.labels) / len(train)
    known = test.labels[test.labels >= 0]
    return float((test.labels == shares.argmax()).mean()), float(-np.log(shares[known]).mean())


def compare(data, task, quick, connection):
    """A row per model."""
    if task.mixed:
        train, test = read_mixed(data, task)
        for table, rows in zip(TABLE, (train, test), strict=True):
            create_mixed(connection, table, rows)
        train, test = as_matrices(train, test)
    else:
        train, test = read(data, task)
        for table, rows in zip(TABLE, (train, test), strict=True):
            create_table(connection, table, rows)
    seeds = SEEDS[:1] if quick else SEEDS
    exact, sgd = (theirs(estimator, train, test) for estimator in estimators(task, train))
    base = constant(task, train, test)
    pairs = [(model_of(task, train), exact, sgd[0])]
    if task.network:
        network = MLPRegressor(random_state=0) if task.regression else MLPClassifier(random_state=0)
        network = network if issparse(train.features) else make_pipeline(StandardScaler(), network)
        pairs.append(("mlp_regression" if task.regression else "mlp", theirs(network, train, test), None))
    for model, reference, other in pairs:
        score, loss, seconds = ours(connection, model, seeds)
        has_grid = not model.startswith("mlp") or train.features.size <= MOST_IN_GRID
        by_grid = ours_by_grid(connection, model) if has_grid else None
        yield {
            "set": task.name,
            "model": model,
            "test_rows": len(test),
            "seeds": len(seeds),
            "constant": base[0],
            "constant_loss": base[1],
            "score": score,
            "loss": loss,
            "seconds": seconds,
            "grid": by_grid,
            "reference": reference[0],
            "reference_loss": reference[1],
            "reference_seconds": reference[2],
            "sgd": other,
            "limit": LIMIT,
        }


def defaults(data, quick, results):
    """Writes defaults.csv."""
    progress = Progress("defaults", len(TASKS), len(TASKS))
    with connect() as connection:
        for task in TASKS:
            results.write("defaults", list(compare(data, task, quick, connection)), replacing="set")
            progress.step(task.name)
        for table in TABLE:
            connection.execute(f"DROP TABLE {table}")
        reclaim(connection)
