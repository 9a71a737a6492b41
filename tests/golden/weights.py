"""What weights, classes and warm starts come to: minima of sum(w * loss) / sum(w) + l2 / 2 * |coefficients|^2.

w is a row's weight times its class's. Means and deviations of features, what stands for NULLs, and balanced classes
count rows by their weights. The test makes the same rows with the same formulas in SQL. Writes weights.json beside
itself:
target/study-venv/bin/python tests/golden/weights.py
"""

import json
import pathlib

import numpy as np

N = 240


def rows():
    i = np.arange(1, N + 1)
    u = (i * 7919 % 1000) / 1000 - 0.5
    v = (i * 104729 % 997) / 997 - 0.5
    e = (i * 15485863 % 991) / 991 - 0.5
    a, b = 4 * u, 1 + 3 * v
    number = 10 + 3 * a - b + 8 * e + np.where(i % 20 == 0, 60, 0)
    binary = (a + v + 4 * e > 0.7).astype(int)
    triple = np.where(a + 2 * e > 0.8, 2, np.where(b + 2 * e > 1.1, 1, 0))
    count = np.floor(np.exp(1 + 0.4 * a) * (1 + e))
    # heavy and light rows, some of none, and more weight where b is large
    w = (i % 5) * (1 + (v > 0)) * 0.25
    return i, np.column_stack([a, b]), number, binary, triple, count, w


# first and second derivatives of losses by the decision z
def logistic(z, y):
    p = 1 / (1 + np.exp(-z))
    return p - y, p * (1 - p)


def linear(z, y):
    return z - y, np.ones_like(z)


def poisson(z, y):
    return np.exp(z) - y, np.exp(z)


def squared_hinge(z, y):
    s = 2 * y - 1
    slack = np.maximum(0, 1 - s * z)
    return -2 * s * slack, 2.0 * (slack > 0)


def minimum(loss, x, y, w, l2):
    """By Newton's method; the last of the coefficients is the intercept, which is not penalised."""
    x = np.column_stack([x, np.ones(len(x))])
    w = w / w.sum()
    penalty = np.array([l2] * (x.shape[1] - 1) + [0])
    theta = np.zeros(x.shape[1])
    if loss is poisson:
        theta[-1] = np.log(w @ y)
    for _ in range(2000):
        first, second = loss(x @ theta, y)
        gradient = x.T @ (w * first) + penalty * theta
        theta = theta - np.linalg.solve(x.T @ (x * (w * second)[:, None]) + np.diag(penalty), gradient)
        if np.abs(gradient).max() < 1e-12:
            return theta
    raise AssertionError(f"{loss.__name__} has not converged: {gradient}")


def huber(x, y, w, l2, epsilon=1.35):
    """The threshold is epsilon times the scale, whose square is the mean of min(residual^2, threshold^2)."""
    sigma = np.sqrt(w @ (y - w @ y / w.sum()) ** 2 / w.sum())
    inputs = np.column_stack([x, np.ones(len(x))])
    for _ in range(10_000):
        delta = epsilon * sigma

        def loss(z, y, delta=delta):
            # the curvature of the parabola that touches the loss from above: each step is downwards
            return np.clip(z - y, -delta, delta), delta / np.maximum(np.abs(z - y), delta)

        theta = minimum(loss, x, y, w, l2)
        residual = inputs @ theta - y
        new = np.sqrt(w @ np.minimum(residual**2, delta**2) / w.sum())
        if abs(new - sigma) < 1e-12 * sigma:
            return theta
        sigma = new
    raise AssertionError("the scale has not come to rest")


def softmax(x, y, w, l2):
    """By gradient descent with momentum; a column of coefficients per class."""
    x = np.column_stack([x, np.ones(len(x))])
    w = w / w.sum()
    one_hot = np.eye(3)[y]
    theta, velocity = np.zeros((x.shape[1], 3)), 0
    penalty = np.array([l2] * (x.shape[1] - 1) + [0])[:, None]
    for _ in range(200_000):
        z = x @ theta
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        gradient = x.T @ (w[:, None] * (p - one_hot)) + penalty * theta
        if np.abs(gradient).max() < 1e-12:
            return theta
        velocity = 0.95 * velocity - 0.1 * gradient
        theta = theta + velocity
    raise AssertionError(f"softmax has not converged: {np.abs(gradient).max()}")


