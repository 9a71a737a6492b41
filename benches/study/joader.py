"""Many jobs, one read: reads of cached elements under JOADER's sampler and others, simulated by `python/crates/joader`
(`examples/study.rs`). Needs no server. Writes joader.md and its figures itself, as no other page has these figures."""

import csv
import os
import subprocess

import joader_page
import joader_plots
from markdown import page

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SEEDS, QUICK_SEEDS = 10, 2


def joader(quick, results):
    seeds = QUICK_SEEDS if quick else SEEDS
    path = results.path("raw/joader.csv")
    with open(path, "w") as file:
        subprocess.run(
            ["cargo", "run", "--quiet", "--release", "-p", "joader", "--example", "study", "--", str(seeds)],
            cwd=os.path.join(ROOT, "python"),
            stdout=file,
            check=True,
        )
    with open(path, newline="") as file:
        counts = Counts(list(csv.DictReader(file)), seeds)
    joader_plots.draw(counts, results)
    title, introduction, sections = joader_page.page_of(counts)
    with open(results.path("joader.md"), "w") as file:
        file.write(page(title, introduction, sections))


class Counts:
    """What was counted: means and spreads over the seeds."""

    def __init__(self, rows, seeds):
        self.seeds = seeds
        self.misses, self.windows = {}, {}
        for row in rows:
            row |= {key: float(row[key]) for key in ("mean", "deviation", "least", "most", "draws", "union")}
            key = row["scene"], row["sampler"], row["policy"]
            if row["kind"] == "misses":
                self.misses.setdefault(key, {})[int(row["cache"])] = row
            else:
                self.windows.setdefault(key, []).append((int(row["ticks"]), row["mean"]))

    def row(self, scene, sampler, policy, cache):
        return self.misses[scene, sampler, policy][cache]

    def mean(self, scene, sampler, policy, cache):
        return self.row(scene, sampler, policy, cache)["mean"]

    def shown(self, scene, sampler, policy, cache):
        """Mean and standard deviation, unless that is below 0.5."""
        row = self.row(scene, sampler, policy, cache)
        spread = round(row["deviation"])
        return f"{row['mean']:.0f}" + (f" ± {spread}" if spread else "")

    def curve(self, scene, sampler, policy):
        """Sizes, means, deviations."""
        rows = sorted(self.misses[scene, sampler, policy].items())
        return [size for size, _ in rows], [row["mean"] for _, row in rows], [row["deviation"] for _, row in rows]

    def draws(self, scene):
        return self.row(scene, "dependent", "LRU", 1)["draws"]

    def union(self, scene):
        return self.row(scene, "dependent", "LRU", 1)["union"]

    def enough(self, scene, sampler, policy):
        """The smallest cache with which misses are within 1% of the fewest that there can be."""
        fewest = self.union(scene)
        sizes = [size for size, row in self.misses[scene, sampler, policy].items() if row["mean"] <= 1.01 * fewest]
        return min(sizes, default=None)
