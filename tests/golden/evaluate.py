"""What scikit-learn says of three models on rows that the test makes with the same formulas in SQL.

Writes evaluate.json beside itself: target/study-venv/bin/python tests/golden/evaluate.py
"""

import json
import pathlib

import numpy as np
from sklearn import metrics
from sklearn.calibration import calibration_curve

i = np.arange(1, 401)
x = np.stack([(i * 37 % 101) / 16 - 3 + 1 / 64, (i * 53 % 97) / 8 - 6, (i * 11 % 13) / 4 - 1.5], axis=1)

# weights and intercepts of tests/src/stored.rs
z = x @ [0.5, -1.25, 2] + 0.125
positive = (i * 29 % 7 + 3 * (z > 0)) > 4
target = z + (i * 17 % 11) / 4 - 1
# decisions are of type real: the dot products are exact, the sums with the intercepts are not
weights, intercepts = np.float32([[1, 2, 3], [-1, 0.5, 2], [0, -2, 1.5]]), np.float32([0.1, 0.2, -0.3])
scores = (x.astype(np.float32) @ weights.T + intercepts).astype(np.float64)
animal = np.where(i % 5 == 0, i % 3, scores.argmax(axis=1))
p = np.exp(scores - scores.max(axis=1, keepdims=True))
p /= p.sum(axis=1, keepdims=True)


def binary(name):
    predicted = z > 0
    (tn, fp), (fn, tp) = metrics.confusion_matrix(positive, predicted)
    loss = metrics.log_loss(positive, 1 / (1 + np.exp(-z))) if name == "logistic" else None
    return {
        "accuracy": metrics.accuracy_score(positive, predicted),
        "baseline_accuracy": max(positive.mean(), 1 - positive.mean()),
        "roc_auc": metrics.roc_auc_score(positive, z),
        "pr_auc": metrics.average_precision_score(positive, z),
        "precision": metrics.precision_score(positive, predicted),
        "recall": metrics.recall_score(positive, predicted),
        "f1": metrics.f1_score(positive, predicted),
        "confusion[-1,-1]": int(tn),
        "confusion[-1,1]": int(fp),
        "confusion[1,-1]": int(fn),
        "confusion[1,1]": int(tp),
    } | ({"log_loss": loss, "loss": loss} if loss else {"loss": metrics.hinge_loss(np.where(positive, 1, -1), z)})


def softmax():
    predicted, names = scores.argmax(axis=1), ["ant", "bee", "cat"]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(animal, predicted)
    macro = metrics.precision_recall_fscore_support(animal, predicted, average="macro")
    all_ = {
        "accuracy": metrics.accuracy_score(animal, predicted),
        "log_loss": metrics.log_loss(animal, p),
        "loss": metrics.log_loss(animal, p),
        "baseline_accuracy": np.bincount(animal).max() / len(animal),
        "pr_auc": metrics.average_precision_score(np.eye(3)[animal], p, average="macro"),
        "roc_auc": metrics.roc_auc_score(animal, p, multi_class="ovr", average="macro"),
        "precision": macro[0],
        "recall": macro[1],
        "f1": macro[2],
    }
    matrix = metrics.confusion_matrix(animal, predicted)
    for k, name in enumerate(names):
        all_[f"roc_auc[{name}]"] = metrics.roc_auc_score(animal == k, p[:, k])
        all_[f"pr_auc[{name}]"] = metrics.average_precision_score(animal == k, p[:, k])
        all_ |= {f"precision[{name}]": precision[k], f"recall[{name}]": recall[k], f"f1[{name}]": f1[k]}
        all_ |= {f"confusion[{name},{other}]": int(matrix[k, j]) for j, other in enumerate(names)}
    return all_


def texts():
    """Of two texts, none of which is positive: the plain means, and the metrics of each. And with a positive one."""
    predicted, names = z > 0, ["no", "yes"]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(positive, predicted)
    pr = [metrics.average_precision_score(~positive, -z), metrics.average_precision_score(positive, z)]
    all_ = {"precision": precision.mean(), "recall": recall.mean(), "f1": f1.mean(), "pr_auc": np.mean(pr)}
    for k, name in enumerate(names):
        all_ |= {f"precision[{name}]": precision[k], f"recall[{name}]": recall[k], f"f1[{name}]": f1[k]}
        all_ |= {f"roc_auc[{name}]": metrics.roc_auc_score(positive, z), f"pr_auc[{name}]": pr[k]}
    return all_


def curves():
    """The curves of the positive class, at all thresholds, and the calibration in ten bins of equal width."""
    p_ = 1 / (1 + np.exp(-z))
    fpr, tpr, _ = metrics.roc_curve(positive, z, drop_intermediate=False)
    precision, recall, _ = metrics.precision_recall_curve(positive, z)
    true, mean = calibration_curve(positive, p_, n_bins=10)
    return {
        "roc": [list(fpr), list(tpr)],
        # scikit-learn has the greatest threshold last, and one point more
        "precision_recall": [list(recall[-2::-1]), list(precision[-2::-1])],
        "calibration": [list(mean), list(true)],
    }


def linear():
    return {
        "r2": metrics.r2_score(target, z),
        "loss": metrics.mean_squared_error(target, z) / 2,
        "rmse": metrics.root_mean_squared_error(target, z),
        "mae": metrics.mean_absolute_error(target, z),
    }


golden = {
    "logistic": binary("logistic"),
    "svm": binary("svm"),
    "softmax": softmax(),
    "linear": linear(),
    "texts": texts(),
    "curves": curves(),
}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(golden, indent=1, default=float) + "\n")