def standard(x, w):
    mean = w @ x / w.sum()
    return mean, np.sqrt(w @ (x - mean) ** 2 / w.sum())


def per_unit(theta, mean, scale):
    """Coefficients in the units of the data, then the intercept."""
    slopes = (theta[:-1].T / scale).T
    return np.concatenate([slopes, (theta[-1] - mean @ slopes).reshape(1, *theta.shape[1:])])


def optimum(solve, x, y, w, l2, standardize, classes=None):
    mean, scale = standard(x, w) if standardize else (np.zeros(x.shape[1]), np.ones(x.shape[1]))
    total = w if classes is None else w * classes[y]
    return per_unit(solve((x - mean) / scale, y, total, l2), mean, scale)


def by(loss):
    return lambda x, y, w, l2: minimum(loss, x, y, w, l2)


def balanced(y, w):
    """Of each class: the weight of all rows over that of the class, times the number of classes."""
    of_class = np.bincount(y, w)
    return w.sum() / (len(of_class) * of_class)


def steps(x, y, start, learning):
    """Steps down the gradient of all rows at once: pairs of weights and a rate."""
    x = np.column_stack([x, np.ones(len(x))])
    theta = np.array(start)
    for w, rate in learning:
        theta = theta - rate * (x.T @ (w / w.sum() * logistic(x @ theta, y)[0]))
    return theta


i, x, number, binary, triple, count, w = rows()
ones = np.ones(N)
solvers = {
    "logistic": (by(logistic), binary),
    "linear": (by(linear), number),
    "poisson": (by(poisson), count),
    "squared_hinge": (by(squared_hinge), binary),
    "huber": (huber, number),
    "softmax": (softmax, triple),
}
golden = {"rows": N, "weight": w.sum(), "optima": []}
for model, (solve, y) in solvers.items():
    for l2 in (0.0, 0.1):
        for standardize in (True, False):
            for weight in (None, "w"):
                if model == "softmax" and l2 == 0:
                    continue  # not unique
                found = optimum(solve, x, y, w if weight else ones, l2, standardize)
                golden["optima"].append(
                    {"model": model, "l2": l2, "standardize": standardize, "weight": weight, "class_weight": None}
                    | {"coefficients": found.T.tolist()}
                )
# classes: with a penalty it matters that the mean is over all weights, those of classes among them
for model in ("logistic", "squared_hinge", "softmax"):
    solve, y = solvers[model]
    for weight in (None, "w"):
        rows_weight = w if weight else ones
        k = y.max() + 1
        for class_weight, classes in (
            ("balanced", balanced(y, rows_weight)),
            ({"1": 3.0}, np.where(np.arange(k) == 1, 3.0, 1.0)),
        ):
            found = optimum(solve, x, y, rows_weight, 0.1, False, classes)
            golden["optima"].append(
                {"model": model, "l2": 0.1, "standardize": False, "weight": weight, "class_weight": class_weight}
                | {"coefficients": found.T.tolist()}
            )

# NULLs: the weighted mean of the rows that have the feature; mean and deviation are those once it stands for them
absent = i % 7 == 0
golden["nulls"] = {}
for weight in (None, "w"):
    rows_weight = w if weight else ones
    a = np.where(absent, rows_weight[~absent] @ x[~absent, 0] / rows_weight[~absent].sum(), x[:, 0])
    found = optimum(by(logistic), np.column_stack([a, x[:, 1]]), binary, rows_weight, 0.1, True)
    golden["nulls"][weight or ""] = found.tolist()

# a warm start begins at the weights that are there, and steps by the new ones
golden["warm start"] = {
    "first": steps(x, binary, [0, 0, 0], [(ones, 0.1)] * 3).tolist(),
    "second": steps(x, binary, [0, 0, 0], [(ones, 0.1)] * 3 + [(w, 0.05)] * 2).tolist(),
    "same weights": steps(x, binary, [0, 0, 0], [(w, 0.1)] * 5).tolist(),
    "balanced": steps(x, binary, [0, 0, 0], [(ones, 0.1)] * 3 + [(w * balanced(binary, w)[binary], 0.05)] * 2).tolist(),
}

path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(golden, indent=1) + "\n")
