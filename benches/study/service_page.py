"""joader_service.md: JOADER in Python in figures, from the files that benches/joader has written."""

from math import sqrt
from statistics import mean, median, pstdev, stdev

from markdown import figure, table

INTRODUCTION = """What jobs get that train on the same pictures at once: by JOADER (`corgipile.joader`), each by a
DataLoader of its own, and by TensorSocket. Where JOADER misses its bound, the page says so.
"""

SETUP = """{pictures} JPEGs of 256 by 256 pixels of smooth noise ({picture:.1f} kB each) are in a Parquet file, in
pages of four pictures. Jobs get them decoded and resized to 224 by 224, which makes {decoded:.0f} MB of
them, in random order and in batches of 64. Jobs do nothing with a batch unless it says otherwise, so that preparing
is the bottleneck. Each job is a process, and so is the server. The machine has two processors. Numbers are medians
of two or three repetitions, which took turns; the load when a run began was {low:.1f} to {high:.1f} (median
{load:.1f}; column `load` of the files). It counts the run before,
too; the rest are other programs.

- `JOADER`: elements of 16 rows, sampler follow, memory for {small:.0%} of the decoded pictures, two threads. Further
  lines have one thing changed: `memory for all` has room for all decoded pictures, `single rows` are elements of one
  row as in the paper, `elements of 1 MiB` are the default of larger data sets, `dependent` is the paper's sampler, and
  with `a server each` jobs share nothing (each server has a quarter of the memory).
- `DataLoader each`: each job has a DataLoader of torch with one worker (or two), which decodes and resizes with
  Pillow. The file is in memory encoded, which is the fastest. JOADER's decoder and filter are other ones than
  Pillow's, and faster: what sharing is worth by itself is the difference from `a server each`.
- `TensorSocket` {socket}: one DataLoader with two workers, whose batches all jobs get. The DataLoader's have 8 rows, of
  which TensorSocket puts eight together, its default; it hangs if that is one. It leaves out the
  last rows of an epoch, which fill no batch. All its jobs get all rows: those that want some of them only leave out the
  others, and one that starts later waits for the next epoch.

`prepared` are rows that were read, decoded and resized. `MB/s read` are the bytes of the pictures that were read,
by second. `processor seconds` are those of all processes, per 1,000 rows that jobs got. Memory is that of all
processes, shared memory counted once. Times begin when jobs may, after their packages were imported.

"""

CAVEAT = """Against DataLoaders, JOADER gains by its decoder, too: [what a single job pays](#a-single-job) compares with
the same one.

"""

SINGLE = """What the service costs by itself: the same job, which gets its rows from a server of one thread, or reads
for itself (as it does when its server has gone), with the same decoder and shuffle. The server's memory has room for a
quarter of the pictures. What is in it at the end of an epoch need not be prepared again in the next, which is a part
of why a server may cost less than none. Medians of {repetitions} repetitions of {epochs} epochs, which took turns.

"""

EQUAL = """Jobs begin at once, and take all pictures in each of {epochs} epochs.

"""

SPEEDS = """A batch takes the first job {step:.0f} ms, and the others two to five times as long, as if they trained
networks of different sizes. All of them train for {seconds:.0f} seconds. `alone` is the first job without the others.

"""

STAGGERED = """Four jobs of {epochs} epochs start a quarter of an epoch apart, by what the first one has got.

"""

INTERSECT = """Four jobs take a quarter to all of their rows in common, by a condition (`where`), and the rest of them
by itself: {epochs} epochs of {rows} rows each.

"""

ELEMENTS = """One job reads an epoch of rows that are sorted by label (ten labels); its buffer has a tenth of the
elements. `distance` is the mean total variation distance of the labels of windows of 100 rows from those of all rows:
0 is as all rows, 0.9 a single label. `shuffled` is a full shuffle's. `pictures` are those from above, with memory for
all of them; `numbers` are {numbers} rows of 100 bytes. The default is 1 MiB, or 0.1% of the rows where that is less.

"""

