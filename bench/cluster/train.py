"""Training on ranks of this machine: beside one process of as many threads, and beside PyTorch over Gloo.

The ranks have one thread each. Contenders take turns, and a round begins with another one each time."""

import json
import math
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "rank"))

from beside_torch import Training  # noqa: E402
from ddp import Peer  # noqa: E402
from jobs import on_ranks, run  # noqa: E402
from setting import fact, span, spread  # noqa: E402

# Data, rows of a mini-batch over all ranks, rows a second that say how many epochs fill a turn.
SETTINGS = (("adult", 256, 400_000), ("adult", 4096, 1_000_000), ("criteo", 512, 20_000), ("criteo", 8192, 25_000))
QUICK = (("adult", 4096, 1_000_000), ("criteo", 8192, 25_000))
FILES = {"adult": "adult/train.csv", "criteo": "clicks-50000-1/train.tsv"}
# Name, ranks, threads of a rank, options.
OURS = (("1 rank x 2 threads", 1, 2, ()), ("2 ranks", 2, 1, ()), ("2 ranks, mpi", 2, 1, ("--algorithm", "mpi")),
        ("2 ranks, mpi, no overlap", 2, 1, ("--algorithm", "mpi", "--no-overlap")),
        ("2 ranks, ring", 2, 1, ("--algorithm", "ring")),
        ("2 ranks, ring, bf16 wire", 2, 1, ("--algorithm", "ring", "--wire", "bf16")),
        ("1 rank x 2 threads, bf16", 1, 2, ("--precision", "bf16")),
        ("2 ranks, mpi, bf16", 2, 1, ("--algorithm", "mpi", "--precision", "bf16")))
RANKS = (1, 2, 4)
# Specs whose sparse bytes are counted, and rows of a mini-batch over 2 ranks; the last is judged.
SPARSE = {"criteo, 1,000 buckets": HERE.parent / "rank" / "criteo.json",
          "criteo, 100,000 buckets": HERE.parents[1] / "examples" / "specs" / "criteo.json"}
SPARSE_BATCHES = (512, 2048, 8192)
SPEED_TARGET, PEER_TARGET, NOISE_TARGET, RAW_TARGET = 0.9, 2.0, 2.0, 1 / 3


# ---------------------------------------------------------------------------------------------------------------------
# Rows a second
# ---------------------------------------------------------------------------------------------------------------------

class Setting:
    """One data set at one mini-batch."""

    def __init__(self, chosen, training, batch, guess):
        self.chosen, self.training, self.batch = chosen, training, batch
        self.spec = training.work / f"ranks-{batch}.json"
        epochs = max(1, round(chosen.seconds * guess / training.rows))
        self.spec.write_text(json.dumps({**training.spec, "train": {"epochs": epochs, "batch": batch,
                                                                    "validation": 0}}))
        self.peer = Peer(training.arrays, batch, chosen.seconds)

    def ours(self, ranks, threads, more):
        line = on_ranks(ranks, [self.chosen.build / "shortlist-mpi", "train", self.spec, self.training.csv, "-o",
                                self.training.work / "ranks.slr", "--json", "--threads", threads, *more], threads)[0]
        return {"rows_per_s": line["rows_per_s"], "weights": line["weights"], "sent_bytes": line["sent_bytes"],
                "emulated": line["emulated"]}

    def contenders(self, best):
        """(name, function of one turn) of all."""
        found = [(name, lambda one=one: self.ours(*one)) for name, *one in OURS]
        return found + [(f"PyTorch DDP, {precision}", lambda way=way: self.peer.rates([way])[0])
                        for precision, way in best.items()]

    def measure(self):
        about = {"data": self.training.name, "batch": self.batch}
        best, events = {}, []
        for precision in ("f32", "bf16"):
            best[precision], tried = self.peer.search(precision)
            events += [{"event": "tried", **about, **line} for line in tried]
        contenders = self.contenders(best)
        for number in range(self.chosen.rounds):
            at = number % len(contenders)
            for name, turn in contenders[at:] + contenders[:at]:
                events.append({"event": "rate", **about, "round": number, "who": name, **turn()})
                print(json.dumps(events[-1]), file=sys.stderr)
        weights = [self.ours(4, 1, more)["weights"] for more in ((), ("--no-overlap",), ())]
        return events + [{"event": "same", **about, "same": len(set(weights)) == 1}]


