"""Everything that the CorgiPile papers evaluate inside the database. See `run` next to this file."""

import os
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from time import monotonic

from aggregate import aggregate
from blocks import blocks_in_buffer
from checkpoints import checkpoints
from cluster import cluster_factors
from convergence import converge
from data import Data, create_tables
from decays import decays
from defaults import defaults
from files import TREE, Results
from joader import joader
from loaders import loaders
from messy import messy
from messy_files import FILES
from mixing import mixing
from orders import show_orders
from page import Page
from papers import papers
from periods import periods
from plots import Plots
from progress import clock
from rates import choose
from reference import reference
from server import connect, reclaim
from sets import SETS
from sharing import sharing
from sparse import sparse
from tables import tables
from words import words

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PARTS = (
    "rates",
    "convergence",
    "checkpoints",
    "decays",
    "defaults",
    "tables",
    "messy",
    "words",
    "papers",
    "blocks",
    "periods",
    "orders",
    "reference",
    "sparse",
    "aggregate",
    "cluster",
    "mixing",
    "joader",
    "share",
    "python",
    "page",
)
NEED_NO_SERVER = {"joader", "python", "page"}
NEED_TABLES = {"rates", "convergence", "checkpoints", "decays", "blocks", "reference", "cluster"}
QUICK_SETS = ("higgs", "a9a", "covtype7", "california", "higgs_network")
QUICK_FILES = ("sleep", "penguins", "movies", "weather")
ROWS = 1_000_000


