"""The CSV files of results. Each is replaced as a whole, or row by row where only some data sets were run again.

Those of RAW, with a row for each training, epoch or position, are for the machine that made them: they lie in a
directory that git ignores. The pages and figures are made from all of them.
"""

import csv
import os

# And the part of the study that makes each.
RAW = {
    "runs": "convergence",
    "epochs": "convergence",
    "checkpoints": "checkpoints",
    "blocks": "blocks",
    "periods": "periods",
    "orders": "orders",
}


#: The pages and figures that are here are those that the repository has.
TREE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../docs/results"))


class Results:
    """A directory of CSV files, each with a header line, and of pages and figures. What `tree` has is written there."""

    def __init__(self, directory, tree=TREE):
        self.directory, self.tree = directory, tree
        os.makedirs(os.path.join(directory, "raw"), exist_ok=True)

    def path(self, name):
        in_tree = self.tree and os.path.join(self.tree, name)
        return in_tree if in_tree and os.path.exists(in_tree) else os.path.join(self.directory, name)

    def table(self, name):
        """The path of a CSV file."""
        return self.path(f"raw/{name}.csv" if name in RAW else f"{name}.csv")

    def missing(self):
        """The parts of the study whose files are not here: in a new checkout, those of RAW."""
        return list(dict.fromkeys(part for name, part in RAW.items() if not os.path.exists(self.table(name))))

    def read(self, name):
        """Rows as dictionaries of strings; none if there is no such file."""
        try:
            with open(self.table(name), newline="") as file:
                return list(csv.DictReader(file))
        except FileNotFoundError:
            return []

    def write(self, name, rows, replacing=None):
        """Of the rows that are there, those stay whose value in column `replacing` none of the new ones has; these come
        where the old ones were."""
        if replacing:
            groups = {}
            for row in self.read(name):
                groups.setdefault(row[replacing], []).append(row)
            groups |= {str(row[replacing]): [] for row in rows}
            for row in rows:
                groups[str(row[replacing])].append(row)
            rows = [row for group in groups.values() for row in group]
        with open(self.table(name), "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: text(value) for key, value in row.items()} for row in rows)


def text(value):
    return f"{value:.6g}" if isinstance(value, float) else value
