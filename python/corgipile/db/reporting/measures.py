"""Curves and measures of predictions, by their definitions in scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Points, and the area below them."""

    x: Doubles
    y: Doubles
    area: float


def _counts(positive: NDArray[np.bool_], scores: Doubles) -> tuple[Doubles, Doubles]:
    """True and false positives at each threshold, from the highest score on; equal scores have one threshold."""
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order], positive[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    true = np.cumsum(hits)[last].astype(np.float64)
    return true, last + 1.0 - true


def roc(positive: NDArray[np.bool_], scores: Doubles) -> Curve | None:
    """True over false positive rate; None if all rows are of one class."""
    if not len(positive) or positive.all() or not positive.any():
        return None
    true, false = _counts(positive, scores)
    x, y = np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1])
    return Curve(x, y, float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum()))


def precision_recall(positive: NDArray[np.bool_], scores: Doubles) -> Curve | None:
    """Precision over recall; the area is the average precision. None without positive rows."""
    if not positive.any():
        return None
    true, false = _counts(positive, scores)
    recall, precision = true / true[-1], true / (true + false)
    area = float((np.diff(np.append(0.0, recall)) * precision).sum())
    return Curve(np.append(0.0, recall), np.append(precision[0], precision), area)


def lift(positive: NDArray[np.bool_], scores: Doubles) -> Curve | None:
    """How many times more often rows of the highest scores are positive than all rows, over their share of all rows; in
    place of an area the lift of the first tenth. None without positive rows."""
    if not positive.any():
        return None
    true, false = _counts(positive, scores)
    rows = true + false
    x, y = rows / rows[-1], (true / rows) / (true[-1] / rows[-1])
    return Curve(x, y, float(np.interp(0.1, x, y)))


def thinned(curve: Curve, points: int = 150) -> Curve:
    """The same with fewer points, about equally far from each other along the curve."""
    if len(curve.x) <= points:
        return curve
    length = np.append(0.0, np.cumsum(np.abs(np.diff(curve.x)) + np.abs(np.diff(curve.y))))
    at = np.unique(np.searchsorted(length, np.linspace(0, length[-1], points)).clip(0, len(curve.x) - 1))
    return Curve(curve.x[at], curve.y[at], curve.area)


@dataclass(frozen=True)
class Calibration:
    """In each bin of predicted probabilities their mean, the share of rows that came true, and how many there are."""

    predicted: Doubles
    observed: Doubles
    rows: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error: how far both are apart in a row, on average."""
        return float((np.abs(self.predicted - self.observed) * self.rows).sum() / max(1, self.rows.sum()))


def calibration(happened: NDArray[np.bool_], probability: Doubles, bins: int = 10) -> Calibration:
    """Bins of equal width; those without rows are left out."""
    place = np.minimum((probability * bins).astype(np.int64), bins - 1)
    rows = np.bincount(place, minlength=bins)
    there = rows > 0
    predicted = np.bincount(place, probability, bins)[there] / rows[there]
    return Calibration(predicted, np.bincount(place, happened, bins)[there] / rows[there], rows[there])


def confusion(actual: NDArray[np.int64], predicted: NDArray[np.int64], classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of each of these classes, which ascend, were put into which of them."""
    known = np.isin(actual, classes) & np.isin(predicted, classes)
    pairs = np.searchsorted(classes, actual[known]) * len(classes) + np.searchsorted(classes, predicted[known])
    return np.bincount(pairs, minlength=len(classes) ** 2).reshape(len(classes), len(classes))


@dataclass(frozen=True)
class ByClass:
    """Of each class the rows that there are, precision, recall and F1; 0 where nothing can be divided by."""

    rows: NDArray[np.int64]
    precision: Doubles
    recall: Doubles
    f1: Doubles


def by_class(actual: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> ByClass:
    """These measures of each of this many classes."""
    rows, chosen, hits = (
        np.bincount(places, minlength=classes) for places in (actual, predicted, actual[actual == predicted])
    )

    def ratio(a: NDArray[np.int64] | Doubles, b: NDArray[np.int64] | Doubles) -> Doubles:
        return np.divide(a, b, out=np.zeros(classes), where=b > 0)

    precision, recall = ratio(hits, chosen), ratio(hits, rows)
    return ByClass(rows, precision, recall, ratio(2 * precision * recall, precision + recall))
