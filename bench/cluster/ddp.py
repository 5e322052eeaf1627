"""PyTorch's DistributedDataParallel as a contender: the settings it may have, and the search for its best ones."""

import json
import pathlib
import subprocess
import sys

from jobs import run

HERE = pathlib.Path(__file__).resolve().parent
DEFAULT = {"model": "plain dense", "bucket_mb": 25, "static": True, "view": True, "wire": "f32", "compiled": False}
TRIES = 3
MODELS = ("plain dense", "joined dense", "plain sparse", "joined sparse")
# Each is tried alone, on the best model. A bucket of 25 MB is PyTorch's default.
CHANGES = ({"bucket_mb": 1}, {"bucket_mb": 4}, {"bucket_mb": 100}, {"static": False}, {"view": False})


class Peer:
    """PyTorch on 2 ranks of 1 thread each, on the encoded rows of one file."""

    def __init__(self, rows, batch, seconds):
        self.rows, self.batch, self.seconds = rows, batch, seconds

    def rates(self, ways):
        """A line for each way, in processes of its own. PyTorch 2.15 sometimes ends by a damaged heap, so a way gets
        three tries, and is then left out."""
        lines = []
        for way in ways:
            for _ in range(TRIES):
                try:
                    lines += run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                                  HERE / "train_ddp.py", self.rows, "--batch", self.batch, "--seconds", self.seconds,
                                  "--way", json.dumps(way)], {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})
                    break
                except (SystemExit, subprocess.SubprocessError):
                    print(f"bench cluster: PyTorch failed with {way}", file=sys.stderr)
        return lines

    def search(self, precision):
        """Tries the ways. Returns the fastest one and all lines. A static graph takes no sparse gradients."""
        models = [{**DEFAULT, "precision": precision, "model": model, "static": "sparse" not in model}
                  for model in MODELS]
        tried = self.rates(models)
        best = way_of(fastest(tried))
        changed = [{**best, **change} for change in CHANGES]
        tried += self.rates([way for way in changed if not (way["static"] and "sparse" in way["model"])])
        # torch.compile needs a C++ compiler, and is left out without one.
        tried += self.rates([{**way_of(fastest(tried)), "compiled": True, "static": False}])
        return way_of(fastest(tried)), tried


def fastest(lines):
    return max(lines, key=lambda line: line["rows_per_s"])


def way_of(line):
    return {name: line[name] for name in (*DEFAULT, "precision")}
