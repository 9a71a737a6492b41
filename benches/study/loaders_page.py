"""python.md: the Python package's loader in figures, from the files that benches/python has written."""

from statistics import mean, pstdev

from markdown import figure, table

INTRODUCTION = """How well the Python package's loader mixes sorted rows, what networks learn from it, and how fast it
is, compared with seven loaders of PyPI. Where it misses its bound, or another one is better, the page says so.
"""

QUALITY = """Rows sorted by label are read, and windows of the order are compared with all rows: the mean total
variation distance of a window's labels from those of all rows (`python/tests/test_quality.py`). 0 is a window with as
many rows of each label as all rows have, 0.9 one with a single label of ten. A full shuffle is not at 0: windows are
small.

`generated` are {generated_rows} rows, `cifar10` and `mnist` the pictures of these sets, of which the former is a part
of 2,000; all with ten labels, from files on disk, in one process. Blocks (or shards) have {blocks} rows, and the
buffer (window, range) has {buffers}; `litdata` has no buffer, and `torchdata` and `grain` read single rows in random
order, for which they need neither. Means over {seeds} seeds.

"""

QUALITY_NOTES = """What shuffles as well as corgipile, that is, has no more than {margin} above it in windows of 20 on
the mean of the three sets: {as_well}.

- With 10 buffers and more in an epoch (cifar10, mnist), corgipile takes its blocks evenly from all parts of the rows,
  and its windows are those of a full shuffle. With 5 buffers of 10 blocks (generated) it draws blocks from wider parts,
  and what goes through a window (`block_window`, `datasets`, `webdataset`) is mixed better than what is shuffled
  buffer by buffer (`corgipile`, `streaming`, `scDataset`).
- `4 lanes` are for 4 ranks or workers: a batch is from one lane, which has a quarter of the buffer. The four batches
  of a step belong together.
- `sliding_window` and `block_only` show what one level of shuffling is worth on sorted rows.

"""

LEARNING = """A small convolution net learns cifar10 ({cifar10_epochs} epochs of batches of 32), a perceptron with 64
hidden units mnist ({mnist_epochs} epochs of batches of 64), both from Parquet files sorted by label, with SGD, momentum
0.9 and a rate that falls to 0. A buffer has a tenth of the rows. Two processes take half of each batch and average
their gradients (DistributedDataParallel over gloo). Only 2,000 pictures of cifar10 are at hand, and 500 to test with,
so that accuracies are low and differ from seed to seed.

The bound: no more than 0.5 points below `shuffle_once`, with the mean of the seeds.

"""

SPEED = """Rows per second of an epoch, {machine}. Each loader reads the same rows, of 32-bit floats and a label, in its
own format, which was written before. `cold`: the first epoch, after the files' pages were dropped from memory; `warm`:
the fastest of the following ones. An epoch that takes longer is measured for a second. Memory is what the process and
its workers take beyond their packages, files that are mapped not included. Batches are of 256, 64 and 16 rows; {cut}.

Settings are those that the documentation of each shows for data on a local disk: `streaming` its default shards of 64
MB and shuffling range; `datasets` a buffer of 1,000 rows; `webdataset` the same and 16 shards; `litdata` its default
chunks and window; `scDataset` blocks of 16 rows, 256 batches at once; `torchdata` a random sampler on mapped arrays;
`grain` its global shuffle of ArrayRecord files. `authors` is the design of CorgiPile's authors, their loop written
again in Python, and `pyarrow` reads rows as they lie. corgipile's buffer is a tenth of the rows. Files, in MB: {sizes}.

"""

BYTES = """Bytes that are read in opening a source and in an epoch, over the bytes of its file; of a table, pages that
are touched, over its pages. The bound of an epoch: {bound}. Rows have 28 floats and a label; by default 256 blocks
are in a buffer of a tenth of the rows. `small blocks`: blocks of a 2,560th of the rows by `block_size`, wherever they
begin and end. `ns a row`: of an epoch with batches of 256, the faster of two, by warm files; `by others`: what
another library takes for the whole file or table, without a shuffle. `first batch`: its share of an epoch's time, in
which the first buffer is read. Files that do not say where their rows begin are looked through when they are opened,
unless they have an index, and the rows of a table are counted. Of a data set that takes no more than 128 MB in
memory, what only can be decoded as a whole is kept, so that its second epoch reads nothing. Of Arrow files that are
mapped nothing is counted. Machine: {machines}.

"""

AGAIN = """`make study ONLY=python` measures how rows are mixed and what is learned from them, and `make bench
PARTS=python` speed and bytes; both write this page, of which nothing is written by hand. What they measured is in
`target/results/python_quality.csv`, `target/results/python_learning.csv`, `target/results/python_speed.csv` and
`target/results/python_bytes.csv`.
`benches/python/requirements.txt` has the versions of the other loaders, all of which run on Python 3.11. The
[how-to](../python/pytorch.md) shows how the loader is used.
"""

