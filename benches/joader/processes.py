"""The processes that are measured: `processes.py KIND JSON`, with a KIND of KINDS.

A process says READY when what it imports is there, begins when it reads a line, and ends when its standard input does.
A job says AT with the rows that it has got and the time, several times a second, MARK when it has got the given
number, and DONE at its end. Times are those
of the system's monotonic clock, which all processes share.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from pictures import SIZE

Options = dict[str, Any]
TOGETHER = 8  # TensorSocket's default
BATCH = 64  # rows, where it is not varied
WINDOW = 100  # rows whose labels are looked at
AT_LEAST = 0.2  # seconds between two lines of progress


def say(what: str, told: Any) -> None:
    print(f"{what} {json.dumps(told)}", flush=True)


def started() -> None:
    """Waits until this process may begin. From then on it ends with its standard input."""
    say("READY", None)
    # not by sys.stdin, whose lock workers that are forked off would inherit
    if not os.read(0, 1):
        os._exit(0)

    def end() -> None:
        os.read(0, 1)
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


def consume(options: Options, batches: Iterator[int]) -> None:
    """Takes batches, which are given as how many rows each has, until there are no more, or for this many seconds. Each
    takes as long as its step."""
    begin = last = time.monotonic()
    rows, seconds, step = 0, options.get("seconds"), options.get("step", 0.0)
    marks, passed = options.get("marks", []), 0
    for of in batches:
        if step:
            time.sleep(step)
        rows += of
        while passed < len(marks) and rows >= marks[passed]:
            say(f"MARK{passed}", rows)
            passed += 1
        now = time.monotonic()
        if now - last >= AT_LEAST:
            last = now
            say("AT", [rows, now])
        if seconds and now - begin >= seconds:
            break
    say("DONE", {"rows": rows, "begin": begin, "end": time.monotonic()})
    threading.Event().wait()


def server(options: Options) -> None:
    from corgipile import joader

    started()
    memory, threads = options["memory"], options["threads"]
    joader.serve(options["address"], memory=memory, threads=threads, ready=lambda: say("SERVES", None))


def of_joader(options: Options) -> None:
    from corgipile import joader

    job = joader.Job(
        options["address"],
        dataset="pictures",
        columns=["image", "label"],
        where=options["where"],
        prepare=[joader.decode("image"), joader.resize("image", SIZE, SIZE)],
        seed=options["seed"],
        epochs=options["epochs"],
        batch_size=options["batch"],
    )
    started()
    consume(options, (len(batch["label"]) for batch in job))


def order(options: Options) -> None:
    """An epoch of a job, and how far the labels of windows of its rows are from those of all rows."""
    import numpy as np
    from corgipile import joader

    decodes = [joader.decode("image"), joader.resize("image", SIZE, SIZE)] if options["decodes"] else []
    job = joader.Job(options["address"], dataset="rows", prepare=decodes, seed=options["seed"], batch_size=BATCH)
    started()
    begin = time.monotonic()
    labels = np.concatenate([batch["label"] for batch in job])
    end = time.monotonic()
    told = {"rows": len(labels), "begin": begin, "end": end, "distance": distance(labels)}
    draw = np.random.default_rng(options["seed"])
    say("DONE", told | {"distance_of_shuffle": distance(draw.permutation(labels))})
    threading.Event().wait()


def distance(labels: Any) -> float:
    """The mean total variation distance of the labels of windows of WINDOW rows from those of all rows."""
    import numpy as np

    windows = labels[: len(labels) // WINDOW * WINDOW].reshape(-1, WINDOW)
    kinds = np.unique(labels)
    shares = np.stack([(windows == kind).mean(1) for kind in kinds])
    whole = np.array([(labels == kind).mean() for kind in kinds])
    return float(np.abs(shares - whole[:, None]).sum(0).mean() / 2)


class Pictures:
    """Pictures of a Parquet file with their rows' numbers. It is in memory encoded, which the workers of a DataLoader
    share."""

    def __init__(self, path: str, first: int, last: int, skipped: range) -> None:
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path, columns=["image"])
        self.images = table["image"].combine_chunks()
        self.rows = [row for row in range(first, last) if row not in skipped]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Any:
        import numpy as np
        import torch
        from PIL import Image

        row = self.rows[place]
        picture = Image.open(io.BytesIO(self.images[row].as_buffer())).convert("RGB")
        pixels = np.array(picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR))
        return torch.from_numpy(pixels), row


def data_loader(options: Options) -> Any:
    from torch.utils.data import DataLoader

    first, last = options["rows"]
    pictures: Any = Pictures(options["path"], first, last, range(*options["skipped"]))
    workers = options["workers"]
    return DataLoader(
        pictures,
        batch_size=options["batch"],
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
        multiprocessing_context="fork" if workers else None,
    )


def imports() -> None:
    import pyarrow.parquet  # noqa: F401
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    Image.init()


def own(options: Options) -> None:
    imports()
    started()

    def batches() -> Iterator[int]:
        loader = data_loader(options)
        for _ in range(options["epochs"]):
            for _, row in loader:
                yield len(row)

    consume(options, batches())


class Counted:
    """A DataLoader that says how many rows it has given."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.rows, self.last = loader, 0, 0.0

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            self.rows += len(batch[1])
            now = time.monotonic()
            if now - self.last >= AT_LEAST:
                self.last = now
                say("AT", [self.rows, now])
            yield batch


def producer(options: Options) -> None:
    imports()
    from tensorsocket import TensorProducer

    port = options["port"]
    started()
    # It gives away as many batches of the DataLoader at once as it says, and hangs if that is one.
    loader: Any = Counted(data_loader(options | {"batch": options["batch"] // TOGETHER}))
    told = TensorProducer(loader, port, port + 1, (port + 2, port + 3), producer_batch_size=TOGETHER)
    say("SERVES", None)
    while len(told.hb.consumers) < options["jobs"]:
        time.sleep(0.05)
    say("BEGINS", time.monotonic())
    while True:
        for _ in told:
            pass


def of_tensorsocket(options: Options) -> None:
    imports()
    from tensorsocket import TensorConsumer

    port = options["port"]
    started()
    consumer = TensorConsumer(port, port + 1, (port + 2, port + 3), batch_size=options["batch"])
    (first, last), (skip, until) = options["rows"], options["skipped"]

    def batches() -> Iterator[int]:
        for _ in range(options["epochs"]):
            for _, row in consumer:
                # all jobs get all rows, and leave out what is not theirs
                yield int(((row >= first) & (row < last) & ~((row >= skip) & (row < until))).sum())

    consume(options, batches())


KINDS: dict[str, Callable[[Options], None]] = {
    "server": server,
    "producer": producer,
    "joader": of_joader,
    "own": own,
    "tensorsocket": of_tensorsocket,
    "order": order,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](json.loads(sys.argv[2]))
