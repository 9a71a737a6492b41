"""Epochs as a picture of matplotlib's."""

from __future__ import annotations

from typing import Any

from ._optional import required

#: Okabe and Ito's colours, which the colour-blind can distinguish too; lines differ in their dashes as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_epochs(epochs: Any, axes: Any = None) -> Any:
    """Loss on the left, accuracy or R² on the right; a line per model, dashed for the rows held out."""
    pyplot = required("matplotlib.pyplot", "a plot", "matplotlib")
    has_score = any(_there(value) for column in ("accuracy", "r2") for value in epochs[column])
    if axes is None:
        figure, axes = pyplot.subplots(1, 2 if has_score else 1, figsize=(10 if has_score else 5.5, 3.8), squeeze=False)
        axes = list(axes[0])
        figure.set_layout_engine("constrained")
    else:
        axes = list(axes) if hasattr(axes, "__len__") else [axes]
        figure = axes[0].figure
    score = "accuracy" if any(_there(value) for value in epochs["accuracy"]) else "r2"
    for i, model_id in enumerate(epochs.model_ids):
        label = _label(epochs, model_id)
        colour = COLOURS[i % len(COLOURS)]
        _lines(axes[0], epochs, model_id, ("loss", "validation_loss"), label, colour)
        if has_score and len(axes) > 1:
            _lines(axes[1], epochs, model_id, (score, "validation_score"), label, colour)
    for axis, title in zip(axes, ("loss", "accuracy" if score == "accuracy" else "R²")):
        axis.set_xlabel("epoch")
        axis.set_ylabel(title)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        axis.legend(frameon=False)
    return figure


def _lines(axis: Any, epochs: Any, model_id: int, columns: tuple[str, str], label: str, colour: str) -> None:
    for column, what, style in zip(columns, ("training", "held out"), ("-", "--")):
        of_model = zip(epochs["model_id"], epochs["epoch"], epochs[column])
        points = [(epoch, value) for own, epoch, value in of_model if own == model_id and _there(value)]
        if points:
            text = f"{label}: {what}" if label else what
            marker = "o" if len(points) == 1 else None
            axis.plot(*zip(*points), style, color=colour, label=text, marker=marker, linewidth=1.8)


def _label(epochs: Any, model_id: int) -> str:
    if len(epochs.model_ids) == 1:
        return ""
    return (epochs.names[model_id] or f"model {model_id}").replace("$", r"\$")


def _there(value: Any) -> bool:
    return value is not None and value == value
