"""Trains the comparison's model by PyTorch's DistributedDataParallel over Gloo. torchrun starts it.

The clock runs over steps alone, after five that are not counted. A rank holds its part of the encoded rows in memory,
and its mini-batch is its share of all ranks'. Rank 0 prints one line of JSON."""

import argparse
import json
import os
import pathlib
import sys
import time
import warnings

import numpy
import torch
import torch.distributed as distributed
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rank"))

from train_torch import WideAndDeep  # noqa: E402

WARM = 5


class Joined(torch.nn.Module):
    """The same model with all tables of one width as one table, which is one lookup and one gradient."""

    def __init__(self, sizes, dims, numbers, hidden, sparse):
        super().__init__()
        plain = WideAndDeep(sizes, dims, numbers, hidden, sparse)
        self.table = torch.nn.Embedding(sum(sizes), dims[0], sparse=sparse)
        self.wide, self.layers = plain.wide, plain.layers
        self.register_buffer("first", plain.first)

    def forward(self, dense, ids):
        places = ids + self.first
        return self.layers(torch.cat([dense, self.table(places).flatten(1)], 1)) + self.wide(places)


def optimisers(model, sparse):
    """AdaGrad for all weights, as bench/rank has it: the fused one takes no sparse gradients."""
    looked_up = [weights for name, weights in model.named_parameters() if not name.startswith("layers")]
    layers = list(model.layers.parameters())
    if not sparse:
        return [torch.optim.Adagrad(looked_up + layers, lr=0.01, fused=True)]
    return [torch.optim.Adagrad(looked_up, lr=0.01), torch.optim.Adagrad(layers, lr=0.01, fused=True)]


def stepper(way, data):
    """A function of one step on this way's model."""
    sparse = "sparse" in way["model"]
    kind = Joined if "joined" in way["model"] else WideAndDeep
    torch.manual_seed(1)
    model = kind([int(size) for size in data["sizes"]], [int(dim) for dim in data["dims"]], data["dense"].shape[1],
                 [int(width) for width in data["hidden"]], sparse)
    steppers = optimisers(model, sparse)
    parallel = DistributedDataParallel(model, bucket_cap_mb=way["bucket_mb"], static_graph=way["static"],
                                       gradient_as_bucket_view=way["view"], find_unused_parameters=False,
                                       forward_sync_buffers=False)
    if way["wire"] == "bf16":
        parallel.register_comm_hook(None, bf16_compress_hook)
    forward = torch.compile(parallel) if way["compiled"] else parallel
    loss = torch.nn.BCEWithLogitsLoss()

    def step(dense, ids, labels):
        for one in steppers:
            one.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=way["precision"] == "bf16"):
            value = loss(forward(dense, ids).squeeze(1), labels)
        value.backward()
        for one in steppers:
            one.step()

    return step


class Rows:
    """This rank's rows, in a new order each time they have all been seen."""

    def __init__(self, data, rank, ranks):
        count = data["dense"].shape[0] // ranks
        part = slice(rank * count, (rank + 1) * count)
        self.arrays = [torch.from_numpy(data[name][part].copy()) for name in ("dense", "ids", "labels")]
        self.count, self.at, self.order = count, 0, torch.randperm(count)

    def batch(self, rows):
        if self.at + rows > self.count:
            self.order, self.at = torch.randperm(self.count), 0
        chosen = self.order[self.at:self.at + rows]
        self.at += rows
        return [array[chosen] for array in self.arrays]


def measure(way, data, batch, seconds):
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    rows, share = Rows(data, rank, ranks), batch // ranks
    step = stepper(way, data)

    def seconds_of(steps):
        distributed.barrier()
        began = time.perf_counter()
        for _ in range(steps):
            step(*rows.batch(share))
        distributed.barrier()
        return time.perf_counter() - began

    seconds_of(WARM)
    steps = torch.tensor([max(3, round(3 * seconds / seconds_of(3)))])
    distributed.broadcast(steps, 0)
    return int(steps) * share * ranks / seconds_of(int(steps))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help=".npz with dense, ids, labels, sizes, dims, hidden")
    parser.add_argument("--batch", type=int, required=True, help="rows of a mini-batch of all ranks")
    parser.add_argument("--seconds", type=float, default=4, help="of training")
    parser.add_argument("--way", required=True, type=json.loads, help="JSON: the settings")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    distributed.init_process_group("gloo")
    with numpy.load(options.data) as arrays:
        data = dict(arrays)
    rate = measure(options.way, data, options.batch, options.seconds)
    if distributed.get_rank() == 0:
        print(json.dumps({**options.way, "rows_per_s": rate, "version": torch.__version__}), flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
