"""The CSV files of results. Each is replaced as a whole, or row by row where only some data sets were run again."""

import csv
import os


class Results:
    """A directory of CSV files, each with a header line."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        """Rows as dictionaries of strings; none if there is no such file."""
        try:
            with open(self.path(f"{name}.csv"), newline="") as file:
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
        with open(self.path(f"{name}.csv"), "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: text(value) for key, value in row.items()} for row in rows)


def text(value):
    return f"{value:.6g}" if isinstance(value, float) else value
