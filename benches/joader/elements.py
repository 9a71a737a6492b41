"""What elements of other sizes cost and how well they mix rows that are sorted by label: `elements.py CSV`.

One job reads an epoch of pictures, which are decoded, and one of small rows. Its buffer has a tenth of the elements.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pictures
from measured import PATIENCE, processes, processor_seconds, save, wait

PICTURES = int(os.environ.get("PICTURES", 2000))
NUMBERS = int(os.environ.get("NUMBERS", 100_000))
SIZES = ("1", "16", "64", "0.2%", "0.1%", "1MiB")
REPETITIONS = int(os.environ.get("REPETITIONS", 2))
DECODED = pictures.SIZE * pictures.SIZE * 3
THREADS = os.cpu_count() or 1


def measure(path: Path, size: str, decodes: bool, memory: int, seed: int) -> dict[str, Any]:
    from corgipile import joader, parquet

    address = f"unix:{path.parent}/joader"
    with processes() as start:
        server = start("server", {"address": address, "memory": memory, "threads": THREADS})
        job = start("order", {"address": address, "decodes": decodes, "seed": seed})
        wait(lambda: server.has("READY") and job.has("READY"), PATIENCE, "to import packages")
        server.go()
        wait(lambda: server.has("SERVES"), PATIENCE, "to serve")
        made = joader.create(address, "rows", parquet(str(path)), element_size=size)
        before = processor_seconds(server.process.pid) + processor_seconds(job.process.pid)
        job.go()
        wait(lambda: job.has("DONE"), PATIENCE, f"elements of {size}")
        used = processor_seconds(server.process.pid) + processor_seconds(job.process.pid) - before
        told = job.said["DONE"]
    return {
        "elements": made["elements"],
        "rows_per_second": told["rows"] / (told["end"] - told["begin"]),
        "processor_seconds": used,
        "distance": told["distance"],
        "distance_of_shuffle": told["distance_of_shuffle"],
    }


def main(path: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("elements.py: ended"))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        pictures.write(directory / "pictures.parquet", PICTURES)
        pictures.write_numbers(directory / "numbers.parquet", NUMBERS)
        sets = [("pictures", PICTURES, PICTURES * DECODED * 3 // 2), ("numbers", NUMBERS, NUMBERS * 400 + (64 << 20))]
        for repetition in range(REPETITIONS):
            for data_set, count, memory in sets:
                for size in SIZES:
                    of = {"set": data_set, "rows": count, "size": size, "repetition": repetition}
                    of |= {"load": os.getloadavg()[0]}
                    file = directory / f"{data_set}.parquet"
                    rows.append(of | measure(file, size, data_set == "pictures", memory, repetition))
                    told = rows[-1]
                    print(
                        f"{data_set:8} elements of {size:5} {told['elements']:7} {told['rows_per_second']:9.0f} rows/s"
                        f" cpu {told['processor_seconds']:5.1f} s distance {told['distance']:.3f}"
                        f" (shuffled {told['distance_of_shuffle']:.3f}) load {told['load']:.1f}",
                        flush=True,
                    )
                    save(path, rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
