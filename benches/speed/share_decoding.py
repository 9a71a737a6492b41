"""Processor time of loading rows that are dear to decode, in memory: of one training, and of several at the same time
with `share`, which decode each row once for all of them.

What a session uses is that of its process (/proc/self/schedstat), and an epoch's is the difference between trainings of
EPOCHS[1] and EPOCHS[0] epochs. Loading is what an epoch uses beyond learning, which is what one uses that has its rows
in a buffer as small as that of the others. Of several trainings it is the sum, without as many times learning. Each set
has one table that is larger than what may be kept decoded (corgipile.share_memory), and one that is not: of that each
page is decoded once for all epochs.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "compressed"))

from common import figure, freeze, table
from compressed import run
from server import connect

EPOCHS = 2, 8
ROUNDS = int(os.environ.get("ROUNDS", 3))
JOBS = 4
KEPT = "64MB"
# nanoseconds of the processor that this process has had
USED = "SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)"

# Name, how a table is made of so many rows, the source, and rows: more than may be kept, fewer, and of a buffer.
OUT_OF_LINE = """CREATE TABLE {{table}} (label real, x real[]);
    ALTER TABLE {{table}} ALTER x SET {storage};
    INSERT INTO {{table}} SELECT sign(random() - 0.5),
           ARRAY(SELECT ({number} + 0 * i)::real FROM generate_series(1, 2000))
      FROM generate_series(1, {{rows}}) i"""
COLUMNS = ", ".join(f"random() AS c{i}" for i in range(20))
EXPRESSIONS = ", ".join(f"sqrt(c{i} * c{i} + exp(c{i + 10}))" for i in range(10))
SETS = [
    (
        "real[2000]",
        OUT_OF_LINE.format(storage="STORAGE external", number="random() - 0.5"),
        "{table}",
        (20_000, 5_000, 500),
    ),
    (
        "real[2000], pglz",
        OUT_OF_LINE.format(storage="COMPRESSION pglz", number="floor(3 * random())"),
        "{table}",
        (20_000, 5_000, 500),
    ),
    (
        "10 expressions",
        f"CREATE TABLE {{table}} AS SELECT sign(random() - 0.5)::real AS label, {COLUMNS} "
        "FROM generate_series(1, {rows})",
        f"SELECT label, ARRAY[{EXPRESSIONS}]::real[] AS x FROM {{table}} WHERE c0 + c1 >= 0",
        (2_000_000, 200_000, 20_000),
    ),
]


def used(source, jobs, share, cache, epochs):
    """Seconds of the processor that so many trainings use that run at the same time."""

    def session(seed):
        training = f"""SELECT count(*) FROM corgipile_train('{source}', 'logistic', features => '{{x}}', seed => {seed},
            learning_rate => 0.001, max_epochs => {epochs}, loader => 'in_process', standardize => false,
            share => {share}, block_size => '64kB', buffer_size => '4MB', options => '{{"cache": "{cache}"}}')"""
        settings = f"SET client_min_messages = error; SET corgipile.share_memory = '{KEPT}'"
        before, *_, after = run([settings, USED, training, USED])
        return int(after[0]) - int(before[0])

    with ThreadPoolExecutor(jobs) as pool:
        return sum(pool.map(session, range(jobs))) / 1e9


def of_epoch(rows, *arguments, epochs=EPOCHS):
    """Microseconds of a row and epoch."""
    few, many = (used(*arguments, count) for count in epochs)
    return (many - few) / (epochs[1] - epochs[0]) / rows * 1e6


def main():
    with connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
        connection.execute("SELECT setseed(0.5)")
        decoding(connection)


def decoding(connection):
    lines = []
    for name, statement, source, sizes in SETS:
        for rows in sizes:
            connection.execute(statement.format(table=f"of_{rows}", rows=rows))
            freeze(connection, f"of_{rows}")
        few = sizes[-1]
        learning = of_epoch(few, source.format(table=f"of_{few}"), 1, "false", "on", epochs=(200, 1200))
        for rows, kept in zip(sizes, ("more than is kept", "all kept")):
            of = source.format(table=f"of_{rows}")
            rounds = []
            for _ in range(ROUNDS):
                alone, single = (of_epoch(rows, of, 1, share, "off") - learning for share in ("false", "true"))
                together = of_epoch(rows, of, JOBS, "true", "off") - JOBS * learning
                rounds.append((alone, single, together, together / alone))
            middle = [median(values) for values in zip(*rounds)]
            lines.append([name, f"{rows:,}", kept, f"{learning:.2f}", *(f"{value:.2f}" for value in middle)])
            bound = "<= 1.40" if statement == SETS[0][1] else ""
            figure(f"{name}, {kept}: loading of {JOBS} with share over one's", middle[3], bound)
        for rows in sizes:
            connection.execute(f"DROP TABLE of_{rows}")
    columns = ["set", "rows", "", "learning", "loading, 1", "1, share", f"{JOBS}, share, together", f"{JOBS} over 1"]
    table("Microseconds of the processor per row and epoch", columns, lines)


if __name__ == "__main__":
    main()
