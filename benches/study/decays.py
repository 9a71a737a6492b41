"""What decay and block size do: corgipile against shuffle_once with the extension's default decay instead of the
protocol's, and with the smallest blocks instead of the default, one tuple a step."""

from dataclasses import replace
from functools import partial
from statistics import mean

from jobs import run_jobs
from progress import Progress
from rates import cells, cost, search
from server import evaluate, forget, train

SEEDS = (1, 2, 3)
DEFAULT_DECAY = 0.95
BLOCK_SIZES = ("auto", "8kB")


def compare(cell, seeds, connection):
    """Rows for decays.csv: the rate is found for each decay, as in rates.csv."""
    rows = []
    for decay in (DEFAULT_DECAY, cell.decay):
        run = replace(cell, decay=decay)
        _, rate = search(run, connection)
        run = replace(run, rate=rate)
        full = average(connection, [replace(run, seed=seed) for seed in seeds])
        for block_size in BLOCK_SIZES:
            ours = replace(run, strategy="corgipile", block_size=block_size)
            loss, score = average(connection, [replace(ours, seed=seed) for seed in seeds])
            rows.append(
                {
                    "set": run.data_set.name,
                    "model": run.model,
                    "epochs": run.epochs,
                    "decay": decay,
                    "block_size": block_size,
                    "learning_rate": rate,
                    "full_loss": full[0],
                    "loss": loss,
                    "full_score": full[1],
                    "score": score,
                }
            )
    return rows


def average(connection, runs):
    """Mean loss and score on the training part."""
    measured = []
    for run in runs:
        model = train(connection, run)
        measured.append(evaluate(connection, model, run.source))
        forget(connection, model)
    return mean(loss for loss, _ in measured), mean(score for _, score in measured)


def decays(sets, quick, results):
    """Writes decays.csv, of the sets that are sorted by label but networks and mnist, which take too long."""
    seeds = SEEDS[:1] if quick else SEEDS
    sets = [data_set for data_set in sets if data_set.sorted_by_label and not data_set.network]
    runs = [run for run in cells(sets, quick) if run.batch_size == 1 and run.data_set.name != "mnist"]
    costs = [cost(run) for run in runs]
    progress = Progress("decays", len(runs), sum(costs))
    jobs = [(partial(compare, run, seeds), str(run), weight) for run, weight in zip(runs, costs)]
    rows = [row for found in run_jobs(jobs, progress) for row in found]
    results.write("decays", rows, replacing="set")
