"""The pages of docs/results, from the CSV files alone: README.md with the outcome, and a page for each group of
questions."""

import re

import page_blocks
import page_convergence
import page_defaults
import page_others
import page_protocol
import page_strategies
import page_tables
from markdown import figure, page, seconds, table

OUTCOME = """Does CorgiPile learn as well as training on shuffled data, and how fast? These pages answer with what was
measured.

{sentence}"""

HOW_TO_READ = """A row is a data set and a model, at the end of training. The line at 0 is `shuffle_once`, a full
shuffle of the table before training. A blue dot is CorgiPile, on or near the line; the dark bar is `epoch_shuffle`, a
full shuffle before each epoch; crosses are strategies that mix less. Left, more is worse; right, more is better. The
grey band is 1% and one point. The scale is linear inside the band and logarithmic outside. Horizontal lines are the
standard deviation over five seeds.

"""

# Pages that others write: `make study` with `ONLY=joader`, `ONLY=share` and `ONLY=python`, `make bench`, `make bench
# PARTS=compression` and `make soak`.
OTHER_PAGES = (
    (
        "joader.md",
        "Many jobs, one read",
        "How often elements are read when jobs share their reading, by sampler and cache",
    ),
    (
        "sharing.md",
        "Models of trainings that share",
        "How good models are whose trainings read together, and how much alike",
    ),
    (
        "speed.md",
        "Speed",
        "How long an epoch and a prediction take, against scikit-learn and against reading the table",
    ),
    (
        "search.md",
        "Searches",
        "What a search finds and how long it takes, compared with scikit-learn's and with single trainings",
    ),
    (
        "versions.md",
        "Versions of PostgreSQL",
        "What an epoch costs on several versions, cold and warm, in time and processor time",
    ),
    (
        "python.md",
        "The Python loader",
        "How well the Python package's loader mixes sorted rows, what networks learn from it, and how fast it is, "
        "compared with seven loaders of PyPI",
    ),
    (
        "joader_service.md",
        "JOADER in Python",
        "What jobs get that train on the same pictures, compared with DataLoaders of their own and TensorSocket",
    ),
    ("compression.md", "Compression", "How small compressed mini-batches are, in each encoding"),
    (
        "conformal.md",
        "Coverage",
        "How often intervals and sets of labels hold the truth, over many seeds; numpy's and MAPIE's next to them",
    ),
    ("drift.md", "Drift", "The index and the statistic of changed features compared with scipy's"),
    (
        "packages.md",
        "Packages and fresh machines",
        "Which tests ran with which PostgreSQL, what packages are built, checked and tried, and how long that takes",
    ),
    (
        "losses.md",
        "Losses",
        "Huber, quantile and Poisson regressions and SVMs of many classes, against scikit-learn's estimators",
    ),
    ("faults.md", "Faults", "What was done to servers to break them, and what was left behind"),
)

REMAKE = """`make study DATA=/path/to/data` measures everything again and writes these pages; nothing in them is written
by hand. `make study ONLY=convergence SETS=higgs,skin DATA=...` runs the parts and data sets named; the other results
stay as they are. Parts: {parts}. The files with a row for each training or position (`docs/results/raw`) are not part
of the repository. In a new checkout, pages can be written only when the parts that make those files have run.

"""

# Why a bound is missed, where that was found out: by verdict, set and model.
REASONS = {
    ("last", "skin", "svm"): "By loss it is last. All strategies have nearly the same accuracy on this set of three "
    "features, and the smallest hinge loss is not the best accuracy.",
}


class Page:
    """The pages, and the verdicts that are found while they are made."""

    def __init__(self, results, plots):
        self.results = results
        self.plots = plots
        self.failures = []
        self.better = []
        self.verdicts = {}

    def write(self, all_parts):
        """Returns whether every bound holds."""
        modules = (
            page_convergence,
            page_defaults,
            page_tables,
            page_strategies,
            page_blocks,
            page_others,
            page_protocol,
        )
        pages = [written for module in modules for written in module.pages(self)]
        for name, title, introduction, sections in pages:
            self.save(name, page(title, introduction, sections))
        contents = [(name, title, introduction) for name, title, introduction, _ in pages] + list(OTHER_PAGES)
        self.save("README.md", self.front(contents, all_parts))
        return not self.failures

    def save(self, name, text):
        with open(self.results.path(name), "w") as file:
            file.write(text)

    def verdict(self, key, claim, where, rows, describe):
        """Judges a claim by rows with a "passed", and remembers those that failed. `where` is the section with them."""
        judged = [row for row in rows if row["passed"] is not None]
        failed = [row for row in judged if not row["passed"]]
        better = [row for row in judged if row.get("better")]
        self.verdicts[key] = {
            "claim": claim,
            "where": where,
            "rows": len(judged),
            "pass": len(judged) - len(failed) - len(better),
            "better": len(better),
            "fail": len(failed),
        }
        for row in failed:
            known = REASONS.get((key, row.get("set"), row.get("model")))
            self.failures.append(f"{claim}: {describe(row)}" + (f". {known}" if known else ""))
        self.better += [f"{claim}: {describe(row)}" for row in better]

    # -------------------------------------------------------------------------------------------------- front page

    def front(self, contents, all_parts):
        sections = [
            ("Verdicts", self.summary()),
            (
                "Pages",
                table(
                    {"page": lambda row: f"[{row[1]}]({row[0]})", "what it shows": lambda row: first(row[2])}, contents
                ),
            ),
            ("Machines and versions", self.environment()),
            ("Make them again", REMAKE.format(parts=", ".join(f"`{part}`" for part in all_parts))),
        ]
        if "differences.svg" in self.plots:
            caption = "differences of each strategy's final models to those of shuffle_once"
            sections.insert(
                1, ("CorgiPile compared with the other strategies", HOW_TO_READ + figure("differences.svg", caption))
            )
        return page("Results", OUTCOME.format(sentence=self.sentence()), sections)

    def sentence(self):
        of = self.verdicts["full_shuffle"]
        return (
            f"In short: on sorted tables, CorgiPile's models are as good as those of a full "
            f"shuffle in {of['pass']} of {of['rows']} comparisons, better in {of['better']}, and worse in {of['fail']}."
        )

    def summary(self):
        columns = {
            "claim": lambda row: f"[{row['claim']}]({row['where']})",
            "compared": "rows",
            "holds": "pass",
            "better than that": "better",
            "fails": "fail",
        }
        text = "Each claim has a bound, which its page names.\n\n" + table(columns, self.verdicts.values())
        if self.failures:
            text += "What fails:\n\n" + "".join(f"- {failure}\n" for failure in self.failures) + "\n"
        if self.better:
            text += (
                "What is better by more than the bound. `shuffle_once` repeats one order in each epoch; CorgiPile "
                "draws a new order for each, as `epoch_shuffle` does:\n\n"
            ) + "".join(f"- {row}\n" for row in self.better)
        return text

    def environment(self):
        facts = {row["key"]: row["value"] for row in self.results.read("environment")}
        text = "".join(f"- {key}: {value}\n" for key, value in facts.items()) + "\n"
        columns = {
            "part": "part",
            "run at": "date",
            "commit": "commit",
            "seconds": lambda row: seconds(row["seconds"]),
            "machine": "machine",
            "load before": "load",
        }
        return text + table(columns, self.results.read("parts"))


def first(text):
    """The first sentence."""
    return re.split(r"\.\s", text.strip())[0].rstrip(".").replace("\n", " ")
