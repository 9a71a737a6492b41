"""Epochs of small networks in torch on one thread, for networks.py: reads lines of JSON [rows, features, hidden layers,
classes, batch], answers each with [elapsed seconds, seconds of the processor] of an epoch."""

import json
import sys
from itertools import pairwise
from time import perf_counter, process_time

import torch

torch.set_num_threads(1)
RATE = 0.01


class Network:
    """A network, and rows as rows_of() in networks.py makes them, but for their values."""

    def __init__(self, rows, features, hidden, classes):
        torch.manual_seed(1)
        self.labels = torch.arange(rows) * classes // rows
        self.features = torch.randn(rows, features) + torch.randn(classes, features)[self.labels]
        widths = [features, *hidden]
        layers = []
        for width, next_width in pairwise(widths):
            layers += [torch.nn.Linear(width, next_width), torch.nn.Sigmoid()]
        self.model = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], classes))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)
        self.loss = torch.nn.CrossEntropyLoss()

    def epoch(self, batch):
        for rows in torch.randperm(len(self.labels)).split(batch):
            self.optimizer.zero_grad()
            self.loss(self.model(self.features[rows]), self.labels[rows]).backward()
            self.optimizer.step()


def main():
    networks = {}
    for line in sys.stdin:
        *shape, batch = json.loads(line)
        key = json.dumps(shape)
        if key not in networks:
            networks[key] = Network(*shape)
        before, start = process_time(), perf_counter()
        networks[key].epoch(batch)
        print(json.dumps([perf_counter() - start, process_time() - before]), flush=True)


if __name__ == "__main__":
    main()
