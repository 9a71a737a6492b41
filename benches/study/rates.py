"""Chooses the learning rate of each set, model and batch size, by shuffle_once alone and with a seed of its own.

The rule: from a first guess, go to the neighbouring rate, 3 times larger or smaller (1, 0.3, 0.1, ...), as long as the
training objective (loss and penalty) of the model after all epochs falls; then take the smallest rate that comes within
0.2% of the lowest objective. What is gained by the larger ones is less than what they risk.
"""

from dataclasses import replace
from functools import partial
from math import inf

from jobs import run_jobs
from progress import Progress
from server import DivergedError, Run, evaluate, forget, penalty, thousandth, train

SEED = 100
TOLERANCE = 0.002
RATES = tuple(float(f"{digit}e{exponent}") for exponent in range(-6, 3) for digit in (1, 3))


def cells(sets, quick):
    """A run for each set, model and batch size, the learning rate still to be found."""
    return [
        Run(
            data_set,
            model,
            batch_size,
            "shuffle_once",
            epochs,
            first_guess(data_set, batch_size),
            decay=thousandth(epochs),
            seed=SEED,
        )
        for data_set in sets
        for epochs in [5 if quick else data_set.epochs]
        for model in data_set.models
        for batch_size in data_set.batch_sizes
    ]


def first_guess(data_set, batch_size):
    """One of RATES: averaged gradients and sparse features bear larger steps."""
    if data_set.network:
        return 0.1
    rate = 0.01 if data_set.standardize else 0.1
    if batch_size > 1:
        rate *= 30
    return min(RATES, key=lambda known: abs(known / rate - 1))


def search(run, connection):
    """The objective for each rate that was tried, and the rate to take."""
    values = {}

    def value(place):
        if place not in values:
            values[place] = objective(connection, replace(run, rate=RATES[place]))
        return values[place]

    best = RATES.index(run.rate)
    while True:
        neighbours = [place for place in (best - 1, best + 1) if 0 <= place < len(RATES)]
        better = min(neighbours, key=value)  # of two that diverge, the smaller rate
        if value(better) >= value(best) and value(best) < inf:
            break
        best = better
    smallest = best
    while smallest > 0 and value(smallest - 1) <= value(best) * (1 + TOLERANCE):
        smallest -= 1
    return {RATES[place]: values[place] for place in sorted(values)}, RATES[smallest]


def objective(connection, run):
    """Training loss and penalty of the final model."""
    try:
        model = train(connection, run)
    except DivergedError:
        return inf
    loss, _ = evaluate(connection, model, run.source)
    value = loss + penalty(connection, model)
    forget(connection, model)
    return value


def choose(sets, quick, results):
    """Writes rates.csv."""
    runs = cells(sets, quick)
    costs = [cost(run) for run in runs]
    progress = Progress("rates", len(runs), sum(costs))
    jobs = [(partial(search, run), str(run), weight) for run, weight in zip(runs, costs)]
    rows = [
        {
            "set": run.data_set.name,
            "model": run.model,
            "batch_size": run.batch_size,
            "epochs": run.epochs,
            "decay": run.decay,
            "learning_rate": rate,
            "objective": value,
            "chosen": int(rate == best),
        }
        for run, (values, best) in zip(runs, run_jobs(jobs, progress))
        for rate, value in values.items()
    ]
    results.write("rates", rows, replacing="set")


def chosen(sets, quick, results):
    """The runs of cells() with the rates of rates.csv."""
    rates = {
        (row["set"], row["model"], int(row["batch_size"])): float(row["learning_rate"])
        for row in results.read("rates")
        if row["chosen"] == "1"
    }
    return [replace(run, rate=rates[run.cell]) for run in cells(sets, quick)]


# Thousands of rows, times what a row costs more than one of higgs. They only serve to tell how long the rest will take.
COSTS = {
    "higgs": 7,
    "skin": 150,
    "covtype_random": 20,
    "a9a": 30,
    "w8a": 50,
    "kdd99_onehot": 700,
    "criteo10k_hashed": 30,
    "mnist": 3000,
    "california": 20,
    "protein": 30,
    "blogfeedback": 150,
}
NETWORK_COSTS = {"higgs": 200, "covtype_random": 400, "mnist": 6000}
STRATEGY_COSTS = {"shuffle_once": 1.2, "epoch_shuffle": 5, "sliding_window": 1.5, "mrs": 3}


def cost(run):
    if run.data_set.network:
        return NETWORK_COSTS[run.data_set.files] * run.epochs
    return COSTS[run.data_set.files] * run.epochs * STRATEGY_COSTS.get(run.strategy, 1)