MARGIN = 0.02
POINTS = 0.005
BYTES_BOUND = {"PostgreSQL": 1.1}
BYTES_BOUND_OF_FILES = 1.2
PEERS = ("streaming", "datasets", "webdataset", "litdata", "scDataset", "torchdata", "grain")


class Measured:
    """What was measured, by what it is of."""

    def __init__(self, results):
        self.quality, self.cases = {}, {}
        for row in results.read("python_quality"):
            self.quality[row["loader"], row["set"], int(row["window"])] = float(row["mean"])
            self.cases[row["set"]] = row
        self.runs, self.curves = {}, {}
        for row in results.read("python_learning"):
            key = row["set"], int(row["processes"])
            self.runs.setdefault((*key, row["strategy"]), {})[row["seed"]] = float(row["accuracy"])  # the last one
            points = self.curves.setdefault(key, {}).setdefault(row["strategy"], {})
            point = points.setdefault(int(row["epoch"]), {"seconds": [], "accuracy": []})
            point["accuracy"].append(float(row["accuracy"]))
            point["seconds"].append(float(row["seconds"]))
        for strategies in self.curves.values():
            for point in (point for points in strategies.values() for point in points.values()):
                point["seconds"] = mean(point["seconds"])
        self.bytes_read = results.read("python_bytes")
        rows = results.read("python_speed")
        self.speeds = {(int(row["width"]), row["loader"], int(row["workers"])): row for row in rows}
        self.widths = list(dict.fromkeys(int(row["width"]) for row in rows))
        self.speed_names = list(dict.fromkeys(row["loader"] for row in rows))

    def loaders(self):
        return list(dict.fromkeys(loader for loader, _, _ in self.quality))

    def as_well(self):
        """Peers that mix as well as corgipile in small windows, on the mean of the sets."""

        def distance(loader):
            return mean(self.quality[loader, name, 20] for name in self.cases)

        bound = distance("corgipile") + MARGIN
        return [loader for loader in self.loaders() if loader.startswith(PEERS) and distance(loader) <= bound]

    def best(self, width, loader, when="warm"):
        of = [float(row[when]) for (w, name, _), row in self.speeds.items() if (w, name) == (width, loader)]
        return max(of, default=0.0)


def page_of(measured):
    """Title, introduction and sections."""
    sections = []
    if measured.quality:
        sections.append(("How rows are mixed", quality(measured)))
    if measured.runs:
        sections.append(("What networks learn", learning(measured)))
    if measured.speeds:
        sections.append(("Speed and memory", speed(measured)))
    if measured.bytes_read:
        sections.append(("Bytes read", bytes_read(measured)))
    return "The Python loader", INTRODUCTION, [*sections, ("Make it again", AGAIN)]


def of_each(measured, key):
    return ", ".join(f"{row[key]} ({name})" for name, row in measured.cases.items())


def quality(measured):
    text = QUALITY.format(
        generated_rows=measured.cases["generated"]["rows"],
        blocks=of_each(measured, "block"),
        buffers=of_each(measured, "buffer"),
        seeds=of_each(measured, "seeds"),
    )
    columns = {"loader": "loader"}
    for name in measured.cases:
        for window in (20, 100):
            columns[f"{name}, windows of {window}"] = lambda row, name=name, window=window: (
                f"{measured.quality[row['loader'], name, window]:.3f}"
            )
    as_well = ", ".join(measured.as_well()) or "none"
    names = [{"loader": loader} for loader in measured.loaders()]
    return text + table(columns, names) + QUALITY_NOTES.format(margin=MARGIN, as_well=as_well)


def learning(measured):
    epochs = {name: max(measured.curves[name, 1]["corgipile"]) for name in ("cifar10", "mnist")}
    text = LEARNING.format(cifar10_epochs=epochs["cifar10"], mnist_epochs=epochs["mnist"])
    rows = []
    for (name, processes, strategy), runs in measured.runs.items():
        difference = mean(runs.values()) - mean(measured.runs[name, processes, "shuffle_once"].values())
        rows.append(
            {
                "set": name,
                "processes": processes,
                "strategy": strategy,
                "seeds": len(runs),
                "accuracy": f"{mean(runs.values()):.2%} ± {100 * pstdev(runs.values()):.2f}",
                "difference": f"{100 * difference:+.2f}" if strategy != "shuffle_once" else "",
                "bound": ("met" if difference >= -POINTS else "**missed**") if strategy == "corgipile" else "",
            }
        )
    columns = {"set": "set", "processes": "processes", "order": "strategy", "seeds": "seeds"}
    columns |= {"accuracy": "accuracy", "points over shuffle_once": "difference", "bound": "bound"}
    caption = "accuracy on test pictures by {} of training, for six orders, in one and two processes"
    text += table(columns, rows) + figure("python_by_epoch.svg", caption.format("epoch"))
    return text + figure("python_by_seconds.svg", caption.format("seconds"))


