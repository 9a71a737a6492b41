"""The figures, from the CSV files."""

import os
from math import ceil

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from orders import TUPLES, TUPLES_PER_BLOCK
from server import STRATEGIES

COLORS = dict(zip(STRATEGIES, ("#888888", "#1f77b4", "#17becf", "#e5ae38", "#9467bd", "#d62728", "#2ca02c")))
STYLES = {"shuffle_once": (0, (4, 2)), "epoch_shuffle": (0, (1, 1.5))}
WIDTHS = {"corgipile": 2.2}

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
R2_LABEL = "R2 (test)"


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
        self.convergence()
        self.orders()
        for name in os.listdir(self.results.directory):
            if name.endswith((".svg", ".png")) and name not in self.written:
                os.remove(self.results.path(name))

    # -------------------------------------------------------------------------------------------------- convergence

    def convergence(self):
        checkpoints, epochs = self.results.read("checkpoints"), self.results.read("epochs")
        seconds = {(*cell(row), row["strategy"], row["epoch"]): float(row["total_seconds"]) for row in epochs}
        checkpoints = [{**row, "seconds": seconds[(*cell(row), row["strategy"], row["epochs"])]} for row in checkpoints]
        for group, cells in self.groups(checkpoints):
            here = [row for row in checkpoints if cell(row) in cells]
            online = [row for row in epochs if cell(row) in cells]
            self.grid(f"loss_by_epoch_{group}", cells, here, "epochs", "train_loss", "epoch", "training loss", log=True)
            self.grid(f"test_by_epoch_{group}", cells, here, "epochs", "test_score", "epoch", score_name(cells))
            self.grid(f"test_by_seconds_{group}", cells, here, "seconds", "test_score", "seconds", score_name(cells))
            self.grid(f"online_loss_{group}", cells, online, "epoch", "loss", "epoch", "loss while training", log=True)

    def groups(self, rows):
        """Binary sets by model and batch size; the other sets together."""
        present = {cell(row) for row in rows}
        for model in ("logistic", "svm"):
            for batch_size in ("1", "128"):
                cells = [(s.name, model, batch_size) for s in self.sets if (s.name, model, batch_size) in present]
                if cells:
                    yield f"{model}_{batch_size}", cells
        for model in ("softmax", "linear"):
            cells = [
                (s.name, model, str(batch_size))
                for s in self.sets
                for batch_size in s.batch_sizes
                if (s.name, model, str(batch_size)) in present
            ]
            if cells:
                yield model, cells

    def grid(self, name, cells, rows, x, y, x_label, y_label, log=False):
        """A panel per cell, a line per strategy."""
        columns = min(3, len(cells))
        lines = ceil(len(cells) / columns)
        figure, axes = plt.subplots(
            lines, columns, figsize=(3.1 * columns, 2.2 * lines), squeeze=False, layout="constrained"
        )
        titles = {s.name: s.title for s in self.sets}
        several = len({batch_size for _, _, batch_size in cells}) > 1
        for ax, this in zip(axes.flat, cells):
            for strategy in STRATEGIES:
                points = [
                    (float(row[x]), float(row[y])) for row in rows if cell(row) == this and row["strategy"] == strategy
                ]
                ax.plot(
                    *zip(*points),
                    label=strategy,
                    color=COLORS[strategy],
                    linestyle=STYLES.get(strategy, "-"),
                    linewidth=WIDTHS.get(strategy, 1.2),
                )
            ax.set_title(titles[this[0]] + (f", batch {this[2]}" if several else ""))
            if y_label == R2_LABEL:
                ax.set_ylim(bottom=max(ax.get_ylim()[0], -1))  # what is worse than guessing the mean is not told apart
            if log:
                logarithmic(ax)
            if x == "seconds":
                ax.set_xscale("log")
                ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                ax.xaxis.set_minor_locator(NullLocator())
        for ax in axes.flat[len(cells) :]:
            ax.set_visible(False)
        for ax in axes[:, 0]:
            ax.set_ylabel(y_label)
        for ax in axes[-1]:
            ax.set_xlabel(x_label)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(STRATEGIES), frameon=False)
        self.save(figure, f"{name}.svg")

    # ------------------------------------------------------------------------------------------------------- orders

    def orders(self):
        rows = self.results.read("orders")
        if not rows:
            return
        figure, axes = plt.subplots(
            2, len(STRATEGIES), figsize=(2 * len(STRATEGIES), 4.2), layout="constrained", sharey="row"
        )
        for column, strategy in enumerate(STRATEGIES):
            order = np.array([int(row["tuple"]) for row in rows if row["strategy"] == strategy])
            above, below = axes[:, column]
            above.set_title(strategy)
            above.plot(order, ".", markersize=1.5, color=COLORS[strategy])
            negative = [int((part < TUPLES // 2).sum()) for part in parts(order)]
            total = [len(part) for part in parts(order)]
            places = np.arange(len(total)) * TUPLES_PER_BLOCK
            below.stairs(
                negative,
                np.append(places, places[-1] + TUPLES_PER_BLOCK),
                fill=True,
                color="#d62728",
                alpha=0.7,
                label="negative",
            )
            below.stairs(
                total,
                np.append(places, places[-1] + TUPLES_PER_BLOCK),
                baseline=negative,
                fill=True,
                color="#1f77b4",
                alpha=0.7,
                label="positive",
            )
            below.set_xlabel("position")
            below.grid(False)
        axes[0, 0].set_ylabel("tuple id")
        axes[1, 0].set_ylabel(f"labels of {TUPLES_PER_BLOCK} tuples")
        axes[1, 0].legend(loc="upper right", fontsize=7)
        self.save(figure, "orders.png")


def logarithmic(ax):
    """A logarithmic axis where the values differ by much."""
    lowest, highest = ax.get_ylim()
    if lowest <= 0 or highest / lowest > 3:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())


def parts(order):
    return [order[start : start + TUPLES_PER_BLOCK] for start in range(0, len(order), TUPLES_PER_BLOCK)]


def cell(row):
    return row["set"], row["model"], row["batch_size"]


def score_name(cells):
    return R2_LABEL if cells[0][1] == "linear" else "accuracy (test)"
