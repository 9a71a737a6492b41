"""blocks.md: the order of tuples and blocks, how evenly it mixes, periodic tables, blocks in the buffer."""

from math import ceil

import verdicts
from markdown import figure, fixed, mark, percent, signed, table
from periods import SHARE

PERIOD_BOUND, SORTED_BOUND = 1.1, 0.5  # of the simple draw's deviation
BUFFER = 10  # one of this many buffers

INTRODUCTION = """In what order each strategy reads tuples, how evenly CorgiPile mixes blocks into buffers, how many
blocks a buffer needs, and how strongly the data sets are clustered.
"""


def pages(page):
    sections = [
        ("Orders", orders(page)),
        ("How evenly blocks are mixed", mixing(page)),
        ("Periodic tables", periods(page)),
        ("Blocks in the buffer", blocks(page)),
        ("Cluster factor", cluster(page)),
    ]
    return [("blocks.md", "Blocks and buffers", INTRODUCTION, sections)]


def orders(page):
    if "orders.png" not in page.plots:
        return ""
    return (
        "`corgipile_shuffle_order(strategy, 1000, 20, 200, 1, 1)`: 1000 tuples in blocks of 20, a buffer of 200 "
        "tuples. Above: which tuple is read at which position. Below: how many of each 20 tuples are negative if "
        "tuples 0 to 499 are.\n\n"
    ) + figure("orders.png", "tuples and labels by position, for each strategy")


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
        "mixing",
        "Buffers are mixed as evenly as by the paper's draw, those of sorted tables far more evenly",
        "blocks.md#how-evenly-blocks-are-mixed",
        bounds,
        lambda row: f"{row['bound']}: {row['value']:.3f} of the simple draw's deviation, bound {row['most']}",
    )
    columns = {
        "draw": "draw",
        "any period from 2 to 1000 (the worst)": lambda row: f"{float(row['periods']):.3f} ({row['worst_period']})",
        "short periods": fixed("short_periods", 3),
        "two buffers": fixed("two_buffers", 3),
        "sorted: half": fixed("half", 3),
        "0.51": fixed("shifted_half", 3),
        "a fifth": fixed("fifth", 3),
        "drifting": fixed("drift", 3),
        "random walks": fixed("walks", 3),
        "natural orders": fixed("natural", 3),
        "mean": fixed("mean", 3),
    }
    return MIXING + table(columns, rows)


MIXING = f"""The standard deviation of a class's share in a buffer, over buffers and 1000 draws, divided by that of the
CorgiPile paper's simple draw. 1 is as even as the paper's draw, less is better. Each column has the worst of its kind
of order.

- Any period: 5000 blocks in 10 buffers, each whole period from 2 to 1000 blocks, with a random phase. Short periods:
  500 blocks in 10 buffers, periods from 2 to 100, three phases each. Two buffers: 128 blocks, periods from 2 to 64.
- Sorted, drifting and random walks: 500 blocks in 10 buffers.
- Natural orders: each data set as its file is, its page-sized blocks in 10 buffers, each class or the target.
- Mean: over the files, sorted by half, and drifting.

Bounds: {PERIOD_BOUND}, and {SORTED_BOUND} for sorted tables. The figures scatter by 1%, the largest of a thousand
periods by 3%. No draw that treats all blocks alike is better than the simple one everywhere: the variances along all
possible orders have the same sum. The bounds exclude the draws that resonate with a period, runs in tables of fewer
than ten buffers (see two buffers), and the simple draw. The worst cases of the others differ by 5%, and the mean
decides. A stratum is a run of one block for each buffer from ten buffers on, and has 16 blocks for fewer.

"""


def periods(page):
    cells = {}
    for row in page.results.read("periods"):
        of = cells.setdefault((int(row["pages"]), row["period"], row["model"]), {})
        of.setdefault((row["strategy"], row["buffer"]), []).append(float(row["accuracy"]))
    rows = [
        {"pages": pages, "period": period, "model": model, **periods_of(of)}
        for (pages, period, model), of in cells.items()
    ]
    page.verdict(
        "periods",
        "Tables whose classes alternate are learned as well as with a full shuffle, with every seed",
        "blocks.md#periodic-tables",
        rows,
        lambda row: (
            f"{row['pages']} pages, period {row['period']} {row['model']}: accuracy {row['least']:+.4f} in one seed"
        ),
    )
    columns = {
        "pages": "pages",
        "period": "period",
        "model": "model",
        "no_shuffle": fixed("none", 4),
        "shuffle_once": lambda row: between(row["full"]),
        "corgipile": lambda row: between(row["ours"]),
        "worst difference": signed("least"),
        "verdict": mark,
        "with a tenth": signed("share"),
    }
    return PERIODS + table(columns, rows)


