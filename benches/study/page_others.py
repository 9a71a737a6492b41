"""scikit-learn.md and time-and-memory.md."""

import verdicts
from markdown import fixed, mark, megabytes, percent, seconds, short, size, table, time
from server import L2


def pages(page):
    return [
        ("scikit-learn.md", "Against scikit-learn", SCIKIT, [("Objective and test score", reference(page))]),
        (
            "time-and-memory.md",
            "Time and memory",
            "Time and memory of sparse tuples with a million dimensions, and the operators' time against the "
            "aggregate's. [Speed](speed.md) has more.",
            [
                ("Sparse tuples of a million dimensions", sparse(page)),
                ("Operator path against aggregate path", aggregate(page)),
            ],
        ),
    ]


SCIKIT = f"""How close CorgiPile on a sorted table comes to scikit-learn's exact solvers, and what scikit-learn's own
SGD reaches. The objective is the mean training loss plus {L2:g} / 2 |w|² (without the intercepts), computed in double
precision from the weights."""


def reference(page):
    rows = verdicts.against_exact(page.results.read("reference"))
    page.verdict(
        "exact",
        "The objective is within 1% of scikit-learn's exact solver",
        "scikit-learn.md",
        rows,
        lambda row: (
            f"{row['set']} {row['model']}: {float(row['objective']):.6f} against "
            f"{float(row['exact_objective']):.6f}, {row['difference']:+.2%}"
        ),
    )
    columns = {
        "set": "set",
        "model": "model",
        "epochs": "epochs",
        "rate": short("learning_rate"),
        "objective: corgipile": fixed("objective", 6),
        "exact": fixed("exact_objective", 6),
        "by": "exact_solver",
        "the other": fixed("other_objective", 6),
        "difference": percent("difference", 3),
        "test score: corgipile": fixed("test_score", 4),
        "exact ": fixed("exact_test_score", 4),
        "scikit-learn's SGD": fixed("sgd_test_score", 4),
        "verdict": mark,
    }
    return (
        "Ours: `corgipile` on the sorted table, one tuple a step, the rate falling to a thousandth of the first. "
        "Bound: at most 1% above the exact objective. For svm there are two exact solvers: LinearSVC, which may stop "
        "at 1000 iterations before it is there, and `smoothed hinge`, L-BFGS on a hinge loss rounded by 0.003. The "
        "better one counts. scikit-learn's SGD: SGDClassifier or SGDRegressor with the same penalty, 20 epochs and "
        "its default schedule; for more than two classes it trains one model each.\n\n"
    ) + table(columns, rows)


def sparse(page):
    rows = verdicts.sparse_bounds(page.results.read("sparse"))
    page.verdict(
        "sparse",
        "Sparse tuples stay within bounds of time and memory",
        "time-and-memory.md#sparse-tuples-of-a-million-dimensions",
        rows,
        lambda row: (
            f"{row['set']} {row['model']} batch {row['batch_size']}: {seconds(row['epoch_seconds'])} s (bound "
            f"{seconds(row['bound_seconds'])}), {megabytes(row['beyond_buffer'])} MB beyond the buffer"
        ),
    )
    columns = {
        "set": "set",
        "model": "model",
        "batch": "batch_size",
        "rows": "rows",
        "dimensions": "dimensions",
        "first epoch, s": time("first_epoch_seconds"),
        "epoch, s": time("epoch_seconds"),
        "count(*), s": time("count_seconds"),
        "bound, s": time("bound_seconds"),
        "ns per non-zero": fixed("ns_per_nonzero", 1),
        "VmHWM, MB": size("vm_hwm"),
        "RssAnon, MB": size("rss_anon_peak"),
        "buffer, MB": size("buffer"),
        "beyond, MB": size("beyond_buffer"),
        "verdict": mark,
    }
    return (
        "`corgipile`, each training in a backend of its own. Epoch: the median of all but the first. VmHWM: the most "
        "resident memory, with the pages of shared buffers that were touched. RssAnon: the most of the backend's own "
        "memory, sampled every 2 ms. Buffer: a tenth of the table's pages. Bounds, for the generated set: an epoch "
        "in less than 3 `count(*)` plus 60 ns per non-zero, and less than 600 MB beyond the buffer.\n\n"
    ) + table(columns, rows)


def aggregate(page):
    rows = page.results.read("aggregate")
    columns = {
        "model": "model",
        "batch": "batch_size",
        "strategy": "strategy",
        "operator, s": time("operator_seconds"),
        "aggregate, s": time("aggregate_seconds"),
        "ratio": fixed("ratio", 2),
        "shuffle: operator, s": time("operator_shuffle_seconds"),
        "aggregate, s ": time("aggregate_shuffle_seconds"),
        "loss: operator": fixed("operator_loss", 6),
        "aggregate": fixed("aggregate_loss", 6),
    }
    text = ""
    if rows:
        text = (
            f"Seconds per epoch of `corgipile_train` and `corgipile_train_uda` on {rows[0]['rows']} rows of "
            f"{rows[0]['features']} dense features in shared buffers, taking turns; medians. `count(*)` of the "
            f"same table takes {seconds(rows[0]['count_seconds'])} s.\n\n"
        )
    return text + table(columns, rows)
