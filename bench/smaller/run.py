"""How well smaller models rank that were distilled or pruned from a large one, beside a small one that only labels taught.

The large model has the dense layers of Intel's wide & deep model for Criteo, 1024-512-256. Every smaller one has at most
a quarter of their multiply-adds. All learn the training rows of one table; a held-out share of them chooses the epoch.
Each model is measured once, on the test rows.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import keep  # noqa: E402
from setting import commit, machine  # noqa: E402

LARGE, SMALL = [1024, 512, 256], [448, 192, 96]
BOUND, SHARE = 0.001, 0.25
WAYS = ("labels", "distilled", "taylor", "norm", "weights")


def options():
    parser = argparse.ArgumentParser(prog="./dev bench smaller")
    parser.add_argument("--set", choices=("adult", "flights"), default="adult")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data", help="folder of the data sets")
    parser.add_argument("--command", type=pathlib.Path, default=ROOT / "build" / "shortlist")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results",
                        help="where smaller-SET.json goes")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=10, help="of each training, at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="of making smaller models")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time")
    return parser.parse_args()


class Trainings:
    """The trainings of one seed, by the command."""

    def __init__(self, chosen, folder, seed):
        self.chosen, self.folder, self.seed = chosen, folder, seed
        self.train, self.test = (chosen.data / chosen.set / f"{part}.csv" for part in ("train", "test"))

    def call(self, *arguments):
        done = subprocess.run([self.chosen.command, *map(str, arguments), "--json"], check=True, capture_output=True,
                              text=True)
        return json.loads(done.stdout)

    def measured(self, model, report):
        tested = self.call("evaluate", model, self.test, "--threads", self.chosen.threads)
        size = self.call("info", model)
        return {"auc": tested["auc"], "logloss": tested["logloss"], "multiply_adds": size["multiply_adds"],
                "parameters": size["parameters"], "bytes": size["bytes"], "dense_zeros": size["dense_zeros"],
                "epochs": report["epochs"], "best_epoch": report["best_epoch"]}

    def spec(self, hidden):
        made = json.loads((ROOT / "examples" / "specs" / f"{self.chosen.set}.json").read_text(encoding="utf-8"))
        made["deep"]["hidden"] = hidden
        made["train"]["seed"] = self.seed
        path = self.folder / f"{hidden[0]}.json"
        path.write_text(json.dumps(made), encoding="utf-8")
        return path

    def learn(self, name, hidden, *more):
        model = self.folder / name
        report = self.call("train", self.spec(hidden), self.train, "-o", model, "--epochs", self.chosen.epochs,
                           "--threads", self.chosen.threads, *more)
        return model, self.measured(model, report)

    def prune(self, name, large, *more):
        model = self.folder / name
        report = self.call("prune", large, "--data", self.train, "-o", model, "--epochs", self.chosen.epochs,
                           "--threads", self.chosen.threads, "--teacher", large, "--rate-scale", 0.3, *more)
        return {**self.measured(model, report), "hidden": report["hidden"]}

    def every(self):
        large, figures = self.learn("large", LARGE)
        units = ("--multiply-adds", 1 - SHARE, "--multiple", 16)
        ways = {
            "labels": ("small, labels alone", lambda: self.learn("plain", SMALL)[1]),
            "distilled": ("small, distilled", lambda: self.learn("distilled", SMALL, "--teacher", large)[1]),
            "taylor": ("pruned of units, by taylor", lambda: self.prune("taylor", large, *units)),
            "norm": ("pruned of units, by norm", lambda: self.prune("norm", large, *units, "--criterion", "norm")),
            "weights": ("weights, 0.8 are 0", lambda: self.prune("weights", large, "--weights", 0.8)),
        }
        return {"large": figures, **{name: make() for way, (name, make) in ways.items() if way in self.chosen.ways}}


def summary(runs):
    """Each model over the seeds, and its AUC less that of the large one of its seed."""
    made = {}
    for name in runs[0]:
        of = [run[name] for run in runs]
        drops = [run["large"]["auc"] - run[name]["auc"] for run in runs]
        made[name] = {"auc": statistics.mean(one["auc"] for one in of),
                      "logloss": statistics.mean(one["logloss"] for one in of),
                      "auc_drop": statistics.mean(drops),
                      "auc_drop_deviation": statistics.stdev(drops) if len(drops) > 1 else 0,
                      "auc_drop_largest": max(drops),
                      "multiply_adds_share": statistics.mean(one["multiply_adds"] / run["large"]["multiply_adds"]
                                                             for one, run in zip(of, runs)),
                      "bytes_share": statistics.mean(one["bytes"] / run["large"]["bytes"]
                                                     for one, run in zip(of, runs))}
        if name != "large":
            made[name]["reached"] = made[name]["auc_drop"] <= BOUND and made[name]["multiply_adds_share"] <= SHARE
    return made


def table(made):
    print(f"{'model':28} {'AUC':>8} {'drop':>9} {'± seeds':>8} {'logloss':>8} {'of the multiply-adds':>21}")
    for name, figures in made.items():
        print(f"{name:28} {figures['auc']:8.5f} {figures['auc_drop']:9.5f} {figures['auc_drop_deviation']:8.5f} "
              f"{figures['logloss']:8.5f} {figures['multiply_adds_share']:21.3f}")


def main():
    chosen = options()

    def run(seed):
        with tempfile.TemporaryDirectory() as folder:
            found = Trainings(chosen, pathlib.Path(folder), seed).every()
        print(f"seed {seed}: " + ", ".join(f"{name} {one['auc']:.5f}" for name, one in found.items()), flush=True)
        return found

    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        runs = list(pool.map(run, range(1, chosen.seeds + 1)))
    made = summary(runs)
    table(made)
    chosen.results.mkdir(parents=True, exist_ok=True)
    keep.record(chosen.results / f"smaller-{chosen.set}.json", {
        "date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine(), "set": chosen.set,
        "epochs": chosen.epochs, "large": LARGE, "small": SMALL, "bound": BOUND, "share": SHARE, "models": made})


if __name__ == "__main__":
    main()
