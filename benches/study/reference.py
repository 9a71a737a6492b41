"""Our models against scikit-learn's: its exact solvers with the same loss and penalty, and its own SGD.

Both sides see the same features. What is compared is the training objective, mean loss plus l2 / 2 |w|^2 without the
intercept, computed here in double precision from the weights. scikit-learn's C is 1 / (l2 n).
"""

import warnings
from dataclasses import replace
from functools import partial
from time import monotonic

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.svm import LinearSVC

from data import CALIFORNIA_COLUMNS
from jobs import run_jobs
from progress import Progress
from rates import chosen, cost
from server import L2, coefficients, evaluate, forget, thousandth, train

SGD_SEEDS = 3
MANY_NUMBERS = 40_000_000  # in a set for which one seed must do

# What a solver came to is judged by the objective.
warnings.filterwarnings("ignore", category=ConvergenceWarning)


def design(data, data_set, part):
    """Features as both sides see them, in double precision, standardized by the training part, and labels."""
    rows = data.part(data_set, part)
    features, labels = rows.features.astype(np.float64), rows.labels
    if data_set.columns:
        whole = ~np.isnan(features).any(axis=1)
        features, labels = features[whole], labels[whole]
    return features, labels


def standardization(data_set, features):
    """Means and scales as the server should find them: the population's deviation, 1 for what is constant.

    Columns that stand for categories stay as they are."""
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale == 0] = 1
    if data_set.columns:
        mean[len(CALIFORNIA_COLUMNS) :], scale[len(CALIFORNIA_COLUMNS) :] = 0, 1
    return mean, scale


def objective(model, weights, intercepts, features, labels):
    """Mean loss and penalty of weights (outputs x features)."""
    decisions = np.asarray(features @ weights.T) + intercepts
    penalty = L2 / 2 * np.square(weights).sum()
    if model == "softmax":
        classes = np.unique(labels)
        of_label = decisions[np.arange(len(labels)), np.searchsorted(classes, labels)]
        return (logsumexp(decisions, axis=1) - of_label).mean() + penalty
    decisions = decisions[:, 0]
    if model == "linear":
        return np.square(decisions - labels).mean() / 2 + penalty
    margins = np.where(labels == labels.max(), 1, -1) * decisions
    losses = np.logaddexp(0, -margins) if model == "logistic" else np.maximum(0, 1 - margins)
    return losses.mean() + penalty


def solvers(model, rows):
    """scikit-learn's estimators that minimize just this objective, and their names."""
    c = 1 / (L2 * rows)
    if model == "linear":
        return {"Ridge": Ridge(alpha=L2 * rows)}
    if model == "svm":
        # liblinear penalizes the intercept too: so little at this scaling that it does not matter
        return {
            "LinearSVC": LinearSVC(
                C=c, loss="hinge", dual=True, intercept_scaling=30, tol=1e-4, max_iter=1000, random_state=1
            )
        }
    return {"LogisticRegression": LogisticRegression(C=c, solver="lbfgs", tol=1e-6, max_iter=3000)}


def smoothed_svm(features, labels):
    """The hinge loss's minimum by L-BFGS on ever less smoothed versions of it: a check of LinearSVC."""
    signs = np.where(labels == labels.max(), 1.0, -1.0)

    def value_and_gradient(point, width):
        weights, intercept = point[:-1], point[-1]
        short = 1 - signs * (features @ weights + intercept)
        # quadratic between 0 and width, linear beyond
        inside = np.clip(short / width, 0, 1)
        value = (inside * (short - width * inside / 2)).mean() + L2 / 2 * weights @ weights
        slope = -signs * inside / len(signs)
        return value, np.append(features.T @ slope + L2 * weights, slope.sum())

    point = np.zeros(features.shape[1] + 1)
    for width in (0.3, 0.1, 0.03, 0.01, 0.003):
        found = minimize(value_and_gradient, point, (width,), "L-BFGS-B", jac=True, options={"maxiter": 500})
        point = found.x
    return point[None, :-1], point[-1:]


def exact(model, features, labels):
    """Objectives of the exact solutions by name, the best one's name, and its weights and intercepts."""
    if issparse(features):
        # a feature that is nowhere has weight 0; without such ones a million dimensions are far fewer
        present = np.unique(features.indices)
        values, best, (weights, intercepts) = solve(model, features[:, present], labels)
        everywhere = np.zeros((len(weights), features.shape[1]))
        everywhere[:, present] = weights
        return values, best, (everywhere, intercepts)
    return solve(model, features, labels)