PERIODS = f"""Accuracy of default trainings (20 epochs, two normal features) on tables of 185 rows a page. The classes
alternate with this many pages a period; a block is a page. Ten seeds: mean, lowest and highest. Bound: with every seed
within {verdicts.ACCURACY_BOUND} of `shuffle_once` with the same seed.

The default buffer holds all of 500 pages. Of 2560 pages it holds 256, its smallest size. The last column has the worst
difference with `buffer_size => '{SHARE}'`, which is 50 of 500 pages, each of one class: the share of a class is half,
give or take 7% with any draw. Of 100 other seeds, 0 to 6 are beyond the bound; of a table whose pages have random
classes, 3 to 5. That is why the default buffer holds all of a small table.

"""


def periods_of(accuracies):
    """A row of the table, from accuracies by strategy and buffer, a list over the seeds each."""
    full = accuracies["shuffle_once", "default"]

    def worst(ours):
        return min(a - b for a, b in zip(ours, full))

    least = worst(accuracies["corgipile", "default"])
    return {
        "none": accuracies["no_shuffle", "default"][0],
        "full": full,
        "ours": accuracies["corgipile", "default"],
        "least": least,
        "share": worst(accuracies["corgipile", SHARE]),
        "passed": least >= -verdicts.ACCURACY_BOUND,
    }


def between(values):
    return f"{sum(values) / len(values):.4f} ({min(values):.4f} to {max(values):.4f})"


def blocks(page):
    pages = page_counts(page)
    judged = blocks_judged(page)
    for row in judged:
        row["blocks"] = ceil(pages[row["set"]] / BUFFER) // row["pages_per_block"]
    order = list(pages)
    judged.sort(key=lambda row: (order.index(row["set"]), row["model"], row["batch_size"], row["pages_per_block"]))
    columns = {
        "set": "set",
        "model": "model",
        "batch": "batch_size",
        "pages a block": "pages_per_block",
        "blocks in the buffer": "blocks",
        "loss": percent("loss_difference"),
        "training score": signed("score_difference"),
        "test score": signed("test_difference"),
        "verdict": mark,
    }
    return (
        "`corgipile` with blocks of different sizes, minus `shuffle_once`: means over the seeds, bounds as for [the "
        "strategies](strategies.md#corgipile-against-a-full-shuffle). Only sets that are sorted by label and large "
        "enough for more than one size. The automatic block size takes its smallest number of blocks from this "
        "table.\n\n"
    ) + table(columns, judged)


def blocks_judged(page):
    """Each size of blocks against shuffle_once."""
    runs = page.results.read("blocks")
    test_rows = {row["set"]: int(row["test_rows"]) for row in page.results.read("sets")}
    full = [run for run in runs if run["strategy"] == "shuffle_once"]
    judged = []
    for size in sorted({run["pages_per_block"] for run in runs if run["pages_per_block"]}, key=int):
        ours = [run for run in runs if run["pages_per_block"] == size]
        sets = {run["set"] for run in ours}
        pairs = [{**run, "strategy": "epoch_shuffle"} for run in ours]  # of no use here
        rows = verdicts.against_full_shuffle([run for run in full if run["set"] in sets] + ours + pairs, test_rows)
        judged += [{**row, "pages_per_block": int(size)} for row in rows]
    return judged


def page_counts(page):
    """Pages of each set's training table."""
    factors = {row["set"]: float(row["tuples_per_page"]) for row in page.results.read("cluster")}
    rows = {row["set"]: int(row["train_rows"]) for row in page.results.read("sets")}
    return {name: ceil(rows[name] / factors[name]) for name in rows if name in factors}


def cluster(page):
    columns = {
        "set": "set",
        "sorted by": "order",
        "h_D": fixed("cluster_factor", 2),
        "shuffled copy": fixed("shuffled", 2),
        "tuples per page": fixed("tuples_per_page", 1),
    }
    return (
        "h_D by `corgipile_cluster_factor`, of the table in its order and of a copy in random order. It is about 1 "
        "without an order, at most the tuples per block, which has one or more pages, and near 0 where classes "
        "alternate.\n\n"
    ) + table(columns, page.results.read("cluster"))
