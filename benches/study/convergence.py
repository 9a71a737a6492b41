"""Trains every set, model, batch size and strategy, with several seeds, and measures the models.

Timed runs (the first seed's) go one at a time; the others two at a time.
"""

from dataclasses import replace
from functools import partial
from statistics import mean, stdev

from jobs import run_jobs
from progress import Progress
from rates import chosen, cost
from server import STRATEGIES, evaluate, forget, train

SEEDS = (1, 2, 3, 4, 5)
EACH_EPOCH = 20  # after this many epochs, each tenth is written


class Plan:
    """The runs of one set."""

    def __init__(self, cells, seeds):
        runs = [
            replace(cell, strategy=strategy, seed=seed) for cell in cells for strategy in STRATEGIES for seed in seeds
        ]
        self.timed = [run for run in runs if run.seed == seeds[0]]
        self.others = [run for run in runs if run.seed != seeds[0] and run.seed_matters]


def converge(sets, quick, results):
    """Writes runs.csv and epochs.csv, set by set."""
    seeds = SEEDS[:1] if quick else SEEDS
    plans = [Plan(chosen([data_set], quick, results), seeds) for data_set in sets]
    # timed runs go alone: as if each cost two sessions
    total = sum(2 * sum(map(cost, plan.timed)) + sum(map(cost, plan.others)) for plan in plans)
    progress = Progress("convergence", sum(len(plan.timed) + len(plan.others) for plan in plans), total)
    for plan in plans:
        measured = measure_all(plan.timed, progress, sessions=1) | measure_all(plan.others, progress, sessions=2)
        rows = [measured[run][1] for run in plan.timed + plan.others]
        results.write("runs", rows, replacing="set")
        rows = [row for run in plan.timed for row in epoch_rows(run, plan.others, measured)]
        results.write("epochs", rows, replacing="set")


def measure_all(runs, progress, sessions):
    """Model and row for runs.csv of each run."""
    jobs = [(partial(measure, run), str(run), cost(run) * (2 if sessions == 1 else 1)) for run in runs]
    return dict(zip(runs, run_jobs(jobs, progress, sessions)))


def measure(run, connection):
    model = train(connection, run)
    train_loss, train_score = evaluate(connection, model, run.source)
    test_loss, test_score = evaluate(connection, model, run.data_set.table("test"))
    forget(connection, model)
    return model, {
        **names(run),
        "seed": run.seed,
        "epochs": run.epochs,
        "learning_rate": run.rate,
        "train_loss": train_loss,
        "train_score": train_score,
        "test_loss": test_loss,
        "test_score": test_score,
        "shuffle_bytes": model.shuffle_bytes,
    }


def names(run):
    return {"set": run.data_set.name, "model": run.model, "batch_size": run.batch_size, "strategy": run.strategy}


def epoch_rows(timed, others, measured):
    """Loss and score as the epochs report them, over all seeds; seconds of the run that was timed."""
    seconds = measured[timed][0].preparation_seconds
    runs = [timed] + [run for run in others if replace(run, seed=timed.seed) == timed]
    rows = []
    for place, epoch in enumerate(measured[timed][0].epochs):
        losses = [measured[run][0].epochs[place].loss for run in runs]
        seconds += epoch.shuffle_seconds + epoch.seconds
        if place >= EACH_EPOCH and (place + 1) % 10:
            continue
        rows.append(
            {
                **names(timed),
                "epoch": place + 1,
                "seeds": len(runs),
                "loss": mean(losses),
                "loss_deviation": stdev(losses) if len(runs) > 1 else 0.0,
                "score": mean(measured[run][0].epochs[place].score for run in runs),
                "shuffle_seconds": epoch.shuffle_seconds,
                "total_seconds": seconds,
            }
        )
    return rows
