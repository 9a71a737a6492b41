"""See benches/compressed/run.

"Memory for the compressed table only": shared_buffers are 128 MB, and a table of more than LIMIT bytes has no pages in
the operating system's cache either: ten times a second it is asked, by posix_fadvise(DONTNEED), to forget those of the
table's files that it has read meanwhile. So each epoch reads such a table from disk, as it would if the machine had
LIMIT bytes for it and nothing of a pass over it were left for the next one. (Blocks are read in random order: of a
machine with LIMIT bytes, a fraction LIMIT / size of the pages would be found again.) A smaller table is read once
before, and stays."""

import fcntl
import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from common import figure, freeze, headline, table
from data import Data
from server import connect
from tables import COPIES, load_kdd99, load_mnist

MB = 2**20
LIMIT = 512 * MB
EPOCHS = 10
BATCH = 250
FORMS = {"dense": "{features_v}", "sparse": "{features_k,features_v}", "toc": None}
LOADERS = {"mnist": load_mnist, "kdd99": load_kdd99}
ALONE = os.environ.get("ALONE", "").split()
MODELS = os.environ.get("MODELS", "logistic svm mlp").split()

# What is trained: set, model, label, learning rate and epochs.
TRAININGS = [
    ("mnist", "logistic", "zero", 0.1, EPOCHS),
    ("mnist", "svm", "zero", 0.1, EPOCHS),
    ("mnist", "mlp", "digit", 0.5, EPOCHS),
    ("kdd99", "logistic", "label", 0.1, EPOCHS),
    ("kdd99", "svm", "label", 0.1, EPOCHS),
    ("kdd99", "mlp", "label", 0.5, EPOCHS),
]
TRAININGS = [training for training in TRAININGS if training[1] in MODELS]


@contextmanager
def alone():
    """Holds the locks of the files that ALONE names, for the one that shares the machine."""
    with ExitStack() as stack:
        for name in ALONE:
            fcntl.flock(stack.enter_context(open(name)), fcntl.LOCK_EX)
        yield


class Table:
    """A table of a set in one form, and its files."""

    def __init__(self, connection, name):
        self.name = name
        self.size, path, toast, directory = connection.execute(
            """SELECT pg_table_size(oid), pg_relation_filepath(oid), pg_relation_filepath(NULLIF(reltoastrelid, 0)),
                      current_setting('data_directory') FROM pg_class WHERE oid = %s::regclass""",
            [name],
        ).fetchone()
        first = [Path(directory) / path for path in (path, toast) if path]
        self.files = [file for path in first for file in [path, *path.parent.glob(f"{path.name}.*")]]


class Forgetting:
    """As long as it lasts, the operating system's cache forgets what it has read of these files."""

    def __init__(self, files):
        self.files = [os.open(file, os.O_RDONLY) for file in files]
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.forget)

    def forget(self):
        while True:
            for file in self.files:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            if self.done.wait(0.1):
                return

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        for file in self.files:
            os.close(file)


def run(sql):
    """The rows of several statements, in a session of its own."""
    command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", "SET client_min_messages = warning"]
    for statement in sql:
        command += ["-c", statement]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.split("|") for line in output.splitlines() if line]


# What this process has read, by system calls, and of that from disk; and ticks of the processor that it has had.
USED = """SELECT substring(io FROM 'rchar: (\\d+)'), substring(io FROM 'read_bytes: (\\d+)'),
                 ticks[12]::int + ticks[13]::int
            FROM pg_read_file('/proc/self/io') AS io,
                 regexp_split_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '.*\\) ', ''), ' ') AS ticks"""


def train(name, form, model, label, rate, epochs, shuffle="corgipile"):
    """Seconds of each epoch; per epoch, MB read (by system calls, from disk) and seconds of the processor; the last
    loss and accuracy."""
    options = {"dense": f'{{"batch_size": {BATCH}}}', "sparse": f'{{"batch_size": {BATCH}}}', "toc": "{}"}[form]
    features = f", features => '{FORMS[form]}'" if FORMS[form] else ""
    training = f"""SELECT seconds, loss, accuracy FROM corgipile_train('{name}', '{model}', label => '{label}'
        {features}, learning_rate => {rate}, max_epochs => {epochs}, seed => 1, shuffle => '{shuffle}',
        prefetch => 'off', standardize => false, options => '{options}')"""
    before, *history, after = run([USED, training, USED])
    read, from_disk, ticks = ((int(b) - int(a)) / epochs for a, b in zip(before, after))
    used = read / MB, from_disk / MB, ticks / os.sysconf("SC_CLK_TCK")
    return [float(row[0]) for row in history], *used, float(history[-1][1]), float(history[-1][2])


