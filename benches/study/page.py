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
import page_words
from markdown import figure, page, seconds, table

OUTCOME = """Does CorgiPile learn as well as training on shuffled data, and how fast?

**Met**: {met}

**Missed**: {missed}"""

HOW_TO_READ = """A row is a data set and a model, at the end of training. The line at 0 is `shuffle_once`, a full
shuffle of the table before training. A blue dot is CorgiPile, on or near the line; the dark bar is `epoch_shuffle`, a
full shuffle before each epoch; crosses are strategies that mix less. Left, more is worse; right, more is better. The
grey band is 1% and one point. The scale is linear inside the band and logarithmic outside. Horizontal lines are the
standard deviation over five seeds.

"""

# Pages that others write: `make demo`, `make study ONLY=messy`, `papers` and `joader`, `make bench` and, by hand,
# packages.md.
OTHER_PAGES = (
    ("demo.md", "The demo", "What `make demo` prints: four orders of one table, after 1 to 20 passes"),
    (
        "messy.md",
        "Plain calls on messy files",
        "What a user gets who loads a public file as it is and names the label, against scikit-learn's usual pipeline",
    ),
    (
        "papers.md",
        "The papers' evidence",
        "Which figures and tables of the papers are shown here, and measurements by their protocol",
    ),
    (
        "joader.md",
        "Many jobs, one read",
        "How often elements are read when jobs share their reading, by sampler and cache",
    ),
    (
        "speed.md",
        "Speed",
        "How long an epoch and a prediction take, against scikit-learn and against reading the table",
    ),
    ("compression.md", "Compression", "How small compressed mini-batches are, in each encoding"),
    (
        "cache-memory.md",
        "Compressed tables and the cache's memory",
        "How long a further epoch takes on a compressed table, by the memory of the cache",
    ),
    (
        "packages.md",
        "Packages and fresh machines",
        "Which tests ran with which PostgreSQL, what packages are built, checked and tried, and how long that takes",
    ),
)

OTHER_RESULTS = """What other pages quote, with the command that measures it again. The rows are in
[others.csv](others.csv). The command writes a page with all figures to `target/results`. `make results` packs these
pages, the CSV files and this folder for a release. Those of the figures here are in this repository at commit
5fbe668b, in `docs/results`.

"""

REMAKE = """`make study DATA=/path/to/data` measures everything again and writes these pages; nothing in them is
written by hand. `make study ONLY=convergence SETS=higgs,skin DATA=...` runs the parts and data sets named; the other
results stay as they are. Parts: {parts}. CSV files are written to `target/results`, and so are the pages that this
folder does not have. In a new checkout, pages can be written only when the parts that make the CSV files have run.

"""

# Why a bound is missed, where that was found out: by verdict, set and model.
REASONS = {
    ("last", "skin", "svm"): "By loss it is last. All strategies have nearly the same accuracy on this set of three "
    "features, and the smallest hinge loss is not the best accuracy.",
}


OTHER_COLUMNS = {
    "topic": "topic",
    "what": "what",
    "corgipile": "corgipile",
    "compared with": "compared with",
    "command": lambda row: f"`{row['command']}`",
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
            page_words,
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
            ("Other results", OTHER_RESULTS + table(OTHER_COLUMNS, self.results.read("others"))),
            ("Machines and versions", self.environment()),
            ("Make them again", REMAKE.format(parts=", ".join(f"`{part}`" for part in all_parts))),
        ]
        if "differences.svg" in self.plots:
            caption = "differences of each strategy's final models to those of shuffle_once"
            sections.insert(1, ("CorgiPile and the other strategies", HOW_TO_READ + figure("differences.svg", caption)))
        return page("Results", OUTCOME.format(**self.outcome()), sections)

    def outcome(self):
        of, verdicts = self.verdicts["full_shuffle"], self.verdicts.values()
        failed = [
            f"{verdict['fail']} of {verdict['rows']} ({verdict['claim']})" for verdict in verdicts if verdict["fail"]
        ]
        with open(self.results.path("speed.md")) as file:
            bounds, missed = re.search(r"have (\d+) bounds.*?(\d+) missed", file.read(), flags=re.S).groups()
        return {
            "met": f"on sorted tables, CorgiPile's models are as good as those of a full shuffle in {of['pass']} of "
            f"{of['rows']} comparisons, better in {of['better']}, and worse in {of['fail']}.",
            "missed": "; ".join([*failed, f"{missed} of {bounds} [bounds of speed](speed.md#bounds)"]) + ".",
        }

    def summary(self):
        columns = {
            "claim": lambda row: f"[{row['claim']}]({row['where']})",
            "compared": "rows",
            "met": "pass",
            "better": "better",
            "missed": "fail",
        }
        text = "Each claim has a bound, which its page states.\n\n" + table(columns, self.verdicts.values())
        if self.failures:
            text += "What is missed:\n\n" + "".join(f"- {failure}\n" for failure in self.failures) + "\n"
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
