"""PyTorch's DistributedDataParallel as a contender: the settings it may have, and the search for its best ones."""

import json
import pathlib
import subprocess
import sys

from jobs import run

HERE = pathlib.Path(__file__).resolve().parent
DEFAULT = {"model": "plain dense", "bucket_mb": 25, "static": True, "view": True, "wire": "f32", "compiled": False}
MODELS = ("plain dense", "joined dense", "plain sparse", "joined sparse")
# Each is tried alone, on the best model. A bucket of 25 MB is PyTorch's default.
CHANGES = ({"bucket_mb": 1}, {"bucket_mb": 4}, {"bucket_mb": 100}, {"static": False}, {"view": False})


class Peer:
    """PyTorch on 2 ranks of 1 thread each, on the encoded rows of one file."""

    def __init__(self, rows, batch, seconds):
        self.rows, self.batch, self.seconds = rows, batch, seconds

    def rates(self, ways):
        """A line for each way."""
        return run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                    HERE / "train_ddp.py", self.rows, "--batch", self.batch, "--seconds", self.seconds, "--ways",
                    json.dumps(ways)], {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})

    def search(self, precision):
        """Tries the ways. Returns the fastest one and all lines. A static graph takes no sparse gradients."""
        models = [{**DEFAULT, "precision": precision, "model": model, "static": "sparse" not in model}
                  for model in MODELS]
        tried = self.rates(models)
        best = way_of(fastest(tried))
        changed = [{**best, **change} for change in CHANGES]
        tried += self.rates([way for way in changed if not (way["static"] and "sparse" in way["model"])])
        tried += self.compiled(way_of(fastest(tried)))
        return way_of(fastest(tried)), tried

    def compiled(self, way):
        """torch.compile of a way, which needs a C++ compiler."""
        try:
            return self.rates([{**way, "compiled": True, "static": False}])
        except (SystemExit, subprocess.SubprocessError):
            print("bench cluster: torch.compile failed; PyTorch runs without it", file=sys.stderr)
            return []


def fastest(lines):
    return max(lines, key=lambda line: line["rows_per_s"])


def way_of(line):
    return {name: line[name] for name in (*DEFAULT, "precision")}
