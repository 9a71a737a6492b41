"""The Python package's loader compared with others of PyPI: how well it mixes sorted rows, and what networks learn from
it. Both are measured by benches/python in an environment of its own. Needs no server. Writes python.md and its figures
itself.

As a program it writes the page again from the files of a directory: `loaders.py DIRECTORY`. `make bench PARTS=python`
does so, which measures speed."""

import os
import subprocess
import sys

import loaders_page
import loaders_plots
from files import Results
from markdown import page

PROGRAMS = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "python"))


def loaders(data, quick, results):
    told = subprocess.run([f"{PROGRAMS}/environment"], stdout=subprocess.PIPE, text=True, check=True).stdout
    python, package = told.split()
    # warnings of other packages about each other
    settings = {"PYTHONPATH": package, "PYTHONWARNINGS": "ignore", "QUICK": str(int(quick))}
    for part in ("quality", "learning"):
        command = [python, f"{PROGRAMS}/{part}.py", data.directory, results.path(f"python_{part}.csv")]
        subprocess.run(command, env=os.environ | settings, check=True)
    write(results)


def write(results):
    measured = loaders_page.Measured(results)
    loaders_plots.draw(measured, results)
    title, introduction, sections = loaders_page.page_of(measured)
    with open(results.path("python.md"), "w") as file:
        file.write(page(title, introduction, sections))


if __name__ == "__main__":
    write(Results(sys.argv[1]))
