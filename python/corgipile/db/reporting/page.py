"""The page: an overview, what models have in common, and a section for each."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from . import figures
from .collect import Collected
from .html import Html, join, name, number, table, tag
from .style import CSS

#: Nothing is loaded from anywhere, whatever a value might bring into the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_KINDS = {
    "logistic": "logistic regression",
    "svm": "support vector machine",
    "svm_one_vs_rest": "support vector machine, one for each class",
    "squared_hinge": "support vector machine with the squared hinge",
    "squared_hinge_one_vs_rest": "support vector machine with the squared hinge, one for each class",
    "linear": "linear regression",
    "softmax": "softmax regression",
    "poisson": "Poisson regression",
    "quantile": "quantile regression",
    "epsilon_insensitive": "support vector regression",
    "huber": "Huber regression",
    "mlp": "multilayer perceptron, for classes",
    "mlp_regression": "multilayer perceptron, for numbers",
}


def page(models: list[Collected], title: str | None, database: str, version: str) -> str:
    """The whole document."""
    heading = title if title is not None else " · ".join(model.title for model in models)
    made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", heading),
        Html(f"<style>{CSS}</style>"),
    )
    top = tag(
        "header",
        tag("h1", name(heading)),
        tag("p", f"Made on {made} from database ", name(database), class_="quiet"),
        class_="page",
    )
    several = len(models) > 1
    are_alike = several and _are_alike(models)
    common = _common(models, are_alike) if several else None
    body = join(_overview(models), common, [_section(model, several, are_alike) for model in models])
    foot = tag("footer", tag("p", f"Written by corgipile {version}. Nothing in this page comes from elsewhere."))
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', top, tag('main', body), foot), lang='en')}\n"


def _overview(models: list[Collected]) -> Html:
    """A column per model, a row per measure."""
    measured = [figures.summary(model) for model in models]
    last = [model.epochs[-1] if model.epochs else {} for model in models]
    titles = [name(model.short) for model in models]
    if len(models) > 1:
        titles = [tag("a", shown, href=f"#model-{model.facts['model_id']}") for shown, model in zip(titles, models)]
    rows: list[list[Any]] = [
        ["kind", *(model.kind for model in models)],
        ["rows learned from", *(number(of.get("tuples")) for of in last)],
        ["epochs", *(number(len(model.epochs)) for model in models)],
        ["training loss", *(number(of.get("loss")) for of in last)],
    ]
    if any(of.get("validation_loss") is not None for of in last):
        rows.append(["loss held out", *(number(of.get("validation_loss")) for of in last)])
    keys = dict.fromkeys(key for found in measured for key in found)
    rows.extend([key, *(number(found.get(key)) for found in measured)] for key in keys)
    told = [_told(model) for model in models] if len(models) == 1 else [_told_of_all(models)]
    return tag("section", tag("h2", "In short"), table(["", *titles], rows, "Models in short"), told)


def _told_of_all(models: list[Collected]) -> Html:
    told = list(dict.fromkeys(model.evaluation.told for model in models if model.evaluation is not None))
    if len(told) == 1:
        return _told(next(model for model in models if model.evaluation is not None))
    return tag("p", "The models are measured on different rows: each section says on which.", class_="warn")


def _told(model: Collected) -> Html:
    """On which rows a model was measured."""
    evaluation = model.evaluation
    if evaluation is None:
        return tag("p", model.failure or "No rows were looked at.", class_="warn")
    without = evaluation.without_answer
    rest = f" {without:,} of them have no answer, or no label of a class that the model knows." if without else ""
    said = tag("p", f"Measured on {evaluation.told}.{rest}", class_="quiet")
    if evaluation.are_held_out:
        return said
    drawn = (model.facts["hyperparameters"] or {}).get("validation_fraction")
    warning = "The model has learned from such rows, so that it looks better here than on new ones. "
    if drawn is not None:
        warning += (
            f"Which {drawn:.0%} validation_fraction held out is not recorded; their loss is in the figures by epoch. "
        )
    hint = "Give the report a source of other rows, or train with validation_column."
    return join(said, tag("p", warning, hint, class_="warn"))


def _are_alike(models: list[Collected]) -> bool:
    """Whether all tell the same two classes apart, so that their curves go into the same figures."""
    return all(len(model.classes) == 2 for model in models) and len({tuple(model.classes) for model in models}) == 1


def _common(models: list[Collected], are_alike: bool) -> Html:
    """All models in the same figures, as far as they predict the same."""
    found = figures.epochs(models) + (figures.curves(models) if are_alike else [])
    return tag("section", tag("h2", "Compared"), tag("div", found, class_="figures"))


def _section(model: Collected, is_one_of_several: bool, is_compared: bool) -> Html:
    """What belongs to one model; without the curves that it has with the others."""
    evaluation = model.evaluation
    shown = [] if is_one_of_several else figures.epochs([model])
    if evaluation is not None and len(evaluation.actual):
        if model.is_classifier:
            shown += [] if is_compared else figures.curves([model])
            shown.append(figures.confusion(model, evaluation))
        else:
            shown += figures.numbers(evaluation)
    if (weights := figures.weights(model)) is not None:
        shown.append(weights)
    by_class = None
    if model.is_classifier and evaluation is not None and len(evaluation.actual):
        by_class = figures.by_class(model, evaluation)
    return tag(
        "section",
        tag("h2", name(model.title)) if is_one_of_several else tag("h2", "The model"),
        _facts(model),
        _told(model) if is_one_of_several else None,
        tag("h3", "Figures"),
        tag("div", shown, class_="figures"),
        by_class,
        tag("h3", "How it was trained"),
        _choices(model),
        _columns(model) if model.columns else None,
        id=f"model-{model.facts['model_id']}",
    )


def _facts(model: Collected) -> Html:
    facts = model.facts
    created = facts["created_at"]
    rows: list[tuple[str, Any]] = [
        ("Predicts", join(name(facts["label"]), f", of type {facts['label_type']}")),
        ("Kind", _KINDS.get(model.kind, model.kind)),
        ("Trained on", tag("code", name(facts["source"] or "not said"))),
        ("Features", _features(model)),
        ("When, by whom", join(f"{created:%Y-%m-%d %H:%M}, " if created is not None else "", name(facts["owner"]))),
        ("In the database", join(f"id {facts['model_id']}", ", deployed" if facts["deployed"] else "")),
    ]
    if model.is_classifier:
        shown = model.classes[:20]
        rest = f" and {len(model.classes) - 20:,} more" if len(model.classes) > 20 else ""
        rows.insert(1, ("Classes", join(_listed(shown), rest)))
    if facts["hidden_layer_sizes"]:
        layers = ", ".join(f"{units:,}" for units in facts["hidden_layer_sizes"])
        rows.append(("Hidden layers", f"{layers} units, {facts['activation']}"))
    if facts["comment"]:
        rows.append(("Comment", name(facts["comment"])))
    return tag("dl", [join(tag("dt", term), tag("dd", value)) for term, value in rows])


def _features(model: Collected) -> Html:
    found = model.facts["features"]
    count = f"{model.features:,} from " if model.features else ""
    kind = {"array": "the array ", "sparse": "sparse ", "columns": ""}[model.facts["feature_kind"]]
    rest = f" and {len(found) - 40:,} more columns" if len(found) > 40 else ""
    return join(count, kind, _listed(found[:40]), rest)


def _listed(names: list[str]) -> Html:
    parts: list[Any] = []
    for i, one in enumerate(names):
        parts += [", "] * (i > 0) + [name(one)]
    return join(parts)


def _choices(model: Collected) -> Html:
    """What was chosen, by whomever; what became of NULLs and columns; and what the training said."""
    facts = model.facts
    said: list[Any] = []
    if facts["imputed"]:
        said.append(f"NULLs were imputed in {facts['imputed']:,} rows.")
    if facts["skipped"]:
        said.append(f"{facts['skipped']:,} rows were left out because of NULLs.")
    hashed = [c for c, coding in (facts["categories"] or {}).items() if isinstance(coding, dict)]
    if hashed:
        said.append(join("Hashed columns: ", _listed(hashed), "."))
    if facts["preparation_seconds"] and facts["preparation_seconds"] >= 0.001:
        said.append(f"The pass before the first epoch took {number(facts['preparation_seconds'], 3)} seconds.")
    seconds = [e.get("seconds") or 0 for e in model.epochs]
    if seconds:
        said.append(f"{len(seconds):,} epochs took {number(sum(seconds), 3)} seconds.")
    notices = [tag("li", name(notice)) for notice in model.notices]
    parameters = facts["hyperparameters"] or {}
    rows = [tag("div", tag("dt", key), tag("dd", name(_value(value)))) for key, value in sorted(parameters.items())]
    return join(
        [tag("p", sentence) for sentence in said],
        join(tag("p", "The training said:"), tag("ul", notices)) if notices else None,
        tag("h4", "Settings"),
        tag("dl", rows, class_="settings"),
    )


def _columns(model: Collected) -> Html:
    """The columns of the source, and what is known of their values."""
    most = 60
    head = ["column", "type", "used as", "why", "expression", "missing", "distinct"]
    rows: list[list[Any]] = [
        [
            name(column.name),
            column.type,
            column.role,
            name(column.reason or ""),
            tag("code", name(column.expression)) if column.expression else "",
            "" if column.null_fraction is None else f"{column.null_fraction:.1%}",
            number(column.distinct_values),
        ]
        for column in model.columns[:most]
    ]
    rest = f" The first {most} of {len(model.columns):,} columns are shown." if len(model.columns) > most else ""
    return join(
        tag("h3", "Columns of the source"),
        tag("p", f"Counted in {model.columns[0].based_on}.{rest}", class_="quiet"),
        table(head, rows, "Columns of the source", {5, 6}),
    )


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
