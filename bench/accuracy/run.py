"""How well the ranker learns real tables: its parts together and alone, and pytorch-widedeep beside them.

Every model learns the training rows. A held-out share of them chooses the epochs. Each model is measured once, on the
test rows, which nothing else has seen.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import shortlist  # noqa: E402
import keep  # noqa: E402
import widedeep  # noqa: E402
from setting import commit, fact, machine, verdicts  # noqa: E402
from sets import LARGER_IS_BETTER, SETS, SPECS, labels, measures, read  # noqa: E402

PARTS = ("joint", "wide alone", "deep alone")
# The rate that validation rows prefer for a wide part which stands alone, where that is not the joint model's.
WIDE_RATES = {"adult": 1, "movielens_rating": 0.2}
PEER = "pytorch-widedeep"
PEER_SETS = ("adult", "movielens_rating", "movielens_like")  # flights would take it an hour
# The targets: set, measure, bound.
TARGETS = (("adult", "auc", 0.915), ("adult", "logloss", 0.304), ("movielens_rating", "rmse", 0.93),
           ("movielens_like", "auc", 0.78))


def said(model):
    """The name of a model in tables. The peer has its own defaults, where ours has rates and dropout chosen for each
    table."""
    return f"{PEER}, untuned" if model == PEER else model


def options():
    parser = argparse.ArgumentParser(prog="./dev bench accuracy")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"), help="folder of the data sets")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("bench/results"),
                        help="where accuracy.json goes")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each model")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--peer-seeds", type=int, help=f"trainings of {PEER}, which take most of the time; default: "
                        "as many as of ours")
    parser.add_argument("--no-peer", action="store_true", help=f"leave out {PEER}")
    parser.add_argument("--quick", action="store_true", help="one seed")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seeds = 1
    chosen.peer_seeds = 0 if chosen.no_peer else chosen.peer_seeds or chosen.seeds
    return chosen


def spec_of(name, part):
    spec = json.loads((SPECS / f"{name}.json").read_text(encoding="utf-8"))
    if part == "wide alone":
        spec["deep"] = None
        spec["wide"]["rate"] = WIDE_RATES.get(name, spec["wide"]["rate"])
    if part == "deep alone":
        spec["wide"] = None
    return spec


class Set:
    """A table, its spec, and the models that learn it. Ours read the CSV files, the peer the same rows."""

    def __init__(self, chosen, name):
        folder, self.measure = SETS[name]
        self.name = name
        self.spec = spec_of(name, "joint")
        self.train, self.test = (chosen.data / folder / f"{part}.csv" for part in ("train", "test"))
        self.rows = [read(self.train), read(self.test)]
        self.labels = [labels(self.spec, rows) for rows in self.rows]

    def ours(self, part, seed):
        begin = time.perf_counter()
        ranker = shortlist.Ranker.train(spec_of(self.name, part), self.train, seed=seed, threads=1)
        seconds = time.perf_counter() - begin
        report = ranker.report
        return {**measures(self.spec, self.labels[1], ranker.predict(self.test)), "seconds": seconds,
                "epochs": report.best_epoch, "valid_loss": report.valid_loss}

    def peer(self, seed):
        begin = time.perf_counter()
        scores = widedeep.scores(self.spec, self.rows[0], self.labels[0], self.rows[1], seed)
        return {**measures(self.spec, self.labels[1], scores), "seconds": time.perf_counter() - begin}


def learn(chosen, name):
    """All models of a set, a seed of each in turn."""
    learned = Set(chosen, name)
    seeds = dict.fromkeys(PARTS, chosen.seeds)
    if chosen.peer_seeds and name in PEER_SETS:
        seeds[PEER] = chosen.peer_seeds
    runs = {model: [] for model in seeds}
    for seed in range(1, max(seeds.values()) + 1):
        for model in [model for model in seeds if seed <= seeds[model]]:
            run = learned.peer(seed) if model == PEER else learned.ours(model, seed)
            runs[model].append({"seed": seed, **run})
            print(f"{name:18}{model:18}seed {seed}   {learned.measure} {run[learned.measure]:.4f}   "
                  f"{run['seconds']:6.1f} s", flush=True)
    return runs


def mean(runs, what):
    return statistics.fmean(run[what] for run in runs)


def sums(runs):
    """Mean and standard deviation over the seeds of every figure."""
    return {what: {"mean": mean(runs, what),
                   "sd": statistics.stdev(run[what] for run in runs) if len(runs) > 1 else 0.0}
            for what in runs[0] if what != "seed"}


def targets(summary):
    facts = [fact(f"{name}, {what}", bound, summary[name]["joint"][what]["mean"], LARGER_IS_BETTER[what])
             for name, what, bound in TARGETS if name in summary]
    for name, models in summary.items():
        what = SETS[name][1]
        for model in [model for model in models if model != "joint"]:
            facts.append(fact(f"{name}, {what} of joint against {said(model)}", models[model][what]["mean"],
                              models["joint"][what]["mean"], LARGER_IS_BETTER[what]))
    return facts


def table(summary, facts, seeds, peer_seeds):
    lines = ["", f"On the test rows, mean ± standard deviation of {seeds} seeds ({peer_seeds} of {said(PEER)})"]
    for name, models in summary.items():
        columns = [what for what in LARGER_IS_BETTER if what in models["joint"]]
        lines += ["", f"{name:30}" + "".join(f"{what:>19}" for what in (*columns, "seconds"))]
        for model, figures in models.items():
            lines.append(f"  {said(model):28}" + "".join(f"{figures[what]['mean']:10.4f} ± {figures[what]['sd']:.4f}"
                                                         for what in columns) + f"{figures['seconds']['mean']:19.1f}")
    return "\n".join([*lines, "", *verdicts(facts)])


def main():
    chosen = options()
    path = chosen.results / "accuracy.json"
    # Sets that are not measured now keep what the record has of them.
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": {}, "measured": {}}
    runs = {**record["runs"], **{name: learn(chosen, name) for name in chosen.sets}}
    now = {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine(),
           "seeds": chosen.seeds, "peer_seeds": chosen.peer_seeds}
    measured = {**record["measured"], **dict.fromkeys(chosen.sets, now)}
    summary = {name: {model: sums(done) for model, done in models.items()} for name, models in runs.items()}
    facts = targets(summary)
    print(table(summary, facts, chosen.seeds, chosen.peer_seeds))
    chosen.results.mkdir(parents=True, exist_ok=True)
    keep.record(path, {
        "about": {"shortlist": shortlist.__version__,
                  "peer": {"name": PEER, "tuned": False, "hidden": widedeep.HIDDEN, "epochs_at_most": widedeep.EPOCHS,
                           "regression_epochs_at_most": widedeep.REGRESSION_EPOCHS,
                           "batch": widedeep.BATCH, "validation": widedeep.VALIDATION,
                           "patience": widedeep.PATIENCE}},
        "measured": measured, "summary": summary, "targets": facts, "runs": runs})
    print(f"\nwritten to {path}")
    return 0 if all(f["met"] for f in facts) else 1


if __name__ == "__main__":
    sys.exit(main())
