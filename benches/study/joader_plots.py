"""The figures of joader.md."""

import plots
from plots import grid, plt

COLORS = {
    "dependent": "#6fb7e9",
    "by vertex": "#004b76",
    "independent": "#d55e00",
    "walk": "#000000",
    "follow": "#009e73",
    "RefCnt": "#6fb7e9",
    "LRU": "#d55e00",
    "FIFO": "#e69f00",
    "random": "#cc79a7",
    "MinIO": "#999999",
    "optimum": "#000000",
}
WIDTHS = {"dependent": 4, "by vertex": 1.3, "follow": 2.2, "RefCnt": 4}
DASHES = {"walk": (0, (4, 2)), "optimum": (0, (1, 1.3))}
SAMPLERS = ("dependent", "by vertex", "independent", "walk", "follow")
POLICIES = ("RefCnt", "LRU", "FIFO", "random", "MinIO", "optimum")
TWO_JOBS = [f"intersection {part}%" for part in (100, 75, 50, 25)] + [f"size {part}%" for part in (75, 50, 25)]
FOUR_JOBS = ["4 samples", "4 sizes"]
COURSES = ["4 equal jobs", "4 staggered jobs", "speeds 1:2:4", "5 speeds", "4 filters", "4 by buffers"]
plots.COLUMNS = 3


def draw(counts, results):
    """Writes joader_samplers.svg, joader_policies.svg and joader_courses.svg."""
    drawing = plots.Plots(results, [])
    curves(drawing, counts, "joader_samplers", [(s, [(name, name, "LRU") for name in SAMPLERS]) for s in TWO_JOBS])
    curves(
        drawing, counts, "joader_policies", [(s, [(name, "dependent", name) for name in POLICIES]) for s in FOUR_JOBS]
    )
    courses(drawing, counts)


def curves(drawing, counts, name, panels):
    """Misses by size of the cache, with a band of their standard deviation."""
    figure, axes = grid(len(panels))
    for ax, (scene, lines) in zip(axes, panels):
        for label, sampler, policy in lines:
            sizes, means, deviations = counts.curve(scene, sampler, policy)
            line(ax, label, sizes, means)
            low = [mean - deviation for mean, deviation in zip(means, deviations)]
            high = [mean + deviation for mean, deviation in zip(means, deviations)]
            ax.fill_between(sizes, low, high, color=COLORS[label], alpha=0.25, linewidth=0)
        ax.axhline(counts.union(scene), color="#999999", linewidth=0.8, dashes=(2, 2))
        ax.set_title(scene)
        ax.set_xlabel("elements cached")
        ax.set_ylabel("misses")
    end(drawing, figure, axes, name)


def courses(drawing, counts):
    """Reads per tick, tick by tick."""
    figure, axes = grid(len(COURSES))
    for ax, scene in zip(axes, COURSES):
        for sampler in SAMPLERS:
            windows = counts.windows[scene, sampler, "RefCnt"]
            starts = [0] + [until for until, _ in windows]
            rates = [reads / (until - start) for start, (until, reads) in zip(starts, windows) if reads]
            line(ax, sampler, [until for until, _ in windows][: len(rates)], rates)
        ax.set_title(scene)
        ax.set_xlabel("rounds")
        ax.set_ylabel("reads per round")
        ax.set_ylim(bottom=0)
    end(drawing, figure, axes, "joader_courses")


def line(ax, label, xs, ys):
    ax.plot(
        xs, ys, color=COLORS[label], linewidth=WIDTHS.get(label, 1.5), linestyle=DASHES.get(label, "-"), label=label
    )


def end(drawing, figure, axes, name):
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=len(handles[0]), frameon=False)
    drawing.save(figure, f"{name}.svg")
    plt.close(figure)
