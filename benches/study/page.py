"""The page of results, docs/results/README.md, from the CSV files alone."""

from math import log10

import block_page
import verdicts
from markdown import mark, table
from server import L2, STRATEGIES
from sets import SETS

HEAD = """# Results

Made by `make study DATA=/path/to/data` from the CSV files beside this page; nothing here is written by hand.
`make study ONLY=page` makes the page again, `make study ONLY=convergence SETS=higgs,skin DATA=...` the parts and sets
named. Parts: {parts}.

"""

METHOD = """## Protocol

- All trainings: from zero weights, l2 {l2:g}, plain SGD, 20 epochs (w8a 60, criteo10k_hashed 200), the rate falling
  exponentially to a thousandth in the last epoch, the buffer a tenth of the table as in the papers (by
  default, the smallest sets would be single buffers), all else by default, in particular `block_size` (`auto`). What decay and block size do is measured below, under
  [decay and block size](#decay-and-block-size).
- Dense sets are standardized, but for mnist (pixels / 255) and blogfeedback (`sign(x) log1p(|x|)` over the training
  part's maximum, target `log1p`); sparse ones are not. Of california, rows with a NULL are skipped; its target is in
  units of 100,000 dollars.
- Order: sorted by label (or target), ascending; skin as its file is, which is sorted too; "by a feature": ascending by
  the feature that correlates most with the label.
- Learning rate: found for each set, model and batch size with `shuffle_once` alone and seed 100: from a first guess to
  the neighbouring rate (1, 0.3, 0.1, ...) as long as the training objective (loss and penalty) of the final model
  falls; then the smallest rate that comes within 0.2% of the lowest objective. [rates.csv](rates.csv) has all that were
  tried. All strategies use it.
- Seeds: 1 to 5, means over them. `no_shuffle` has only one order and runs once.
- Loss and score (accuracy, of linear R2) are those of the stored model, measured by `corgipile_evaluate` on the whole
  training and test part, the loss without the penalty. "After so many epochs" is a training of that many epochs with
  seed 1, whose epochs are the same as the whole run's (which is checked).
- Seconds: of one run (seed 1), alone on the machine, tables in shared buffers. They include the pass that standardizes
  and the full shuffles of `shuffle_once` and `epoch_shuffle`.

"""


# Why a bound is missed, where that was found out: by verdict, set and model.
REASONS = {
    ("no_shuffle is last", "skin", "svm"): "By loss it is last. The accuracies of all strategies hardly differ on this "
    "set of three features, and the least hinge loss is not the best accuracy.",
}


def different(rows):
    """Without rows of another block size than that above that have the same loss: they are the same run."""
    return [row for above, row in zip([None, *rows], rows) if above is None or row["loss"] != above["loss"]]


def reason(name, row):
    known = REASONS.get((name, row.get("set"), row.get("model")))
    return f". {known}" if known else ""


def seconds(value):
    """Three digits."""
    value = float(value)
    if value <= 0:
        return "0"
    return f"{value:.{max(0, 2 - int(log10(value) // 1))}f}"


def megabytes(value):
    return f"{float(value) / 1e6:.0f}"


def figure(name, caption):
    return f"![{caption}]({name})\n\n"