class Study:
    def __init__(self, directory, parts, names, quick):
        self.data = Data(directory)
        self.parts, self.quick = parts, quick
        self.sets = [data_set for data_set in SETS if data_set.name in names]
        self.files = [file for file in FILES if file.name in names]
        self.passed = True
        results = os.path.join(ROOT, "target/study-quick" if quick else "target/results")
        if quick and parts == list(PARTS):
            shutil.rmtree(results, ignore_errors=True)  # of an older version, perhaps
        self.results = Results(results, None if quick else TREE)
        self.rows = 20_000 if quick else ROWS
        self.commit = commit()  # what runs, whatever is changed meanwhile

    def run(self):
        """Returns whether every bound holds; those of a quick run do not count."""
        start = monotonic()
        if set(self.parts) != {"page"}:
            if set(self.parts) - NEED_NO_SERVER:
                with connect() as connection:
                    connection.execute("CREATE EXTENSION corgipile")
            if NEED_TABLES & set(self.parts):
                self.load()
            for part in self.parts:
                if part != "page":
                    self.run_part(part)
        missing = self.results.missing()
        if missing:
            print(f"No pages are written: this checkout has no results yet of the parts {', '.join(missing)}")
            return self.parts != ["page"] and (self.passed or self.quick)
        print("[page] drawing ...", flush=True)
        plots = Plots(self.results, SETS)
        plots.draw()
        page = Page(self.results, plots.written)
        passed = page.write(PARTS)
        print(f"Done after {clock(monotonic() - start)}: see {os.path.relpath(self.results.path('README.md'))}")
        for failure in page.failures:
            print(f"missed bound: {failure}")
        return (passed and self.passed) or self.quick

    def load(self):
        rows = []
        with connect() as connection:
            loaded = set()
            for place, data_set in enumerate(self.sets):
                print(f"[load] {place + 1} of {len(self.sets)}: {data_set.name}", flush=True)
                if data_set.table("train") not in loaded:
                    create_tables(connection, self.data, data_set)
                    loaded.add(data_set.table("train"))
                counts = {
                    part: connection.execute(f"SELECT count(*) FROM {data_set.table(part)}").fetchone()[0]
                    for part in ("train", "test")
                }
                rows.append(
                    {
                        "set": data_set.name,
                        "title": data_set.title,
                        "order": data_set.order,
                        "train_rows": counts["train"],
                        "test_rows": counts["test"],
                    }
                )
            connection.execute("CHECKPOINT")
        self.results.write("sets", rows, replacing="set")

    def named(self, part):
        """With the sets or files that it went through, if these are not all."""
        chosen, known = (self.files, FILES) if part == "messy" else (self.sets, SETS)
        return part if self.quick or len(chosen) == len(known) else f"{part} ({', '.join(one.name for one in chosen)})"

    def run_part(self, part):
        start, load = monotonic(), os.getloadavg()[0]
        match part:
            case "rates":
                choose(self.sets, self.quick, self.results)
            case "convergence":
                converge(self.sets, self.quick, self.results)
            case "checkpoints":
                checkpoints(self.sets, self.quick, self.results)
            case "decays":
                decays(self.sets, self.quick, self.results)
            case "defaults":
                defaults(self.data, self.quick, self.results)
            case "tables":
                tables(self.quick, self.results)
            case "messy":
                run = f"{datetime.now(UTC):%Y-%m-%d}, commit {self.commit}, {machine()}"
                self.passed = messy(self.files, self.quick, self.results, run)
            case "papers":
                run = f"{datetime.now(UTC):%Y-%m-%d}, commit {self.commit}, {machine()}, load before {load:.1f}"
                self.passed = papers(self.data, self.quick, self.results, run)
            case "words":
                words(self.results)
            case "blocks":
                blocks_in_buffer(self.sets, self.quick, self.results)
            case "periods":
                periods(self.quick, self.results)
            case "orders":
                show_orders(self.results)
            case "reference":
                reference(self.data, self.sets, self.quick, self.results)
            case "sparse":
                sparse(self.data, self.rows, self.results)
            case "aggregate":
                aggregate(self.rows, self.results)
            case "cluster":
                cluster_factors(self.sets, self.results)
            case "mixing":
                mixing(self.data, self.quick, self.results)
            case "joader":
                joader(self.quick, self.results)
            case "share":
                sharing(self.data, self.quick, self.results)
            case "python":
                loaders(self.data, self.quick, self.results)
        if part not in NEED_NO_SERVER:
            with connect() as connection:
                reclaim(connection)
                self.results.write("environment", environment(connection))
        self.results.write(
            "parts",
            [
                {
                    "part": self.named(part),
                    "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
                    "commit": self.commit,
                    "seconds": monotonic() - start,
                    "machine": machine(),
                    "load": round(load, 1),
                }
            ],
            replacing="part",
        )


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / (1 << 20)
    return f"{os.cpu_count()} x {model}, {memory:.0f} GB"


def environment(connection):
    settings = connection.execute(
        "SELECT current_setting('server_version'), current_setting('shared_buffers')"
    ).fetchone()
    facts = {
        "System": platform.platform(terse=True),
        "PostgreSQL": f"{settings[0]}; shared_buffers {settings[1]}, jit and autovacuum off",
        "Python": ", ".join(
            [platform.python_version()]
            + [
                f"{package} {version(package)}"
                for package in ("scikit-learn", "numpy", "scipy", "matplotlib", "psycopg")
            ]
        ),
    }
    return [{"key": key, "value": value} for key, value in facts.items()]


def commit():
    """Of the sources, with a plus sign if they were changed since."""

    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()

    sources = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if sources else "")


def listed(variable, known, default):
    """The names in an environment variable, all of them known."""
    names = [name for name in os.environ.get(variable, "").split(",") if name]
    for name in names:
        if name not in known:
            sys.exit(f"study: {variable}={name}: there are only {', '.join(known)}")
    return [name for name in known if name in names] if names else list(default)


def main():
    quick = os.environ.get("QUICK", "0") not in ("", "0")
    names = [one.name for one in (*SETS, *FILES)]
    chosen = listed("SETS", names, QUICK_SETS + QUICK_FILES if quick else names)
    study = Study(sys.argv[1], listed("ONLY", PARTS, PARTS), chosen, quick)
    sys.exit(0 if study.run() else 1)


if __name__ == "__main__":
    main()