def solve(model, features, labels):
    solutions = {}
    for name, estimator in solvers(model, len(labels)).items():
        estimator.fit(features, labels)
        solutions[name] = np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)
    if model == "svm":
        solutions["smoothed hinge"] = smoothed_svm(features, labels)
    values = {name: objective(model, *solution, features, labels) for name, solution in solutions.items()}
    best = min(values, key=values.get)
    return values, best, solutions[best]


def score(model, weights, intercepts, features, labels):
    """Accuracy, or R2."""
    decisions = np.asarray(features @ weights.T) + intercepts
    if model == "linear":
        return 1 - np.square(decisions[:, 0] - labels).sum() / np.square(labels - labels.mean()).sum()
    classes = np.unique(labels)
    places = decisions.argmax(axis=1) if model == "softmax" else (decisions[:, 0] > 0).astype(int)
    return (classes[places] == labels).mean()


def own_sgd(model, epochs, train_rows, test_rows):
    """Mean test score of scikit-learn's SGD, with its default schedule."""
    scores = []
    for seed in range(1 if train_rows[0].size > MANY_NUMBERS else SGD_SEEDS):
        settings = {"alpha": L2, "max_iter": epochs, "tol": None, "random_state": seed}
        if model == "linear":
            estimator = SGDRegressor(**settings)
        else:
            # of more than two classes it makes a model each
            estimator = SGDClassifier(loss="hinge" if model == "svm" else "log_loss", n_jobs=2, **settings)
        with np.errstate(all="ignore"):
            scores.append(estimator.fit(*train_rows).score(*test_rows))
    return np.mean(scores)


def compare(data, run, connection):
    """A row for reference.csv."""
    data_set, model = run.data_set, run.model
    features, labels = design(data, data_set, "train")
    test_features, test_labels = design(data, data_set, "test")
    start = monotonic()
    ours = train(connection, run)
    seconds = monotonic() - start
    _, test_score = evaluate(connection, ours, data_set.table("test"))
    weights, intercepts, mean, scale = coefficients(connection, ours)
    forget(connection, ours)
    if data_set.standardize:
        expected_mean, expected_scale = standardization(data_set, features)
        np.testing.assert_allclose(mean, expected_mean, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(scale, expected_scale, rtol=1e-4)
        features, test_features = (features - mean) / scale, (test_features - mean) / scale
    if not issparse(features):
        features, test_features = np.ascontiguousarray(features), np.ascontiguousarray(test_features)
    start = monotonic()
    values, best, solution = exact(model, features, labels)
    exact_seconds = monotonic() - start
    return {
        "set": data_set.name,
        "model": model,
        "batch_size": run.batch_size,
        "epochs": run.epochs,
        "learning_rate": run.rate,
        "decay": run.decay,
        "l2": L2,
        "objective": objective(model, weights, intercepts, features, labels),
        "exact_objective": values[best],
        "exact_solver": best,
        "other_objective": next((value for name, value in values.items() if name != best), None),
        "test_score": test_score,
        "exact_test_score": score(model, *solution, test_features, test_labels),
        "sgd_test_score": own_sgd(model, 20, (features, labels), (test_features, test_labels)),
        "seconds": seconds,
        "exact_seconds": exact_seconds,
    }


def epochs_of(data_set, quick):
    if quick:
        return 20
    return {"mnist": 50, "kdd99_onehot": 60, "criteo10k_hashed": 1000}.get(data_set.files, 100)


def reference(data, sets, quick, results):
    """Writes reference.csv: corgipile on the clustered tables, one tuple a step, rates as in rates.csv."""
    sets = [data_set for data_set in sets if data_set.order != "feature" and not data_set.network]
    runs = []
    for cell in chosen(sets, quick, results):
        if cell.batch_size == cell.data_set.drawn_batch_size:
            epochs = epochs_of(cell.data_set, quick)
            runs.append(replace(cell, strategy="corgipile", seed=1, epochs=epochs, decay=thousandth(epochs)))
    runs.sort(key=cost, reverse=True)  # lest the longest begins last
    progress = Progress("reference", len(runs), sum(map(cost, runs)))
    jobs = [(partial(compare, data, run), str(run), cost(run)) for run in runs]
    results.write("reference", run_jobs(jobs, progress), replacing="set")