ACCURACY = """A small convolution net learns cifar10, of which 2,000 pictures are at hand, sorted by label, and 500 to
test with: {epochs} epochs of batches of 32. `shared`: four jobs at once, 0.3 seconds apart, get single rows by JOADER
(sampler follow, a buffer of a tenth). `alone`: the same networks, from the same weights, with all rows shuffled again
in each epoch. {seeds} seeds of four networks each.

"""

AGAIN = """`make bench PARTS=joader` measures all of it again and writes this page, of which nothing is written by hand.
What was measured is in `target/results/joader_service.csv`, `joader_service_trace.csv`, `joader_service_single.csv`,
`joader_service_elements.csv` and `joader_service_accuracy.csv` next to it. `benches/joader/run` says what can be
varied.
"""

NUMBERS = (
    *("seconds", "rows", "rows_per_second", "loads", "prepared", "picture_bytes", "bytes_read"),
    *("processor_seconds", "megabytes"),
)
JOADER, LARGE, APART, OWN, OWN_2, SOCKET = (
    "JOADER",
    "JOADER, memory for all",
    "JOADER, a server each",
    "DataLoader each",
    "DataLoader each, 2 workers",
    "TensorSocket",
)


class Measured:
    """Medians of what was measured, by case, way, number of jobs and what is varied."""

    def __init__(self, results):
        rows = results.read("joader_service")
        self.pictures = int(rows[0]["pictures"]) if rows else 0
        self.fast = float(rows[0]["fast"]) if rows else 0.0
        self.loads = [float(row["load"]) for row in rows]
        self.errors = [row for row in rows if row["error"]]
        grouped = {}
        for row in rows:
            if not row["error"]:
                key = row["case"], row["way"], int(row["jobs"]), float(row["x"])
                grouped.setdefault(key, []).append(row)
        self.runs = {key: medians(group) for key, group in grouped.items()}
        self.trace = {}
        for row in results.read("joader_service_trace"):
            self.trace.setdefault(row["way"], []).append((float(row["seconds"]), int(row["prepared"])))
        self.elements = {}
        for row in results.read("joader_service_elements"):
            self.loads.append(float(row["load"]))
            self.elements.setdefault((row["set"], row["size"]), []).append(row)
        self.single = {}
        for row in results.read("joader_service_single"):
            self.loads.append(float(row["load"]))
            self.single.setdefault(row["way"], []).append(row)
        self.accuracy = {}
        for row in results.read("joader_service_accuracy"):
            self.loads.append(float(row["load"]))
            of = self.accuracy.setdefault(row["way"], {}).setdefault(int(row["epoch"]), [])
            of.append((int(row["seed"]), float(row["accuracy"])))

    def get(self, case, way, jobs, x=0.0):
        return self.runs.get((case, way, jobs, x))

    def of_case(self, case):
        return [(way, jobs, x, run) for (name, way, jobs, x), run in self.runs.items() if name == case]

    def ways(self, case):
        return list(dict.fromkeys(way for way, _, _, _ in self.of_case(case)))

    def own(self, jobs, key, best):
        """The better one of the DataLoaders of each."""
        runs = [run for way in (OWN, OWN_2) if (run := self.get("equal", way, jobs))]
        return best((run[key] for run in runs), default=None)


def medians(rows):
    of = {key: median(float(row[key]) for row in rows) for key in NUMBERS}
    of["of_each"] = [median(each) for each in zip(*([float(one) for one in row["of_each"].split()] for row in rows))]
    of["repetitions"] = len(rows)
    of["processor_per_row"] = of["processor_seconds"] / of["rows"]
    of["read_rate"] = of["picture_bytes"] / of["seconds"] / 1e6
    return of


