"""Processor time of loading rows that are dear to decode, in memory: of one training, and of several at the same time
with `share`, which decode each row once for all of them. See share.py, which runs it.

What a session uses is that of its process (/proc/self/stat). Of it, loading is what an epoch costs that decodes its rows
beyond one that has them kept (cache on, all in memory), which only learns: so `loading` is without learning, planning
and storing the model. Of several trainings it is the sum, without as many times what one uses beside loading.
"""

import os
import threading
from statistics import median

from common import figure, freeze, table
from compressed import USED, run

EPOCHS = 20
ROUNDS = int(os.environ.get("ROUNDS", 3))
JOBS = 4

# Name, the table, its rows, and what is trained on: its label and features are called so.
SETS = [
    (
        "real[2000] out of line",
        """CREATE TABLE external (label real, x real[]);
           ALTER TABLE external ALTER x SET STORAGE external;
           INSERT INTO external SELECT sign(random() - 0.5),
               ARRAY(SELECT (random() - 0.5 + 0 * i)::real FROM generate_series(1, 2000)) FROM generate_series(1, {rows}) i""",
        10_000,
        "external",
    ),
    (
        "real[2000] out of line, pglz",
        """CREATE TABLE compressed (label real, x real[]);
           ALTER TABLE compressed ALTER x SET COMPRESSION pglz;
           INSERT INTO compressed SELECT sign(random() - 0.5),
               ARRAY(SELECT floor(3 * random() + 0 * i)::real FROM generate_series(1, 2000)) FROM generate_series(1, {rows}) i""",
        10_000,
        "compressed",
    ),
    (
        "10 expressions of 20 columns",
        "CREATE TABLE plain AS SELECT sign(random() - 0.5)::real AS label, "
        + ", ".join(f"random() AS c{i}" for i in range(20))
        + " FROM generate_series(1, {rows})",
        100_000,
        "SELECT label, ARRAY["
        + ", ".join(f"sqrt(c{i} * c{i} + exp(c{i + 10}))" for i in range(10))
        + "]::real[] AS x FROM plain WHERE c0 + c1 >= 0",
    ),
]


def used(source, jobs, share, cache):
    """Seconds of the processor that so many trainings use that run at the same time."""
    ticks, errors = [], []

    def session(seed):
        training = f"""SELECT count(*) FROM corgipile_train('{source}', 'logistic', features => '{{x}}', seed => {seed},
            learning_rate => 0.01, max_epochs => {EPOCHS}, loader => 'in_process', standardize => false,
            share => {share}, block_size => '64kB', buffer_size => '10%', options => '{{"cache": "{cache}"}}')"""
        try:
            before, *_, after = run(["SET corgipile.cache_memory = '1GB'", USED, training, USED])
            ticks.append(int(after[2]) - int(before[2]))
        except Exception as error:  # shown by the main thread
            errors.append(error)

    threads = [threading.Thread(target=session, args=[seed]) for seed in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def measure(source, rows):
    """Microseconds of loading a row: of one training, of one that may share, and of JOBS that do, together."""
    off, on = used(source, 1, "false", "off"), used(source, 1, "false", "on")
    alone = (off - on) / (EPOCHS - 1)
    beside = on - alone
    loading = [alone]
    for jobs in (1, JOBS):
        loading.append((used(source, jobs, "true", "off") - jobs * beside) / EPOCHS)
    return [seconds / rows * 1e6 for seconds in loading], beside / EPOCHS / rows * 1e6


def decoding(connection):
    connection.execute("SELECT setseed(0.5)")
    lines = []
    for name, statement, rows, source in SETS:
        connection.execute(statement.format(rows=rows))
        freeze(connection, statement.split()[2])
        rounds = [measure(source, rows) for _ in range(ROUNDS + 1)][1:]
        alone, single, together = (median(loading[i] for loading, _ in rounds) for i in range(3))
        learning = median(beside for _, beside in rounds)
        ratios = sorted(loading[2] / loading[0] for loading, _ in rounds)
        lines.append([name, *(f"{value:.2f}" for value in (alone, single, together, learning)), f"{median(ratios):.2f}"])
        bound = "<= 1.40" if source == "external" else ""
        figure(f"{name}: loading of {JOBS} trainings with share over one's", median(ratios), bound)
    columns = ["rows", "one", "one, share", f"{JOBS}, share, together", "learning, one", f"{JOBS} over one"]
    table("Processor time of loading, microseconds per row and epoch", columns, lines)
