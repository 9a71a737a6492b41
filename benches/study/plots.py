"""The figures, from the CSV files.

CorgiPile is a broad light line, and the full shuffles are thin dark ones that are drawn over it: where they run inside
it, it is as good as they are.
"""

import os
from math import ceil, log10
from statistics import mean, pstdev

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

import verdicts
from orders import TUPLES, TUPLES_PER_BLOCK
from server import STRATEGIES

# The colours are distinguished by those who do not see red or green, too.
COLORS = {
    "corgipile": "#6fb7e9",
    "no_shuffle": "#999999",
    "sliding_window": "#e69f00",
    "mrs": "#cc79a7",
    "block_only": "#d55e00",
    "shuffle_once": "#000000",
    "epoch_shuffle": "#004b76",
}
DASHES = {"shuffle_once": (0, (4, 2)), "epoch_shuffle": (0, (1, 1.3))}
WIDTHS = {"corgipile": 4.5, "shuffle_once": 1.1, "epoch_shuffle": 1.3}
MARKERS = {"corgipile": ("o", 7, 3, 3), "epoch_shuffle": ("|", 8, 0.8, 4)}  # sign, size, width and layer
DRAWN = tuple(COLORS)  # from the lowest to the topmost

# So that the same figures give the same files.
plt.rcParams.update(
    {
        "svg.hashsalt": "corgipile",
        "svg.fonttype": "none",
        "font.size": 8,
        "axes.titlesize": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "figure.dpi": 100,
        "path.simplify_threshold": 0.3,
    }
)

KINDS = ("logistic", "svm", "softmax", "linear", "mlp")
COLUMNS = 3  # of panels
README_TITLES = {
    "no_shuffle": "Order of the table",
    "shuffle_once": "Full shuffle: a shuffled copy",
    "corgipile": "CorgiPile: no copy",
}
LOWEST_R2 = 0.0  # guessing the mean; what is worse is not distinguished


