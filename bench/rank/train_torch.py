"""Trains the comparison's model in PyTorch for some seconds and prints rows a second as a line of JSON.

The rows lie encoded in memory, as ours do when our clock runs. The model is the one the spec describes. Embeddings and
numbers go into the layers. The wide part is a sum of one weight a category. One optimiser call serves both: AdaGrad,
whose step costs less than the FTRL of our wide part. bf16 is by torch.autocast."""

import argparse
import json
import time

import numpy
import torch


class WideAndDeep(torch.nn.Module):
    def __init__(self, sizes, dims, numbers, hidden, sparse):
        super().__init__()
        self.tables = torch.nn.ModuleList(
            torch.nn.Embedding(size, dim, sparse=sparse) for size, dim in zip(sizes, dims))
        self.wide = torch.nn.EmbeddingBag(sum(sizes), 1, mode="sum", sparse=sparse)
        self.register_buffer("first", torch.tensor([0] + list(sizes[:-1])).cumsum(0))
        widths = [numbers + sum(dims), *hidden]
        layers = []
        for inputs, outputs in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))

    def forward(self, dense, ids):
        parts = [dense] + [table(ids[:, i]) for i, table in enumerate(self.tables)]
        return self.layers(torch.cat(parts, 1)) + self.wide(ids + self.first)


def optimisers(model, sparse):
    if not sparse:
        return [torch.optim.Adagrad(model.parameters(), lr=0.01, fused=True)]
    touched = list(model.tables.parameters()) + list(model.wide.parameters())
    return [torch.optim.Adagrad(touched, lr=0.01),
            torch.optim.Adagrad(model.layers.parameters(), lr=0.01, fused=True)]


def trainer(model, sparse, compiled, precision):
    loss = torch.nn.BCEWithLogitsLoss()
    steppers = optimisers(model, sparse)
    forward = torch.compile(model) if compiled else model

    def step(dense, ids, labels):
        for stepper in steppers:
            stepper.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            value = loss(forward(dense, ids).squeeze(1), labels)
        value.backward()
        for stepper in steppers:
            stepper.step()
        return value

    return step


def measure(options, data):
    dense, ids, labels = (torch.from_numpy(data[name]) for name in ("dense", "ids", "labels"))
    model = WideAndDeep([int(size) for size in data["sizes"]], [int(dim) for dim in data["dims"]], dense.shape[1],
                        [int(width) for width in data["hidden"]], options.mode == "sparse")
    step = trainer(model, options.mode == "sparse", options.mode == "compiled", options.precision)
    rows, seen, began, began_cpu = dense.shape[0], 0, None, 0
    order, at, warm = torch.randperm(rows), 0, 0
    while began is None or time.perf_counter() - began < options.seconds:
        if at + options.batch > rows:
            order, at = torch.randperm(rows), 0
        batch = order[at:at + options.batch]
        at += options.batch
        step(dense[batch], ids[batch], labels[batch])
        if began is None:
            warm += 1
            if warm == 5:
                began, began_cpu = time.perf_counter(), time.process_time()
            continue
        seen += options.batch
    return {"rows_per_s": seen / (time.perf_counter() - began),
            "rows_per_processor_s": seen / (time.process_time() - began_cpu)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help=".npz with dense, ids, labels, sizes, dims, hidden")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--mode", choices=("dense", "sparse", "compiled"), default="dense")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    rates = measure(options, numpy.load(options.data))
    print(json.dumps({**rates, "mode": options.mode, "version": torch.__version__}))


if __name__ == "__main__":
    main()