def page_of(measured):
    """Title, introduction and sections."""
    sections = []
    if measured.runs:
        sections += [("What is measured", setup(measured)), ("Bounds", bounds(measured))]
    parts = {"equal": ("Equal jobs", equal), "speeds": ("Jobs of different speeds", speeds)}
    parts |= {"staggered": ("Jobs that start later", staggered), "intersect": ("Rows in common", intersect)}
    for case, (title, write) in parts.items():
        if measured.of_case(case):
            sections.append((title, write(measured)))
    if measured.single:
        sections.append(("A single job", single(measured)))
    if measured.elements:
        sections.append(("Size of elements", elements(measured)))
    if measured.accuracy:
        sections.append(("What networks learn", accuracy(measured)))
    return "JOADER in Python", INTRODUCTION, [*sections, ("Make it again", AGAIN)]


def setup(measured):
    some = next(iter(measured.runs.values()))
    version = "0.0.5"
    text = SETUP.format(
        pictures=f"{measured.pictures:,}",
        picture=some["picture_bytes"] / max(some["prepared"], 1) / 1e3,
        decoded=measured.pictures * 224 * 224 * 3 / 1e6,
        small=0.4,
        socket=version,
        low=min(measured.loads),
        high=max(measured.loads),
        load=median(measured.loads),
    )
    failed = list(dict.fromkeys((row["case"], row["way"], row["jobs"], row["error"]) for row in measured.errors))
    if failed:
        text += "Runs that failed: " + "; ".join(f"{case}, {way}, {jobs} jobs: `{e}`" for case, way, jobs, e in failed)
        text += ".\n\n"
    return text


def bounds(measured):
    rows = []

    def add(claim, value, bound, met, digits=2):
        shown = f"{value:.{digits}f}"
        rows.append({"claim": claim, "value": shown, "bound": bound, "met": MET[met]})

    one, four = (measured.get("equal", JOADER, jobs) for jobs in (1, 4))
    if one and four:
        ratio = four["loads"] / one["loads"]
        add("four equal jobs: elements read, times those that one reads", ratio, "at most 1.05", ratio <= 1.05, 3)
        own = measured.own(4, "rows_per_second", max)
        if own:
            ratio = four["rows_per_second"] / own
            add("four equal jobs: rows per second, times those of four DataLoaders", ratio, "at least 3", ratio >= 3)
        apart = measured.get("equal", APART, 4)
        if apart:
            ratio = four["rows_per_second"] / apart["rows_per_second"]
            add("the same, times those of four jobs with a server each", ratio, "", None)
    alone, beside = (measured.get("speeds", JOADER, jobs) for jobs in (1, 5))
    if alone and beside:
        ratio = beside["of_each"][0] / alone["of_each"][0]
        add("a fast job next to four slow ones, times its speed alone", ratio, "at least 0.95", ratio >= 0.95, 3)
    for key, what in (("seconds", "time"), ("processor_seconds", "processor time")):
        own = measured.own(1, key, min)
        if one and own:
            ratio = one[key] / own
            add(f"one job: {what} of an epoch, times a DataLoader's", ratio, "below 1.05", ratio < 1.05)
    if measured.single:
        for key, what in (("seconds", "time"), ("processor_seconds", "processor time")):
            served, direct = (of_single(measured, way, key) for way in ("served", "direct"))
            claim, met = f"one job: {what} of an epoch, times that of one that reads for itself", served / direct < 1.05
            add(claim, served / direct, "below 1.05", met)
    if measured.accuracy:
        difference, differ = compared(measured)
        claim = "accuracy of jobs that share, points more than alone"
        met = abs(difference) <= differ
        add(claim, 100 * difference, f"within ±{100 * differ:.2f}, what seeds differ", met)
    return table({"bound": "claim", "measured": "value", "wanted": "bound", "": "met"}, rows) + CAVEAT


