"""papers.md: which figures and tables of the papers are shown here, and what they show."""

from math import log
from statistics import mean, stdev

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt

from markdown import figure, fixed, page, seconds, table

SCORE = 0.01  # how much worse than after a full shuffle a score may be: the papers' "less than 1%"
#: Theorem 1's check: by how much the slope may differ from 1.
SLOPE = 0.25

INTRODUCTION = """What the papers show, measured again by their protocol: a row for each of their figures and tables,
and the measurements that no other page has."""

PROTOCOL = """The initial rate is 0.1, 0.01 or 0.001, whichever has the least training loss after 20 epochs of
`shuffle_once` on the shuffled table. It is multiplied by 0.95 after each epoch. Plain SGD learns from single rows:
`averaging` and `bounded_steps` are off, `l2` is 0. The buffer is a tenth of the table, which has 280 blocks, as the
papers' higgs of 2.8 GB has blocks of 10 MB, or as many pages if it has fewer. Seeds 1 to 3, means.

Data sets with the papers' names are made: {shapes}. Their features are correlated normal numbers, and a random linear
model with noise gives the label. The other sets are whole, as they are in `shared/data`. Scores are accuracy, or R2 of
YearPrediction and protein, on rows that were not learned from."""

NOT_SHOWN = "not shown"
OF_CORGIPILE = (
    (
        "Figures 1, 7, 12, 15: end-to-end time on tables larger than memory, on HDD and SSD",
        NOT_SHOWN,
        "no table here is larger than memory; [Speed](speed.md) has times in memory and from a cold disk",
    ),
    (
        "Figures 2, 8, 13: convergence, sorted by label, batches of 1 and 128",
        "shown",
        "[by the papers' protocol](#strategies-by-the-papers-protocol); [by ours](convergence.md), batches of 128, too",
    ),
    ("Figure 3: which row and label comes when", "shown", "[Orders](blocks.md#orders)"),
    ("Figure 4, TR Figure 20: random reads by block size", "shown", "`corgipile_io_profile` measures them"),
    (
        "Table 3: final test scores of shuffle_once and corgipile",
        "shown",
        "[by the papers' protocol](#strategies-by-the-papers-protocol)",
    ),
    ("Figure 9: sorted by features", "shown", "[each feature of higgs](#sorted-by-each-feature)"),
    ("Figure 14: the same with batches of 128", NOT_SHOWN, "single rows only"),
    ("Figure 10, TR 13: time of an epoch with one and two buffers", "in part", "[Speed](speed.md), in memory"),
    ("Figure 11, TR 14: buffer and block", "shown", "[Buffer and block](#buffer-and-block)"),
    ("Theorem 1", "shown", "[Theorem 1](#theorem-1)"),
    ("Theorem 2", NOT_SHOWN, "its constants are unknown for a network"),
    ("Figure 16: ResNet50 on ImageNet", NOT_SHOWN, "no such pictures and no GPU here"),
    (
        "Figures 17, 18, TR 8 to 10: deep models on cifar-10 and yelp, SGD and Adam",
        "in part",
        "cifar10 (2,000 images) and mnist, small networks: `make study ONLY=python`",
    ),
)
OF_JOADER = (
    ("Figures 1, 2, 6: speed of jobs that train together", "in part", "`make bench PARTS=joader`, no GPU"),
    ("Figures 3 to 5, Table 1: misses by sampler, cache and arrival", "shown", "[Many jobs, one read](joader.md)"),
)
OF_TOC = (("Figures 2, 8, 10, 11, 12, Tables 5, 6", "in part", "[Compression](compression.md)"),)
FIGURES = [
    (paper, *row)
    for paper, rows in (("CorgiPile", OF_CORGIPILE), ("JOADER", OF_JOADER), ("TOC", OF_TOC))
    for row in rows
]


def number(row, key):
    return float(row[key]) if row[key] not in ("", None) else float("nan")


