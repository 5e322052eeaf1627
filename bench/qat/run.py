"""How much AUC layers in INT8 cost, found by calibration or by training, and what a training step in INT8 takes.

A model of floats learns the training rows of each set. Every way makes its INT8 model from the same rows. Each model is
measured once, on the test rows. A drop is the AUC of floats less that of the INT8 model of the same seed.
"""

import concurrent.futures
import datetime
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import keep  # noqa: E402
from setting import commit, fact, machine, options_of, output_of, span, spread, verdicts  # noqa: E402

SETS = {"adult": "adult", "movielens_like": "movielens100k"}
# Choices of calibration are judged on training rows: the fastest within a bound, or all layers in INT8 whatever the drop.
QAT = ("--mode", "qat", "--max-drop", 1)
WAYS = {
    "static tuned": ("--mode", "static", "--max-drop", 0.0002),
    "static, all layers": ("--mode", "static", "--max-drop", 1),
    "qat observed": (*QAT, "--ranges", "observed"),
    "qat learned": (*QAT, "--ranges", "learned"),
    "qat observed, labels alone": (*QAT, "--ranges", "observed", "--soft", 0),
    "qat learned, labels alone": (*QAT, "--ranges", "learned", "--soft", 0),
}
# A model of floats that trains on likewise, by the defaults of --mode qat.
ON = ("--epochs", 2, "--rate-scale", 0.03, "--soft", 0.5)
SCRATCH = {"from scratch, observed": "observed", "from scratch, learned": "learned"}
BOUNDS = {"static tuned": 0.0005, "qat observed": 0.0003, "qat learned": 0.0003}
STEPS = ("f32", "int8-observed", "int8-learned")


def options():
    parser = options_of("qat", "accuracy", "steps")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=200, help="of steps; the ways take turns")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time")
    parser.add_argument("--quick", action="store_true", help="1 seed and 20 rounds")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seeds, chosen.rounds = 1, 20
    return chosen


class Seed:
    """All models of one set and seed, by the command."""

    def __init__(self, chosen, name, seed, folder):
        self.program, self.name, self.seed, self.folder = chosen.build / "shortlist", name, seed, folder
        self.train, self.test = (chosen.data / SETS[name] / f"{part}.csv" for part in ("train", "test"))

    def call(self, *words):
        return json.loads(output_of("qat", self.program, *words, "--json"))

    def auc(self, model):
        return self.call("evaluate", model, self.test)["auc"]

    def spec(self):
        made = json.loads((ROOT / "examples" / "specs" / f"{self.name}.json").read_text(encoding="utf-8"))
        made["train"]["seed"] = self.seed
        path = self.folder / "spec.json"
        path.write_text(json.dumps(made), encoding="utf-8")
        return path

    def every(self):
        exact, other, spec = self.folder / "f32.slr", self.folder / "int8.slr", self.spec()
        self.call("train", spec, self.train, "-o", exact)
        found = {"f32": self.auc(exact)}
        for way, words in WAYS.items():
            self.call("quantize", exact, "--data", self.train, "-o", other, "--tables", "f32", *words)
            found[way] = self.auc(other)
        self.call("train", spec, self.train, "-o", other, "--init", exact, "--teacher", exact, *ON)
        found["f32, trained on likewise"] = self.auc(other)
        for way, ranges in SCRATCH.items():
            self.call("train", spec, self.train, "-o", other, "--layers", "int8", "--ranges", ranges)
            found[way] = self.auc(other)
        return found


def accuracy(chosen):
    def one(name, seed):
        with tempfile.TemporaryDirectory() as folder:
            found = Seed(chosen, name, seed, pathlib.Path(folder)).every()
        print(f"{name}, seed {seed}:  " + "  ".join(f"{way} {auc:.5f}" for way, auc in found.items()), flush=True)
        return found

    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        seeds = range(1, chosen.seeds + 1)
        return {name: list(pool.map(lambda seed, name=name: one(name, seed), seeds)) for name in SETS}


def steps(chosen):
    """Criteo's shape, 845-1024-512-256-1, in mini-batches of 512, on one thread: each way's time as a share of f32's."""
    with tempfile.TemporaryDirectory() as folder:
        spec = pathlib.Path(folder) / "criteo.json"
        shape = json.loads((ROOT / "bench" / "rank" / "criteo.json").read_text(encoding="utf-8"))
        spec.write_text(json.dumps({**shape, "train": {"epochs": 1, "batch": 512, "validation": 0}}), encoding="utf-8")
        printed = output_of("qat", chosen.build / "bench" / "mixed" / "bench_mixed", spec,
                      chosen.data / "clicks-50000-1" / "train.tsv", chosen.rounds, *STEPS)
    rounds = {}
    for line in printed.splitlines():
        event = json.loads(line)
        rounds.setdefault(event["round"], {})[event["precision"]] = event["processor_ms"]
    return list(rounds.values())


def drops(runs):
    """Each way's AUC and drop over the seeds."""
    return {way: {"auc": statistics.fmean(one[way] for one in runs),
                  "drop": statistics.fmean(one["f32"] - one[way] for one in runs),
                  "worst": max(one["f32"] - one[way] for one in runs)} for way in runs[0]}


def summarise(parts):
    summary = {"accuracy": {name: drops(runs) for name, runs in parts.get("accuracy", {}).items()}}
    rounds = parts.get("steps", [])
    summary["steps"] = {way: spread([one[way] / one["f32"] for one in rounds]) for way in STEPS[1:] if rounds}
    facts = [fact(f"{name}, {way}: AUC lost, mean", bound, made[way]["drop"], False)
             for name, made in summary["accuracy"].items() for way, bound in BOUNDS.items()]
    return {**summary, "targets": facts}


def table(summary):
    for name, made in summary["accuracy"].items():
        print(f"\n{name:30}{'AUC':>9}{'drop':>10}{'worst':>10}")
        for way, told in made.items():
            print(f"  {way:28}{told['auc']:9.5f}{told['drop']:10.5f}{told['worst']:10.5f}")
    for way, told in summary["steps"].items():
        print(f"step, {way}: {span(told, 3)} of f32's time")
    print("\n" + "\n".join(verdicts(summary["targets"])))


PARTS = {"accuracy": accuracy, "steps": steps}


def main():
    chosen = options()
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = chosen.results / ("qat-part.json" if chosen.quick else "qat.json")
    parts = json.loads(path.read_text(encoding="utf-8"))["parts"] if chosen.only and path.exists() else {}
    for name in [chosen.only] if chosen.only else PARTS:
        parts[name] = PARTS[name](chosen)
    summary = summarise(parts)
    keep.record(path, {"about": {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine(),
                                 "seeds": chosen.seeds, "rounds": chosen.rounds}, "summary": summary, "parts": parts})
    table(summary)
    return 0 if all(told["met"] for told in summary["targets"]) else 1


if __name__ == "__main__":
    sys.exit(main())