class Page:
    def __init__(self, results, plots):
        self.results = results
        self.plots = plots
        self.failures = []
        self.better = []
        self.parts = []

    def write(self, all_parts):
        """Returns whether every bound holds."""
        sections = [
            self.full_shuffle(),
            self.last(),
            self.strategies(),
            self.figures(),
            self.defaults(),
            block_page.blocks(self),
            block_page.periods(self),
            block_page.mixing(self),
            self.orders(),
            self.reference(),
            self.sparse(),
            self.aggregate(),
            self.cluster(),
        ]
        text = HEAD.format(parts=", ".join(f"`{part}`" for part in all_parts)) + self.environment()
        text += self.summary() + METHOD.format(l2=L2) + "".join(sections)
        with open(self.results.path("README.md"), "w") as file:
            file.write(text.rstrip() + "\n")
        return not self.failures

    def verdict(self, name, rows, describe):
        """Counts a list of rows with a "passed", and remembers those that did not."""
        judged = [row for row in rows if row["passed"] is not None]
        failed = [row for row in judged if not row["passed"]]
        better = [row for row in judged if row.get("better")]
        self.parts.append((name, len(judged), len(judged) - len(failed) - len(better), len(better), len(failed)))
        self.failures += [f"{name}: {describe(row)}{reason(name, row)}" for row in failed]
        self.better += [f"{name}: {describe(row)}" for row in better]

    def environment(self):
        facts = {row["key"]: row["value"] for row in self.results.read("environment")}
        text = "".join(f"- {key}: {value}\n" for key, value in facts.items()) + "\n"
        parts = [
            [row["part"], row["date"], row["commit"], seconds(row["seconds"])] for row in self.results.read("parts")
        ]
        return text + table(["part", "run at", "commit", "seconds"], parts)

    def summary(self):
        text = "## Verdicts\n\n" + table(["bound", "rows", "pass", "better", "fail"], self.parts)
        if self.failures:
            text += "What fails:\n\n" + "".join(f"- {failure}\n" for failure in self.failures) + "\n"
        if self.better:
            text += (
                "What is better by more than the bound. `shuffle_once` repeats one order, `corgipile` draws a new one "
                "for each epoch, as `epoch_shuffle` does: compare with that in the table below.\n\n"
            ) + "".join(f"- {row}\n" for row in self.better)
            text += "\n"
        return text

    # -------------------------------------------------------------------------------------------------- convergence

    def full_shuffle(self):
        runs = self.results.read("runs")
        test_rows = {row["set"]: int(row["test_rows"]) for row in self.results.read("sets")}
        rows = verdicts.against_full_shuffle(runs, test_rows)
        self.verdict(
            "corgipile against shuffle_once",
            rows,
            lambda row: (
                f"{row['set']} {row['model']} batch {row['batch_size']}: loss {row['loss_difference']:+.2%}, training "
                f"{'R2' if row['model'] == 'linear' else 'accuracy'} {row['score_difference']:+.4f}, test "
                f"{row['test_difference']:+.4f}"
            ),
        )
        header = [
            "set",
            "model",
            "batch",
            "loss: corgipile",
            "epoch_shuffle",
            "shuffle_once",
            "difference",
            "training score: corgipile",
            "shuffle_once",
            "difference",
            "test score: corgipile",
            "shuffle_once",
            "difference",
            "bound",
            "verdict",
        ]
        lines = [
            [
                row["set"],
                row["model"],
                row["batch_size"],
                f"{row['loss']:.5f}",
                f"{row['epoch_loss']:.5f}",
                f"{row['full_loss']:.5f}",
                f"{row['loss_difference']:+.2%}",
                f"{row['score']:.4f}",
                f"{row['full_score']:.4f}",
                f"{row['score_difference']:+.4f}",
                f"{row['test']:.4f}",
                f"{row['full_test']:.4f}",
                f"{row['test_difference']:+.4f}",
                "" if row["test_bound"] is None else f"{row['test_bound']:.4f}",
                mark(row["passed"], row["better"]),
            ]
            for row in rows
        ]
        return (
            "## CorgiPile against a full shuffle\n\nMeans over the seeds. Bounds: training loss within 1%, training "
            "accuracy within 0.005 (R2 within 0.01), test accuracy within two standard errors of the test part, "
            "2 sqrt(p (1 - p) / n). The differences are corgipile's to shuffle_once.\n\n"
        ) + table(header, lines)

    def last(self):
        names = {data_set.name for data_set in SETS if data_set.sorted_by_label}
        rows = verdicts.no_shuffle_last(self.results.read("runs"), names)
        self.verdict(
            "no_shuffle is last",
            rows,
            lambda row: (
                f"{row['set']} {row['model']} batch {row['batch_size']}: the largest training loss has "
                f"{row['worst_loss']} "
                f"({row['losses'][row['worst_loss']]:.4f}; no_shuffle {row['losses']['no_shuffle']:.4f}), the lowest "
                f"training score {row['worst_score']} ({row['scores'][row['worst_score']]:.4f}; no_shuffle "
                f"{row['scores']['no_shuffle']:.4f})"
            ),
        )
        lines = [
            [
                row["set"],
                row["model"],
                row["batch_size"],
                f"{row['losses']['no_shuffle']:.4f}",
                row["worst_loss"],
                f"{row['scores']['no_shuffle']:.4f}",
                row["worst_score"],
                mark(row["passed"]),
            ]
            for row in rows
        ]
        return (
            "## no_shuffle on sets sorted by label\n\nBound: of the seven strategies it has the largest training loss "
            "and the lowest training score.\n\n"
        ) + table(
            ["set", "model", "batch", "training loss", "largest has", "training score", "lowest has", "verdict"], lines
        )

    def strategies(self):
        text = "## All strategies\n\n"
        for title, column, digits in (
            ("Training loss", "train_loss", 4),
            ("Training score", "train_score", 4),
            ("Test score", "test_score", 4),
        ):
            lines = [
                [*key, *(f"{verdicts.average(strategies[strategy], column):.{digits}f}" for strategy in STRATEGIES)]
                for key, strategies in verdicts.cells(self.results.read("runs")).items()
            ]
            text += f"### {title}\n\n" + table(["set", "model", "batch", *STRATEGIES], lines)
        last = {}
        for row in self.results.read("epochs"):
            last.setdefault((row["set"], row["model"], row["batch_size"]), {})[row["strategy"]] = row["total_seconds"]
        lines = [[*key, *(seconds(of[strategy]) for strategy in STRATEGIES)] for key, of in last.items()]
        return text + "### Seconds of all epochs\n\n" + table(["set", "model", "batch", *STRATEGIES], lines)

    def figures(self):
        text = "## Convergence\n\n"
        kinds = (
            ("loss_by_epoch", "Training loss of the model after so many epochs"),
            ("test_by_epoch", "Test score of the model after so many epochs"),
            ("test_by_seconds", "Test score by seconds, full shuffles included"),
            (
                "online_loss",
                "Loss that an epoch reports, measured on each tuple before it is learned from; on "
                "clustered tables it flatters strategies that mix little",
            ),
        )
        groups = (
            ("logistic_1", "logistic, one tuple a step"),
            ("logistic_128", "logistic, batches of 128"),
            ("svm_1", "svm, one tuple a step"),
            ("svm_128", "svm, batches of 128"),
            ("softmax", "softmax"),
            ("linear", "linear"),
        )
        for kind, title in kinds:
            text += f"### {title}\n\n"
            for group, caption in groups:
                if f"{kind}_{group}.svg" in self.plots:
                    text += f"{caption}:\n\n" + figure(f"{kind}_{group}.svg", f"{title}: {caption}")
        return text

    def defaults(self):
        lines = [
            [
                row["set"],
                row["model"],
                row["epochs"],
                f"{float(row['decay']):.3f}",
                row["block_size"],
                f"{float(row['learning_rate']):g}",
                f"{float(row['loss']):.5f}",
                f"{float(row['full_loss']):.5f}",
                f"{float(row['loss']) / float(row['full_loss']) - 1:+.2%}",
                f"{float(row['score']):.4f}",
                f"{float(row['full_score']):.4f}",
                f"{float(row['score']) - float(row['full_score']):+.4f}",
            ]
            for row in different(self.results.read("defaults"))
        ]
        header = [
            "set",
            "model",
            "epochs",
            "decay",
            "block_size",
            "rate",
            "loss: corgipile",
            "shuffle_once",
            "difference",
            "training score: corgipile",
            "shuffle_once",
            "difference",
        ]
        return (
            "## Decay and block size\n\n`corgipile` against `shuffle_once` with the default decay 0.95 instead of the "
            "protocol's, and with blocks of a page where `auto` gives larger ones. One tuple a step, three seeds; the "
            "rate is found for each decay by the same rule. For information, without a bound.\n\n"
        ) + table(header, lines)

    def orders(self):
        if "orders.png" not in self.plots:
            return ""
        return (
            "## Orders\n\n`corgipile_shuffle_order(strategy, 1000, 20, 200, 1, 1)`: which tuple comes at which place, "
            "and how many of each 20 are negative if tuples 0 to 499 are ([orders.csv](orders.csv)).\n\n"
            + figure("orders.png", "tuple ids and labels by position, for each strategy")
        )

    # ----------------------------------------------------------------------------------------------- the other parts

    def reference(self):
        rows = verdicts.against_exact(self.results.read("reference"))
        self.verdict(
            "objective against scikit-learn's exact solver",
            rows,
            lambda row: (
                f"{row['set']} {row['model']}: {float(row['objective']):.6f} against "
                f"{float(row['exact_objective']):.6f}, "
                f"{row['difference']:+.2%}"
            ),
        )
        lines = [
            [
                row["set"],
                row["model"],
                row["epochs"],
                f"{float(row['learning_rate']):g}",
                f"{float(row['objective']):.6f}",
                f"{float(row['exact_objective']):.6f}",
                row["exact_solver"],
                f"{float(row['other_objective']):.6f}" if row["other_objective"] else "",
                f"{row['difference']:+.3%}",
                f"{float(row['test_score']):.4f}",
                f"{float(row['exact_test_score']):.4f}",
                f"{float(row['sgd_test_score']):.4f}",
                mark(row["passed"]),
            ]
            for row in rows
        ]
        header = [
            "set",
            "model",
            "epochs",
            "rate",
            "objective: corgipile",
            "exact",
            "by",
            "the other",
            "difference",
            "test score: corgipile",
            "exact",
            "scikit-learn's SGD",
            "verdict",
        ]
        return (
            "## Against scikit-learn\n\n"
            f"Objective: mean training loss plus {L2:g} / 2 |w|² (intercepts free), computed in double precision "
            "from the weights. Ours: `corgipile` on the clustered table, one tuple a step, the rate falling to a "
            "thousandth of the first. Bound: at most 1% above the exact one. For svm there are two exact ones, "
            "LinearSVC, which may stop at 1000 iterations before it is there, and `smoothed hinge`, L-BFGS on a "
            "hinge loss rounded by 0.003; the better one counts. scikit-learn's SGD: SGDClassifier or "
            "SGDRegressor with the same penalty, 20 epochs, its default schedule; of more than two classes it "
            "trains a model each.\n\n"
        ) + table(header, lines)

    def sparse(self):
        rows = verdicts.sparse_bounds(self.results.read("sparse"))
        self.verdict(
            "sparse tuples, time and memory",
            rows,
            lambda row: (
                f"{row['set']} {row['model']} batch {row['batch_size']}: {seconds(row['epoch_seconds'])} s (bound "
                f"{seconds(row['bound_seconds'])}), {megabytes(row['beyond_buffer'])} MB beyond the buffer"
            ),
        )
        lines = [
            [
                row["set"],
                row["model"],
                row["batch_size"],
                row["rows"],
                row["dimensions"],
                seconds(row["first_epoch_seconds"]),
                seconds(row["epoch_seconds"]),
                seconds(row["count_seconds"]),
                seconds(row["bound_seconds"]),
                f"{float(row['ns_per_nonzero']):.1f}",
                megabytes(row["vm_hwm"]),
                megabytes(row["rss_anon_peak"]),
                megabytes(row["buffer"]),
                megabytes(row["beyond_buffer"]),
                mark(row["passed"]),
            ]
            for row in rows
        ]
        header = [
            "set",
            "model",
            "batch",
            "rows",
            "dimensions",
            "first epoch, s",
            "epoch, s",
            "count(*), s",
            "bound, s",
            "ns per non-zero",
            "VmHWM, MB",
            "RssAnon, MB",
            "buffer, MB",
            "beyond, MB",
            "verdict",
        ]
        return (
            "## Sparse tuples of a million dimensions\n\n`corgipile`, a backend of its own for each training. Epoch: "
            "median of all but the first. VmHWM: the most resident memory, shared buffers' pages that were touched "
            "included; RssAnon: the most of the backend's own memory, sampled every 2 ms. Buffer: 10% of the table's "
            "pages. Bounds, of the generated set: an epoch in less than 3 `count(*)` plus 60 ns per non-zero, "
            "less than "
            "600 MB beyond the buffer.\n\n"
        ) + table(header, lines)

    def aggregate(self):
        rows = self.results.read("aggregate")
        lines = [
            [
                row["model"],
                row["batch_size"],
                row["strategy"],
                seconds(row["operator_seconds"]),
                seconds(row["aggregate_seconds"]),
                f"{float(row['ratio']):.2f}",
                seconds(row["operator_shuffle_seconds"]),
                seconds(row["aggregate_shuffle_seconds"]),
                f"{float(row['operator_loss']):.6f}",
                f"{float(row['aggregate_loss']):.6f}",
            ]
            for row in rows
        ]
        header = [
            "model",
            "batch",
            "strategy",
            "operator, s",
            "aggregate, s",
            "ratio",
            "shuffle: operator, s",
            "aggregate, s",
            "loss: operator",
            "aggregate",
        ]
        text = "## Operator path against aggregate path\n\n"
        if rows:
            text += (
                f"Seconds per epoch of `corgipile_train` and `corgipile_train_uda` on {rows[0]['rows']} rows of "
                f"{rows[0]['features']} dense features in shared buffers, taking turns; medians. `count(*)` of the "
                f"same table takes {seconds(rows[0]['count_seconds'])} s.\n\n"
            )
        return text + table(header, lines)

    def cluster(self):
        rows = self.results.read("cluster")
        lines = [
            [
                row["set"],
                row["order"],
                f"{float(row['cluster_factor']):.2f}",
                f"{float(row['shuffled']):.2f}",
                f"{float(row['tuples_per_page']):.1f}",
            ]
            for row in rows
        ]
        return (
            "## Cluster factor\n\nh_D by `corgipile_cluster_factor`, of the table in its order and of a copy in random "
            "order; from 1 to the tuples per block.\n\n"
        ) + table(["set", "sorted by", "h_D", "shuffled copy", "tuples per page"], lines)
