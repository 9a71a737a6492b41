"""The sections of the page about the order of blocks: how evenly it mixes, periodic tables, blocks in the buffer."""

from math import ceil

import verdicts
from markdown import mark, table
from periods import SHARE

PERIOD_BOUND, SORTED_BOUND = 1.1, 0.5  # of the simple draw's deviation
BUFFER = 10  # one of so many buffers


def mixing(page):
    rows = page.results.read("mixing")
    ours = [row for row in rows if row["draw"] == "corgipile"]
    bounds = [
        {"bound": kind, "value": float(row[kind]), "most": most, "passed": float(row[kind]) < most}
        for row in ours
        for most, kinds in (
            (PERIOD_BOUND, ("periods", "short_periods", "two_buffers", "drift", "walks", "natural")),
            (SORTED_BOUND, ("half", "shifted_half", "fifth")),
        )
        for kind in kinds
    ]
    page.verdict(
        "evenness of buffers against the simple draw",
        bounds,
        lambda row: f"{row['bound']}: {row['value']:.3f} of the simple draw's deviation, bound {row['most']}",
    )
    kinds = ("short_periods", "two_buffers", "half", "shifted_half", "fifth", "drift", "walks", "natural", "mean")
    lines = [
        [row["draw"], f"{float(row['periods']):.3f} ({row['worst_period']})", *(f"{float(row[kind]):.3f}" for kind in kinds)]
        for row in rows
    ]
    header = [
        "draw",
        "any period from 2 to 1000 (the worst)",
        "short periods",
        "two buffers",
        "sorted: half",
        "0.51",
        "a fifth",
        "drifting",
        "random walks",
        "natural orders",
        "mean",
    ]
    return (
        "## How evenly blocks are mixed\n\nThe standard deviation of a class's share in a buffer, over buffers and 1000 "
        "draws, divided by that of the CorgiPile paper's simple draw; the worst of each kind of order. Periods: 5000 "
        "blocks in 10 buffers, every whole period from 2 to 1000 blocks, a random phase each; short ones: 500 blocks in "
        "10 buffers, periods 2 to 100, three phases each. Two buffers: 128 blocks, periods 2 to 64. Sorted, drifting and "
        "random walks: 500 blocks in 10 buffers. Natural orders: each data set as its file is, its page-sized blocks in 10 "
        "buffers, each class or the target. Mean: over the files, sorted and drifting. Bounds: 1.1, and 0.5 for sorted "
        "tables. The figures scatter by 1%, the largest of a thousand periods by 3%. No draw that treats all blocks alike can be better than "
        "the simple one everywhere: the variances along all possible orders have the same sum. By the bounds, "
        "the draws that resonate with a period fall out, runs of fewer than ten buffers (two buffers), and the simple draw. Of "
        "those left, the worst cases differ by 5%, and the mean decides: a stratum is a run of one block for each buffer from "
        "ten buffers on, and has 16 blocks for fewer.\n\n"
    ) + table(header, lines)


def periods(page):
    cells = {}
    for row in page.results.read("periods"):
        of = cells.setdefault((int(row["pages"]), row["period"], row["model"]), {})
        of.setdefault((row["strategy"], row["buffer"]), []).append(float(row["accuracy"]))

    def worst(ours, full):
        return min(a - b for a, b in zip(ours, full))

    rows = []
    for (pages, period, model), of in cells.items():
        full = of["shuffle_once", "default"]
        least = worst(of["corgipile", "default"], full)
        share = worst(of["corgipile", SHARE], full)
        passed = least >= -verdicts.ACCURACY_BOUND
        rows.append({"pages": pages, "period": period, "model": model, "least": least, "share": share, "passed": passed, "of": of})
    page.verdict(
        "periodic tables, each seed against shuffle_once",
        rows,
        lambda row: f"{row['pages']} pages, period {row['period']} {row['model']}: accuracy {row['least']:+.4f} in one seed",
    )

    def between(values):
        return f"{sum(values) / len(values):.4f} ({min(values):.4f} to {max(values):.4f})"

    lines = [
        [
            row["pages"],
            row["period"],
            row["model"],
            f"{row['of']['no_shuffle', 'default'][0]:.4f}",
            between(row["of"]["shuffle_once", "default"]),
            between(row["of"]["corgipile", "default"]),
            f"{row['least']:+.4f}",
            mark(row["passed"]),
            f"{row['share']:+.4f}",
        ]
        for row in rows
    ]
    header = ["pages", "period", "model", "no_shuffle", "shuffle_once", "corgipile", "worst difference", "verdict", "with a tenth"]
    return (
        "## Periodic tables\n\nAccuracy of default trainings (20 epochs) on tables of 185 rows a page whose classes alternate "
        "with so many pages a period, which are the blocks; two normal features. Ten seeds: mean, lowest and highest. Bound: in every seed within 0.005 of "
        "`shuffle_once` with the same seed. The default buffer holds all of 500 pages, and of 2560 pages as few as of any table, "
        f"256. With a tenth: the worst difference with `buffer_size => '{SHARE}'`, which is 50 of 500 pages, each of one class. Their "
        "share is half give or take 7% by any draw, and of 100 other seeds 0 to 6 are beyond the bound; of a table whose pages have random "
        "classes, 3 to 5. That is why the default buffer has at least 256 pages.\n\n"
    ) + table(header, lines)


def blocks(page):
    runs = page.results.read("blocks")
    test_rows = {row["set"]: int(row["test_rows"]) for row in page.results.read("sets")}
    full = [run for run in runs if run["strategy"] == "shuffle_once"]
    sizes = {run["pages_per_block"] for run in runs if run["pages_per_block"]}
    lines, judged = [], []
    for size in sorted(sizes, key=int):
        ours = [run for run in runs if run["pages_per_block"] == size]
        sets = {run["set"] for run in ours}
        pairs = [{**run, "strategy": "epoch_shuffle"} for run in ours]  # of no use here
        rows = verdicts.against_full_shuffle([run for run in full if run["set"] in sets] + ours + pairs, test_rows)
        judged += [{**row, "pages_per_block": int(size)} for row in rows]
    pages = page_counts(page)
    for row in judged:
        row["blocks"] = ceil(pages[row["set"]] / BUFFER) // row["pages_per_block"]
    judged.sort(key=lambda row: (list(pages).index(row["set"]), row["model"], row["batch_size"], row["pages_per_block"]))
    lines = [
        [
            row["set"],
            row["model"],
            row["batch_size"],
            row["pages_per_block"],
            row["blocks"],
            f"{row['loss_difference']:+.2%}",
            f"{row['score_difference']:+.4f}",
            f"{row['test_difference']:+.4f}",
            mark(row["passed"], row["better"]),
        ]
        for row in judged
    ]
    header = ["set", "model", "batch", "pages a block", "blocks in the buffer", "loss", "training score", "test score", "verdict"]
    return (
        "## Blocks in the buffer\n\n`corgipile` with blocks of different sizes, minus `shuffle_once`: means over the seeds, bounds as above. "
        "Sets that are sorted by label, and large enough for more than one size. From this the automatic block size has its smallest number of "
        "blocks.\n\n"
    ) + table(header, lines)


def page_counts(page):
    """Pages of each set's training table."""
    factors = {row["set"]: float(row["tuples_per_page"]) for row in page.results.read("cluster")}
    rows = {row["set"]: int(row["train_rows"]) for row in page.results.read("sets")}
    return {name: ceil(rows[name] / factors[name]) for name in rows if name in factors}
