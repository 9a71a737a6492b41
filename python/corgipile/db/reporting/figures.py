"""The figures of a report: epochs, curves of classes, what numbers are predicted, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._document import BINARY_SVMS
from . import measures
from .collect import MOST_CONFUSED, Collected, Evaluation, Weight
from .html import Html, join, name, number, scrolling, table, tag
from .svg import Axis, Series, bars, chart, figure, ranked

#: Points of a scatter plot.
_POINTS = 1200

_RATE = Axis("", 0.0, 1.0)


def epochs(models: list[Collected]) -> list[Html]:
    """Loss and score by epoch; a line per model, dashed for rows held out."""
    loss = _by_epoch(models, "Loss by epoch", "loss", [("loss", "training"), ("validation_loss", "held out")])
    score = "accuracy" if any(m.is_classifier for m in models) else "r2"
    label = "accuracy" if score == "accuracy" else "R²"
    title = f"{label[0].upper()}{label[1:]} by epoch"
    score_figure = _by_epoch(models, title, label, [(score, "training"), ("validation_score", "held out")])
    return [f for f in (loss, score_figure) if f is not None]


def _by_epoch(models: list[Collected], title: str, label: str, columns: list[tuple[str, str]]) -> Html | None:
    series = []
    for i, model in enumerate(models):
        for column, what in columns:
            points = [(e["epoch"], e[column]) for e in model.epochs if e.get(column) is not None]
            if points:
                said = what if len(models) == 1 else f"{model.short}: {what}"
                style = i if len(models) > 1 else int(what != "training")
                x, y = zip(*points)
                series.append(Series(said, x, y, style, is_dashed=what != "training"))
    if not series:
        return None
    last = " and ".join(f"{s.name} {number(s.y[-1])}" for s in series)
    said = f"In the last epoch: {last}." if len(models) == 1 else "Dashed lines are those of rows held out."
    return chart(title, said, series, Axis("epoch", whole=True), Axis(label))


def curves(models: list[Collected]) -> list[Html]:
    """ROC, precision and recall, lift, calibration: a line per model of two classes, or per class of one model."""
    roc, precise, lifted, calibrated = [], [], [], []
    for i, model in enumerate(models):
        evaluation = model.evaluation
        if evaluation is None or not model.is_classifier or not len(evaluation.actual):
            continue
        for j, (place, scores) in enumerate(zip(evaluation.scored, evaluation.scores.T)):
            of_class = model.classes[place]
            said = model.short if len(models) > 1 else f"class {of_class}"
            positive = evaluation.actual == place
            style = i if len(models) > 1 else j
            if (curve := measures.roc(positive, scores)) is not None:
                roc.append((curve, said, style))
            if (curve := measures.precision_recall(positive, scores)) is not None:
                precise.append((curve, said, style))
            if (curve := measures.lift(positive, scores)) is not None:
                lifted.append((curve, said, style))
        calibration = _calibration(model, evaluation)
        if calibration is not None:
            calibrated.append((calibration, model.short, i))
    found = (_roc(roc), _precise(precise), _lifted(lifted), _calibrated(calibrated))
    return [f for f in found if f is not None]


def _named(curves: list[tuple[measures.Curve, str, int]], measure: str) -> list[Series]:
    return [
        Series(f"{said} ({measure} {number(c.area, 3)})", [*measures.thinned(c).x], [*measures.thinned(c).y], style)
        for c, said, style in curves
    ]


def _areas(curves: list[tuple[measures.Curve, str, int]]) -> str:
    return ", ".join(f"{number(c.area)} for {said}" for c, said, _ in curves[:4])


def _roc(curves: list[tuple[measures.Curve, str, int]]) -> Html | None:
    if not curves:
        return None
    said = f"The area below is {_areas(curves)}; guessing has 0.5, the dotted line."
    x, y = Axis("false positive rate", 0.0, 1.0), Axis("true positive rate", 0.0, 1.0)
    return chart("ROC curve", said, _named(curves, "area"), x, y, diagonal=True)


def _precise(curves: list[tuple[measures.Curve, str, int]]) -> Html | None:
    if not curves:
        return None
    said = f"The average precision is {_areas(curves)}."
    x, y = Axis("recall", 0.0, 1.0), Axis("precision", 0.0, 1.0)
    return chart("Precision and recall", said, _named(curves, "average"), x, y)


def _lifted(curves: list[tuple[measures.Curve, str, int]]) -> Html | None:
    if not curves:
        return None
    said = f"The tenth of the rows with the highest scores has {_areas(curves)} times as many as all rows."
    x, y = Axis("share of the rows, highest scores first", 0.0, 1.0), Axis("lift")
    return chart("Lift", said, _named(curves, "first tenth"), x, y)


def _calibration(model: Collected, evaluation: Evaluation) -> measures.Calibration | None:
    """Of two classes how often the second comes true, of more how often the predicted class is right."""
    if model.kind in BINARY_SVMS or evaluation.confidence is None:
        return None
    if len(model.classes) == 2:
        return measures.calibration(evaluation.actual == 1, evaluation.scores[:, 0])
    return measures.calibration(evaluation.actual == evaluation.predicted, evaluation.confidence)


def _calibrated(found: list[tuple[measures.Calibration, str, int]]) -> Html | None:
    if not found:
        return None
    errors = ", ".join(number(c.error, 3) + (f" for {said}" if len(found) > 1 else "") for c, said, _ in found[:4])
    said = f"Share of rows that came true by predicted probability; both differ by {errors} on average."
    series = [Series(said, [*c.predicted], [*c.observed], style) for c, said, style in found]
    rows = [
        [label, number(float(p)), number(float(o)), number(int(n))]
        for c, label, _ in found
        for p, o, n in zip(c.predicted, c.observed, c.rows)
    ]
    content = table(["model", "predicted", "came true", "rows"], rows, "Numbers of: Calibration")
    x, y = Axis("predicted probability", 0.0, 1.0), Axis("share that came true", 0.0, 1.0)
    return chart("Calibration", said, series, x, y, diagonal=True, numbers=content)


def _commonest(model: Collected, evaluation: Evaluation) -> NDArray[np.int64]:
    """The classes that are shown, ascending: all of few, of many those that most rows are of."""
    count = len(model.classes)
    if count <= MOST_CONFUSED:
        return np.arange(count)
    rows = np.bincount(evaluation.actual, minlength=count)
    return np.sort(np.argsort(-rows, kind="stable")[:MOST_CONFUSED])


def confusion(model: Collected, evaluation: Evaluation) -> Html:
    """Which class was taken for which, with the shares of each row; of many classes the commonest ones."""
    shown = _commonest(model, evaluation)
    matrix = measures.confusion(evaluation.actual, evaluation.predicted, shown)
    totals = np.bincount(evaluation.actual, minlength=len(model.classes))[shown].clip(1)
    names = [name(model.classes[i]) for i in shown]
    heading = tag("tr", tag("td", ""), tag("th", "predicted", scope="colgroup", colspan=str(len(shown))))
    classes = tag("tr", tag("th", "actual", scope="col"), [tag("th", label, scope="col") for label in names])
    rows = []
    for label, counts, total in zip(names, matrix, totals):
        cells = [tag("td", f"{int(count):,}", style=f"--share: {count / total:.3f}") for count in counts]
        rows.append(tag("tr", tag("th", label, scope="row"), cells))
    content = tag("table", tag("thead", heading, classes), tag("tbody", rows), class_="confusion")
    right = number(100 * float(np.mean(evaluation.actual == evaluation.predicted)), 3)
    said = f"{right} % of the rows are right. Rows are actual classes, columns predicted ones."
    note = None
    if len(shown) < len(model.classes):
        note = f"The {len(shown)} commonest of {len(model.classes):,} classes; shares are of all rows of a class."
    return figure(
        "Confusion matrix", said, scrolling(content, "Confusion matrix"), None, note, None, is_wide=len(shown) > 6
    )


def by_class(model: Collected, evaluation: Evaluation) -> Html:
    """Precision, recall and F1 of each class."""
    found = measures.by_class(evaluation.actual, evaluation.predicted, len(model.classes))
    shown = _commonest(model, evaluation)
    rows = [
        [name(model.classes[i]), number(int(found.rows[i])),
         *(number(float(m[i]), 3) for m in (found.precision, found.recall, found.f1))]
        for i in shown
    ]  # fmt: skip
    many = len(shown) < len(model.classes)
    label = f"The {len(shown)} commonest of {len(model.classes):,} classes" if many else "Classes"
    return join(tag("h4", label), table(["class", "rows", "precision", "recall", "F1"], rows, label))


def numbers(evaluation: Evaluation) -> list[Html]:
    """Predicted against actual, and what is left of them."""
    actual, predicted = evaluation.actual, evaluation.predicted
    if not len(actual):
        return []
    shown = slice(None, None, max(1, -(-len(actual) // _POINTS)))
    low, high = float(min(actual.min(), predicted.min())), float(max(actual.max(), predicted.max()))
    points = Series("rows", [*predicted[shown]], [*actual[shown]], 0, points=True)
    note = None if len(actual) <= _POINTS else f"{len(actual[shown]):,} of the rows are drawn."
    x, y = Axis("predicted", low, high) if low < high else Axis("predicted"), Axis("actual")
    said = "A perfect prediction lies on the dotted line."
    scatter = chart(
        "Predicted and actual", said, [points], x, y, diagonal=True, note=note, numbers=_by_tenth(evaluation)
    )
    residuals = actual - predicted
    low, high = (float(cut) for cut in np.quantile(residuals, [0.005, 0.995]))
    edges = np.linspace(low, high, 31) if low < high else np.linspace(low - 1, high + 1, 31)
    heights, _ = np.histogram(residuals.clip(edges[0], edges[-1]), edges)
    mean, deviation = number(float(residuals.mean()), 3), number(float(residuals.std()), 3)
    said = f"Actual minus predicted: {mean} on average, deviation {deviation}."
    histogram = bars("Residuals", said, [*edges], [*heights], Axis("residual"), Axis("rows"))
    against = Series("rows", [*predicted[shown]], [*residuals[shown]], 1, points=True)
    said = "What depends on the prediction here is what the model misses."
    spread = chart(
        "Residuals by prediction",
        said,
        [against],
        Axis("predicted"),
        Axis("residual"),
        note=note,
        numbers=_by_tenth(evaluation),
    )
    return [scatter, histogram, spread]


def _by_tenth(evaluation: Evaluation) -> Html:
    """Rows by tenths of their predictions."""
    order = np.argsort(evaluation.predicted, kind="stable")
    rows = []
    for part in np.array_split(order, min(10, len(order))):
        actual, predicted = evaluation.actual[part], evaluation.predicted[part]
        low, high = number(float(predicted[0])), number(float(predicted[-1]))
        rest = actual - predicted
        mean = [number(float(v)) for v in (predicted.mean(), actual.mean(), rest.mean(), rest.std())]
        rows.append([f"{low} to {high}", number(len(part)), *mean])
    head = ["predicted", "rows", "mean predicted", "mean actual", "mean residual", "deviation"]
    return table(head, rows, "Predictions by tenths")


def weights(model: Collected) -> Html | None:
    """The largest weights with their features' means and deviations."""
    found = model.weights
    if not found:
        return None
    is_network = bool(model.facts["hidden_layer_sizes"])
    is_standard = any(w.mean is not None for w in found)
    several = any(w.class_ is not None for w in found)
    largest: dict[str, Weight] = {}
    for w in found:
        largest.setdefault(w.feature, w)
    names = [f"{w.feature} ({w.class_})" if several else w.feature for w in largest.values()]
    values = [w.value for w in largest.values()]
    of = f"the {len(largest)} largest of {model.features:,}" if (model.features or 0) > len(largest) else "all of them"
    title = "Features that the first layer listens to" if is_network else "Weights by size"
    unit = (
        "for standardized features: what a deviation changes"
        if is_standard
        else "for features as they are: sizes depend on units"
    )
    if is_network:
        unit = "the root of the sum of the squared weights of the first layer"
    said = f"{of[0].upper()}{of[1:]}, {unit}."
    note = "Of each feature the weight of the class that it says most about." if several else None
    content = _weights_table(found, several, is_network)
    return ranked(title, said, names, values, content, note)


