"""What the service costs a single job: `single.py CSV`.

The job is the same and so are reader, decoder and shuffle; only who reads differs. `served` gets its rows from a server
of one thread. `direct` begins with one, which is ended before the first epoch is over, and then reads for itself.
Measured are the epochs behind the first, with the processor time of job and server.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pictures
from measured import PATIENCE, processes, processor_seconds, save, wait
from processes import BATCH

PICTURES = int(os.environ.get("PICTURES", 2000))
EPOCHS = int(os.environ.get("EPOCHS_OF_SINGLE", 6))
REPETITIONS = int(os.environ.get("REPETITIONS_OF_SINGLE", 5))
DECODED = pictures.SIZE * pictures.SIZE * 3


def measured(path: Path, directory: Path, is_served: bool) -> dict[str, Any]:
    from corgipile import joader, parquet

    address = f"unix:{directory}/joader"
    # room for a buffer and what is read ahead: each epoch reads all rows again, as a job does that reads by itself
    memory = int(0.25 * PICTURES * DECODED)
    alike = {"seed": 1, "where": None, "epochs": EPOCHS, "batch": BATCH, "marks": [PICTURES // 2, PICTURES]}
    with processes() as start:
        server = start("server", {"address": address, "memory": memory, "threads": 1})
        job = start("joader", alike | {"address": address})
        wait(lambda: server.has("READY") and job.has("READY"), PATIENCE, "to import packages")
        server.go()
        wait(lambda: server.has("SERVES"), PATIENCE, "to serve")
        joader.create(address, "pictures", parquet(str(path)), element_size="16")
        job.go()
        wait(lambda: job.has("MARK0"), PATIENCE, "half an epoch")
        if not is_served:
            server.end()
        wait(lambda: job.has("MARK1"), PATIENCE, "the first epoch")
        everybody = [job.process.pid, *([server.process.pid] if is_served else [])]
        begin, before = time.monotonic(), sum(map(processor_seconds, everybody))
        wait(lambda: job.has("DONE"), PATIENCE, "the other epochs")
        seconds, used = time.monotonic() - begin, sum(map(processor_seconds, everybody)) - before
    return {"seconds": seconds, "processor_seconds": used, "rows": PICTURES * (EPOCHS - 1)}


def main(path: Path) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "pictures.parquet"
        pictures.write(file, PICTURES)
        for repetition in range(REPETITIONS):
            for way in ("served", "direct"):
                told = measured(file, Path(directory), way == "served")
                rows.append({"way": way, "repetition": repetition, "load": os.getloadavg()[0]} | told)
                print(
                    f"single job, {way:6} {told['seconds']:6.2f} s {told['processor_seconds']:6.2f} cpu s", flush=True
                )
                save(path, rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
