"""h_D of tables in blocks of whole pages, by the paper's definition (section 4.2) with all gradients at hand.

The test makes the same rows with the same formulas in SQL. Writes cluster_factor.json beside itself:
target/study-venv/bin/python tests/golden/cluster_factor.py
"""

import json
import pathlib

import numpy as np

#: rows of a page: 8,168 bytes for rows of 24 + 32 bytes and line pointers of 4
PER_PAGE = (8192 - 24) // (24 + 32 + 4)


def scaled(v):
    """Features as training standardizes them: those that are 0 or 1 alone, such as categories, stay as they are."""
    return (v - v.mean(axis=0)) / v.std(axis=0)


def rows(n):
    """Rows in the order of their label: a signal, and noise a million times as large."""
    i = np.arange(n)
    label = (i >= n // 2).astype(float)
    signal = (i * 7919 % 1000) / 1000 + 2 * label
    noise = ((i * 104729 % 99991) / 99991 - 0.5) * 2e6
    return i, label, signal, noise


def h_d(pulls, features, pages):
    """`pulls` are the derivatives of the loss by the decisions, a column per output."""
    inputs = np.column_stack([features, np.ones(len(features))])
    pulls = pulls.reshape(len(inputs), -1)
    gradients = (pulls[:, :, None] * inputs[:, None, :]).reshape(len(inputs), -1)
    block = np.arange(len(inputs)) // (PER_PAGE * pages)
    blocks = block.max() + 1
    m, mean = len(inputs), gradients.mean(axis=0)
    sums = np.stack([np.bincount(block, g, blocks) for g in gradients.T], axis=1)
    sizes = np.bincount(block, minlength=blocks)
    between = (sizes / m * ((sums / sizes[:, None] - mean) ** 2).sum(axis=1)).sum()
    within = ((gradients - mean) ** 2).sum(axis=1).mean()
    return m / blocks * between / within


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


n = 100_000
i, label, signal, noise = rows(n)
signs = 2 * label - 1
raw, x = np.column_stack([signal, noise]), scaled(np.column_stack([signal, noise]))
target = 1e3 + 5 * i / n + signal
kind = (i * 3 // n).astype(int)
one_hot = np.eye(3)[kind]
# every seventh signal is NULL; training puts the mean of the others in its place
absent = i % 7 == 0
filled = np.where(absent, signal[~absent].mean(), signal)
# mean and deviation are those of the column once that mean stands for NULLs
imputed = np.column_stack([scaled(filled), scaled(noise)])
weights, intercept = np.array([1.5, -0.25]), 0.5
z = x @ weights + intercept
of_each = x @ np.array([[1, 0.5], [-0.5, 0.25], [0, -1]]).T + [0.1, 0.2, -0.3]

golden = {
    "rows": n,
    "rows_per_page": PER_PAGE,
    "mean": list(raw.mean(axis=0)),
    "scale": list(raw.std(axis=0)),
    "factors": {},
}
for pages in (1, 8):
    golden["factors"][str(pages)] = {
        "raw": h_d(-signs / 2, raw, pages),
        "logistic": h_d(-signs / 2, x, pages),
        "nulls": h_d(-signs / 2, imputed, pages),
        "linear": h_d(-scaled(target), x, pages),
        "softmax": h_d(1 / 3 - one_hot, x, pages),
        "categories": h_d(-signs / 2, np.column_stack([x, one_hot]), pages),
        "at logistic": h_d(-signs / (1 + np.exp(signs * z)), x, pages),
        "at svm": h_d(np.where(signs * z < 1, -signs, 0), x, pages),
        "at linear": h_d(z - target, x, pages),
        "at poisson": h_d(np.exp(z) - label, x, pages),
        "at softmax": h_d(softmax(of_each) - one_hot, x, pages),
    }

path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(golden, indent=1) + "\n")