def _weights_table(found: list[Weight], several: bool, is_network: bool) -> Html:
    head: list[Any] = ["feature"]
    head += ["class"] if several else []
    head += ["size" if is_network else "weight", "mean", "deviation"]
    head += [] if is_network else ["per unit"]
    rows: list[list[Any]] = []
    for w in found:
        row: list[Any] = [name(w.feature)]
        row += [name(w.class_)] if several else []
        row += [number(w.value), number(w.mean), number(w.scale)]
        row += [] if is_network else [number(w.per_unit)]
        rows.append(row)
    right = set(range(2 if several else 1, len(head)))
    return table(head, rows, "Weights", right)


def summary(model: Collected) -> dict[str, float | None]:
    """The measures of an evaluation by name."""
    evaluation = model.evaluation
    if evaluation is None or not len(evaluation.actual):
        return {}
    if not model.is_classifier:
        return _of_numbers(evaluation.actual, evaluation.predicted)
    found: dict[str, float | None] = {"accuracy": float(np.mean(evaluation.actual == evaluation.predicted))}
    if len(model.classes) == 2:
        curve = measures.roc(evaluation.actual == 1, evaluation.scores[:, 0])
        found["ROC area"] = None if curve is None else curve.area
        of = measures.by_class(evaluation.actual, evaluation.predicted, 2)
        found |= {"precision": float(of.precision[1]), "recall": float(of.recall[1]), "F1": float(of.f1[1])}
    if evaluation.of_actual is not None:
        with np.errstate(divide="ignore"):
            found["log loss"] = float(np.nanmean(-np.log(evaluation.of_actual)))
    return found


def _of_numbers(actual: NDArray[np.float64], predicted: NDArray[np.float64]) -> dict[str, float | None]:
    rest = actual - predicted
    spread = float(((actual - actual.mean()) ** 2).sum())
    r2 = 1 - float((rest**2).sum()) / spread if spread > 0 else None
    return {"R²": r2, "RMSE": float(np.sqrt((rest**2).mean())), "MAE": float(np.abs(rest).mean())}
