"""A search of 20 points on 5 folds: seconds compared with single trainings and scikit-learn's, and the scores found.

scikit-learn gets the rows from the server by COPY in binary form, which numpy takes as it is: nothing is faster. Its
search halves the points and doubles the rows; ours learns from all rows with all points.
"""

import os
import struct
import sys
import warnings
from pathlib import Path
from time import monotonic, process_time

import numpy as np
from scipy.sparse import issparse
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.model_selection import HalvingGridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from common import ROWS, clustered, figure, headline, load, table
from data import Data, create_table
from defaults import Task, read
from processor import Backend
from server import connect
from timing import processor_seconds

POINTS, FOLDS, EPOCHS = 20, 5, 20
WORKERS = 2, 4
SETS = (
    Task("higgs"),
    Task("skin"),
    Task("covtype_2", positive=2),
    Task("a9a", dimensions=123),
    Task("w8a", dimensions=300),
    Task("protein", regression=True),
)
NAMES = "search_train", "search_test"


def grid(regression):
    """Twenty points for scikit-learn."""
    name = "sgdregressor" if regression else "sgdclassifier"
    return {
        f"{name}__alpha": [1e-7, 1e-6, 1e-5, 1e-4, 1e-3],
        f"{name}__eta0": [0.001, 0.003, 0.01, 0.03],
    }


