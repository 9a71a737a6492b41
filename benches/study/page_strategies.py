"""strategies.md: the final models of all strategies in numbers."""

import verdicts
from markdown import fixed, mark, percent, seconds, short, signed, table
from server import STRATEGIES
from sets import SETS

INTRODUCTION = """The final models of all strategies in numbers: loss and score on training and test part. Score is the
accuracy, of linear models R2. Means over five seeds; [protocol](protocol.md) says how they are measured.
"""


def pages(page):
    sections = [
        ("CorgiPile against a full shuffle", full_shuffle(page)),
        ("No shuffle on sets sorted by label", last(page)),
        ("All strategies", strategies(page)),
        ("Decay and block size", decays(page)),
    ]
    return [("strategies.md", "Strategies", INTRODUCTION, sections)]


def where(row):
    return f"{row['set']} {row['model']} batch {row['batch_size']}"


def full_shuffle(page):
    test_rows = {row["set"]: int(row["test_rows"]) for row in page.results.read("sets")}
    rows = verdicts.against_full_shuffle(page.results.read("runs"), test_rows)
    page.verdict(
        "full_shuffle",
        "CorgiPile learns as well as a full shuffle",
        "strategies.md#corgipile-against-a-full-shuffle",
        rows,
        lambda row: (
            f"{where(row)}: loss {row['loss_difference']:+.2%}, training "
            f"{'R2' if row['model'] == 'linear' else 'accuracy'} {row['score_difference']:+.4f}, test "
            f"{row['test_difference']:+.4f}"
        ),
    )
    columns = {
        "set": "set",
        "model": "model",
        "batch": "batch_size",
        "loss: corgipile": fixed("loss", 5),
        "epoch_shuffle": fixed("epoch_loss", 5),
        "shuffle_once": fixed("full_loss", 5),
        "difference": percent("loss_difference"),
        "training score: corgipile": fixed("score", 4),
        "shuffle_once ": fixed("full_score", 4),
        "difference ": signed("score_difference"),
        "test score: corgipile": fixed("test", 4),
        "shuffle_once  ": fixed("full_test", 4),
        "difference  ": signed("test_difference"),
        "bound": fixed("test_bound", 4),
        "verdict": mark,
    }
    return (
        "The differences are CorgiPile's to `shuffle_once`. Bounds: training loss within 1%, training accuracy "
        "within 0.005 (R2 within 0.01), test accuracy within two standard errors of the test part, 2 sqrt(p (1 - p) "
        "/ n). The loss of networks has no bound: they have many minima, and near a loss of 0 a percent is "
        "nothing.\n\n"
    ) + table(columns, rows)


def last(page):
    names = {data_set.name for data_set in SETS if data_set.sorted_by_label}
    rows = verdicts.no_shuffle_last(page.results.read("runs"), names)
    page.verdict(
        "last",
        "Without a shuffle, tables sorted by label are learned worst",
        "strategies.md#no-shuffle-on-sets-sorted-by-label",
        rows,
        lambda row: (
            f"{where(row)}: the largest training loss has {row['worst_loss']} "
            f"({row['losses'][row['worst_loss']]:.4f}; no_shuffle {row['losses']['no_shuffle']:.4f}), the lowest "
            f"training score {row['worst_score']} ({row['scores'][row['worst_score']]:.4f}; no_shuffle "
            f"{row['scores']['no_shuffle']:.4f})"
        ),
    )
    columns = {
        "set": "set",
        "model": "model",
        "batch": "batch_size",
        "training loss": lambda row: f"{row['losses']['no_shuffle']:.4f}",
        "largest has": "worst_loss",
        "training score": lambda row: f"{row['scores']['no_shuffle']:.4f}",
        "lowest has": "worst_score",
        "verdict": mark,
    }
    return (
        "Bound: of the seven strategies `no_shuffle` has the largest training loss and the lowest training score. The "
        "numbers are its own.\n\n"
    ) + table(columns, rows)


def strategies(page):
    text = ""
    found = verdicts.cells(page.results.read("runs"))
    head = {"set": lambda item: item[0][0], "model": lambda item: item[0][1], "batch": lambda item: item[0][2]}
    for title, column in (
        ("Training loss", "train_loss"),
        ("Training score", "train_score"),
        ("Test score", "test_score"),
    ):

        def value(strategy, column=column):
            return lambda item: f"{verdicts.average(item[1][strategy], column):.4f}"

        columns = head | {strategy: value(strategy) for strategy in STRATEGIES}
        text += f"### {title}\n\n" + table(columns, found.items())
    last = {}
    for row in page.results.read("epochs"):
        last.setdefault((row["set"], row["model"], row["batch_size"]), {})[row["strategy"]] = row["total_seconds"]
    columns = head | {strategy: lambda item, strategy=strategy: seconds(item[1][strategy]) for strategy in STRATEGIES}
    return text + "### Seconds of all epochs\n\n" + table(columns, last.items())


def different(rows):
    """Without rows of another block size than that above that have the same loss: they are the same run."""
    return [row for above, row in zip([None, *rows], rows) if above is None or row["loss"] != above["loss"]]


def decays(page):
    columns = {
        "set": "set",
        "model": "model",
        "epochs": "epochs",
        "decay": fixed("decay", 3),
        "block_size": "block_size",
        "rate": short("learning_rate"),
        "loss: corgipile": fixed("loss", 5),
        "shuffle_once": fixed("full_loss", 5),
        "difference": lambda row: f"{float(row['loss']) / float(row['full_loss']) - 1:+.2%}",
        "training score: corgipile": fixed("score", 4),
        "shuffle_once ": fixed("full_score", 4),
        "difference ": lambda row: f"{float(row['score']) - float(row['full_score']):+.4f}",
    }
    return (
        "`corgipile` against `shuffle_once` with the default decay 0.95 instead of the protocol's, and with blocks "
        "of one page where `auto` gives larger ones. One tuple a step, three seeds. The learning rate is found for "
        "each decay by the same rule. For information, without a bound.\n\n"
    ) + table(columns, different(page.results.read("decays")))
