"""messy.md: the plain call on files as people have them."""

from markdown import page, table
from messy_files import FILES

SCORE, R2 = 0.01, 0.02  # how much worse than scikit-learn's pipeline an accuracy, a log loss, and an R2 may be
SCORES = ("accuracy", "log_loss", "auc", "r2")
FIELDS = (
    ["set", "split", "model", "named", "rows", "test_rows", "seeds", "columns", "features"]
    + [f"{whose}_{score}" for score in SCORES for whose in ("our", "their")]
    + ["notices", "skipped"]
)
SPLITS = {"random": "Random parts", "later": "The later part"}

INTRODUCTION = """What a user gets who loads a file and calls `corgipile_train(table, label => ...)`, with no other
argument. The {files} files are public and come with packages of PyPI and npm (`benches/study/packages.txt`), with the
quirks that people's files have. A CSV importer gives the columns their types: whole numbers, numbers, true and false,
and text where it is in doubt. Nothing is cleaned, and no ANALYZE runs before the call. The reference is scikit-learn's
usual pipeline on all columns, `SimpleImputer` and `StandardScaler` for numbers, `SimpleImputer` and
`OneHotEncoder(handle_unknown="ignore")` for text, then `LogisticRegression` or `Ridge`. It reads NA and the like as
missing, and leaves out text that is different in every row. Scores are means over the splits; three tenths of the rows
are the test part. Accuracy and log loss may be {score} worse than the reference, R2 {r2}."""

REMAKE = """`make study ONLY=messy` fetches the packages, measures all of it and writes this page. It skips what it
cannot fetch, by name. `SETS=thyroid,movies` runs these files only. The rows are in `target/results/messy.csv`.
"""

FACTS = """The model is the one that the plain call has chosen. With a star, the call without `model` is an error, and
the study names a model; so it does where the call has chosen one that does not suit the label, named in brackets.
`columns` are those of the file without the label, `taken` the features that the call makes of them: a date gives
several."""


def number(row, key):
    return float(row[key]) if row.get(key) not in (None, "") else None


def worse(row):
    """By how much each bounded score is worse than the reference's, in bounds."""
    found = {}
    for score, bound in (("accuracy", SCORE), ("log_loss", SCORE), ("r2", R2)):
        ours, reference = number(row, f"our_{score}"), number(row, f"their_{score}")
        if ours is not None and reference is not None:
            difference = ours - reference if score == "log_loss" else reference - ours
            found[score] = difference / bound
    return found


def passed(row):
    """None if there is no reference. A call that chooses a model that does not suit the label has failed, too."""
    of_scores = worse(row)
    return max(of_scores.values()) <= 1 and row["named"] in ("", "error") if of_scores else None


def pair(row, score):
    both = [number(row, f"{whose}_{score}") for whose in ("our", "their")]
    return " / ".join("" if value is None else f"{value:.4f}" for value in both) if both != [None, None] else ""


def verdict(row):
    return {True: "pass", False: "**FAIL**", None: "no reference"}[passed(row)]


def line(row):
    """For the terminal: scores and notices."""
    scores = ", ".join(f"{score} {pair(row, score)}" for score in SCORES if pair(row, score))
    notices = "" if row["split"] == "later" else "".join(f"\n    {told}" for told in row["notices"].splitlines())
    return f"[messy] {row['set']}, {row['split']}, {row['model']}: {scores} ({verdict(row).strip('*')}){notices}"


def scores(rows):
    columns = {
        "file": "set",
        "model": lambda row: row["model"] + {"": "", "error": "*"}.get(row["named"], f" (chose {row['named']})"),
        "rows": "rows",
        "test rows": "test_rows",
        "columns": "columns",
        "taken": "features",
    }
    columns |= {
        title: lambda row, score=score: pair(row, score)
        for title, score in zip(("accuracy", "log loss", "ROC AUC", "R2"), SCORES, strict=True)
    }
    return "Each score is that of the plain call / that of scikit-learn's pipeline.\n\n" + table(
        columns | {"": verdict}, rows
    )


def failures(rows):
    return [row for row in rows if passed(row) is False]


def missed(rows):
    lines = []
    for row in failures(rows):
        of_scores = {score: by for score, by in worse(row).items() if by > 1} or worse(row)
        chose = "" if row["named"] in ("", "error") else f" (the call chose {row['named']})"
        told = ", ".join(f"{score} {pair(row, score)}" for score in of_scores)
        lines.append((max(of_scores.values()), f"- {row['set']}, {row['split']}: {told}{chose}\n"))
    return "".join(text for _, text in sorted(lines, reverse=True)) or "No file.\n"


def write(results, packages, run):
    """Returns whether every bound holds."""
    everything = results.read("messy")
    rows = [row for row in everything if not row["skipped"]]
    names = list(dict.fromkeys(row["set"] for row in rows))
    judged = [row for row in rows if passed(row) is not None]
    within = len(judged) - len(failures(judged))
    sections = [("Outcome", f"{within} of {len(judged)} comparisons are within the bound.\n\n" + FACTS)]
    for split, title in SPLITS.items():
        of_split = [row for row in rows if row["split"] == split]
        if of_split:
            sections.append((title, scores(of_split)))
    sections.append(("Worse than the bound", missed(rows)))
    sections.append(("Files", files(names)))
    sections.append(("Notices", notices(rows)))
    skipped = "".join(f"- {row['set']}: {row['skipped']}\n" for row in everything if row["skipped"])
    if skipped:
        sections.append(("Skipped", skipped))
    sections.append(("Packages", "".join(f"- {packages.version(name)}\n" for name in packages.lines)))
    sections.append(("Make it again", f"Measured on {run}. {REMAKE}"))
    introduction = INTRODUCTION.format(files=len(names), score=SCORE, r2=R2)
    with open(results.path("messy.md"), "w") as file:
        file.write(page("Plain calls on messy files", introduction, sections))
    return within == len(judged)


def files(names):
    columns = {
        "file": "name",
        "package": "package",
        "path": lambda row: row["member"].rsplit("/")[-1],
        "label": "label",
        "later part by": lambda row: row["time"][0] if row["time"] else "",
        "left out": lambda row: ", ".join(row["without"]),
        "rows": lambda row: f"1 of {row['every']}" if row["every"] > 1 else "all",
        "what it has": "quirks",
    }
    text = "The columns left out say the label in other words, or are known only afterwards.\n\n"
    return text + table(columns, [vars(file) for file in FILES if file.name in names])


def notices(rows):
    """What the call reports of each file, in the first of its random splits."""
    text = "What the plain call reports, of the first random split.\n\n"
    for row in rows:
        if row["split"] == "random":
            told = row["notices"].replace("```", "'''") or "nothing"
            text += f"{row['set']}:\n\n```text\n{told}\n```\n\n"
    return text