def halving(train, regression, epochs=EPOCHS):
    """scikit-learn's search, fitted."""
    common = {"learning_rate": "invscaling", "max_iter": epochs, "tol": None, "random_state": 0, "average": True}
    estimator = SGDRegressor(**common) if regression else SGDClassifier(loss="log_loss", **common)
    scaler = StandardScaler(with_mean=not issparse(train.features))
    folds = (KFold if regression else StratifiedKFold)(FOLDS, shuffle=True, random_state=0)
    search = HalvingGridSearchCV(
        make_pipeline(scaler, estimator), grid(regression), cv=folds, random_state=0, error_score=-1e9
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(train.features, train.labels)


def export(connection, name, features):
    """The rows of a table, by COPY in binary form."""
    with connection.cursor().copy(f"COPY {name} TO STDOUT BINARY") as copy:
        copied = b"".join(bytes(block) for block in copy)
    # two fields: an int, and an array with its header of 20 bytes and 8 bytes per element
    row = np.dtype(
        [
            *(("fields", ">i2"), ("length", ">i4"), ("label", ">i4"), ("bytes", ">i4"), ("head", "V20")),
            ("features", [("size", ">i4"), ("value", ">f4")], features),
        ]
    )
    assert struct.unpack(">h", copied[-2:]) == (-1,)
    rows = np.frombuffer(copied[19:-2], row)
    return rows["features"]["value"].astype(np.float32), rows["label"].astype(np.int32)


class Rows:
    def __init__(self, features, labels):
        self.features, self.labels = features, labels


def speed(connection):
    """1,000,000 x 28, in processor time: neighbours on the machine disturb elapsed time."""
    rows = int(os.environ.get("ROWS", ROWS))
    load(connection, "search_speed", *clustered(rows))
    call = f"'search_speed', seed => 1, max_epochs => {EPOCHS}"
    backend = Backend()

    def run(sql):
        _, elapsed, processor = backend.timed(sql)
        return processor, elapsed

    train = f"SELECT * FROM corgipile_train({call}, l2 => 1e-5)"
    run(train)
    runs = int(os.environ.get("RUNS", 5))
    single, single_elapsed = sorted(run(train) for _ in range(runs))[runs // 2]
    sql = f"SELECT * FROM corgipile_search({call}, trials => {POINTS}, folds => {FOLDS})"
    search, search_elapsed = min(run(sql) for _ in range(1 + runs // 5))
    # the leader's processor time, and what elapses
    workers = [(k, run(sql.replace("folds", f"workers => {k}, folds"))) for k in WORKERS]
    begun, used = monotonic(), process_time() + processor_seconds(connection.info.backend_pid)
    features, labels = export(connection, "search_speed", 28)
    exported = process_time() + processor_seconds(connection.info.backend_pid) - used
    exported_elapsed = monotonic() - begun
    begun, used = monotonic(), process_time()
    halving(Rows(features, labels), regression=False)
    halved, halved_elapsed = process_time() - used, monotonic() - begun
    models = POINTS * FOLDS
    per_tuple = 1e9 / (rows * EPOCHS)
    table(
        f"{POINTS} points on {FOLDS} folds, {rows:,} x 28, {EPOCHS} epochs",
        ["what", "processor s", "elapsed s", "ns per tuple and model"],
        [
            ["corgipile_search", f"{search:.2f}", f"{search_elapsed:.2f}", f"{search * per_tuple / models:.2f}"],
            *([f"workers => {k}, its leader", f"{used:.2f}", f"{elapsed:.2f}", ""] for k, (used, elapsed) in workers),
            ["corgipile_train, once", f"{single:.2f}", f"{single_elapsed:.2f}", f"{single * per_tuple:.2f}"],
            [f"corgipile_train, {models} times", f"{single * models:.0f}", f"{single_elapsed * models:.0f}", ""],
            ["export to numpy", f"{exported:.2f}", f"{exported_elapsed:.2f}", ""],
            ["HalvingGridSearchCV", f"{halved:.1f}", f"{halved_elapsed:.1f}", ""],
        ],
    )
    what = f"Search of {POINTS} points on {FOLDS} folds, {rows:,} rows x 28, processor time"
    theirs = exported + halved
    headline(what, f"{search:.1f} s", f"{single * models:.0f} s, {models} trainings", single * models / search)
    headline(what, f"{search:.1f} s", f"{theirs:.0f} s, scikit-learn's with its export", theirs / search)
    figure("trainings one by one / corgipile_search", single * models / search, ">= 5")


def quality(connection, data):
    """The winner's score on test rows."""
    wanted = os.environ.get("SETS", "").split()
    lines, least = [], 1.0
    for task in SETS:
        if wanted and task.name not in wanted:
            continue
        train, test = read(data, task)
        for name, rows in zip(NAMES, (train, test), strict=True):
            create_table(connection, name, rows)
        model = "linear" if task.regression else "logistic" if len(np.unique(train.labels)) == 2 else "softmax"
        begun = monotonic()
        best = connection.execute(
            "SELECT model_id, grid_point, mean_test_score FROM corgipile_search(%s, model => %s, seed => 1,"
            " trials => %s, folds => %s) WHERE rank = 1",
            [NAMES[0], model, POINTS, FOLDS],
        ).fetchone()
        ours_seconds = monotonic() - begun
        metrics = dict(
            connection.execute(
                "SELECT metric, value FROM corgipile_evaluate(%s::bigint, %s)", [best[0], NAMES[1]]
            ).fetchall()
        )
        ours = metrics["r2" if task.regression else "accuracy"]
        begun = monotonic()
        found = halving(train, task.regression)
        theirs_seconds = monotonic() - begun
        theirs = found.score(test.features, test.labels)
        least = min(least, ours - theirs)
        point = {key.split("__")[1]: value for key, value in found.best_params_.items()}
        lines.append(
            [
                *(task.name, model, f"{len(train):,}"),
                *(f"{best[2]:.4f}", f"{ours:.4f}", f"{ours_seconds:.1f}"),
                *(f"{found.best_score_:.4f}", f"{theirs:.4f}", f"{theirs_seconds:.1f}"),
                *(str(best[1]), str(point)),
            ]
        )
        print("  " + "  ".join(map(str, lines[-1])), flush=True)
    columns = ["set", "model", "rows", "folds", "test", "s", "sklearn folds", "sklearn test", "s", "point", "its point"]
    table("What the searches find, tables sorted by label", columns, lines)
    figure("test score of corgipile_search - of HalvingGridSearchCV, the least", least, ">= -0.005")


def main():
    directory = os.environ.get("CORGIPILE_DATA", Path(__file__).parents[2] / "../shared/data")
    with connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
        parts = sys.argv[1:] or ["speed", "quality"]
        if "speed" in parts:
            speed(connection)
        if "quality" in parts:
            quality(connection, Data(directory))


if __name__ == "__main__":
    main()