# ---------------------------------------------------------------------------------------------------------------------
# AUC
# ---------------------------------------------------------------------------------------------------------------------

def auc_of_ranks(chosen, work):
    """The AUC on Adult's test rows, of models by one process (0 ranks) and by ranks that share each mini-batch."""
    events, model = [], work / "adult.slr"
    spec, data = HERE.parents[1] / "examples" / "specs" / "adult.json", chosen.data / "adult"
    for seed in range(1, chosen.seeds + 1):
        for ranks in (0, *RANKS):
            words = ["train", spec, data / "train.csv", "-o", model, "--seed", seed, "--threads", 1, "--json"]
            if ranks:
                on_ranks(ranks, [chosen.build / "shortlist-mpi", *words])
            else:
                run([chosen.build / "shortlist", *words])
            judged = run([chosen.build / "shortlist", "evaluate", model, data / "test.csv", "--json"])[0]
            events.append({"event": "auc", "seed": seed, "ranks": ranks, "auc": judged["auc"]})
            print(json.dumps(events[-1]), file=sys.stderr)
    return events


def sparse_bytes(chosen, work):
    """Bytes of the wide weights and embeddings of one epoch on the click log."""
    events, spec = [], work / "sparse.json"
    for name, path in SPARSE.items():
        for batch in SPARSE_BATCHES:
            spec.write_text(json.dumps({**json.loads(path.read_text()), "train": {"epochs": 1, "batch": batch}}))
            line = on_ranks(2, [chosen.build / "shortlist-mpi", "train", spec, chosen.data / FILES["criteo"], "-o",
                                work / "sparse.slr", "--json", "--threads", 1])[0]
            events.append({"event": "sparse", "spec": name, "batch": batch, **line["sparse"]})
            print(json.dumps(events[-1]), file=sys.stderr)
    return events


def measure(chosen, work):
    sets, events = {}, auc_of_ranks(chosen, work) + sparse_bytes(chosen, work)
    for name, batch, guess in QUICK if chosen.quick else SETTINGS:
        if name not in sets:
            sets[name] = Training(chosen, name, chosen.data / FILES[name])
        events += Setting(chosen, sets[name], batch, guess).measure()
    return events


# ---------------------------------------------------------------------------------------------------------------------
# Summary
# ---------------------------------------------------------------------------------------------------------------------

def rates(events):
    """A row for each contender of a setting. `ratio`: its rows a second over those of one process in the same round;
    `over_peer`: over PyTorch's of the same precision."""
    turns = {}
    for event in events:
        if event["event"] == "rate":
            turns.setdefault((event["data"], event["batch"]), {}).setdefault(event["who"], {})[event["round"]] = event
    rows = []
    for (data, batch), found in turns.items():
        for who, own in found.items():
            precision = "bf16" if who.endswith(", bf16") else "f32"
            alone = found["1 rank x 2 threads" + (", bf16" if precision == "bf16" else "")]
            peer = found[f"PyTorch DDP, {precision}"]

            def over(others):
                return spread([own[r]["rows_per_s"] / others[r]["rows_per_s"] for r in own])

            rows.append({"data": data, "batch": batch, "who": who, "ratio": over(alone), "over_peer": over(peer),
                         "rows_per_s": spread([event["rows_per_s"] for event in own.values()])})
    return rows


def tried(events):
    names = ("data", "batch", "model", "bucket_mb", "static", "view", "wire", "compiled", "precision", "rows_per_s",
             "version")
    return [{name: event[name] for name in names} for event in events if event["event"] == "tried"]


def accuracy(events):
    """A row for each number of ranks. `distance`: of the mean from that of one process, in standard errors of the
    difference."""
    values = {}
    for event in events:
        if event["event"] == "auc":
            values.setdefault(event["ranks"], []).append(event["auc"])
    alone, rows = values.get(0, []), []
    for ranks, own in values.items():
        error = math.sqrt((statistics.variance(own) + statistics.variance(alone)) / len(own)) if len(own) > 1 else 0
        apart = statistics.mean(own) - statistics.mean(alone)
        rows.append({"ranks": ranks, "mean": statistics.mean(own), "auc": spread(own), "seeds": len(own),
                     "distance": abs(apart) / error if error else 0.0})
    return rows


