"""Writes docs/results/speed.md from what benches/run has measured: `write_page.py DIRECTORY PAGE`.

A file DIRECTORY/PART.txt begins with a line `MEASURED date | commit | machine`. Its lines `HEADLINE what | ours | the
other | times as fast` make the table that opens the page, its lines `FIGURE what | value | bound` the table of bounds;
the rest is shown as it is. Without PAGE, it prints the figures."""

import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

# In the order of the page: what each part is called there, and what it measures.
PARTS = {
    "peers": (
        "scikit-learn and the aggregate",
        "An epoch of `corgipile_train` against one of scikit-learn's `SGDClassifier.partial_fit`, which has the rows "
        "in memory as float32, and of the SQL aggregate `corgipile_train_uda`, all in turns.",
    ),
    "sparse": (
        "Sparse rows",
        "Processor time per value of an epoch on two real sets of sparse rows, many times over, compared with "
        "scikit-learn's `SGDClassifier` with the rows in memory and Vowpal Wabbit reading its cache, all in turns. "
        "`cached` reads the rows that the first epoch has kept, `uncached` the table's pages.",
    ),
    "types": (
        "What a type costs",
        "Processor time per row of an epoch that reads 28 features from the table's pages, by their type, and where "
        "the time goes by `EXPLAIN ANALYZE`; and per value of rows out of line.",
    ),
    "visibility": (
        "What visibility costs",
        "Processor time per row of an epoch that reads the table's pages, by what has happened to the table, next to "
        "`SELECT count(*)` of it. A table is all-visible after `VACUUM`; until then each row's visibility is looked "
        "at.",
    ),
    "mlp": (
        "Small networks",
        "Processor time per row of an epoch of networks, by plain SGD with sigmoid units, compared with torch and "
        "scikit-learn's `MLPClassifier` with the rows in memory, on one thread each.",
    ),
    "toast": (
        "Rows out of line",
        "20,000 rows x 2,000 features, which PostgreSQL stores out of line (TOAST), against scikit-learn with the "
        "rows in memory. `streaming` reads the table in each epoch, `cached` from the second epoch on reads the "
        "cache.",
    ),
    "vectors": (
        "Vectors of pgvector and bytes",
        "An epoch on pgvector's `vector` and `halfvec` and on `bytea` compared with one on `real[]`, in turns: "
        "100,000 rows x 768, most of them out of line, and 1,000,000 rows x 28, one process, all in memory. "
        "`cache` says whether later epochs read the table (`off`) or what the first one has decoded.",
    ),
    "epoch": (
        "An epoch against count(*)",
        "Seconds of an epoch over those of `SELECT count(*)` on the same table: 1,000,000 rows x 28 `real[]`, all in "
        "memory, one process. By default the first epoch fills a cache, from which later epochs read. `not "
        "all-visible`: the table was changed after its last VACUUM, so that each row's visibility is looked at.",
    ),
    "newton": (
        "A pass of Newton's method",
        "Gradient and Hessian of all rows, with `solver => 'newton'`: 2,000,000 rows x 28 and 200,000 rows x 200, one "
        "process, all in "
        "memory, compared with `SELECT count(*)` of the same table.",
    ),
    "first": (
        "The first epoch of a session",
        "A new session's memory is fresh from the system: its pages are cleared, and a virtual machine may have to "
        "find them first. Each line is of a session of its own, in turns, with the processor time of its backend "
        "compared with elapsed time; `again` follows in the same session.",
    ),
    "uda": ("Operators against the aggregate", "Both paths learn from the same rows in the same order."),
    "cold": (
        "Tables on disk",
        "One epoch right after the server was started, with nothing of the table in memory, against reading the "
        "table once.",
    ),
    "workers": ("Two processes", "What a second process is worth, from the second epoch on."),
    "nodes": (
        "Rows of several servers",
        "Training where the rows are (`servers`) on 1, 2 and 3 servers, which are sessions of one machine, next to one "
        "server that has all rows, and next to rows that come over the network first; and a model of more servers.",
    ),
    "scale": ("Large tables", "From 1 to 30 million rows, 5 GB, without the cache: time of an epoch and memory."),
    "predict": ("Prediction", "`sum(corgipile_predict(id, x))` against `sum(x[1])` of the same 1,000,000 rows x 28."),
    "several": (
        "Groups and grids",
        "Many models in one call, which reads the table once for all, against one call for each.",
    ),
    "search": (
        "Searches",
        "`corgipile_search` with 20 points on 5 folds against as many trainings one by one, and against scikit-learn's "
        "`HalvingGridSearchCV` with the export of the rows; and the score of what both find on rows of their own.",
    ),
    "compressed": (
        "Compressed tables",
        "Training on compressed mini-batches (TOC) against plain dense and plain sparse tables of the same rows, "
        "with all tables in memory, and with memory for the compressed table only.",
    ),
    "compression": (
        "Operations on compressed mini-batches",
        "Nanoseconds per row without PostgreSQL, by encoding. [Compression](compression.md) has the sizes.",
    ),
    "kernels": (
        "The loops of SGD",
        "Nanoseconds per tuple without PostgreSQL. `read` only reads the rows, and is the least that is possible.",
    ),
}

