"""Measures training beside PyTorch, serving beside ONNX Runtime, and the whole funnel; see docs/internals/bench.md."""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy  # noqa: E402
import onnxruntime  # noqa: E402

import plot  # noqa: E402
import report  # noqa: E402
import shortlist  # noqa: E402
from setting import commit, machine  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BATCHES = (32, 256, 4096)
SHAPES = ("criteo", "small")
ITEMS = 200_000  # of item_parts: more than a cache holds
MODES = ("dense", "compiled")  # PyTorch's ways; the faster one of each setting is compared with


def options():
    parser = argparse.ArgumentParser(prog="./dev bench rank")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"), help=argparse.SUPPRESS)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"), help="folder of the data sets")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"),
                        help="where rank.json and rank.svg go")
    parser.add_argument("--rounds", type=int, default=5, help="of each comparison, the two sides taking turns")
    parser.add_argument("--seconds", type=float, default=3, help="of PyTorch's training in a round")
    parser.add_argument("--only", choices=("train", "serve", "items", "funnel"), help="measure one part anew, keep the others")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and training on Adult's shape alone")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds = 2, 2
    return chosen


def run(command, environment=None):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"bench rank: this failed: {' '.join(map(str, command))}")
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

    def theirs(self, batch, threads, mode):
        return run([sys.executable, HERE / "train_torch.py", self.arrays, "--batch", batch, "--threads", threads,
                    "--seconds", self.chosen.seconds, "--mode", mode], {"OMP_NUM_THREADS": str(threads)})[0]

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


def runtime_library():
    folder = pathlib.Path(onnxruntime.__file__).parent / "capi"
    found = sorted(folder.glob("libonnxruntime.so.*"))
    if not found:
        sys.exit(f"bench rank: no libonnxruntime.so in {folder}; install onnxruntime anew")
    return found[0]


def serving(chosen):
    program, events = chosen.build / "bench" / "rank" / "bench_rank", []
    for shape in SHAPES:
        folder = chosen.build / "bench" / "rank" / f"model-{shape}"
        folder.mkdir(parents=True, exist_ok=True)
        run([program, "model", shape, folder])
        run([sys.executable, HERE / "graph.py", folder])
        for what in ("request", "single"):
            events += run([program, what, shape, folder, runtime_library(), chosen.rounds], {"OMP_NUM_THREADS": "1"})
    return events


def item_parts(chosen):
    program = chosen.build / "bench" / "rank" / "bench_item_parts"
    return [event for shape in (*SHAPES, "first")
            for event in run([program, shape, ITEMS, chosen.rounds], {"OMP_NUM_THREADS": "1"})]


def funnel(chosen):
    program, index = (chosen.build / "bench" / "rank" / name for name in ("bench_funnel", "glove100.index"))
    if not index.exists():
        run([chosen.build / "shortlist", "build", chosen.data / "glove100" / "base.fbin", "-o", index, "--metric",
             "cosine", "--codes", "i8", "--refine", "bf16", "--json"])
    queries = chosen.data / "glove100" / "queries.fbin"
    return [event for shape in SHAPES
            for event in run([program, shape, index, queries, chosen.rounds], {"OMP_NUM_THREADS": "1"})]


def training(chosen):
    sets = [("adult", chosen.data / "adult" / "train.csv"), ("flights", chosen.data / "flights" / "train.csv"),
            ("criteo", chosen.data / "clicks-50000-1" / "train.tsv")]
    return [event for name, rows in (sets[:1] if chosen.quick else sets)
            for event in Training(chosen, name, rows).measure()]


PARTS = {"serve": serving, "items": item_parts, "funnel": funnel, "train": training}


def main():
    chosen = options()
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / ("rank-part.json" if chosen.quick else "rank.json")
    parts = json.loads(path.read_text())["parts"] if chosen.only and path.exists() else {}
    for name in [chosen.only] if chosen.only else PARTS:
        about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                 "commit": commit(), "machine": machine(), "rounds": chosen.rounds}
        parts[name] = {**about, "events": PARTS[name](chosen)}
    summary = report.summarise([event for part in parts.values() for event in part["events"]])
    path.write_text(json.dumps({"summary": summary, "parts": parts}, indent=1) + "\n")
    plot.draw(summary, about, path.with_suffix(".svg"))
    print(report.table(about, summary))
    print(report.markdown(about, summary))


if __name__ == "__main__":
    main()
