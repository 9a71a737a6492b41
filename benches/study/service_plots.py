"""The figures of joader_service.md."""

from statistics import mean, pstdev

import plots
from plots import grid, plt

COLORS = {
    "JOADER": "#004b76",
    "JOADER, memory for all": "#6fb7e9",
    "JOADER, dependent": "#009e73",
    "JOADER, single rows": "#cc79a7",
    "JOADER, elements of 1 MiB": "#e69f00",
    "JOADER, a server each": "#000000",
    "DataLoader each": "#d55e00",
    "DataLoader each, 2 workers": "#f0a878",
    "TensorSocket": "#777777",
}
SIGNS = {"DataLoader each": "s", "DataLoader each, 2 workers": "s", "TensorSocket": "^"}
STEP = 1.0  # seconds over which a rate is taken


def draw(measured, results):
    """Writes the figures of what was measured."""
    drawing = plots.Plots(results, [])
    if measured.of_case("equal"):
        equal(drawing, measured)
    if measured.of_case("speeds"):
        speeds(drawing, measured)
    if measured.trace:
        staggered(drawing, measured)
    if measured.of_case("intersect"):
        intersect(drawing, measured)
    if measured.accuracy:
        accuracy(drawing, measured)


def lines(ax, measured, case, value, by_jobs):
    """A line for each way, by the number of jobs or what else is varied."""
    for way in measured.ways(case):
        of = [(jobs if by_jobs else x, value(run)) for name, jobs, x, run in measured.of_case(case) if name == way]
        ax.plot(*zip(*sorted(of)), SIGNS.get(way, "o") + "-", color=COLORS[way], markersize=4, linewidth=1.2, label=way)
    ax.set_ylim(bottom=0)


def legend(figure, ax, columns=4):
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=columns, frameon=False)


def equal(drawing, measured):
    plots.COLUMNS = 2
    figure, axes = grid(4)
    values = {
        "rows/s of all jobs": lambda run: run["rows_per_second"],
        "MB/s of pictures read": lambda run: run["read_rate"],
        "processor s for 1,000 rows": lambda run: 1000 * run["processor_per_row"],
        "memory of all processes, MB": lambda run: run["megabytes"],
    }
    for ax, (title, value) in zip(axes, values.items()):
        lines(ax, measured, "equal", value, by_jobs=True)
        ax.set_ylabel(title)
        ax.set_xlabel("jobs")
    legend(figure, axes[0])
    drawing.save(figure, "joader_service_equal.svg")
    plots.COLUMNS = 3


def speeds(drawing, measured):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.3, 2.8), layout="constrained", width_ratios=(3, 1))
    runs = [(way, run) for way, jobs, _, run in measured.of_case("speeds") if jobs > 1]
    width = 0.8 / len(runs)
    count = len(runs[0][1]["of_each"])
    for place, (way, run) in enumerate(runs):
        left.bar([job + width * place for job in range(count)], run["of_each"], width, color=COLORS[way], label=way)
        right.bar([place], [run["read_rate"]], color=COLORS[way])
    middle = width * (len(runs) - 1) / 2
    for job in range(count):
        wanted = measured.fast / (job + 1)
        left.plot([job - width / 2, job + 2 * middle + width / 2], [wanted, wanted], color="#000000", linewidth=0.9)
    left.set_xticks([job + middle for job in range(count)], [f"job of speed {name}" for name in SPEEDS[:count]])
    left.set_ylabel("rows/s (line: if it never waits)")
    right.set_xticks([])
    right.set_ylabel("MB/s of pictures read")
    legend(figure, left)
    drawing.save(figure, "joader_service_speeds.svg")


SPEEDS = ("1", "1/2", "1/3", "1/4", "1/5")


def staggered(drawing, measured):
    figure, ax = plt.subplots(figsize=(6.2, 2.6), layout="constrained")
    run = next(run for _, _, _, run in measured.of_case("staggered"))
    of_row = run["picture_bytes"] / run["prepared"] / 1e6
    for way, points in measured.trace.items():
        places, rates = [], []
        for seconds, prepared in points:
            before = [point for point in points if point[0] <= seconds - STEP]
            if before:
                places.append(seconds - STEP / 2)
                rates.append((prepared - before[-1][1]) * of_row / (seconds - before[-1][0]))
        ax.plot(places, rates, color=COLORS[way], linewidth=1.3, label=way)
    ax.set_xlabel("seconds")
    ax.set_ylabel("MB/s of pictures read")
    ax.set_ylim(bottom=0)
    legend(figure, ax, 2)
    drawing.save(figure, "joader_service_staggered.svg")


def intersect(drawing, measured):
    figure, axes = grid(2)
    values = {"rows prepared": lambda run: run["prepared"], "rows/s of all jobs": lambda run: run["rows_per_second"]}
    for ax, (title, value) in zip(axes, values.items()):
        lines(ax, measured, "intersect", value, by_jobs=False)
        ax.set_xlabel("share of rows in common")
        ax.set_ylabel(title)
    legend(figure, axes[0])
    drawing.save(figure, "joader_service_intersect.svg")


def accuracy(drawing, measured):
    figure, ax = plt.subplots(figsize=(4.6, 2.8), layout="constrained")
    for way, color in (("shared", "#004b76"), ("alone", "#d55e00")):
        epochs = measured.accuracy[way]
        of = [[value for _, value in epochs[epoch]] for epoch in sorted(epochs)]
        middle, spread = [mean(values) for values in of], [pstdev(values) for values in of]
        ax.plot(sorted(epochs), middle, color=color, label=way, linewidth=1.4)
        low, high = ([m + sign * s for m, s in zip(middle, spread)] for sign in (-1, 1))
        ax.fill_between(sorted(epochs), low, high, color=color, alpha=0.15, linewidth=0)
    ax.set_xlabel("epoch")
    ax.set_ylabel("accuracy (test)")
    legend(figure, ax)
    drawing.save(figure, "joader_service_accuracy.svg")
