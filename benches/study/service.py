"""JOADER in Python, as benches/joader has measured it: writes joader_service.md and its figures from the files of a
directory: `service.py DIRECTORY`. `make bench PARTS=joader` does so."""

import sys

import service_page
import service_plots
from files import Results
from markdown import page


def write(results):
    measured = service_page.Measured(results)
    service_plots.draw(measured, results)
    title, introduction, sections = service_page.page_of(measured)
    with open(results.path("joader_service.md"), "w") as file:
        file.write(page(title, introduction, sections))


if __name__ == "__main__":
    write(Results(sys.argv[1]))
