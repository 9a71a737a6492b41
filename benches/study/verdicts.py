"""Whether the bounds hold: tables of figures with a verdict per row, from the CSV files alone."""

from math import sqrt
from statistics import mean

LOSS_BOUND = 0.01  # relative
ACCURACY_BOUND, R2_BOUND = 0.005, 0.01
REFERENCE_BOUND = 0.01  # relative
MEMORY_BOUND = 600e6


def cells(runs):
    """Rows of runs.csv by (set, model, batch size), then by strategy, in order."""
    found = {}
    for run in runs:
        key = run["set"], run["model"], int(run["batch_size"])
        found.setdefault(key, {}).setdefault(run["strategy"], []).append(run)
    return found


def average(runs, column):
    return mean(float(run[column]) for run in runs)


def against_full_shuffle(runs, test_rows):
    """corgipile against shuffle_once: a dictionary per cell. `test_rows` says how many a set's test part has."""
    rows = []
    for (data_set, model, batch_size), strategies in cells(runs).items():
        ours, full = strategies["corgipile"], strategies["shuffle_once"]
        loss, full_loss = average(ours, "train_loss"), average(full, "train_loss")
        epoch_loss = average(strategies["epoch_shuffle"], "train_loss")
        score, full_score = average(ours, "train_score"), average(full, "train_score")
        test, full_test = average(ours, "test_score"), average(full, "test_score")
        row = {
            "set": data_set,
            "model": model,
            "batch_size": batch_size,
            "seeds": len(ours),
            "loss": loss,
            "epoch_loss": epoch_loss,
            "full_loss": full_loss,
            "loss_difference": loss / full_loss - 1,
            "score": score,
            "full_score": full_score,
            "score_difference": score - full_score,
            "test": test,
            "full_test": full_test,
            "test_difference": test - full_test,
            "test_bound": None,
        }
        score_bound = R2_BOUND if model == "linear" else ACCURACY_BOUND
        # by how many bounds corgipile is worse; below -1 it is better by more than the bound
        worse = [-row["score_difference"] / score_bound]
        if model != "mlp":  # which has many minima, near a loss of 0
            worse.append(row["loss_difference"] / LOSS_BOUND)
        if model != "linear":
            row["test_bound"] = 2 * sqrt(full_test * (1 - full_test) / test_rows[data_set])
            worse.append(-row["test_difference"] / row["test_bound"])
        row["passed"] = max(worse) <= 1
        row["better"] = row["passed"] and min(worse) < -1
        rows.append(row)
    return rows


def no_shuffle_last(runs, sorted_by_label):
    """By training loss and by training score of the stored models, on the sets that are sorted by label."""
    rows = []
    for (data_set, model, batch_size), strategies in cells(runs).items():
        if data_set not in sorted_by_label:
            continue
        losses = {strategy: average(of, "train_loss") for strategy, of in strategies.items()}
        scores = {strategy: average(of, "train_score") for strategy, of in strategies.items()}
        row = {
            "set": data_set,
            "model": model,
            "batch_size": batch_size,
            "losses": losses,
            "scores": scores,
            "worst_loss": max(losses, key=losses.get),
            "worst_score": min(scores, key=scores.get),
        }
        row["loss_passed"] = losses["no_shuffle"] == max(losses.values())
        row["score_passed"] = scores["no_shuffle"] == min(scores.values())
        row["passed"] = row["loss_passed"] and row["score_passed"]
        rows.append(row)
    return rows


def against_exact(reference):
    rows = []
    for line in reference:
        objective, exact = float(line["objective"]), float(line["exact_objective"])
        rows.append({**line, "difference": objective / exact - 1, "passed": objective <= exact * (1 + REFERENCE_BOUND)})
    return rows


def sparse_bounds(sparse):
    """Of the generated set; of criteo the figures are only told."""
    rows = []
    for line in sparse:
        bounded = line["set"] == "generated_sparse"
        time = float(line["epoch_seconds"]) < float(line["bound_seconds"])
        memory = float(line["beyond_buffer"]) < MEMORY_BOUND
        rows.append(
            {
                **line,
                "time_passed": time if bounded else None,
                "memory_passed": memory if bounded else None,
                "passed": time and memory if bounded else None,
            }
        )
    return rows
