"""How often the truth lies in corgipile_predict_interval() and corgipile_predict_set(): see
benches/conformal/run.

For each seed the rows of a set are put in a random order. The model learns from the first, is calibrated with
the next thousand, and is judged on the rest. numpy computes thresholds, intervals and sets again from the
predictions alone; MAPIE, if it is there, does the same from a model that it is handed.
"""

import gzip
import io
import os
import statistics
import sys
from pathlib import Path

import numpy as np
import psycopg

COVERAGE = 0.9
ROWS, TRAINED, CALIBRATED = 6000, 2000, 1000
SEEDS = int(os.environ.get("SEEDS", "50"))


def california(data):
    with gzip.open(data / "california_train.csv.gz", "rt") as file:
        text = file.read()
    columns = text.split("\n", 1)[0].split(",")
    kinds = ", ".join(f"{name} {'text' if name == 'ocean_proximity' else 'real'}" for name in columns)
    return kinds.replace("median_house_value real", "label real"), text


def dense(name, label="int", without=None):
    """A set whose label comes first; without the rows of a label, if it says so."""

    def read(data):
        with gzip.open(data / f"{name}.csv.gz", "rt") as file:
            lines = file.readlines()
        text = "".join(line for line in lines if line.split(",", 1)[0] != without)
        columns = text.split("\n", 1)[0].split(",")
        return ", ".join([f"label {label}"] + [f'"{column}" real' for column in columns[1:]]), text

    return read


def sklearn_diabetes(_):
    from sklearn.datasets import load_diabetes

    features, target = load_diabetes(return_X_y=True)
    return table(features, target, "real")


def sklearn_digits(_):
    from sklearn.datasets import load_digits

    features, target = load_digits(return_X_y=True)
    return table(features, target, "int")


def table(features, target, label):
    out = io.StringIO()
    out.write(",".join(["label"] + [f"x{i}" for i in range(features.shape[1])]) + "\n")
    for y, row in zip(target, features):
        out.write(",".join([str(y)] + [repr(float(x)) for x in row]) + "\n")
    return ", ".join([f"label {label}"] + [f"x{i} real" for i in range(features.shape[1])]), out.getvalue()


# name, what it is, how it is read, model, options of the training
SETS = [
    ("california", "regression", california, "linear"),
    ("california (network)", "regression", california, "mlp_regression"),
    ("blogfeedback", "regression", dense("blogfeedback_train", "real"), "linear"),
    ("diabetes", "regression", sklearn_diabetes, "linear"),
    ("covtype", "classification", dense("covtype_random_train", without="4"), "softmax"),
    ("higgs", "classification", dense("higgs_train"), "logistic"),
    ("higgs (svm)", "classification", dense("higgs_train"), "svm"),
    ("skin", "classification", dense("skin_train"), "logistic"),
    ("digits", "classification", sklearn_digits, "softmax"),
    ("digits (network)", "classification", sklearn_digits, "mlp"),
]


def load(connection, data, read):
    columns, text = read(data)
    connection.execute("DROP TABLE IF EXISTS rows, parts")
    connection.execute(f"CREATE TABLE rows ({columns})")
    with connection.cursor().copy("COPY rows FROM STDIN CSV HEADER") as copy:
        copy.write(text)
    return connection.execute("SELECT count(*) FROM rows").fetchone()[0]


