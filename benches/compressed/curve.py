"""Further epochs of logistic regression on compressed tables, by corgipile.cache_memory: TOC against CSR.

    make bench PARTS=curve

Writes cache-memory.md, .svg and .csv to the folder that is its argument, docs/results. Needs psql and the server that
PGHOST and the others name, and the sets in CORGIPILE_DATA; ROUNDS=3 and SETS="kdd99 census" say how often and what is
measured. A further epoch's time is that of a training of 1 + EPOCHS epochs minus one of 1 epoch, over EPOCHS: time of
the processor that the server process has had (/proc/self/schedstat), which other programs on the machine do not add to.
The encodings take turns, and of all rounds the least is taken.
"""

import gzip
import os
import subprocess
import sys
from pathlib import Path

EPOCHS = 8
ROUNDS = int(os.environ.get("ROUNDS", "3"))
DATA = Path(os.environ.get("CORGIPILE_DATA", "../shared/data"))
SETS = {"kdd99": ("kdd99_onehot_train.libsvm.gz", 118), "census": ("census_income_onehot_train.libsvm.gz", 507)}
WANTED = os.environ.get("SETS", " ".join(SETS)).split()
ENCODINGS = ("csr", "toc")
MEMORY = [0, 2, 4, 8, 12, 16, 24, 32, 64, 128]  # MB
COLORS = {"csr": "#d55e00", "toc": "#004b76"}
NANOSECONDS = "SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)"


def psql(*statements, stdin=None):
    """The rows of several statements, in a session of its own."""
    command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", "SET client_min_messages = warning"]
    for statement in statements:
        command += ["-c", statement]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, input=stdin, text=True).stdout
    return [line.split("|") for line in output.splitlines() if line]


def load(name):
    """Compresses a set with each encoding, in mini-batches of 250 rows. Gives rows and bytes of each."""
    file, dimensions = SETS[name]
    lines = []
    with gzip.open(DATA / file, "rt") as rows:
        for row in rows:
            label, *pairs = row.split()
            indices, values = zip(*(pair.split(":") for pair in pairs)) if pairs else ((), ())
            lines.append(f"{label}\t{{{','.join(indices)}}}\t{{{','.join(values)}}}\n")
    psql(
        f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (label real, k int[], v real[])",
        f"COPY {name} FROM STDIN",
        stdin="".join(lines),
    )
    sizes = {}
    for encoding in ENCODINGS:
        psql(f"DROP TABLE IF EXISTS {name}_{encoding}")
        ((tuples, size),) = psql(
            f"""SELECT tuples, bytes FROM corgipile_compress('{name}', '{name}_{encoding}', label => 'label',
                   features => '{{k,v}}', dimensions => {dimensions}, encoding => '{encoding}', seed => 1)"""
        )
        psql(f"VACUUM FREEZE {name}_{encoding}")
        sizes[encoding] = int(tuples), int(size)
    return sizes


def train(table, memory, epochs):
    """Nanoseconds of the processor."""
    (before,), (made,), (after,) = psql(
        f"SET corgipile.cache_memory = '{memory}MB'",
        NANOSECONDS,
        f"""SELECT count(*) FROM corgipile_train('{table}', 'logistic', label => 'label', learning_rate => 0.1,
               max_epochs => {epochs}, seed => 1, buffer_size => '10%')""",
        NANOSECONDS,
    )
    assert int(made) == epochs, "all epochs are made"
    return int(after) - int(before)


def measure(name, rows):
    """Nanoseconds per row and epoch, by encoding and memory."""
    least = {}
    for _ in range(ROUNDS):
        for memory in MEMORY:
            for encoding in ENCODINGS:
                for epochs in (1, 1 + EPOCHS):
                    key = encoding, memory, epochs
                    least[key] = min(least.get(key, 1 << 62), train(f"{name}_{encoding}", memory, epochs))
    return {
        (encoding, memory): max(least[encoding, memory, 1 + EPOCHS] - least[encoding, memory, 1], 0) / EPOCHS / rows
        for encoding in ENCODINGS
        for memory in MEMORY
    }


def panel(x, name, times):
    """A curve for each encoding: memory to the right, nanoseconds upwards."""
    width, height, top = 300, 200, 30
    highest = max(times.values()) * 1.1

    def at(i, value):
        return x + i * width / (len(MEMORY) - 1), top + height * (1 - value / highest)

    yield f'<text x="{x}" y="20" font-weight="bold">{name}: ns per row and further epoch</text>'
    yield f'<path d="M{x} {top}V{top + height}H{x + width}" fill="none" stroke="#888"/>'
    for i, memory in enumerate(MEMORY):
        yield f'<text x="{at(i, 0)[0]:.0f}" y="{top + height + 14}" text-anchor="middle">{memory}</text>'
    step = 10 ** (len(str(int(highest))) - 1)
    for value in range(0, int(highest) + 1, step if highest / step > 3 else step // 2 or 1):
        yield f'<text x="{x - 4}" y="{at(0, value)[1] + 4:.0f}" text-anchor="end">{value}</text>'
    for place, encoding in enumerate(ENCODINGS):
        points = [at(i, times[encoding, memory]) for i, memory in enumerate(MEMORY)]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in points)
        yield f'<path d="M{path}" fill="none" stroke="{COLORS[encoding]}" stroke-width="2"/>'
        yield f'<text x="{x + width - 30}" y="{45 + 14 * place}" fill="{COLORS[encoding]}">{encoding.upper()}</text>'
    yield f'<text x="{x + width / 2}" y="{top + height + 30}" text-anchor="middle">corgipile.cache_memory, MB</text>'


def main(folder):
    table = ["set,cache_memory_mb,csr_ns,toc_ns,csr_bytes,toc_bytes"]
    drawing, page = [], ["# Compressed tables and the cache's memory", ""]
    page += ["Written by `make bench PARTS=curve`; `benches/compressed/curve.py` says how. Nanoseconds of the"]
    page += ["processor per row and further epoch of logistic regression, buffer 10%, mini-batches of 250 rows; the"]
    page += ["last column is CSR over TOC. [cache-memory.csv](cache-memory.csv) has the same numbers.", ""]
    psql("CREATE EXTENSION IF NOT EXISTS corgipile")
    for place, name in enumerate(WANTED):
        sizes = load(name)
        times = measure(name, sizes["toc"][0])
        drawing += panel(50 + 370 * place, name, times)
        stored = ", ".join(f"{encoding.upper()} {size / 2**20:.1f} MB" for encoding, (_, size) in sizes.items())
        page += [f"## {name}", "", f"{sizes['toc'][0]:,} rows. Stored: {stored}.", ""]
        page += ["MB of `corgipile.cache_memory` | CSR | TOC | times as fast", "---: | ---: | ---: | ---:"]
        for memory in MEMORY:
            csr, toc = times["csr", memory], times["toc", memory]
            table += [f"{name},{memory},{csr:.2f},{toc:.2f},{sizes['csr'][1]},{sizes['toc'][1]}"]
            page += [f"{memory} | {csr:.1f} | {toc:.1f} | {csr / max(toc, 1e-9):.2f}"]
        page += [""]
    page += ["![Time of a further epoch by the cache's memory](cache-memory.svg)", ""]
    size = f'width="{370 * len(WANTED) + 20}" height="270"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">'
    Path(folder, "cache-memory.svg").write_text("\n".join([head, *drawing, "</svg>", ""]))
    Path(folder, "cache-memory.csv").write_text("\n".join([*table, ""]))
    Path(folder, "cache-memory.md").write_text("\n".join(page))


if __name__ == "__main__":
    main(sys.argv[1])
