"""Disk reads and time of several trainings on one table that is larger than what may be cached, without and with
`shared_scan`.

The table is several times larger than shared_buffers, and the server's processes are in a memory cgroup (version 1)
that has room for their buffers and a third of the table. Otherwise, the operating system is asked ten
times a second to forget what it has read (benches/compressed/compressed.py), so that a block is found cached only
by who comes within a moment after its reader. Reads are those of the sessions' processes from disk (/proc/self/io),
as multiples of the table's size. The room for the buffers of eight trainings is a third of the table, too, so that ROWS
should not be less. *Least* is what is read if everything that is wanted in the same stretch of time is read once: as
often as the fastest needs it, and while any training runs. Preparation passes are left out (standardize => false).
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "compressed"))

from common import clustered, figure, load, table
from compressed import MB, USED, Forgetting, Table, run
from server import connect

ROWS = int(os.environ.get("ROWS", 12_000_000))
EPOCHS = 3
STEPS = 40  # of an epoch that is read at a pace
# of a session, next to what is cached: its buffer and the rest of it
JOB_BYTES = 80 * MB
LINEAR = "model => 'logistic'"


def training(name, share, seed, arguments=LINEAR, source=None):
    """The statements of a session, between two looks at what it has used."""
    return [
        USED,
        f"""SELECT count(*) FROM corgipile_train('{source or name}', {arguments}, label => 'label',
               features => '{{features_v}}', learning_rate => 0.1, max_epochs => {EPOCHS}, seed => {seed},
               prefetch => 'off', standardize => false, shared_scan => {share}, block_size => '1MB',
               buffer_size => '32MB', options => '{{"cache": "off"}}')""",
        USED,
    ]


def paced(name, share, seed, epochs, seconds):
    """The statements of a session that reads this many epochs, each in this many seconds, in as many steps."""
    start = "current_setting('bench.start')::timestamptz"
    statements = [USED, "SELECT set_config('bench.start', clock_timestamp()::text, false)"]
    for epoch in range(epochs):
        statements += [
            "BEGIN",
            f"""DECLARE c NO SCROLL CURSOR FOR SELECT label FROM corgipile_shuffle(NULL::{name}, shared_scan => {share},
                   seed => {epochs * seed + epoch}, block_size => '1MB', buffer_size => '32MB')""",
        ]
        for step in range(STEPS):
            until = (epoch + (step + 1) / STEPS) * seconds
            statements += [
                f"MOVE FORWARD {'ALL' if step == STEPS - 1 else ROWS // STEPS} FROM c",
                f"SELECT pg_sleep(greatest(0, {until} - extract(epoch FROM clock_timestamp() - {start})))",
            ]
        statements.append("COMMIT")
    return [*statements, USED]


def forget(stored):
    """Nothing of the table is cached when a course begins."""
    for file in stored.files:
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


class Limited:
    """As long as it lasts, processes that the server starts have this many bytes of memory, with what is cached."""

    ROOT = Path("/sys/fs/cgroup/memory")

    def __init__(self, directory, limit):
        self.group, self.limit = self.ROOT / "corgipile", limit
        self.server = Path(directory, "postmaster.pid").read_text().split()[0]

    def __enter__(self):
        self.group.mkdir(exist_ok=True)
        (self.group / "memory.limit_in_bytes").write_text(str(self.limit))
        (self.group / "cgroup.procs").write_text(self.server)

    def __exit__(self, *_):
        (self.ROOT / "cgroup.procs").write_text(self.server)
        (self.group / "memory.force_empty").write_text("0")
        self.group.rmdir()


def limited(stored, jobs):
    """What keeps most of the table out of memory."""
    if not (Limited.ROOT / "memory.limit_in_bytes").exists() or os.geteuid() != 0:
        return Forgetting(stored.files)
    return Limited(stored.directory, stored.size // 3 + jobs * JOB_BYTES)


def together(stored, sessions):
    """Runs sessions, each after its delay; seconds until the last has ended, and bytes read from disk by all."""

    def session(of):
        after, statements = of
        time.sleep(after)
        before, *_, end = run(statements)
        return int(end[1]) - int(before[1])

    forget(stored)
    with limited(stored, len(sessions)), ThreadPoolExecutor(len(sessions)) as pool:
        begin = time.perf_counter()
        from_disk = sum(pool.map(session, sessions))
        return time.perf_counter() - begin, from_disk


def courses(name, alone):
    """What is tried: its name, the least reads in multiples of the table, and the sessions, by whether they share."""

    def equal(jobs):
        return lambda share: [(0, training(name, share, seed)) for seed in range(jobs)]

    def staggered(share):
        return [(seed * alone / EPOCHS / 4, training(name, share, seed)) for seed in range(4)]

    def filters(share):
        queries = [f"SELECT * FROM {name} WHERE features_v[{n + 1}] > 0.1" for n in range(4)]
        return [(0, training(name, share, seed, source=query)) for seed, query in enumerate(queries)]

    def costs(share):
        models = [LINEAR, "model => 'mlp', hidden_layer_sizes => '{8}'", "model => 'mlp', hidden_layer_sizes => '{64}'"]
        return [(0, training(name, share, seed, model)) for seed, model in enumerate(models)]

    def speeds(share):
        # the fastest has twice as long as it needs alone
        pace = 2 * alone / EPOCHS
        return [(0, paced(name, share, seed, slower, pace * 4 / slower)) for seed, slower in enumerate((1, 2, 4))]

    for jobs in (1, 2, 4, 8):
        yield f"{jobs} equal", EPOCHS, jobs, equal(jobs)
    yield "4 begun a quarter of an epoch apart", EPOCHS + 0.75, 4, staggered
    yield "4 filters", EPOCHS, 4, filters
    yield "3 readers with speeds of 1, 2 and 4", 4, 3, speeds
    yield "3 models of different cost", None, 3, costs


def main():
    with connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
        load(connection, "wide", *clustered(ROWS))
        connection.execute("CHECKPOINT")
        os.sync()
        stored = Table(connection, "wide")
        stored.directory = connection.execute("SHOW data_directory").fetchone()[0]
        alone, _ = together(stored, [(0, training("wide", "false", 0))])
        rows, of_one = [], None
        for course, least, jobs, sessions in courses("wide", alone):
            of = {}
            for share in ("false", "true"):
                seconds, read = together(stored, sessions(share))
                of[share] = seconds, read / stored.size
            rows.append([course, least or "", *(f"{value:.2f}" for share in ("false", "true") for value in of[share])])
            if jobs == 1:
                of_one = of["false"][1] / least
                figure("1 alone: seconds with share over without", of["true"][0] / of["false"][0], "<= 1.03")
            elif least:
                # what one reads beyond the table is the operating system's reading ahead
                figure(f"{course}: reads with share over one's", of["true"][1] / least / of_one, "<= 1.15")
        columns = ["trainings", "least", "s, each by itself", "tables read", "s, share", "tables read"]
        table(f"{EPOCHS} epochs of a table of {stored.size / MB:,.0f} MB", columns, rows)


if __name__ == "__main__":
    main()
