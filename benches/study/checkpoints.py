"""What the models are on the way: each is trained for fewer epochs, too, with every seed, and measured.

With the same seed each epoch is the same as in the whole run, so that a training of 5 epochs gives the model that the
whole run has after 5. That is checked. Only the figures need this: one batch size of each set.
"""

from dataclasses import replace
from functools import partial
from math import isclose
from statistics import mean

from convergence import SEEDS, measure
from jobs import run_jobs
from progress import Progress
from rates import chosen, cost
from server import STRATEGIES

EPOCHS = (1, 2, 3, 5, 8, 12, 20, 30, 40, 60, 100)
KEPT = ("set", "model", "batch_size", "strategy", "seed", "epochs", "train_loss", "test_score")


def checkpoints(sets, quick, results):
    """Writes checkpoints.csv, set by set; the whole runs come from runs.csv."""
    seeds = SEEDS[:1] if quick else SEEDS
    cells = [cell for cell in chosen(sets, quick, results) if cell.batch_size == cell.data_set.drawn_batch_size]
    plans = {
        data_set: [run for cell in cells if cell.data_set == data_set for run in shorter(cell, seeds)]
        for data_set in sets
    }
    runs = [run for plan in plans.values() for run in plan]
    progress = Progress("checkpoints", len(runs), sum(map(cost, runs)))
    for data_set, plan in plans.items():
        measured = dict(zip(plan, run_jobs([(partial(measure, run), str(run), cost(run)) for run in plan], progress)))
        check(measured, results)
        whole = [
            row
            for row in results.read("runs")
            if row["set"] == data_set.name and int(row["batch_size"]) == data_set.drawn_batch_size
        ]
        rows = [{key: row[key] for key in KEPT} for row in [*(row for _, row in measured.values()), *whole]]
        results.write("checkpoints", rows, replacing="set")


def shorter(cell, seeds):
    """The runs of fewer epochs."""
    runs = [
        replace(cell, strategy=strategy, seed=seed, epochs=epochs)
        for strategy in STRATEGIES
        for seed in seeds
        for epochs in EPOCHS
        if epochs < cell.epochs
    ]
    return [run for run in runs if run.seed == seeds[0] or run.seed_matters]


def check(measured, results):
    """Whether shorter runs are the beginnings of the long ones, by the mean loss of each epoch over the seeds."""
    whole = {
        (row["set"], row["model"], int(row["batch_size"]), row["strategy"], int(row["epoch"])): float(row["loss"])
        for row in results.read("epochs")
    }
    losses = {}
    for run, (model, _) in measured.items():
        losses.setdefault((*run.cell, run.strategy, run.epochs), []).append(model.epochs[-1].loss)
    for key, values in losses.items():
        if not isclose(mean(values), whole[key], rel_tol=1e-5):
            raise RuntimeError(f"{key}: the loss is {mean(values)}, that of the whole run in this epoch {whole[key]}")
