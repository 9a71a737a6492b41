"""Trainings that read together (`shared_scan => true`), against trainings each by itself: as good, but how much alike?
Writes sharing.csv and sharing.md."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from statistics import mean, stdev

import numpy as np

from data import create_tables
from markdown import fixed, mark, page, percent, short, table
from progress import Progress
from server import Run, coefficients, connect, evaluate, forget, train
from sets import SETS
from verdicts import ACCURACY_BOUND, LOSS_BOUND

SEEDS = (1, 2, 3, 4, 5)
NAMES = ("higgs", "covtype", "a9a")
MODELS = ("logistic", "svm")
EPOCHS = 20
WAYS = ("shuffle_once", "corgipile", "together", "staggered")

INTRODUCTION = """Sessions that train on one table with `shared_scan => true` read each block once for all of them. Are
their models as good as those of sessions that read by themselves, and are they still independent of each other?
"""

PROTOCOL = """{sets}, sorted by label. {seeds} models each, with the seeds 1 to {seeds}, {epochs} epochs, a buffer of
10%, all other settings at their defaults, except that no tuples are cached (`cache => 'off'`), so that every epoch
reads the table. *shuffle_once* and *corgipile* are trained one after the other, without `shared_scan`. *together*: all
{seeds} sessions begin at the same moment, with `shared_scan => true`. *staggered*: each begins a quarter of an epoch
after the one before.

A training that shares is as good if its mean loss on the training set is at most {loss:.0%} above that of *corgipile*,
and its accuracy at most {points:g} points below.

"""

ALIKE = """*Distance* is the mean Euclidean distance of two of the {seeds} models' weights, over the length of their
mean. Models that share are {nearer:.2f} to {farther:.2f} times as far from each other as those that do not. Sessions
that share take many blocks in the same order, but each shuffles the tuples of its buffers with its own seed, and on
these tables that decides. It need not on others: where models must be independent repetitions, train them without
`shared_scan`.

"""

AGAIN = """`make study ONLY=share` trains everything again and writes this page; nothing in it is written by hand.
"""


def sharing(data, quick, results):
    """Trains and measures, and writes what came of it."""
    seeds = SEEDS[:2] if quick else SEEDS
    sets = [next(data_set for data_set in SETS if data_set.name == name) for name in (NAMES[2:] if quick else NAMES)]
    progress = Progress("share", len(sets) * len(MODELS), len(sets) * len(MODELS))
    rows = []
    for data_set in sets:
        with connect() as connection:
            create_tables(connection, data, data_set)
            connection.execute("CHECKPOINT")
        for model in MODELS:
            rows += measure(data_set, model, seeds)
            progress.step(f"{data_set.name} {model}", 1)
    results.write("sharing", rows)
    with open(results.path("sharing.md"), "w") as file:
        file.write(page_of(rows, len(seeds), [data_set.title for data_set in sets]))


def measure(data_set, model, seeds):
    """A row for each way to train."""

    def run(strategy, seed, share):
        options = {"cache": "off", "shared_scan": share}
        return Run(data_set, model, 1, strategy, EPOCHS, None, seed=seed, more=options)

    begin = time.perf_counter()
    alone = {name: trained([(0, run(name, seed, None))]) for name in WAYS[:2] for seed in seeds[:1]}
    epoch = (time.perf_counter() - begin) / 2 / EPOCHS
    models = {
        name: first + [one for seed in seeds[1:] for one in trained([(0, run(name, seed, None))])]
        for name, first in alone.items()
    }
    models["together"] = trained([(0, run("corgipile", seed, True)) for seed in seeds])
    models["staggered"] = trained([(i * epoch / 4, run("corgipile", seed, True)) for i, seed in enumerate(seeds)])
    rows = []
    for name, found in models.items():
        losses, scores, tests, weights = zip(*found)
        rows.append(
            {
                "set": data_set.name,
                "model": model,
                "way": name,
                "seeds": len(seeds),
                "train_loss": mean(losses),
                "train_score": mean(scores),
                "test_score": mean(tests),
                "test_deviation": stdev(tests),
                "distance": distance(weights),
            }
        )
    return rows


def trained(runs):
    """Loss, accuracy, accuracy on the test set and weights of each run; each begins after this many seconds."""

    def one(of):
        after, run = of
        with connect() as connection:
            time.sleep(after)
            model = train(connection, run)
            loss, score = evaluate(connection, model, run.source)
            _, test = evaluate(connection, model, run.data_set.table("test"))
            weights, intercepts, *_ = coefficients(connection, model)
            forget(connection, model)
            return loss, score, test, np.append(weights.ravel(), intercepts)

    with ThreadPoolExecutor(len(runs)) as pool:
        return list(pool.map(one, runs))


def distance(weights):
    """The mean distance of two, over the length of the mean."""
    middle = np.linalg.norm(np.mean(weights, axis=0))
    return mean(float(np.linalg.norm(one - other)) for one, other in combinations(weights, 2)) / middle


def judged(rows):
    """The rows with differences to the trainings without `shared_scan`, and a verdict on those with it."""
    for row in rows:
        own = next(r for r in rows if (r["set"], r["model"], r["way"]) == (row["set"], row["model"], "corgipile"))
        loss = row["train_loss"] / own["train_loss"] - 1
        score = row["train_score"] - own["train_score"]
        passed = loss <= LOSS_BOUND and -score <= ACCURACY_BOUND if row["way"] in WAYS[2:] else None
        yield row | {"loss_difference": loss, "passed": passed}


def ratios(rows):
    """The least and the most of the distances of models that share, over those of models that do not."""
    found = {(row["set"], row["model"], row["way"]): row["distance"] for row in rows}
    shared = [d / found[(*key[:2], "corgipile")] for key, d in found.items() if key[2] in WAYS[2:]]
    return {"nearer": min(shared), "farther": max(shared)}


def page_of(rows, seeds, titles):
    columns = {"set": "set", "model": "model", "read": "way", "loss": short("train_loss")}
    columns |= {"against corgipile": percent("loss_difference"), "accuracy": fixed("train_score", 4)}
    columns |= {"test": fixed("test_score", 4), "deviation": fixed("test_deviation", 4)}
    columns |= {"distance": fixed("distance", 4), "verdict": mark}
    protocol = PROTOCOL.format(
        sets=", ".join(titles).capitalize(), seeds=seeds, epochs=EPOCHS, loss=LOSS_BOUND, points=100 * ACCURACY_BOUND
    )
    sections = [
        ("What was trained", protocol),
        ("As good, and alike", table(columns, list(judged(rows))) + ALIKE.format(seeds=seeds, **ratios(rows))),
        ("Make it again", AGAIN),
    ]
    return page("Models of trainings that share", INTRODUCTION, sections)