def split(rows):
    """How many rows are trained on, calibrated with, and judged."""
    rows = min(rows, ROWS)
    trained = min(TRAINED, rows // 2)
    calibrated = min(CALIBRATED, (rows - trained) // 2)
    return trained, calibrated, rows


def shuffle(connection, seed, rows):
    connection.execute("DROP TABLE IF EXISTS parts")
    connection.execute("SELECT setseed(%s)", [seed / 1000])
    connection.execute(
        "CREATE TABLE parts AS SELECT row_number() OVER (ORDER BY random())::int AS place, * FROM rows "
        f"ORDER BY 1 LIMIT {rows}"
    )


def train(connection, seed, model, trained, calibrated):
    features = "'{*,-place}'"
    connection.execute(
        f"SELECT FROM corgipile_train('SELECT * FROM parts WHERE place <= {trained}', '{model}', "
        f"features => {features}, "
        f"name => 'm', seed => {seed}, options => '{{\"keep_versions\": 1}}')"
    )
    source = f"SELECT * FROM parts WHERE place > {trained} AND place <= {trained + calibrated}"
    connection.execute(f"SELECT corgipile_calibrate('m', '{source}')")


def numpy_threshold(scores):
    """The ceil((n + 1) c)-th smallest of n scores."""
    rank = int(np.ceil((len(scores) + 1) * COVERAGE))
    return np.sort(scores)[rank - 1]


def judge_regression(connection, trained, calibrated):
    query = (
        "SELECT place, label, corgipile_predict('m', p), i.low, i.high "
        "FROM parts p, corgipile_predict_interval('m', p) i WHERE place > %s"
    )
    place, label, predicted, low, high = (
        np.array(column, float) for column in zip(*connection.execute(query, [trained]).fetchall())
    )
    held_out = place <= trained + calibrated
    threshold = numpy_threshold(np.abs(label - predicted)[held_out])
    scale = np.abs(predicted) + threshold
    apart = max(
        np.max(np.abs(low - (predicted - threshold)) / scale), np.max(np.abs(high - (predicted + threshold)) / scale)
    )
    new = ~held_out
    mapie = mapie_intervals(label, predicted, held_out)
    if mapie is not None:
        apart_of_mapie = np.max(np.abs(np.stack([low[new], high[new]], 1) - mapie) / scale[new, None])
    else:
        apart_of_mapie = float("nan")
    inside = (label >= low) & (label <= high)
    return inside[new].mean(), np.mean((high - low)[new]), apart, apart_of_mapie


class Predicted:
    """A model for MAPIE, whose only feature is the number of the row."""

    def __new__(cls, answers):
        from sklearn.base import BaseEstimator, RegressorMixin

        class Handed(RegressorMixin, BaseEstimator):
            def fit(self, X, y):  # noqa: N803
                self.n_features_in_ = 1
                return self

            def predict(self, X):  # noqa: N803
                return answers[np.asarray(X)[:, 0].astype(int)]

        return Handed().fit(None, None)


def mapie_intervals(label, predicted, held_out):
    try:
        from mapie.regression import SplitConformalRegressor
    except ImportError:
        return None
    rows = np.arange(len(label))[:, None].astype(float)
    conformal = SplitConformalRegressor(estimator=Predicted(predicted), confidence_level=COVERAGE, prefit=True)
    conformal.conformalize(rows[held_out], label[held_out])
    _, intervals = conformal.predict_interval(rows[~held_out])
    return intervals[:, :, 0]


def judge_classification(connection, trained, calibrated, model):
    classes = connection.execute("SELECT classes FROM corgipile.models WHERE name = 'm'").fetchone()[0]
    proba = "NULL" if model == "svm" else "corgipile_predict_proba('m', p)"
    query = f"SELECT place, label::text, corgipile_predict_set('m', p), {proba} FROM parts p WHERE place > %s"
    rows = connection.execute(query, [trained]).fetchall()
    place = np.array([row[0] for row in rows])
    number = {name: i for i, name in enumerate(classes)}
    truth = np.array([number[row[1]] for row in rows])
    sets = np.array([[name in row[2] for name in classes] for row in rows])
    new = place > trained + calibrated
    different = float("nan")
    if model != "svm":
        scores = 1 - np.array([row[3] for row in rows])
        threshold = numpy_threshold(scores[np.arange(len(rows)), truth][~new])
        # what is as near to the threshold as single precision is rounded may be on either side
        clear = np.abs(scores - threshold) > 2e-6
        different = np.sum((sets != (scores <= threshold)) & clear)
    inside = sets[np.arange(len(rows)), truth]
    return inside[new].mean(), sets[new].sum(1).mean(), different, float("nan")


def measure(connection, data, name, task, read, model):
    trained, calibrated, rows = split(load(connection, data, read))
    figures = []
    for seed in range(1, SEEDS + 1):
        shuffle(connection, seed, rows)
        train(connection, seed, model, trained, calibrated)
        judge = judge_regression if task == "regression" else judge_classification
        extra = [] if task == "regression" else [model]
        figures.append(judge(connection, trained, calibrated, *extra))
    coverage, size, apart, mapie = (list(column) for column in zip(*figures))
    mean, deviation = statistics.mean(coverage), statistics.stdev(coverage)
    parts = f"{trained} / {calibrated} / {rows - trained - calibrated}"
    numpy_says = (
        f"{max(apart):.1e}" if task == "regression" else ("" if model == "svm" else f"{int(sum(apart))} labels")
    )
    mapie_says = f"{max(mapie):.1e}" if task == "regression" and not np.isnan(mapie[0]) else ""
    shown = f"{100 * mean:.2f}% | {100 * deviation:.2f}% | {100 * min(coverage):.1f}% to {100 * max(coverage):.1f}%"
    line = f"{name} | `{model}` | {parts} | {shown} | {statistics.mean(size):.4g} | {numpy_says} | {mapie_says}"
    print(line, flush=True)
    return line, 0.88 <= mean <= 0.92


PAGE = """# Coverage of Intervals and Sets

This page says whether [intervals and sets of labels](../deploy/explain.md#prediction-intervals)
hold the truth as often as they say. `benches/conformal/run` writes it.

Each line is the mean of {seeds} seeds. For each, the rows are put in another random order: a model is trained
on the first, calibrated with the next, and judged on the rest. 90% is asked for. *Size* is the mean width of
the intervals, or the mean number of labels in a set. *numpy* is how far intervals are from those that numpy
computes from `corgipile_predict` alone, relative to their size, at most; or how many labels are in one set
and not in the other. *MAPIE* is the same for MAPIE's `SplitConformalRegressor`. Of covtype the label 4 is
left out, of which some trainings would see no row: a label that the model does not know is an error.

Set | Model | Trained / calibrated / judged | Coverage | Deviation over seeds | From, to | Size | numpy | MAPIE
--- | --- | --- | --- | --- | --- | --- | --- | ---
{lines}

A single calibration with n rows has a coverage that is spread around 90% by about the square root of 0.09 /
n: 0.9% with 1,000 rows.
"""


def main():
    data, page = Path(sys.argv[1]), Path(sys.argv[2])
    with psycopg.connect(os.environ.get("CORGIPILE_DSN", ""), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
        connection.execute("SET client_min_messages = error")
        measured = [measure(connection, data, *one) for one in SETS]
    page.write_text(PAGE.format(seeds=SEEDS, lines="\n".join(line for line, _ in measured)))
    sys.exit(0 if all(holds for _, holds in measured) else "coverage is not between 88% and 92% everywhere")


if __name__ == "__main__":
    main()
