"""What networks learn that get their rows from JOADER, compared with a full shuffle of their own:
`accuracy.py DATA CSV`.

A small convolution net learns cifar10, sorted by label. Four jobs share, each a process of its own which starts a
moment after the one before it; or each is alone, and shuffles all rows again in each epoch. Both begin with the same
weights.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import measured
from data import pictures, write_parquet
from learning import CASES, network, pixels
from measured import PATIENCE, processes, save, wait
from processes import say, started

CASE = CASES["cifar10"]
JOBS = 4
APART = 0.3  # seconds between the starts of jobs
SEEDS = int(os.environ.get("SEEDS", 3))
EPOCHS = int(os.environ.get("LEARNING_EPOCHS", CASE.epochs))


def shuffled(x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[Any, Any]]:
    draw = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        order = draw.permutation(len(y))
        for start in range(0, len(y), CASE.batch):
            rows = order[start : start + CASE.batch]
            yield x[rows], torch.from_numpy(y[rows])


def shared(options: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    from corgipile import joader

    job = joader.Job(
        options["address"],
        dataset="cifar10",
        seed=options["seed"],
        epochs=EPOCHS,
        batch_size=CASE.batch,
        tensors="torch",
    )
    for batch in job:
        yield batch["x"], batch["y"]


def train(options: dict[str, Any]) -> None:
    """A job: the accuracy after each epoch."""
    torch.set_num_threads(1)
    data, seed = Path(options["data"]), options["seed"]
    test_x, test_y = pictures(data, CASE.name, "test")
    test_x, test_y = pixels(test_x, CASE.shape), torch.as_tensor(test_y)
    x, y = pictures(data, CASE.name)
    torch.manual_seed(seed)
    net = network(CASE)
    optimizer = torch.optim.SGD(net.parameters(), CASE.rate, momentum=0.9)
    started()
    time.sleep(options["wait"])
    batches = shared(options) if options["address"] else shuffled(x, y, seed)
    each = math.ceil(len(y) / CASE.batch)
    accuracies, losses = [], []
    for step, (of_x, of_y) in enumerate(batches, 1):
        for group in optimizer.param_groups:
            group["lr"] = CASE.rate * (1 + math.cos(math.pi * step / (EPOCHS * each))) / 2
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(pixels(of_x, CASE.shape)), of_y.long())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % each == 0:
            with torch.no_grad():
                accuracies.append(float((net(test_x).argmax(1) == test_y).float().mean()))
    of_epochs = [float(np.mean(losses[epoch * each : (epoch + 1) * each])) for epoch in range(EPOCHS)]
    say("DONE", {"accuracies": accuracies, "losses": of_epochs})
    sys.stdin.read()


def main(data: Path, path: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("accuracy.py: ended"))
    from corgipile import joader, parquet

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        file, address = Path(name) / "cifar10.parquet", f"unix:{name}/joader"
        write_parquet(file, *pictures(data, CASE.name), CASE.block)
        for seed in range(SEEDS):
            for way in ("shared", "alone"):
                with processes() as start:
                    if way == "shared":
                        server = start("server", {"address": address, "memory": 1 << 24, "threads": 1})
                        server.go()
                        wait(lambda server=server: server.has("SERVES"), PATIENCE, "to serve")
                        joader.create(address, "cifar10", parquet(str(file)), element_size=1)
                    jobs = []
                    for job in range(JOBS):
                        options = {"data": str(data), "seed": seed * JOBS + job, "wait": job * APART}
                        options["address"] = address if way == "shared" else ""
                        jobs.append(start("train", options))
                    wait(lambda jobs=jobs: all(job.has("READY") for job in jobs), PATIENCE, "to import packages")
                    for job in jobs:
                        job.go()
                    wait(lambda jobs=jobs: all(job.has("DONE") for job in jobs), PATIENCE, "to learn")
                    loads = joader.status(address)["loads"] if way == "shared" else 0
                    told = [job.said["DONE"] for job in jobs]
                for job, of in enumerate(told):
                    for epoch, (accuracy, loss) in enumerate(zip(of["accuracies"], of["losses"]), 1):
                        one = {"seed": seed, "way": way, "job": job, "epoch": epoch, "accuracy": accuracy}
                        rows.append(one | {"loss": loss, "loads": loads, "load": os.getloadavg()[0]})
                last = " ".join(f"{of['accuracies'][-1]:.3f}" for of in told)
                print(f"accuracy, seed {seed}, {way:6}: {last}; {loads} rows read", flush=True)
                save(path, rows)


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(json.loads(sys.argv[2]))
    else:
        measured.PROGRAMS["train"] = Path(__file__)
        main(Path(sys.argv[1]), Path(sys.argv[2]))