class Plots:
    """Draws into the directory of the results."""

    def __init__(self, results, sets):
        self.results = results
        self.sets = sets
        self.written = []

    def save(self, figure, name):
        vector = name.endswith(".svg")
        metadata = {"Date": None} if vector else {"Software": None}
        figure.savefig(self.results.path(name), metadata=metadata, bbox_inches="tight", dpi=110)
        plt.close(figure)
        self.written.append(name)

    def draw(self):
        """All figures for which there are results; others of earlier runs are deleted."""
        self.differences()
        self.convergence()
        self.orders()
        self.three_orders()
        for name in os.listdir(self.results.directory):
            # those of joader.md and python.md are drawn when their parts run
            others = name.startswith(("joader_", "python_"))
            if name.endswith((".svg", ".png")) and name not in self.written and not others:
                os.remove(self.results.path(name))

    # -------------------------------------------------------------------------------------------------- convergence

    def convergence(self):
        """For each kind of model a figure of each measure, with a panel for each data set."""
        timed = {
            (row["set"], row["model"], row["batch_size"], row["strategy"], row["epoch"]): float(row["total_seconds"])
            for row in self.results.read("epochs")
        }
        lines = {}
        for row in self.results.read("checkpoints"):
            key = row["set"], row["model"], row["batch_size"], row["strategy"], row["epochs"]
            of = lines.setdefault((row["model"], row["set"]), {}).setdefault(row["strategy"], {})
            point = of.setdefault(int(row["epochs"]), {"seconds": timed[key], "train_loss": [], "test_score": []})
            for measure in ("train_loss", "test_score"):
                point[measure].append(float(row[measure]))
        for model in KINDS:
            panels = [(s, lines[model, s.name]) for s in self.sets if (model, s.name) in lines]
            if panels:
                self.panels(f"test_by_epoch_{model}", panels, "epochs", "test_score", score_name(model))
                self.panels(f"test_by_seconds_{model}", panels, "seconds", "test_score", score_name(model))
                self.panels(f"loss_by_epoch_{model}", panels, "epochs", "train_loss", "training loss (log scale)")

    def panels(self, name, panels, x, measure, label):
        """A panel per data set, a line per strategy: mean over the seeds, and a band of their standard deviation."""
        figure, axes = grid(len(panels))
        for ax, (data_set, strategies) in zip(axes, panels):
            for strategy in DRAWN:
                line(ax, strategy, strategies[strategy], x, measure)
            ax.set_title(panel_title(data_set))
            ax.set_xlabel("epochs" if x == "epochs" else "seconds (log scale)")
            ax.set_ylabel(label)
            if measure == "train_loss":
                logarithmic(ax)
            else:
                score_axis(ax, label, strategies)
            if x == "seconds":
                ax.set_xscale("log")
                ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                ax.xaxis.set_minor_locator(NullLocator())
            else:
                ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        legend(figure, axes[0], STRATEGIES, len(STRATEGIES) if len(panels) > 2 else 4)
        self.save(figure, f"{name}.svg")

    # -------------------------------------------------------------------------------------------------- differences

    def differences(self):
        """How far each strategy's final models are from those of shuffle_once: a row per set and model."""
        drawn = {s.name: str(s.drawn_batch_size) for s in self.sets}
        runs = [run for run in self.results.read("runs") if run["batch_size"] == drawn.get(run["set"])]
        cells = sorted(verdicts.cells(runs).items(), key=lambda item: KINDS.index(item[0][1]))
        if not cells:
            return
        figure, (losses, scores) = plt.subplots(
            1, 2, figsize=(9.3, 1.3 + 0.22 * len(cells)), layout="constrained", sharey=True
        )
        difference_axis(losses, "training loss, % more than shuffle_once", (-10, -1, 0, 1, 10, 100))
        difference_axis(scores, "test accuracy or R2, points more than shuffle_once", (-100, -10, -1, 0, 1))
        for place, (_, strategies) in enumerate(cells):
            for strategy in DRAWN:
                if strategy != "shuffle_once":
                    ours, full = strategies[strategy], strategies["shuffle_once"]
                    dot(losses, place, strategy, loss_difference(ours, full))
                    dot(scores, place, strategy, score_difference(ours, full))
        titles = {s.name: panel_title(s) for s in self.sets}
        losses.set_yticks(range(len(cells)), [f"{titles[name]}, {model}" for (name, model, _), _ in cells])
        losses.set_ylabel("data set, model")
        losses.set_ylim(len(cells) - 0.5, -0.5)
        legend(figure, losses, [strategy for strategy in STRATEGIES if strategy != "shuffle_once"], len(STRATEGIES))
        self.save(figure, "differences.svg")

    # ------------------------------------------------------------------------------------------------------- orders

    def orders(self):
        orders = self.read_orders()
        if not orders:
            return
        figure, axes = plt.subplots(2, len(STRATEGIES), figsize=(2.2 * len(STRATEGIES), 4.4), layout="constrained")
        for column, strategy in enumerate(STRATEGIES):
            order = orders[strategy]
            above, below = axes[:, column]
            above.set_title(strategy)
            above.plot(order, ".", markersize=1.5, color="#004b76")
            above.set_xlabel("position")
            above.set_ylabel("tuple")
            negative = [int((part < TUPLES // 2).sum()) for part in parts(order)]
            total = [len(part) for part in parts(order)]
            edges = np.arange(len(total) + 1) * TUPLES_PER_BLOCK
            below.stairs(negative, edges, fill=True, color="#d55e00", alpha=0.7, label="negative")
            below.stairs(total, edges, baseline=negative, fill=True, color="#6fb7e9", alpha=0.7, label="positive")
            below.set_ylim(0, TUPLES_PER_BLOCK)
            below.set_xlabel("position")
            below.set_ylabel(f"labels of {TUPLES_PER_BLOCK} tuples")
            below.grid(False)
        figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        self.save(figure, "orders.png")

    def read_orders(self):
        orders = {}
        for row in self.results.read("orders"):
            orders.setdefault(row["strategy"], []).append(int(row["tuple"]))
        return {strategy: np.array(order) for strategy, order in orders.items()}

    def three_orders(self):
        """The picture of README.md, in the colours of the labels."""
        orders = self.read_orders()
        if not orders:
            return
        figure, axes = plt.subplots(1, len(README_TITLES), figsize=(8.4, 2.5), layout="constrained", sharey=True)
        for ax, (strategy, title) in zip(axes, README_TITLES.items()):
            order = orders[strategy]
            ax.scatter(np.arange(len(order)), order, s=2.5, c=np.where(order < TUPLES // 2, "#d55e00", "#0072b2"))
            ax.set_title(title, fontsize=10)
            ax.set_xlabel("when the training sees it")
            ax.set_xticks([])
            ax.set_yticks([])
        axes[0].set_ylabel("where a row is in the table")
        self.save(figure, "three_orders.png")


def grid(panels):
    """A figure and its axes, as many as there are panels."""
    columns = min(COLUMNS, panels)
    rows = ceil(panels / columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.1 * columns, 2.3 * rows + 0.3), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[panels:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:panels])


def panel_title(data_set):
    """Without what the figure's name says already."""
    return data_set.title.removesuffix(", network")


def legend(figure, ax, strategies, columns):
    """Above the panels, off the data."""
    by_name = dict(zip(*reversed(ax.get_legend_handles_labels())))
    handles = [by_name[strategy] for strategy in strategies]
    figure.legend(handles, strategies, loc="outside upper center", ncols=columns, frameon=False)


def line(ax, strategy, points, x, measure):
    """The mean over the seeds, and where there are several a band of their standard deviation."""
    epochs = sorted(points)
    places = [points[epoch]["seconds"] if x == "seconds" else epoch for epoch in epochs]
    values = [points[epoch][measure] for epoch in epochs]
    middle, spread = [mean(of) for of in values], [pstdev(of) for of in values]
    color = COLORS[strategy]
    ax.plot(
        places,
        middle,
        label=strategy,
        color=color,
        linestyle=DASHES.get(strategy, "-"),
        linewidth=WIDTHS.get(strategy, 1.2),
        solid_capstyle="round",
    )
    if any(spread):
        low, high = ([m + sign * s for m, s in zip(middle, spread)] for sign in (-1, 1))
        ax.fill_between(places, low, high, color=color, alpha=0.18, linewidth=0)


def difference_axis(ax, label, ticks):
    """Linear between -1 and 1, which is tinted, and logarithmic beyond."""
    ax.axvspan(-1, 1, color="#000000", alpha=0.05, lw=0)
    ax.axvline(0, color="#000000", lw=0.8)
    ax.set_xscale("symlog", linthresh=1, linscale=1)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+g}" if value else "0"))
    ax.set_xlabel(label)


def dot(ax, place, strategy, values):
    """Mean of the differences, seed by seed, and their standard deviation."""
    marker, size, width, layer = MARKERS.get(strategy, ("x", 4, 0.8, 2))
    ax.errorbar(
        [mean(values)],
        [place],
        xerr=[pstdev(values)],
        fmt=marker,
        label=strategy if place == 0 else None,
        color=COLORS[strategy],
        markersize=size,
        elinewidth=width,
        zorder=layer,
    )


def loss_difference(ours, full):
    """In percent, of each seed; no_shuffle, which runs once, against each."""
    return [100 * (a / b - 1) for a, b in pairs(ours, full, "train_loss")]


def score_difference(ours, full):
    """In points, of each seed."""
    return [100 * (a - b) for a, b in pairs(ours, full, "test_score")]


def pairs(ours, full, column):
    by_seed = {run["seed"]: float(run[column]) for run in ours}
    return [(by_seed.get(run["seed"], next(iter(by_seed.values()))), float(run[column])) for run in full]


def score_axis(ax, label, strategies):
    """R2 ends at 1, and so does accuracy where it comes near."""
    low, high = ax.get_ylim()
    if label.startswith("R2"):
        ax.set_ylim(max(low, LOWEST_R2), 1)
    else:
        ax.set_ylim(low, min(high, 1))


def logarithmic(ax):
    """A logarithmic axis with ticks also where all values are close to each other."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if log10(high / low) > 0.5:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    else:
        ax.yaxis.set_major_locator(MaxNLocator(nbins=5))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_locator(NullLocator())


def parts(order):
    return [order[start : start + TUPLES_PER_BLOCK] for start in range(0, len(order), TUPLES_PER_BLOCK)]


def score_name(model):
    return "R2 (test)" if model == "linear" else "accuracy (test)"
