"""The figures of python.md."""

from matplotlib.ticker import MaxNLocator

import plots
from plots import grid, line, plt

# from the lowest to the topmost
DRAWN = ("corgipile", "no_shuffle", "sliding_window", "block_only", "shuffle_once", "epoch_shuffle")
SIGNS = {0: ("o", "#004b76"), 1: ("D", "#009e73"), 2: ("s", "#e69f00"), 4: ("^", "#d55e00")}


def draw(measured, results):
    """Writes python_by_epoch.svg, python_by_seconds.svg and python_speed.svg, of what was measured."""
    drawing = plots.Plots(results, [])
    if measured.runs:
        curves(drawing, measured, "epochs")
        curves(drawing, measured, "seconds")
    if measured.speeds:
        speeds(drawing, measured)


def curves(drawing, measured, x):
    """Accuracy, with a band of its standard deviation: a panel for each data set and number of processes."""
    panels = list(measured.curves)
    plots.COLUMNS = 2
    figure, axes = grid(len(panels))
    for ax, (name, processes) in zip(axes, panels):
        for strategy in DRAWN:
            points = measured.curves[name, processes].get(strategy)
            if points:
                line(ax, strategy, points, x, "accuracy")
        ax.set_title(f"{name}, {processes} process{'es' if processes > 1 else ''}")
        ax.set_xlabel(x)
        ax.set_ylabel("accuracy (test)")
        ax.set_ylim(bottom=0)
        if x == "epochs":
            ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    plots.legend(figure, axes[0], [s for s in DRAWN if s in measured.curves[panels[0]]], 3)
    drawing.save(figure, f"python_by_{'epoch' if x == 'epochs' else x}.svg")
    plots.COLUMNS = 3


def speeds(drawing, measured):
    """Megabytes per second of warm epochs: a panel for each size of rows, a sign for each number of workers."""
    figure, axes = plt.subplots(
        1, len(measured.widths), figsize=(9.3, 4.4), layout="constrained", sharey=True, squeeze=False
    )
    names = measured.speed_names
    for ax, width in zip(axes.flat, measured.widths):
        for workers, (marker, color) in SIGNS.items():
            rows = [measured.speeds.get((width, name, workers)) for name in names]
            found = [(float(row["warm"]) * width / 2**20, place) for place, row in enumerate(rows) if row]
            if found:
                name = f"{workers} worker{'s' if workers != 1 else ''}"
                ax.plot(*zip(*found), marker, color=color, markersize=4, label=name)
        ax.set_xscale("log")
        ax.set_title(f"rows of {width:,} bytes")
        ax.set_xlabel("MiB/s (log scale)")
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(SIGNS), frameon=False)
    drawing.save(figure, "python_speed.svg")