def speed(measured):
    sizes = []
    for width in measured.widths:
        of = {name: row for (w, name, workers), row in measured.speeds.items() if w == width and workers == 0}
        known = ", ".join(f"{name} {float(row['file_megabytes']):.0f}" for name, row in of.items())
        sizes.append(f"{width:,} bytes: {known}")
    most = max((int(row["rows"]) for row in measured.speeds.values()), default=0)
    fewer = {
        row["rows"] for (width, name, _), row in measured.speeds.items() if width == 100 and int(row["rows"]) < most
    }
    cut = f"loaders that read row by row read the first {fewer.pop()} of the rows of 100 bytes" if fewer else "warm"
    text = SPEED.format(machine="on two processors", sizes="; ".join(sizes), cut=cut)
    text += bounds(measured) + figure("python_speed.svg", "MiB per second of each loader, by size of rows and workers")
    for width in measured.widths:
        rows = [
            {"loader": name, "workers": workers} | row
            for (w, name, workers), row in measured.speeds.items()
            if w == width
        ]
        columns = {"loader": "loader", "workers": "workers"}
        columns |= {f"{when} rows/s": lambda row, when=when: f"{float(row[when]):,.0f}" for when in ("cold", "warm")}
        columns["warm MiB/s"] = lambda row, width=width: f"{float(row['warm']) * width / 2**20:,.0f}"
        columns["first batch, ms"] = lambda row: f"{1000 * float(row['first']):.0f}"
        columns["memory, MB"] = lambda row: f"{float(row['megabytes']):.0f}"
        text += f"Rows of {width:,} bytes:\n\n" + table(columns, rows)
    return text


def bytes_read(measured):
    def over(key):
        return lambda row: f"{float(row[key]):.2f}"

    def is_met(row):
        bound = BYTES_BOUND.get(row["source"], BYTES_BOUND_OF_FILES)
        return "met" if float(row["epoch"]) <= bound else "**missed**"

    def by_others(row):
        return f"{float(row['peer_nanoseconds']):,.0f} ({row['peer']})" if row["peer"] else ""

    columns = {"source": "source", "rows": lambda row: f"{int(row['rows']):,}"}
    columns["MB"] = lambda row: f"{float(row['megabytes']):,.0f}"
    columns |= {
        "opening": over("opening"),
        "epoch": over("epoch"),
        "bound": is_met,
        "small blocks": over("small_blocks"),
    }
    columns["opening, ms"] = lambda row: f"{float(row['opening_milliseconds']):,.0f}"
    columns["ns a row"] = lambda row: f"{float(row['nanoseconds']):,.0f}"
    columns["by others"] = by_others
    columns["first batch"] = lambda row: f"{float(row['first_batch']):.0%}"
    machines = "; ".join(dict.fromkeys(row["machine"] for row in measured.bytes_read))
    bound = f"at most {BYTES_BOUND_OF_FILES} times a file's bytes, {BYTES_BOUND['PostgreSQL']} times a table's pages"
    return BYTES.format(bound=bound, machines=machines) + table(columns, measured.bytes_read)


def bounds(measured):
    """What the loader was to reach, warm and with the number of workers that suits each best."""
    rows = []

    def add(claim, width, ratio, least):
        met = "met" if ratio >= least else "**missed**"
        rows.append(
            {"claim": claim, "width": f"{width:,}", "ratio": f"{ratio:.2f}", "least": f"{least:.2f}", "met": met}
        )

    for width in measured.widths:
        for source in ("Parquet", "Arrow", "arrays"):
            ours, none = (measured.best(width, f"{shuffle}, {source}") for shuffle in ("corgipile", "none"))
            if none:
                add(f"{source}: as fast as without a shuffle, but for a tenth", width, ours / none, 1 / 1.1)
    for width in measured.widths:
        add("Parquet: twice the authors' design", width, *twice(measured, width))
    peers = [name for name in measured.as_well() if name in measured.speed_names]
    for width in measured.widths:
        if peers:
            fastest = max(peers, key=lambda name, width=width: measured.best(width, name))
            for source in ("Parquet", "arrays"):
                ratio = measured.best(width, f"corgipile, {source}") / measured.best(width, fastest)
                add(f"{source}: the fastest that shuffles as well ({fastest})", width, ratio, 1.0)
    columns = {"bound": "claim", "row bytes": "width", "times as fast": "ratio", "at least": "least", "": "met"}
    return "Bounds, by the warm epochs:\n\n" + table(columns, rows)


def twice(measured, width):
    return measured.best(width, "corgipile, Parquet") / measured.best(width, "authors"), 2.0