INTRODUCTION = """# Speed

How long training and prediction take, and the same work done another way. Written by `make bench` from what it
measured. Times are medians of one run, in which both sides take turns; epochs are those from the second on, unless it
says otherwise. More than 1 in the fourth column means that corgipile is faster.

"""

# Measured once, outside of this repository: these systems are not installed by `make bench`.
OTHER_SYSTEMS = """## MADlib, the papers' prototype, and exports

Measured once, on two processors of an AMD EPYC with AVX-512, by a script that is not part of this repository:
1,000,000 rows x 28 normal features, all runs interleaved, minima of the processor time of the backend, nanoseconds per
row and epoch. corgipile 0.2.0 (commit d9e25a1) ran in process in PostgreSQL 15.20; Apache MADlib 2.1 was compiled with
`-O3 -march=native` (with its own flags it takes 1.4 to 1.8 times as long) and reads `double precision[]`; the prototype
of CorgiPile's authors (branch `corgipile`, 1c2cff1) is a PostgreSQL 9.2 compiled with `-O2`, and its times are elapsed.

| what | ns per row |
| --- | ---: |
| `count(*)` of `real[]` / `double precision[]` | 42 / 49 |
| corgipile, logistic: cached / from pages of `real[]` / of `double precision[]` | 13 / 34 / 60 |
| corgipile, svm: cached / from pages of `real[]` / of `double precision[]` | 11 / 34 / 58 |
| MADlib, svm by SGD | 702 to 815 |
| MADlib, logistic by SGD / by Newton's method (IRLS) | 2,580 to 2,780 / 991 |
| MADlib, mlp 28-16-2 by SGD / in batches of 250 | 4,057 / 1,245 |
| the prototype, logistic: single / double buffer | 529 / 431 |
| the prototype, svm: single / double buffer | 506 / 408 |

Seconds until 99% of the best accuracy is reached, from a table sorted by label: corgipile's svm on `double precision[]`
0.10; MADlib's svm 3.36 with its copy `ORDER BY random()`, never without; MADlib's IRLS, which needs no order, 1.41; the
prototype 0.63 to 0.68. MADlib's logistic regression and networks by SGD end at an accuracy of one half there.

An export and a training outside, end to end, over one epoch of corgipile at the same accuracy, on the same machine on
another day: scikit-learn's `SGDClassifier` with the quickest export that was found takes 20.8 times as long on the
dense rows, 17.1 times on text (rcv1, 79 values a row), 11.4 times on hashed categories (criteo, 39 values a row);
Vowpal Wabbit 9.11.9 from shuffled text 72, 32.6 and 28.7 times; LIBLINEAR 2.3 87 times on the dense rows.

"""