COLUMNS = {
    "rows/s in all": lambda row: f"{row['rows_per_second']:,.0f}",
    "rows prepared": lambda row: f"{row['prepared']:,.0f}",
    "MB/s read": lambda row: f"{row['read_rate']:.1f}",
    "seconds": lambda row: f"{row['seconds']:.2f}",
    "processor seconds": lambda row: f"{1000 * row['processor_per_row']:.2f}",
    "memory, MB": lambda row: f"{row['megabytes']:,.0f}",
}


def equal(measured):
    first = next(run for _, _, _, run in measured.of_case("equal"))
    text = EQUAL.format(epochs=round(first["rows"] / measured.pictures))
    text += figure("joader_service_equal.svg", "rows per second, MB read, processor time and memory by number of jobs")
    runs = sorted(measured.of_case("equal"), key=lambda of: of[1])
    rows = [{"way": way, "jobs": jobs} | run for way, jobs, _, run in runs]
    return text + table({"jobs": "jobs", "way": "way"} | COLUMNS, rows)


def speeds(measured):
    runs = measured.of_case("speeds")
    alone = {way: run for way, jobs, _, run in runs if jobs == 1}
    some = next(iter(alone.values()))
    text = SPEEDS.format(step=1000 * 64 / measured.fast, seconds=some["seconds"])
    text += figure("joader_service_speeds.svg", "rows per second of five jobs of different speeds, and MB read")
    rows = []
    for way, jobs, _, run in runs:
        if jobs > 1:
            each = " ".join(f"{of:,.0f}" for of in run["of_each"])
            row = {"way": way, "each": each, "alone": f"{alone[way]['of_each'][0]:,.0f}"} | run
            row["share"] = f"{run['of_each'][0] / alone[way]['of_each'][0]:.2f}"
            rows.append(row)
    columns = {"way": "way", "rows/s of each": "each", "alone": "alone", "first job, times alone": "share"}
    columns |= {title: COLUMNS[title] for title in COLUMNS if title != "seconds"}
    return text + table(columns, rows)


def staggered(measured):
    runs = measured.of_case("staggered")
    epochs = round(runs[0][3]["rows"] / measured.pictures / runs[0][1])
    text = STAGGERED.format(epochs=epochs)
    text += figure("joader_service_staggered.svg", "MB of pictures read by second, of jobs that start apart")
    return text + table({"way": "way"} | COLUMNS, [{"way": way} | run for way, _, _, run in runs])


def intersect(measured):
    runs = measured.of_case("intersect")
    rows = round(measured.pictures / (4 - 3 * min(x for _, _, x, _ in runs)))
    epochs = round(runs[0][3]["rows"] / 4 / rows)
    text = INTERSECT.format(epochs=epochs, rows=f"{rows:,}")
    text += figure("joader_service_intersect.svg", "rows prepared and rows per second by the share of rows in common")
    rows = [{"way": way, "share": f"{x:.0%}"} | run for way, _, x, run in runs]
    return text + table({"in common": "share", "way": "way"} | COLUMNS, rows)


def of_single(measured, way, key):
    return median(float(row[key]) for row in measured.single[way])


def single(measured):
    some = next(iter(measured.single.values()))
    epochs = round(int(some[0]["rows"]) / measured.pictures)
    rows = [
        {
            "way": way,
            "rate": f"{int(some[0]['rows']) / of_single(measured, way, 'seconds'):,.0f}",
            "processor": f"{1000 * of_single(measured, way, 'processor_seconds') / int(some[0]['rows']):.3f}",
            "each": " ".join(f"{float(row['processor_seconds']):.2f}" for row in of),
        }
        for way, of in measured.single.items()
    ]
    columns = {"way": "way", "rows/s": "rate", "processor seconds per 1,000 rows": "processor"}
    columns |= {"processor seconds of each repetition": "each"}
    return SINGLE.format(epochs=epochs, repetitions=len(some)) + table(columns, rows)


