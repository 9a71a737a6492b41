"""How evenly a draw of blocks mixes a table, whatever order the table is in: CorgiPile's own draw and others.

What is measured is the share of a class in a buffer: its standard deviation over buffers and draws, divided by that of
the paper's draw, in which any set of blocks is as likely as any other."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from progress import Progress
from server import connect
from sets import SETS

DRAWS = 1000
LONG, SHORT, TWO = (5000, 10), (500, 10), (128, 2)  # blocks and buffers
PERIODS = range(2, 1001)
GOLDEN = (5**0.5 - 1) / 2


# Each draw: the buffer of each block, of `blocks` blocks that are a multiple of `buffers`.


def simple(rng, blocks, buffers):
    """The paper's."""
    return rng.permutation(np.arange(blocks) % buffers)


def runs_with_a_swap(rng, blocks, buffers):
    """One block of each run of as many as there are buffers; from run to run two buffers change places."""
    deal = rng.permutation(buffers)
    deals = []
    for _ in range(blocks // buffers):
        deals.append(deal.copy())
        i, j = rng.integers(buffers, size=2)
        deal[i], deal[j] = deal[j], deal[i]
    return np.concatenate(deals)


def strata(rng, blocks, buffers, width):
    """As many blocks of each stratum of at least `width` blocks to each buffer."""
    each = blocks // buffers
    per_stratum = -(-width // buffers)
    ends = [each * i // max(1, each // per_stratum) for i in range(max(1, each // per_stratum) + 1)]
    return np.concatenate([rng.permutation(np.arange((b - a) * buffers) % buffers) for a, b in pairwise(ends)])


def shifted_strata(rng, blocks, buffers):
    """Runs that begin anywhere; the one that is cut by the table's ends has blocks of both."""
    return np.roll(strata(rng, blocks, buffers, buffers), rng.integers(buffers))


def low_discrepancy(rng, blocks, buffers):
    """By the fractional part of the golden ratio's multiples, shifted at random: the lowest go to the first buffer, and
    so on."""
    place = (np.arange(blocks) * GOLDEN + rng.random()) % 1
    order = np.empty(blocks, int)
    order[place.argsort()] = np.arange(blocks) // (blocks // buffers)
    return rng.permutation(buffers)[order]


class Product:
    """What corgipile_shuffle_order() says of blocks of one tuple."""

    def __init__(self, connection):
        self.connection = connection
        self.seed = 0

    def __call__(self, _, blocks, buffers):
        self.seed += 1
        tuples = self.connection.execute(
            'SELECT array_agg(tuple ORDER BY "position") FROM corgipile_shuffle_order(%s, %s, 1, %s, %s, 1)',
            ["corgipile", blocks, blocks // buffers, self.seed],
        ).fetchone()[0]
        order = np.empty(blocks, int)
        order[tuples] = np.arange(blocks) // (blocks // buffers)
        return order


OTHERS = {
    "simple draw (the paper's)": simple,
    "runs, one swap from run to run": runs_with_a_swap,
    "runs, a permutation each": partial(strata, width=1),
    "runs with random offsets": shifted_strata,
    "golden ratio, random shift": low_discrepancy,
    "strata of 40": partial(strata, width=40),
    "strata of 80": partial(strata, width=80),
}


def periodic(blocks, period, phase):
    """The first half of each period is of the class; a block may be of both."""
    edges = (np.arange(blocks + 1) + phase * period) / period
    until = np.floor(edges) * 0.5 + np.minimum(edges % 1, 0.5)
    return np.diff(until) * period


def sorted_by_class(blocks, share):
    return np.clip(share * blocks - np.arange(blocks), 0, 1)


def natural_orders(data, buffers, rows_per_page):
    """Of each file of the data sets, in the order in which it came: the share of each class in each block, or the mean
    target."""
    files = {}
    for data_set in SETS:
        if data_set.files not in files and data_set.name in rows_per_page:
            part = data.part(replace(data_set, order="natural"), "train")
            files[data_set.files] = columns(part.labels, rows_per_page[data_set.name], buffers)
    return files


def columns(labels, rows_per_page, buffers):
    rows = int(max(1, rows_per_page))
    while len(labels) // rows > 2000:
        rows *= 2
    blocks = len(labels) // rows // buffers * buffers
    kinds = np.unique(labels)
    values = [labels == kind for kind in kinds] if len(kinds) <= 10 else [labels]
    means = [value[: blocks * rows].reshape(blocks, rows).mean(axis=1) for value in values]
    return np.array([mean for mean in means if mean.std() > 0])


def unevenness(draw, rng, orders, buffers, draws):
    """Of each order (a row of `orders`), divided by the paper's draw's."""
    blocks = orders.shape[1]
    centred = (orders - orders.mean(axis=1, keepdims=True)).T.astype(np.float32)
    squares = np.zeros(orders.shape[0])
    for start in range(0, draws, 50):
        members = np.zeros((50 * buffers, blocks), np.float32)
        for i in range(min(50, draws - start)):
            members[i * buffers + draw(rng, blocks, buffers), np.arange(blocks)] = 1
        squares += ((members @ centred).astype(np.float64) ** 2).sum(axis=0)
    size = blocks // buffers
    variance = orders.var(axis=1, ddof=1) * size * (1 - size / blocks)
    return np.sqrt(squares / (draws * buffers) / variance)


def mixing(data, quick, results):
    """Writes mixing.csv."""
    count = 50 if quick else DRAWS
    rows_per_page = {row["set"]: float(row["tuples_per_page"]) for row in results.read("cluster")}
    natural = natural_orders(data, 10, rows_per_page)
    rng = np.random.default_rng(1)
    phases = rng.random(len(PERIODS))
    long_periods = np.array([periodic(LONG[0], period, phase) for period, phase in zip(PERIODS, phases)])
    short_periods = [period for period in (2, 3, 10 / 3, 5, 7, 10, 13, 20, 50, 100) for _ in range(3)]
    kinds = {
        "periods": (LONG, long_periods),
        "short_periods": (SHORT, np.array([periodic(SHORT[0], period, rng.random()) for period in short_periods])),
        "two_buffers": (TWO, np.array([periodic(TWO[0], period, rng.random()) for period in range(2, 65)])),
        "half": (SHORT, sorted_by_class(SHORT[0], 0.5)[None]),
        "shifted_half": (SHORT, sorted_by_class(SHORT[0], 0.51)[None]),
        "fifth": (SHORT, sorted_by_class(SHORT[0], 0.2)[None]),
        "drift": (SHORT, np.linspace(0, 1, SHORT[0])[None]),
        "walks": (SHORT, rng.standard_normal((20, SHORT[0])).cumsum(axis=1)),
    }
    with connect() as connection:
        draws = OTHERS | {"corgipile": Product(connection)}
        progress = Progress("mixing", len(draws), len(draws))
        rows = []
        for name, draw in draws.items():
            found = {
                kind: unevenness(draw, rng, orders, size[1], 10 * count if size == TWO else count)
                for kind, (size, orders) in kinds.items()
            }
            of_files = {file: unevenness(draw, rng, orders, 10, count // 2).max() for file, orders in natural.items()}
            rows.append(
                {
                    "draw": name,
                    "worst_period": PERIODS[int(found["periods"].argmax())],
                    **{kind: values.max() for kind, values in found.items()},
                    "natural": max(of_files.values()),
                    "worst_file": max(of_files, key=of_files.get),
                    "mean": np.mean([*of_files.values(), found["half"].max(), found["drift"].max()]),
                }
            )
            progress.step(name)
    results.write("mixing", rows)