@dataclass
class Part:
    """What a part has printed."""

    name: str
    date: str
    commit: str
    machine: str
    headlines: list = field(default_factory=list)
    figures: list = field(default_factory=list)
    text: list = field(default_factory=list)

    @property
    def short_machine(self):
        """Model and number of processors."""
        return ",".join(self.machine.split(",")[:2]).replace("(R)", "").replace(" Processor", "")

    @property
    def title(self):
        return PARTS[self.name][0]


def read(directory):
    """The parts that were measured at some time, in order."""
    parts = []
    for name in PARTS:
        path = Path(directory) / f"{name}.txt"
        if not path.exists():
            continue
        first, *lines = path.read_text().splitlines()
        if not first.startswith("MEASURED "):
            print(
                f"bench: {path} does not say when it was measured: run `make bench PARTS={name}` again", file=sys.stderr
            )
            continue
        part = Part(name, *fields(first))
        for line in lines:
            if line.startswith("HEADLINE "):
                part.headlines.append(fields(line))
            elif line.startswith("FIGURE "):
                part.figures.append([*fields(line), ""][:3])
            else:
                part.text.append(line)
        parts.append(part)
    return parts


def fields(line):
    """What stands between the bars, behind the first word."""
    return [text.strip() for text in line.split(" ", 1)[1].split("|")]


def met(value, bound):
    """Whether a bound such as "<= 0.80" holds; None without one."""
    if not bound:
        return None
    sign, limit = bound.split()
    return float(value) <= float(limit) if sign == "<=" else float(value) >= float(limit)


def page(parts):
    text = INTRODUCTION + table(
        ["what", "corgipile", "the other", "times as fast", "machine"],
        [[*headline, part.short_machine] for part in parts for headline in part.headlines],
        numbers=(3,),
    )
    text += OTHER_SYSTEMS
    text += "## Contents\n\n" + "".join(f"- [{title}](#{anchor(title)})\n" for title in contents(parts)) + "\n"
    text += "## Bounds\n\n" + bounds(parts)
    for part in parts:
        text += f"## {part.title}\n\n{fill(PARTS[part.name][1])}\n\n"
        text += fill(f"Measured on {part.date} with commit {part.commit}: {part.machine}.") + "\n\n"
        if part.figures:
            text += table(["what", "value", "bound", ""], [verdict(figure) for figure in part.figures], numbers=(1,))
        text += "```text\n" + "\n".join(part.text).strip("\n") + "\n```\n\n"
    return text.rstrip() + "\n"


def contents(parts):
    return ["Bounds", *(part.title for part in parts)]


def bounds(parts):
    judged = [(part, figure) for part in parts for figure in part.figures if met(*figure[1:]) is not None]
    missed = [(part, figure) for part, figure in judged if not met(*figure[1:])]
    text = fill(
        f"The parts have {len(judged)} bounds, goals that were set before measuring. {len(judged) - len(missed)} are "
        f"met, {len(missed)} missed. [What limits speed](../operate/speed.md) explains them."
    )
    text += "\n\n"
    if missed:
        rows = [[part.title, *figure] for part, figure in missed]
        text += "Missed:\n\n" + table(["part", "what", "value", "bound"], rows, numbers=(2,))
    return text


def fill(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def verdict(figure):
    return [*figure, {True: "met", False: "missed", None: ""}[met(*figure[1:])]]


def table(header, rows, numbers=()):
    rule = ["---:" if column in numbers else "---" for column in range(len(header))]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, rule, *rows]) + "\n"


def anchor(title):
    """As GitHub makes it."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def main():
    directory, *pages = sys.argv[1:]
    parts = read(directory)
    for part in parts:
        for figure in part.figures:
            print(f"{part.name:<12} {figure[0]:<100} {figure[1]:>9}  {figure[2]:<9} {verdict(figure)[3]}")
    for name in pages:
        Path(name).write_text(page(parts))
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