def sparse(events):
    return [{"spec": event["spec"], "batch": event["batch"], "step_bytes": event["bytes"] / event["steps"],
             "of_least": event["bytes"] / event["least_bytes"], "of_dense": event["bytes"] / event["dense_bytes"],
             "of_raw": event["bytes"] / event["raw_rows_bytes"]} for event in events if event["event"] == "sparse"]


def summarise(events):
    found = {"rates": rates(events), "tried": tried(events), "accuracy": accuracy(events),
             "same": [event for event in events if event["event"] == "same"], "sparse": sparse(events)}
    facts = []
    for row in found["sparse"]:
        name = f"{row['spec']}, batch {row['batch']}: sparse bytes"
        facts.append(fact(f"{name}, of the cheaper way", 1, row["of_least"], False))
        if row["batch"] == SPARSE_BATCHES[-1]:
            facts.append(fact(f"{name}, of raw rows", RAW_TARGET, row["of_raw"], False))
    for row in found["rates"]:
        if row["who"] in ("2 ranks", "2 ranks, mpi, bf16"):
            name = f"{row['data']}, batch {row['batch']}, {row['who']}"
            facts.append(fact(f"{name}, of one process", SPEED_TARGET, row["ratio"]["median"], True))
            facts.append(fact(f"{name}, times PyTorch DDP", PEER_TARGET, row["over_peer"]["median"], True))
    for row in found["same"]:
        facts.append(fact(f"{row['data']}, batch {row['batch']}, 4 ranks: one model, overlap or not", 1,
                          int(row["same"]), True))
    for row in found["accuracy"]:
        if row["ranks"]:
            facts.append(fact(f"Adult, {row['ranks']} ranks, AUC from one process's, standard errors", NOISE_TARGET,
                              row["distance"], False))
    return {**found, "targets": facts}


def table(summary):
    lines = [""]
    for row in summary["rates"]:
        lines.append(f"{row['data']:7} batch {row['batch']:5}  {row['who']:26} {row['rows_per_s']['median']:10.0f} rows/s"
                     f"   of one process {span(row['ratio'])}   times PyTorch {span(row['over_peer'])}")
    for row in summary["accuracy"]:
        who = f"{row['ranks']} ranks" if row["ranks"] else "one process"
        lines.append(f"Adult, {who:12} AUC {row['mean']:.5f} mean, {span(row['auc'], 5)} over {row['seeds']} seeds")
    for row in summary["sparse"]:
        lines.append(f"{row['spec']:24} batch {row['batch']:5}   sparse bytes a step {row['step_bytes']:11,.0f}   of raw "
                     f"rows {row['of_raw']:.3f}   of whole tables {row['of_dense']:.3f}")
    return "\n".join(lines)


def draw(summary, about, path):
    """Bars of all contenders' rows a second over one process's, a row of bars for each setting."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    import keep

    settings = list(dict.fromkeys((row["data"], row["batch"]) for row in summary["rates"]))
    if not settings:
        return
    figure, axes = pyplot.subplots(1, len(settings), figsize=(3 * len(settings) + 2, 3.2), sharey=True, squeeze=False)
    for axis, setting in zip(axes[0], settings):
        rows = [row for row in summary["rates"] if (row["data"], row["batch"]) == setting][::-1]
        middle = [row["rows_per_s"]["median"] / 1000 for row in rows]
        spreads = [[at - row["rows_per_s"]["min"] / 1000 for at, row in zip(middle, rows)],
                   [row["rows_per_s"]["max"] / 1000 - at for at, row in zip(middle, rows)]]
        axis.barh([row["who"] for row in rows], middle, xerr=spreads, height=0.7, error_kw={"linewidth": 0.8},
                  color=["tab:orange" if "PyTorch" in row["who"] else "tab:blue" for row in rows])
        axis.set_title(f"{setting[0]}, batch {setting[1]}", fontsize=9)
        axis.set_xlabel("1,000 rows/s", fontsize=8)
        axis.tick_params(labelsize=8)
    figure.suptitle(about["machine"]["cpu"], fontsize=9)
    figure.tight_layout()
    keep.picture(figure, path)
