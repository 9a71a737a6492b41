"""How few blocks in the buffer are enough: corgipile with blocks of different sizes against shuffle_once, on the sets
that are sorted by label and large enough for more than one size."""

from dataclasses import replace
from functools import partial

from convergence import SEEDS, measure
from jobs import run_jobs
from progress import Progress
from rates import chosen, cost
from server import connect

BLOCKS = (32, 64, 128, 192, 256, 320, 512)  # in the buffer, at least
PAGE, MAX_BLOCK = 8192, 10 << 20


def pages_per_block(pages, blocks):
    """Of the largest block of which a buffer of a tenth of the pages holds this number."""
    return max(1, min(-(-pages // 10) // blocks, MAX_BLOCK // PAGE))


def blocks_in_buffer(sets, quick, results):
    """Writes blocks.csv."""
    seeds = SEEDS[:1] if quick else SEEDS
    sizes = {}
    with connect() as connection:
        for data_set in sets:
            pages = connection.execute(f"SELECT pg_relation_size('{data_set.table('train')}') / {PAGE}").fetchone()[0]
            sizes[data_set.name] = sorted({pages_per_block(pages, blocks) for blocks in BLOCKS} | {1})
    runs = []
    sets = [data_set for data_set in sets if data_set.sorted_by_label and not data_set.network]
    for cell in chosen(sets, quick, results):
        if len(sizes[cell.data_set.name]) > 1:
            blocks = [("corgipile", f"{size * PAGE}") for size in sizes[cell.data_set.name]]
            for strategy, block_size in [("shuffle_once", None), *blocks]:
                runs += [replace(cell, strategy=strategy, block_size=block_size, seed=seed) for seed in seeds]
    costs = [cost(run) for run in runs]
    progress = Progress("blocks", len(runs), sum(costs))
    jobs = [(partial(measure, run), str(run), weight) for run, weight in zip(runs, costs)]
    rows = [
        {**row, "pages_per_block": int(run.block_size) // PAGE if run.block_size else ""}
        for run, (_, row) in zip(runs, run_jobs(jobs, progress))
    ]
    results.write("blocks", rows, replacing="set")