def elements(measured):
    count = {name: rows[0]["rows"] for (name, _), rows in measured.elements.items()}
    text = ELEMENTS.format(numbers=f"{int(count.get('numbers', 0)):,}")
    rows = []
    for (name, size), of in measured.elements.items():

        def middle(key, of=of):
            return median(float(row[key]) for row in of)

        rows.append(
            {
                "set": name,
                "size": size,
                "elements": of[0]["elements"],
                "rate": f"{middle('rows_per_second'):,.0f}",
                "processor": f"{1000 * middle('processor_seconds') / int(of[0]['rows']):.4f}",
                "distance": f"{middle('distance'):.3f}",
                "shuffled": f"{middle('distance_of_shuffle'):.3f}",
            }
        )
    columns = {"rows": "set", "element size": "size", "elements": "elements", "rows/s": "rate"}
    columns |= {"processor seconds per 1,000 rows": "processor", "distance": "distance", "shuffled": "shuffled"}
    return text + table(columns, rows) + advice(measured)


def advice(measured):
    """Which size is best: of those that mix nearly as a full shuffle does in all sets, the fastest."""
    sets = list(dict.fromkeys(name for name, _ in measured.elements))
    sizes = list(dict.fromkeys(size for _, size in measured.elements))

    def middle(name, size, value):
        return median(value(row) for row in measured.elements[name, size])

    worse = {
        (name, size): middle(name, size, lambda row: float(row["distance"]) - float(row["distance_of_shuffle"]))
        for name in sets
        for size in sizes
    }
    rates = {key: middle(*key, lambda row: float(row["rows_per_second"])) for key in worse}
    most = {name: max(rates[name, size] for size in sizes) for name in sets}
    share = {size: min(rates[name, size] / most[name] for name in sets) for size in sizes}
    good = [size for size in sizes if all(worse[name, size] <= MIXED for name in sets)]
    text = f"No more than {MIXED} worse than a full shuffle mix, in all sets: {', '.join(good) or 'none'}. "
    if good:
        best = max(good, key=lambda size: share[size])
        of_each = ", ".join(
            f"{rates[name, best] / most[name]:.0%} of the most rows per second ({name})" for name in sets
        )
        text += f"Of them {best} is the fastest: {of_each}. "
        by = ", ".join(f"{worse[name, '1MiB']:.2f} ({name})" for name in sets)
        text += (
            f"With elements of 1 MiB, windows are worse than a full shuffle's by {by}: data sets of some dozens of MB "
        )
        text += "have few of them."
    return text + "\n\n"


MIXED = 0.05
MET = {True: "met", False: "**missed**", None: ""}


def compared(measured):
    """The difference of the final accuracies, and two standard errors of it by the seeds."""
    last = max(measured.accuracy["alone"])
    shared, alone = ([of for _, of in measured.accuracy[way][last]] for way in ("shared", "alone"))
    differ = 2 * sqrt(stdev(shared) ** 2 / len(shared) + stdev(alone) ** 2 / len(alone))
    return mean(shared) - mean(alone), differ


def accuracy(measured):
    last = max(measured.accuracy["alone"])
    seeds = {seed for seed, _ in measured.accuracy["alone"][last]}
    text = ACCURACY.format(epochs=last, seeds=len(seeds))
    text += figure("joader_service_accuracy.svg", "accuracy by epoch, of networks that share and of those alone")
    rows = []
    for way, epochs in measured.accuracy.items():
        of = [accuracy for _, accuracy in epochs[last]]
        row = {"way": way, "mean": f"{mean(of):.2%} ± {100 * pstdev(of):.2f}"}
        for seed in sorted(seeds):
            row[f"seed {seed}"] = " ".join(f"{100 * value:.1f}" for of_seed, value in epochs[last] if of_seed == seed)
        rows.append(row)
    columns = {"order": "way", "accuracy": "mean"} | {f"seed {seed}": f"seed {seed}" for seed in sorted(seeds)}
    difference, differ = compared(measured)
    text += table(columns, rows)
    return text + (
        f"The difference is {100 * difference:+.2f} points; two standard errors of it are {100 * differ:.2f}.\n\n"
    )