def make(connection, name, data):
    """The tables of a set, by form and label. Prints their sizes, and what compressing took."""
    print(f"Making the tables of {name} ...", flush=True)
    LOADERS[name](connection, data)
    labels = {label for of, _, label, _, _ in TRAININGS if of == name}
    rows = []
    for label in sorted(labels):
        report = connection.execute(
            f"""SELECT batches, tuples, ratio, seconds, encodings::text FROM corgipile_compress('{name}_dense',
                   '{name}_toc_{label}', label => '{label}', features => '{{features_v}}', batch_rows => {BATCH},
                   seed => 1)"""
        ).fetchone()
        batches, tuples, ratio, seconds, encodings = report
        rows.append([f"{name}_toc_{label}", batches, f"{ratio:.1f}", f"{tuples / seconds:,.0f}", encodings])
    tables = {}
    for form in FORMS:
        for label in sorted(labels):
            of = f"{name}_toc_{label}" if form == "toc" else f"{name}_{form}"
            if of not in {known.name for known in tables.values()}:
                freeze(connection, of)
            tables[form, label] = Table(connection, of)
    connection.execute("CHECKPOINT")
    os.sync()
    table("Compressed", ["table", "batches", "ratio to 8 bytes", "rows/s", "encodings"], rows)
    return tables


def compare(connection, name):
    """With the same batches in the same order, what is learned from a table and from a compressed copy of it is the
    same but for rounding."""
    for of, model, label, rate, epochs in TRAININGS:
        for form in ("dense", "sparse") if of == name else ():
            connection.execute(
                f"""SELECT corgipile_compress('{name}_{form}', '{name}_same', label => '{label}',
                           features => '{FORMS[form]}', batch_rows => {BATCH}, shuffle => 'no_shuffle')"""
            )
            with alone():
                plain = train(f"{name}_{form}", form, model, label, rate, epochs, "no_shuffle")[4]
                compressed = train(f"{name}_same", "toc", model, label, rate, epochs, "no_shuffle")[4]
            connection.execute(f"DROP TABLE {name}_same")
            what = f"{name}, {model}, same batches: loss after {epochs} epochs, TOC against plain {form}, relative"
            figure(what, abs(compressed - plain) / plain, "<= 1e-5")


def warm(tables):
    for file in {file for of in tables for file in of.files}:
        with open(file, "rb") as pages:
            while pages.read(8 * MB):
                pass


def measure(name, tables, limited):
    """Trains on all forms of a set; prints the results and the figures."""
    rows, seconds, of_processor = [], {}, {}
    shown = f"{name} x {COPIES}" if name == "kdd99" else name
    for of, model, label, rate, epochs in TRAININGS:
        if of != name:
            continue
        with alone():
            for form in FORMS:
                stored = tables[form, label]
                forgotten = stored.files if limited and stored.size > LIMIT else []
                if not forgotten:
                    warm([stored])
                with Forgetting(forgotten):
                    took, read, from_disk, processor, loss, accuracy = train(
                        stored.name, form, model, label, rate, epochs
                    )
                seconds[model, form], of_processor[model, form] = median(took[1:]), processor
                rows.append(
                    [
                        model,
                        form,
                        f"{stored.size / MB:,.0f}",
                        epochs,
                        f"{took[0]:.3f}",
                        f"{seconds[model, form]:.3f}",
                        f"{sum(took):.2f}",
                        f"{processor:.3f}",
                        f"{read:,.0f}",
                        f"{from_disk:,.0f}",
                        f"{loss:.5f}",
                        f"{accuracy:.4f}",
                    ]
                )
                print(" ".join(map(str, rows[-1])), file=sys.stderr, flush=True)
        memory = "memory for TOC only" if limited else "warm"
        for form in ("dense", "sparse"):
            bound = ">= 3" if limited and model == "logistic" else ""
            what = f"{shown}, {model}, {memory}: epoch of plain {form} over TOC"
            ratio = seconds[model, form] / seconds[model, "toc"]
            figure(what, ratio, bound)
            processor = of_processor[model, form] / of_processor[model, "toc"]
            figure(f"{what}, processor's time with the first epoch", processor)
            if name == "kdd99" and model == "logistic" and form == "sparse":
                fits = ", memory for the compressed table only" if limited else ""
                headline(
                    f"Epoch of a compressed table, {shown}, logistic regression{fits}",
                    f"{seconds[model, 'toc']:.3f} s",
                    f"{seconds[model, form]:.3f} s, a sparse table",
                    ratio,
                )
    columns = [
        "model",
        "table",
        "MB",
        "epochs",
        "first, s",
        "epoch, s",
        "all, s",
        "CPU, s",
        "MB read",
        "from disk",
        "loss",
        "accuracy",
    ]
    memory = f"memory for the compressed table only ({LIMIT // MB} MB)" if limited else "warm"
    table(f"{shown}, {memory}: seconds, and MB read per epoch", columns, rows)
    print(f"load average of the machine at the end: {os.getloadavg()[0]:.1f}")


def main():
    data = Data(os.environ["CORGIPILE_DATA"])
    with connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS corgipile")
        connection.execute("SET synchronize_seqscans = off")  # copies have the order of what they are copied from
        for name in os.environ.get("SETS", "mnist kdd99").split():
            tables = make(connection, name, data)
            if name == "mnist":
                compare(connection, name)
            measure(name, tables, limited=False)
            if any(of.size > LIMIT for of in tables.values()):
                measure(name, tables, limited=True)
            for of in {of.name for of in tables.values()}:
                connection.execute(f"DROP TABLE {of}")


if __name__ == "__main__":
    main()
