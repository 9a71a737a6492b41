"""words.md."""

from markdown import fixed, mark, seconds, table

BOUND = 0.005

INTRODUCTION = """Texts that packages of PyPI ship, four fifths of which are a training part that is sorted by label.
Ours is a plain call on their `tsvector`, scikit-learn's `SGDClassifier` with the logistic loss behind its
`HashingVectorizer`, both with their defaults, on the texts;
and on the lexemes that ours has. Each is the mean of five seeds. Seconds are
those of the training; vectors are made in scikit-learn's, and were made before in ours. Accuracy may be 0.005 below
scikit-learn's on the texts."""


def pages(page):
    rows = page.results.read("words")
    return [("words.md", "Words", INTRODUCTION, [("Test accuracy", scores(page, rows))])] if rows else []


def scores(page, rows):
    for row in rows:
        row["passed"] = float(row["score"]) >= float(row["reference"]) - BOUND
    page.verdict(
        "words",
        "Lexemes of a tsvector score as scikit-learn's HashingVectorizer with SGDClassifier does (0.005 less)",
        "words.md",
        rows,
        lambda row: f"{row['set']}: {float(row['score']):.4f} against {float(row['reference']):.4f}",
    )
    columns = {
        "set": "set",
        "package": "package",
        "model": "model",
        "rows": "rows",
        "ours": fixed("score", 4),
        "scikit-learn": fixed("reference", 4),
        "": mark,
        "on the same lexemes": fixed("same_lexemes", 4),
        "seconds: ours": lambda row: seconds(row["seconds"]),
        "scikit-learn ": lambda row: seconds(row["reference_seconds"]),
    }
    return table(columns, rows)
