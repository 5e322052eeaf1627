"""Training of one data set by our command and by PyTorch, on the same encoded rows."""

import json
import os
import pathlib
import subprocess
import sys

import numpy
import shortlist

HERE = pathlib.Path(__file__).resolve().parent
BATCHES = (32, 256, 4096)
MODES = ("dense", "compiled")  # PyTorch's ways; the faster one of each setting is compared with


def run(command, environment=None):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"this failed: {' '.join(map(str, command))}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Training:
    """One data set: our command on its CSV, PyTorch on the same rows as our features encode them."""

    def __init__(self, chosen, name, rows):
        self.chosen, self.name, self.csv = chosen, name, rows
        self.work = chosen.build / "bench" / "rank" / name
        self.work.mkdir(parents=True, exist_ok=True)
        self.spec = json.loads((HERE / f"{name}.json").read_text())
        self.arrays = self.work / "rows.npz"
        self.encode()

    def encode(self):
        ranker = shortlist.Ranker.create(self.spec, str(self.csv))
        encoded = ranker.encode(str(self.csv))
        fields = sorted((f for f in ranker.features if f.form == "id"), key=lambda f: f.at)
        label = self.spec["label"]
        delimiter = self.spec.get("csv", {}).get("delimiter", ",")
        with open(self.csv, encoding="utf-8") as file:
            names = self.spec.get("csv", {}).get("columns") or next(file).rstrip("\n").split(delimiter)
            at = names.index(label["column"])
            labels = [line.rstrip("\n").split(delimiter)[at] == label.get("positive", "1") for line in file]
        numpy.savez(self.arrays, dense=encoded.dense, ids=encoded.ids.astype(numpy.int64),
                    labels=numpy.array(labels, numpy.float32), sizes=[f.size for f in fields],
                    dims=[f.deep_width for f in fields], hidden=self.spec["deep"]["hidden"])
        self.rows = len(labels)

    def ours(self, batch, threads):
        spec = self.work / f"spec-{batch}.json"
        spec.write_text(json.dumps({**self.spec, "train": {"epochs": 1, "batch": batch, "validation": 0}}))
        line = run([self.chosen.build / "shortlist", "train", spec, self.csv, "-o", self.work / "model.slr", "--json",
                    "--threads", threads], {"OMP_NUM_THREADS": str(threads)})[0]
        return line["rows_per_s"]

    def theirs(self, batch, threads, mode, precision="f32"):
        return run([sys.executable, HERE / "train_torch.py", self.arrays, "--batch", batch, "--threads", threads,
                    "--seconds", self.chosen.seconds, "--mode", mode, "--precision", precision],
                   {"OMP_NUM_THREADS": str(threads)})[0]

    def measure(self):
        events = []
        for threads in sorted({1, min(2, len(os.sched_getaffinity(0)))}):
            for batch in BATCHES:
                trials = [self.theirs(batch, threads, mode) for mode in MODES]
                best = max(trials, key=lambda trial: trial["rows_per_s"])
                for number in range(self.chosen.rounds):
                    ours, theirs = self.ours(batch, threads), self.theirs(batch, threads, best["mode"])
                    events.append({"event": "train", "data": self.name, "rows": self.rows, "batch": batch,
                                   "threads": threads, "round": number, "ours": ours,
                                   "theirs": theirs["rows_per_s"], "mode": best["mode"],
                                   "peer": f"torch {theirs['version']}"})
                    print(json.dumps(events[-1]), file=sys.stderr)
        return events