def by(rows, *keys):
    """Rows by the values of these columns, in their order."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def strategies(rows):
    """A table of scores after one epoch and all, and a row for each comparison of corgipile with a full shuffle."""
    names = list(dict.fromkeys(row["strategy"] for row in rows))
    lines, judged = [], []
    for (name, model, order), of_table in by(rows, "set", "model", "order").items():
        if order.startswith("feature"):
            continue
        found = by(of_table, "strategy")
        line = {"set": name, "model": model, "order": order, "rate": of_table[0]["rate"]}
        for strategy in names:
            here = found[(strategy,)]
            line[strategy] = (
                f"{mean(number(row, 'first_test_score') for row in here):.3f} / "
                f"{mean(number(row, 'test_score') for row in here):.3f}"
            )
        lines.append(line)
        of = {
            strategy: mean(number(row, "test_score") for row in found[(strategy,)])
            for strategy in ("corgipile", "corgipile_simple", "shuffle_once")
        }
        for strategy in ("corgipile", "corgipile_simple"):
            difference = of[strategy] - of["shuffle_once"]
            judged.append(
                {
                    "set": name,
                    "order": order,
                    "strategy": strategy,
                    "difference": difference,
                    "passed": difference >= -SCORE,
                }
            )
    columns = {"set": "set", "model": "model", "order": "order", "rate": "rate"} | {name: name for name in names}
    text = (
        "Test scores after one epoch / after 20. `order` is what the table is sorted by. Bound: `corgipile` at most "
        f"{SCORE} below `shuffle_once`.\n\n" + table(columns, lines)
    )
    return text, judged


def of_features(rows):
    groups = by([row for row in rows if row["order"].startswith("feature")], "strategy")
    if not groups:
        return "", []
    scores = {strategy: [number(row, "test_score") for row in found] for (strategy,), found in groups.items()}
    first = {strategy: [number(row, "first_test_score") for row in found] for (strategy,), found in groups.items()}
    lines = [
        {
            "strategy": strategy,
            "first": f"{min(first[strategy]):.4f} to {max(first[strategy]):.4f}",
            "last": f"{min(scores[strategy]):.4f} to {max(scores[strategy]):.4f}",
        }
        for strategy in scores
    ]
    full = scores["shuffle_once"]
    judged = [
        {
            "set": "higgs",
            "order": f"feature {i + 1}",
            "strategy": "corgipile",
            "difference": ours - theirs,
            "passed": ours - theirs >= -SCORE,
        }
        for i, (ours, theirs) in enumerate(zip(scores["corgipile"], full, strict=True))
    ]
    text = "higgs, sorted by each of its features in turn: the lowest and the highest test accuracy.\n\n" + table(
        {"strategy": "strategy", "after one epoch": "first", "after 20": "last"}, lines
    )
    return text, judged


def draws(rows, results):
    lines = []
    groups = by(rows, "strategy", "epochs")
    best = min(number(row, "train_loss") for row in rows)
    figure_, axes = plt.subplots(figsize=(6, 3.4))
    curves = {}
    for (strategy, epochs), found in groups.items():
        excess = [number(row, "train_loss") - best for row in found]
        curves.setdefault(strategy, []).append((int(epochs), mean(excess)))
        lines.append(
            {
                "strategy": strategy,
                "passes": epochs,
                "loss": f"{mean(number(row, 'train_loss') for row in found):.5f}",
                "deviation": f"{stdev(number(row, 'train_loss') for row in found):.5f}",
                "score": f"{mean(number(row, 'test_score') for row in found):.4f}",
                "lowest": f"{min(number(row, 'test_score') for row in found):.4f}",
            }
        )
    for strategy, points in curves.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=strategy)
    axes.set(xlabel="rows learned from, in tables", ylabel="training loss above the least", yscale="log")
    axes.legend(frameon=False)
    save(figure_, results, "papers_draws.svg")
    text = (
        "higgs sorted by label. `corgipile` takes equally many blocks of every stretch of the table into a buffer, "
        "`corgipile_simple` draws them as the paper does, and `corgipile_one_buffer` is the paper's Algorithm 1: a "
        "buffer of fresh blocks is an epoch, and 10 of them count as one pass here. Ten seeds.\n\n"
    )
    columns = {"strategy": "strategy", "passes": "passes", "training loss": "loss", "deviation over seeds": "deviation",
               "test accuracy": "score", "lowest": "lowest"}  # fmt: skip
    return text + figure("papers_draws.svg", "training loss by rows learned from") + table(columns, lines)


def heat(rows, results):
    blocks = list(dict.fromkeys(row["block"] for row in rows))
    buffers = list(dict.fromkeys(row["buffer"] for row in rows))
    text = (
        "A table of 1,000,000 rows like higgs, sorted by label: test accuracy of the worst of three seeds after two "
        "epochs, and below it the seconds of an epoch, decoded rows not kept (see the load below). A block larger than "
        "the buffer fills it alone.\n\n"
    )
    strategies_ = list(dict.fromkeys(row["strategy"] for row in rows))
    figure_, all_axes = plt.subplots(1, len(strategies_), figsize=(5 * len(strategies_), 3), sharey=True)
    for axes, strategy in zip(all_axes, strategies_, strict=True):
        found = {(row["buffer"], row["block"]): row for row in rows if row["strategy"] == strategy}
        lowest = np.array([[number(found[buffer, block], "lowest") for block in blocks] for buffer in buffers])
        axes.imshow(lowest, aspect="auto", cmap="viridis", vmin=min(number(row, "lowest") for row in rows))
        for i, buffer in enumerate(buffers):
            for j, block in enumerate(blocks):
                row = found[buffer, block]
                told = f"{number(row, 'lowest'):.3f}\n{seconds(row['seconds'])} s"
                axes.text(
                    j, i, told, ha="center", va="center", fontsize=7, color="white" if lowest[i, j] < 0.6 else "black"
                )
        axes.set_xticks(range(len(blocks)), blocks, fontsize=8)
        axes.set_yticks(range(len(buffers)), [f"{buffer}%" for buffer in buffers])
        axes.set(title=strategy, xlabel="block")
    all_axes[0].set_ylabel("buffer")
    save(figure_, results, "papers_heat.svg")
    return text + figure("papers_heat.svg", "accuracy and seconds by buffer and block")


def theorem(rows, results):
    """The slope of log(excess) by log((1 - alpha) h_D), with its interval."""
    columns = {
        "order": "order",
        "buffer": lambda row: f"{row['buffer']}%",
        "h_D": fixed("factor", 2),
        "1 - alpha": fixed("rest", 4),
        "(1 - alpha) h_D": fixed("bound", 3),
        "excess": lambda row: f"{number(row, 'excess'):.2e}",
        "of seeds": lambda row: f"{number(row, 'least'):.2e} to {number(row, 'most'):.2e}",
    }
    points = [(log(number(row, "bound")), log(number(row, "excess"))) for row in rows if number(row, "excess") > 0]
    (slope, level), covariance = np.polyfit(*zip(*points, strict=True), 1, cov=True)
    half = 1.96 * covariance[0, 0] ** 0.5
    figure_, axes = plt.subplots(figsize=(6, 3.4))
    for order, found in by(rows, "order").items():
        x = [number(row, "bound") for row in found]
        y = [number(row, "excess") for row in found]
        around = [[a - number(row, "least") for a, row in zip(y, found, strict=True)],
                  [number(row, "most") - a for a, row in zip(y, found, strict=True)]]  # fmt: skip
        axes.errorbar(
            x, y, around, fmt="o", capsize=2, label=f"sorted by {order[0]}" if order[0] == "label" else order[0]
        )
    ends = [min(x for x, _ in points), max(x for x, _ in points)]
    axes.plot(np.exp(ends), np.exp([level + slope * x for x in ends]), color="grey", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel=r"$(1 - \alpha) h_D$", ylabel="objective above its least")
    axes.legend(frameon=False)
    save(figure_, results, "papers_theorem.svg")
    text = (
        "A table as higgs, whose features say more of the label, with `l2` 0.01: `corgipile_one_buffer` with "
        "`schedule => 'theorem1'` learns from 2,000,000 rows, whatever the buffer is; 20 seeds. The objective's excess "
        "over its least (Newton's method) should grow as (1 - alpha) h_D does, with a slope of 1 in the figure. The "
        f"fit's slope is {slope:.2f} ± {half:.2f} (95% interval). The bound has further terms, in 1 / T² and 1 / T³, "
        "which do not fall with (1 - alpha) h_D, and is a bound.\n\n"
    )
    passed = abs(slope - 1) <= SLOPE
    return text + figure("papers_theorem.svg", "excess by (1 - alpha) h_D") + table(columns, rows), slope, half, passed


def save(drawn, results, name):
    drawn.tight_layout()
    drawn.savefig(results.path(name), metadata={"Date": None})
    plt.close(drawn)


def write(results, run, shapes):
    """Returns whether every bound holds. `shapes` are those of the tables that are made."""
    rows = results.read("papers_strategies")
    scores, judged = strategies(rows)
    features, of_each = of_features(rows)
    check, slope, half, slope_passed = theorem(results.read("papers_theorem"), results)
    judged += of_each
    failed = [row for row in judged if not row["passed"]]
    missed = [
        f"- {row['set']}, order {row['order']}: `{row['strategy']}` {row['difference']:+.4f} against `shuffle_once`\n"
        for row in failed
    ]
    if not slope_passed:
        missed.append(f"- Theorem 1: the slope is {slope:.2f} ± {half:.2f}, and not 1\n")
    missed += [f"- {paper}, {what}: {how}\n" for paper, what, status, how in FIGURES if status == NOT_SHOWN]

    def told_of(strategy):
        of = [row for row in judged if row["strategy"] == strategy]
        return f"{sum(row['passed'] for row in of)} of {len(of)}"

    outcome = (
        "Missed, or not shown:\n\n" + ("".join(missed) or "- nothing\n") + "\n"
        f"Met: test scores are at most {SCORE} below those of `shuffle_once`, {told_of('corgipile')} with `corgipile` "
        f"and {told_of('corgipile_simple')} with the paper's own draw of blocks, `corgipile_simple`.\n\n"
    )
    columns = {"paper": lambda row: row[0], "figure or table": lambda row: row[1], "here": lambda row: row[2],
               "where, or why not": lambda row: row[3]}  # fmt: skip
    told = ", ".join(f"{shape.name} ({shape.rows:,} x {shape.features})" for shape in shapes)
    sections = [
        ("Outcome", outcome),
        ("Figures and tables", table(columns, FIGURES)),
        ("The papers' protocol", PROTOCOL.format(shapes=told)),
        ("Strategies by the papers' protocol", scores),
        ("Sorted by each feature", features),
        ("Draws of blocks", draws(results.read("papers_draws"), results)),
        ("Theorem 1", check),
        ("Buffer and block", heat(results.read("papers_heat"), results)),
        ("Make it again", f"Measured on {run}. `make study ONLY=papers` measures all of it and writes this page."),
    ]
    with open(results.path("papers.md"), "w") as file:
        file.write(page("The papers' evidence", INTRODUCTION, [one for one in sections if one[1]]))
    return not missed
